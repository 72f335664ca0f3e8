//! What every machine has installed: a layer over the host's root, written once a lab, and a few files of each machine.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, chown, symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr};
use serde_json::json;

use super::{
    DiskSpace, Wiring,
    enter::PROGRAM,
    rights::{NO_SWAP, PARAMETERS, WANTED_BY_KUBELETS},
};
use crate::{
    LabError,
    init::{self, boot::Identity, image::ImageOptions, layout::Layout},
    network::{GATEWAY, Place},
    packages,
    programs::{Program, Programs},
};

/// Where the programs of Kubernetes are shown inside a machine.
const KUBERNETES: &str = "/usr/lib/metalshift/kubernetes";
/// The programs a node image has, and where people and units expect them: links there, which an upgrade can replace.
const KUBERNETES_PROGRAMS: [(Program, &str); 4] = [
    (Program::Kubelet, "usr/local/bin"),
    (Program::Kubeadm, "usr/local/bin"),
    (Program::Kubectl, "usr/local/bin"),
    (Program::KubeProxy, "usr/lib/metalshift"),
];
/// Directories in which nothing of the host may be seen: its services, its clusters, its first boot.
const EMPTY_DIRECTORIES: [&str; 16] = [
    "etc/systemd/system",
    "etc/sysctl.d",
    "etc/tmpfiles.d",
    "usr/local/lib/sysctl.d",
    "usr/lib/sysctl.d",
    "etc/modules-load.d",
    "usr/local/lib/modules-load.d",
    "usr/lib/modules-load.d",
    "etc/sysusers.d",
    "etc/cni/net.d",
    "etc/containerd",
    "etc/kubernetes",
    "etc/cloud/cloud.cfg.d",
    "var/lib/cloud",
    "var/lib/metalshift",
    "var/cache/metalshift",
];

/// A number keeps two instances apart that one machine boots in the same lab.
static INSTANCE: AtomicU32 = AtomicU32::new(1);

/// The layer and what is shown in it.
pub(crate) struct MachineImage {
    layer: PathBuf,
    shown: Vec<(PathBuf, PathBuf)>,
}

impl MachineImage {
    /// Writes the layer.
    pub fn write(disks: &DiskSpace, programs: &Programs, executable: &Path, pause_image: &str) -> Result<Self, LabError> {
        let layer = disks.shared("image");
        for directory in EMPTY_DIRECTORIES {
            hide_directory(&layer.join(directory))?;
        }
        // What is in them then is the machine's own, and named on its console.
        for (place, _) in init::boot::unread(Path::new("/")) {
            let (host, path) = (Path::new(&place), layer.join(place.trim_start_matches('/')));
            if host.is_dir() {
                hide_directory(&path)?;
            } else if fs::symlink_metadata(host).is_ok() {
                write(&path, "")?;
                own_above(Path::new("/"), &layer, &place)?;
            }
        }
        if Path::new("/").join(packages::CLOUD_INIT_OFF).exists() {
            hide_file(&layer.join(packages::CLOUD_INIT_OFF))?;
        }
        // Without it cloud-init writes every step of its work to the console.
        let (logging, kept) = (Path::new("/etc/cloud/cloud.cfg.d/05_logging.cfg"), layer.join("etc/cloud/cloud.cfg.d/05_logging.cfg"));
        if logging.exists() {
            fs::copy(logging, &kept).map_err(LabError::io("copy", logging))?;
        }
        write(&layer.join(NO_SWAP.trim_start_matches('/')), "Filename\tType\tSize\tUsed\tPriority\n")?;
        for (parameter, value) in WANTED_BY_KUBELETS {
            write(&layer.join(PARAMETERS.trim_start_matches('/')).join(parameter), &format!("{value}\n"))?;
        }
        let options = ImageOptions { pause_image: pause_image.to_owned(), network_plugins: packages::network_plugins() };
        init::image::write(&layer, &options).map_err(|error| LabError::Manifest { path: layer.clone(), reason: error.to_string() })?;
        let mut shown = vec![(executable.to_owned(), PathBuf::from(PROGRAM))];
        for (program, directory) in KUBERNETES_PROGRAMS {
            let (path, inside) = (programs.path(program), format!("{KUBERNETES}/{}", program.name()));
            link_all(&layer.join(directory), &inside, &[program.name()])?;
            shown.push((path.canonicalize().map_err(LabError::io("find", path))?, PathBuf::from(inside)));
        }
        link_all(&layer.join("usr/bin"), PROGRAM, &init::COMMANDS)?;
        link_all(&layer.join("usr/sbin"), PROGRAM, &init::COMMANDS)?;
        Ok(Self { layer, shown })
    }

    pub fn layer(&self) -> &Path {
        &self.layer
    }

    pub fn shown(&self) -> &[(PathBuf, PathBuf)] {
        &self.shown
    }

    /// Writes what differs from machine to machine, and the user-data of a new instance. A disk that boots again keeps what it has.
    pub fn write_machine_files(upper: &Path, wiring: &Wiring, place: Place, user_data: Option<&[u8]>) -> Result<(), LabError> {
        let Wiring { hostname: name, domain, .. } = wiring;
        if user_data.is_none() && upper.join("etc/hostname").exists() {
            return Ok(());
        }
        write(&upper.join("etc/hostname"), &format!("{name}\n"))?;
        let own = wiring.addresses().first().map(|address| format!("{address} {name}.{domain} {name}\n")).unwrap_or_default();
        write(&upper.join("etc/hosts"), &format!("127.0.0.1 localhost\n::1 localhost ip6-localhost\n{own}"))?;
        let search = if domain == "lab" { domain.clone() } else { format!("{domain} lab") };
        write(&upper.join("etc/resolv.conf"), &format!("nameserver {GATEWAY}\nsearch {search}\n"))?;
        write(&upper.join("etc/cni/net.d/10-lab.conflist"), &network_configuration(place))?;
        let Some(user_data) = user_data else { return Ok(()) };
        let instance = format!("{name}-{}", INSTANCE.fetch_add(1, Ordering::Relaxed));
        let identity = Identity { instance_id: instance, hostname: wiring.full_name(), ..Identity::default() };
        identity.write(&Layout::at(upper), user_data).map_err(LabError::io("write the user-data below", upper))
    }
}

/// Pods of a machine hang on a bridge of its own; the lab's gateway routes between machines.
fn network_configuration(place: Place) -> String {
    json!({
        "cniVersion": "1.0.0",
        "name": "lab",
        "plugins": [
            {
                "type": "bridge", "bridge": "cni0", "isGateway": true, "isDefaultGateway": true, "ipMasq": false, "hairpinMode": true,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": place.pods()}]]},
            },
            {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true},
        ],
    })
    .to_string()
}

/// Nothing of the host is seen in it.
fn hide_directory(path: &Path) -> Result<(), LabError> {
    fs::create_dir_all(path).map_err(LabError::io("create", path))?;
    setxattr(path, "trusted.overlay.opaque", b"y", XattrFlags::empty())
        .map_err(|error| LabError::io("hide the host's files below", path)(error.into()))
}

/// Directories above a file in the layer belong to whom they belong on the host, with the same rights: homes are not everybody's.
fn own_above(root: &Path, layer: &Path, file: &str) -> Result<(), LabError> {
    for above in Path::new(file.trim_start_matches('/')).ancestors().skip(1).filter(|above| above.parent().is_some()) {
        let (host, inside) = (root.join(above), layer.join(above));
        let theirs = fs::metadata(&host).map_err(LabError::io("look at", &host))?;
        fs::set_permissions(&inside, theirs.permissions())
            .and_then(|()| chown(&inside, Some(theirs.uid()), Some(theirs.gid())))
            .map_err(LabError::io("set the rights of", &inside))?;
    }
    Ok(())
}

/// The host's file is not there for machines: a device of this number is what an overlay takes for "removed".
fn hide_file(path: &Path) -> Result<(), LabError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(LabError::io("create", parent))?;
    }
    mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), makedev(0, 0))
        .map_err(|error| LabError::io("hide the host's file at", path)(error.into()))
}

fn link_all(directory: &Path, target: &str, names: &[&str]) -> Result<(), LabError> {
    fs::create_dir_all(directory).map_err(LabError::io("create", directory))?;
    for name in names {
        let link = directory.join(name);
        symlink(target, &link).map_err(LabError::io("link", link))?;
    }
    Ok(())
}

fn write(path: &Path, content: &str) -> Result<(), LabError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(LabError::io("create", parent))?;
    }
    fs::write(path, content).map_err(LabError::io("write", path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_home_in_which_a_file_is_hidden_is_as_private_as_on_the_host() {
        let place = tempfile::tempdir().unwrap();
        let (host, layer) = (place.path().join("host"), place.path().join("layer"));
        let keys = "home/ada/.ssh/authorized_keys";
        write(&host.join(keys), "ssh-ed25519 AAA").unwrap();
        fs::set_permissions(host.join("home/ada"), fs::Permissions::from_mode(0o700)).unwrap();
        write(&layer.join(keys), "").unwrap();
        own_above(&host, &layer, &format!("/{keys}")).unwrap();
        assert_eq!(fs::metadata(layer.join("home/ada")).unwrap().mode() & 0o777, 0o700);
    }
}
