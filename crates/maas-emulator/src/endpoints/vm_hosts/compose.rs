//! Composing virtual machines: by a call, or by an allocation that nothing else fits.

use std::net::IpAddr;

use serde_json::json;

use super::{Used, rack_answers, room};
use crate::endpoints::ip_addresses;
use crate::endpoints::machines::{Constraints, InterfaceConstraint, Problems, StorageConstraint, bad_host_label};
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::form::Form;
use crate::lifecycle::commission;
use crate::load::{blank, tag_named};
use crate::world::addressing::NewAddress;
use crate::world::id::Id;
use crate::world::machine::{Machine, PowerState};
use crate::world::network::{AddressKind, Interface, InterfaceKind, Subnet, Vlan};
use crate::world::status::Status;
use crate::world::storage::Disk;
use crate::world::vm_host::VmHost;
use crate::world::{World, next};

const NO_CHOICE: &str = "Select a valid choice. That choice is not one of the available choices.";
/// What a machine gets when nobody says: one core, 2 GiB, 8 GB of disk.
const MEMORY: u64 = 2048;
const LEAST_MEMORY: u64 = 1024;
const STORAGE: &str = "root:8(local)";

/// What is to be composed, checked.
struct Wish {
    hostname: Option<String>,
    /// What is held against the host, also where cores are pinned and the machine has as many as those.
    cores: u32,
    pinned: Vec<u32>,
    memory: u64,
    architecture: String,
    storage: StorageConstraint,
    interfaces: Option<InterfaceConstraint>,
    domain: Option<u32>,
    zone: Option<u32>,
    pool: Option<u32>,
    skip_commissioning: bool,
    dynamic: bool,
}

/// Where an interface goes.
struct Network {
    name: String,
    vlan: Option<Id<Vlan>>,
    subnet: Option<Id<Subnet>>,
    ip: Option<IpAddr>,
}

/// `POST vm-hosts/{}/?op=compose`: answers only what to look for.
pub fn compose(world: &mut World, id: Id<VmHost>, call: &Call) -> Reply {
    let user = call.caller()?;
    let Some(host) = world.vm_hosts.get(id) else { return Err(Refusal::no_match(world, "Pod")) };
    if !host.capabilities.iter().any(|capability| capability == "composable") {
        return Err(Refusal::text(400, "VM host does not support composability."));
    }
    let wish = Wish::read(world, host, call)?;
    refuse_over_commit(world, host, &wish)?;
    let networks = networks(world, host, wish.interfaces.as_ref())?;
    rack_answers(world)?;
    let pools = room::pools_for(world, host, wish.storage.disks())?;
    let skip = wish.skip_commissioning;
    let machine = make(world, id, wish, &networks, pools);
    if !skip {
        commission::begin(world, machine, user, true);
        commission::after_commit(world, machine);
    }
    let system_id = world.machines.get(machine).map(|machine| machine.system_id.clone()).unwrap_or_default();
    Ok(Answer::json(&json!({"system_id": system_id, "resource_uri": format!("/MAAS/api/2.0/machines/{system_id}/")})))
}

fn whole(form: &Form, key: &str, least: u64, most: u64, problems: &mut Problems) -> Option<u64> {
    let text = form.filled(key)?;
    match text.trim().parse::<i128>() {
        Err(_) => problems.add(key, "Enter a whole number."),
        Ok(value) if value < i128::from(least) => problems.add(key, format!("Ensure this value is greater than or equal to {least}.")),
        Ok(value) if value > i128::from(most) => problems.add(key, format!("Ensure this value is less than or equal to {most}.")),
        Ok(value) => return u64::try_from(value).ok(),
    }
    None
}

/// The cores a machine is to have for itself.
fn pinned(host: &VmHost, form: &Form, problems: &mut Problems) -> Vec<u32> {
    let mut pinned = Vec::new();
    for text in form.all("pinned_cores").flat_map(|text| text.split(',')).map(str::trim).filter(|text| !text.is_empty()) {
        match text.parse() {
            Err(_) => problems.add("pinned_cores", format!("'{text}' is not a number of a core.")),
            Ok(core) if core >= host.cores => problems.add("pinned_cores", format!("Core {core} does not exist on this host.")),
            Ok(core) => pinned.push(core),
        }
    }
    pinned
}

impl Wish {
    fn read(world: &World, host: &VmHost, call: &Call) -> Result<Self, Refusal> {
        let form = &call.form;
        let mut problems = Problems::default();
        let hostname = form.filled("hostname").map(str::to_owned);
        if let Some(name) = &hostname {
            if let Some(problem) = bad_host_label(name) {
                problems.add("hostname", problem);
            } else if world.machines.values().any(|machine| machine.hostname == *name) {
                problems.add("hostname", format!("Node with hostname \"{name}\" already exists"));
            }
        }
        let pinned = pinned(host, form, &mut problems);
        let cores = whole(form, "cores", 1, host.cores.into(), &mut problems).unwrap_or(1);
        let memory = whole(form, "memory", LEAST_MEMORY, host.memory, &mut problems).unwrap_or(MEMORY);
        let architecture = form
            .filled("architecture")
            .map(str::to_owned)
            .or_else(|| host.architectures.first().cloned())
            .unwrap_or_else(|| "amd64/generic".into());
        if !host.architectures.contains(&architecture) {
            problems.add("architecture", format!("Select a valid choice. {architecture} is not one of the available choices."));
        }
        let text = form.filled("storage").unwrap_or(STORAGE);
        let storage = StorageConstraint::read(text);
        if storage.is_none() {
            problems.add("storage", format!("Malformed storage constraint, \"{text}\"."));
        }
        let mut choice = |key: &str, exists: &dyn Fn(u32) -> bool| -> Option<u32> {
            let found = form.filled(key)?.parse().ok().filter(|number| exists(*number));
            if found.is_none() {
                problems.add(key, NO_CHOICE);
            }
            found
        };
        let zone = choice("zone", &|number| world.zones.get(Id::new(number)).is_some());
        let pool = choice("pool", &|number| world.pools.get(Id::new(number)).is_some());
        let domain = choice("domain", &|number| world.domains.get(Id::new(number)).is_some());
        let interfaces = form.filled("interfaces").map(InterfaceConstraint::read).transpose();
        let interfaces = interfaces.unwrap_or_else(|problem| {
            problems.add("interfaces", problem);
            None
        });
        problems.refuse()?;
        Ok(Wish {
            hostname,
            cores: u32::try_from(cores).unwrap_or(1),
            pinned,
            memory,
            architecture,
            storage: storage.unwrap_or_default(),
            interfaces,
            domain,
            zone,
            pool,
            skip_commissioning: call.flag("skip_commissioning")?.unwrap_or(false),
            dynamic: false,
        })
    }
}

/// The networks asked for, which the host itself must be on and one of which must have DHCP; without any, the first network with DHCP.
fn networks(world: &World, host: &VmHost, wanted: Option<&InterfaceConstraint>) -> Result<Vec<Network>, Refusal> {
    let Some(constraint) = wanted else {
        let vlan = world.vlans.values().find(|vlan| vlan.dhcp_on).or_else(|| world.vlans.values().next()).map(|vlan| vlan.id);
        return Ok(vec![Network { name: "eth0".into(), vlan, subnet: None, ip: None }]);
    };
    let Some(on) = host.host.and_then(|machine| world.machines.get(machine)) else {
        return Err(Refusal::text(400, "Pod must be on a known host if interfaces are specified."));
    };
    let no_match = || Refusal::text(400, "This pod does not match the specified networks.");
    let mut networks = Vec::new();
    for (label, conditions) in constraint.labels() {
        let ip: Option<IpAddr> = conditions.iter().find(|(key, _)| key == "ip").and_then(|(_, value)| value.parse().ok());
        // An address asks for the network it lies in, and is kept for the machine.
        let network = if let Some(ip) = ip {
            let subnet = world.subnet_of(ip).ok_or_else(no_match)?;
            let vlan = world.subnets.get(subnet).map(|subnet| subnet.vlan);
            if !on.interfaces.iter().filter_map(|id| world.interfaces.get(*id)).any(|interface| interface.vlan == vlan) {
                return Err(no_match());
            }
            ip_addresses::check_free(world, subnet, ip)?;
            Network { name: label.clone(), vlan, subnet: Some(subnet), ip: Some(ip) }
        } else {
            let found = InterfaceConstraint::of(label, conditions).assign(world, on).ok_or_else(no_match)?;
            let interface = found.values().flatten().next().and_then(|id| world.interfaces.get(*id)).ok_or_else(no_match)?;
            Network { name: label.clone(), vlan: interface.vlan, subnet: None, ip: None }
        };
        networks.push(network);
    }
    let boots = |network: &Network| network.vlan.and_then(|vlan| world.vlans.get(vlan)).is_some_and(|vlan| vlan.dhcp_on);
    if !networks.iter().any(boots) {
        let words = "MAAS DHCP must be enabled on at least one VLAN attached to the specified interfaces.";
        return Err(Refusal::text(400, words));
    }
    Ok(networks)
}

/// MAAS checks cores and memory against what may be promised; storage is for the driver.
#[expect(clippy::cast_precision_loss, reason = "MAAS multiplies with a float ratio as well")]
fn refuse_over_commit(world: &World, host: &VmHost, wish: &Wish) -> Result<(), Refusal> {
    let used = Used::by(world, host.id);
    let problem = |what: &str, used: u64, wanted: u64, total: u64, ratio: f64| {
        let exceeds = used as f64 + wanted as f64 > total as f64 * ratio;
        let available = super::left(total, used);
        exceeds.then(|| format!("{what} overcommit ratio is {ratio:?} and there are {available} available resources; {wanted} requested."))
    };
    let cores = problem("CPU", used.cores.into(), wish.cores.into(), host.cores.into(), host.cpu_over_commit_ratio);
    let memory = problem("Memory", used.memory, wish.memory, host.memory, host.memory_over_commit_ratio);
    if cores.is_none() && memory.is_none() {
        return Ok(());
    }
    let problems: String = cores.into_iter().chain(memory).collect();
    Err(Refusal::text(503, format!("Unable to compose KVM instance in '{}'. {problems}", host.name)))
}

fn make(world: &mut World, id: Id<VmHost>, wish: Wish, networks: &[Network], pools: Vec<Option<String>>) -> Id<Machine> {
    let host = world.vm_hosts.get(id).cloned();
    let system_id = world.fresh_system_id();
    let hostname = wish.hostname.clone().unwrap_or_else(|| world.fresh_hostname());
    let tags = host.iter().flat_map(|host| host.tags.clone()).collect::<Vec<_>>().iter().map(|name| tag_named(world, name)).collect();
    let disks = disks(world, &wish.storage, pools);
    let virtual_machine = next(&mut world.counters.virtual_machine);
    let now = world.now;
    let power_type = host.as_ref().map_or_else(|| "lxd".to_owned(), |host| host.kind.clone());
    let pool = wish.pool.map_or_else(|| host.as_ref().map_or(Id::new(0), |host| host.pool), Id::new);
    let default_domain = world.domains.values().find(|domain| domain.is_default).map_or(Id::new(0), |domain| domain.id);
    let machine = world.add_machine(|row| Machine {
        architecture: wish.architecture,
        cpu_count: if wish.pinned.is_empty() { wish.cores } else { u32::try_from(wish.pinned.len()).unwrap_or(u32::MAX) },
        cpu_speed: host.as_ref().map_or(0, |host| host.cpu_speed),
        memory: wish.memory,
        // The default zone, not the host's.
        zone: wish.zone.map_or(Id::new(1), Id::new),
        pool,
        domain: wish.domain.map_or(default_domain, Id::new),
        power_type,
        power_parameters: [("instance_name".to_owned(), hostname.clone())].into(),
        power_state: PowerState::Off,
        bios_boot_method: Some("uefi".into()),
        has_numa: true,
        disks,
        tags,
        vm_host: Some(id),
        virtual_machine: Some(virtual_machine),
        dynamic: wish.dynamic,
        pinned_cores: wish.pinned,
        status: if wish.skip_commissioning { Status::Ready } else { Status::New },
        since: now,
        ..blank(row, system_id, hostname)
    });
    for network in networks {
        connect(world, machine, network, wish.skip_commissioning);
    }
    if wish.skip_commissioning {
        commission::configure(world, machine);
    }
    machine
}

fn disks(world: &mut World, storage: &StorageConstraint, pools: Vec<Option<String>>) -> Vec<Disk> {
    storage
        .disks()
        .zip(pools)
        .enumerate()
        .map(|(index, ((size, tags), pool))| {
            let letter = char::from(b'a' + u8::try_from(index.min(25)).unwrap_or(0));
            let mut disk = Disk::unused(next(&mut world.counters.disk), format!("sd{letter}"), size);
            disk.serial = if index == 0 { "lxd_root".into() } else { format!("lxd_disk{index}") };
            disk.model = "QEMU HARDDISK".into();
            disk.id_path = format!("/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_{}", disk.serial);
            disk.storage_pool = pool;
            disk.tags = tags.to_vec();
            disk
        })
        .collect()
}

fn connect(world: &mut World, machine: Id<Machine>, network: &Network, linked: bool) {
    let mac = world.random.mac();
    let id = world.interfaces.add(None, |id| Interface {
        id,
        machine,
        name: network.name.clone(),
        kind: InterfaceKind::Physical,
        mac,
        vlan: network.vlan,
        addresses: Vec::new(),
        parents: Vec::new(),
        tags: Vec::new(),
        params: serde_json::Map::new(),
        enabled: true,
        link_connected: true,
        link_speed: 0,
        interface_speed: 0,
        vendor: None,
        product: None,
        firmware_version: None,
        numa_node: Some(0),
        acquired: false,
    });
    if network.ip.is_some() || (linked && network.subnet.is_some()) {
        world.add_address(NewAddress { ip: network.ip, kind: AddressKind::Auto, subnet: network.subnet, user: None, interface: Some(id) });
    }
    if let Some(machine) = world.machines.get_mut(machine) {
        machine.interfaces.push(id);
        machine.boot_interface.get_or_insert(id);
    }
}

/// Composes a machine for an allocation that no Ready machine fits, on the first host that fits and has room. `dry_run` does not stop
/// it, and the zone asked for chooses the host, not the machine's zone. A name asked for is nobody's: the machine gets a random one.
pub fn compose_for_allocation(world: &mut World, constraints: &Constraints, form: &Form) -> Option<Id<Machine>> {
    if !world.version.has_vm_hosts() || world.faults.no_rack {
        return None;
    }
    let cores = constraints.cpu_count.map_or(1, whole_part);
    let memory = constraints.memory.map_or(MEMORY, |memory| u64::from(whole_part(memory)));
    if cores < 1 || memory < LEAST_MEMORY {
        return None;
    }
    let candidates: Vec<Id<VmHost>> = world.vm_hosts.values().filter(|host| constraints.fits_vm_host(host)).map(|host| host.id).collect();
    for id in candidates {
        let Some(host) = world.vm_hosts.get(id) else { continue };
        let architecture = match constraints.architectures.first() {
            Some(wanted) => {
                host.architectures.iter().find(|offered| *offered == wanted || offered.split('/').next() == Some(wanted)).cloned()
            }
            None => host.architectures.first().cloned(),
        };
        let Some(architecture) = architecture else { continue };
        let Ok(networks) = networks(world, host, constraints.interfaces.as_ref()) else { continue };
        let Some(storage) = StorageConstraint::read(form.filled("storage").unwrap_or(STORAGE)) else { continue };
        if cores > host.cores || memory > host.memory {
            continue;
        }
        let wish = Wish {
            hostname: None,
            cores,
            pinned: Vec::new(),
            memory,
            architecture,
            storage,
            interfaces: None,
            domain: None,
            zone: None,
            pool: None,
            skip_commissioning: true,
            dynamic: true,
        };
        let pools = room::pools_for(world, host, wish.storage.disks());
        if let (Ok(()), Ok(pools)) = (refuse_over_commit(world, host, &wish), pools) {
            return Some(make(world, id, wish, &networks, pools));
        }
    }
    None
}

/// The number without its fraction, as Python's `int` has it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the clamp")]
fn whole_part(number: f64) -> u32 {
    number.clamp(0.0, 1e9) as u32
}
