//! `deploy`, and the installer's configuration.

use base64::Engine as _;

use super::answer;
use crate::endpoints::interfaces;
use crate::http::answer::{Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::plain;
use crate::lifecycle;
use crate::version::Version;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::AddressKind;
use crate::world::status::Status;

/// What a deployment asks for besides its image, checked.
struct Wish {
    user_data: Option<Vec<u8>>,
    ephemeral: bool,
    hardware_sync: bool,
    crash_dump: bool,
    register_as: Vec<String>,
    bridges: Option<Bridges>,
}

/// Bridges on every interface.
struct Bridges {
    kind: String,
    spanning_tree: bool,
    forward_delay: u32,
}

/// `POST machines/{}/?op=deploy`.
pub fn deploy(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.edited_machine(world)?;
    let Some(machine) = world.machines.get(id) else { return Err(Refusal::forbidden()) };
    let status = machine.status;
    let wish = Wish::read(world, call, machine)?;
    if status != Status::Ready && status != Status::Allocated {
        return Err(Refusal::text(409, format!("Can't deploy a machine that is in the '{}' state", status.name())));
    }
    // MAAS asks what is to be installed only of a machine on which something can be.
    let (osystem, series) = world.image_wished(call.form.filled("distro_series"), &machine.architecture)?;
    let kernel = world.kernel_wished(call.form.filled("hwe_kernel"), &osystem, &series, &machine.architecture)?;
    wish.check_storage_and_network(world, id)?;
    if status == Status::Ready {
        lifecycle::deploy::acquire(world, id, user, call.form.get("agent_name").unwrap_or(""), call.form.get("comment"));
        if let Some(Bridges { kind, spanning_tree, forward_delay }) = &wish.bridges {
            interfaces::bridge_all(world, id, kind, *spanning_tree, *forward_delay);
        }
    }
    if let Some(machine) = world.machines.get_mut(id) {
        machine.osystem = osystem;
        machine.distro_series = series;
        machine.hwe_kernel = Some(kernel);
        machine.min_hwe_kernel.get_or_insert_default();
        machine.user_data = wish.user_data;
        machine.ephemeral_deploy = wish.ephemeral;
        machine.enable_hw_sync = wish.hardware_sync;
        machine.enable_kernel_crash_dump = wish.crash_dump;
        machine.register_as = wish.register_as;
    }
    lifecycle::deploy::begin(world, id, user, call.form.get("comment"));
    let answered = answer(world, id);
    lifecycle::deploy::after_commit(world, id).map_err(|words| Refusal::text(503, words))?;
    Ok(answered)
}

impl Wish {
    fn read(world: &World, call: &Call, machine: &Machine) -> Result<Self, Refusal> {
        let flag = |key: &str| call.flag(key).map(|flag| flag.unwrap_or(false));
        let hosts = world.version.has_vm_hosts();
        let (kvm, vmhost) = (flag("install_kvm")? && hosts, flag("register_vmhost")? && hosts);
        let ephemeral = flag("ephemeral_deploy")?;
        // Releases that do not know a field do not read it either.
        let hardware_sync = world.version >= Version::V3_3 && flag("enable_hw_sync")?;
        let crash_dump = world.version >= Version::V3_7 && flag("enable_kernel_crash_dump")?;
        let bridges = Bridges {
            kind: interfaces::bridge_type(call)?,
            spanning_tree: flag("bridge_stp")?,
            forward_delay: call.integer("bridge_fd")?.unwrap_or(0),
        };
        let bridges = call.flag("bridge_all")?.unwrap_or(kvm || vmhost).then_some(bridges);
        if flag("install_rackd")? && world.version >= Version::V3_5 {
            return Err(Refusal::text(400, "Installing the rack controller during deployment is not supported."));
        }
        if kvm || vmhost {
            if call.admin(world).is_err() {
                return Err(Refusal::text(403, "Only administratros can deploy VM hosts"));
            }
            if ephemeral {
                return Err(Refusal::text(400, "A machine can not be a VM host if it is deployed to memory."));
            }
        }
        let user_data = call.form.filled("user_data").map(decode);
        let register_as =
            [(kvm, "virsh"), (vmhost, "lxd")].into_iter().filter(|(wanted, _)| *wanted).map(|(_, kind)| kind.to_owned()).collect();
        let ephemeral = ephemeral || machine.disks.is_empty();
        Ok(Wish { user_data, ephemeral, hardware_sync, crash_dump, register_as, bridges })
    }

    fn check_storage_and_network(&self, world: &World, id: Id<Machine>) -> Result<(), Refusal> {
        let Some(machine) = world.machines.get(id) else { return Ok(()) };
        let on_volume = |machine: &Machine| {
            machine
                .volume_groups
                .iter()
                .flat_map(|group| &group.volumes)
                .any(|volume| volume.filesystem.as_ref().is_some_and(|filesystem| filesystem.mount_point.as_deref() == Some("/")))
        };
        if !self.ephemeral && !machine.disks.iter().any(crate::world::storage::Disk::holds_root) && !on_volume(machine) {
            return Err(Refusal::late_field("storage", "Mount the root '/' filesystem to be able to deploy this node."));
        }
        let interfaces = machine.interfaces.iter().filter_map(|id| world.interfaces.get(*id));
        let configured = interfaces.flat_map(|interface| &interface.addresses).filter_map(|id| world.addresses.get(*id)).any(|address| {
            matches!(address.kind, AddressKind::Auto | AddressKind::Dhcp | AddressKind::UserReserved)
                || (address.kind == AddressKind::Sticky && address.ip.is_some())
        });
        if configured { Ok(()) } else { Err(Refusal::late_field("network", "Node must be configured to use a network")) }
    }
}

/// User data as the machine gets it: base64 is undone, everything else is taken as it is and never refused.
pub fn decode(text: &str) -> Vec<u8> {
    let compact: String = text.split_whitespace().collect();
    base64::engine::general_purpose::STANDARD.decode(&compact).unwrap_or_else(|_| text.as_bytes().to_vec())
}

impl World {
    /// The operating system and series a caller means.
    pub fn image_wished(&self, wish: Option<&str>, architecture: &str) -> Result<(String, String), Refusal> {
        let family = architecture.split('/').next().unwrap_or_default();
        let usable = || self.images.values().filter(|image| image.is_complete() && image.architecture.split('/').next() == Some(family));
        let default = || {
            let (os, series) = (self.setting("default_osystem"), self.setting("default_distro_series"));
            usable()
                .map(crate::world::image::Image::os_and_series)
                .find(|found| *found == (os.as_str(), series.as_str()))
                .is_some()
                .then_some((os, series))
        };
        let Some(wish) = wish else {
            return default().ok_or_else(|| self.unknown_series(""));
        };
        let wish = wish.strip_suffix('*').unwrap_or(wish);
        let numbered = |title: Option<&str>| title.is_some_and(|title| title.split(' ').next() == Some(wish));
        usable()
            .find(|image| {
                let (os, series) = image.os_and_series();
                format!("{os}/{series}") == wish || series == wish || numbered(image.title.as_deref())
            })
            .map(crate::world::image::Image::os_and_series)
            .map(|(os, series)| (os.to_owned(), series.to_owned()))
            .ok_or_else(|| self.unknown_series(wish))
    }

    fn unknown_series(&self, wish: &str) -> Refusal {
        let mut names: Vec<String> = self
            .images
            .values()
            .filter(|image| image.is_complete())
            .map(|image| {
                let (os, series) = image.os_and_series();
                format!("'{os}/{series}'")
            })
            .collect();
        names.push("''".into());
        names.sort();
        names.dedup();
        Refusal::field("distro_series", format!("'{wish}' is not a valid distro_series.  It should be one of: {}.", names.join(", ")))
    }

    /// The kernel a caller means; the image's own unless another one is asked for. Uploaded images run the kernel of what they were
    /// made from.
    fn kernel_wished(&self, wish: Option<&str>, osystem: &str, series: &str, architecture: &str) -> Result<String, Refusal> {
        let image = |os: &str, series: &str| self.images.values().find(|image| image.os_and_series() == (os, series));
        let found = image(osystem, series);
        let base = found.and_then(|image| image.base_image.as_deref()).and_then(|base| base.split_once('/'));
        let base = base.and_then(|(os, series)| image(os, series)).or(found);
        let own = base.and_then(|image| image.architecture.split_once('/')).map_or("", |(_, kernel)| kernel).to_owned();
        match wish {
            None => Ok(own),
            Some(wish) => {
                let offered = found.is_some_and(|image| image.subarches.split(',').any(|kernel| kernel == wish)) || own == wish;
                if offered {
                    Ok(wish.to_owned())
                } else {
                    Err(Refusal::field("hwe_kernel", format!("{wish} is not available for {osystem}/{series} on {architecture}.")))
                }
            }
        }
    }
}

/// The installer's configuration: a short one, since nothing here reads it.
pub fn curtin_config(world: &mut World, call: &Call) -> Reply {
    let id = call.viewed_machine(world)?;
    let Some(machine) = world.machines.get(id) else { return Err(Refusal::forbidden()) };
    if !matches!(machine.status, Status::Deploying | Status::Deployed | Status::FailedDeployment) {
        return Err(Refusal::text(400, format!("Machine {} is not in a deployment state.", machine.hostname)));
    }
    Ok(plain(format!(
        "install:\n  log_file: /tmp/install.log\nkernel:\n  package: linux-{}\n",
        machine.hwe_kernel.as_deref().unwrap_or("generic")
    )))
}
