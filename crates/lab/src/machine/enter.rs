//! Third step of a machine's start, as the first process of its namespaces: waits until the network is plugged in, makes the
//! machine's file tree, moves into it and becomes the machine's init.

use std::{ffi::CString, fs, io::Read as _, os::unix::process::CommandExt as _, path::Path, process::Command};

use rustix::{
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, mount_remount, unmount},
    process::pivot_root,
};

use super::{
    MachineFile, devices,
    disk::PLAIN_DIRECTORIES,
    rights::{self, BOUNDING_SET},
    start::read,
};
use crate::{LabError, control_groups::ControlGroup};

/// Where our program is inside a machine; its other names there are links to it.
pub(crate) const PROGRAM: &str = "/usr/lib/metalshift/metalshift";

/// The body of `metalshift lab machine-enter`; does not return unless it fails.
pub fn machine_enter(file: &Path) -> LabError {
    // It takes the file tree of its process apart, so it must be in namespaces made for it.
    if std::process::id() != 1 {
        return LabError::Supervisor("`lab machine-enter` is started by the lab and nobody else".to_owned());
    }
    if let Err(error) = prepare(file) {
        return error;
    }
    let source = Command::new("setpriv")
        .args(["--bounding-set", BOUNDING_SET, "--", PROGRAM, "lab", "machine-init"])
        .env_clear()
        .envs([("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ("HOME", "/root"), ("LANG", "C.UTF-8")])
        .current_dir("/")
        .exec();
    LabError::Io { what: "run", path: "setpriv".into(), source }
}

fn prepare(file: &Path) -> Result<(), LabError> {
    let machine = read(file)?;
    let group = ControlGroup::of(&machine.lab_group, &machine.name)?;
    wait_for_the_network()?;
    build_tree(&machine)?;
    move_in(&machine.disk.join("root"))?;
    mount_system(&group)?;
    rustix::system::sethostname(machine.hostname.as_bytes())
        .map_err(|error| LabError::io("set the name of", &machine.name)(error.into()))?;
    for (parameter, value) in [("net/ipv4/ip_forward", "1"), ("net/bridge/bridge-nf-call-iptables", "1")] {
        // Absent where the kernel has no such thing, which whoever needs it will say.
        let _ = fs::write(Path::new("/proc/sys").join(parameter), value);
    }
    rights::protect_parameters()
}

/// The supervisor closes our input when the network is plugged in.
fn wait_for_the_network() -> Result<(), LabError> {
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop).map_err(LabError::io("wait for the network of", "this machine"))
}

/// The host's root, the image over it, the machine's own changes over both; plus what must be plain or shared.
fn build_tree(machine: &MachineFile) -> Result<(), LabError> {
    let root = machine.disk.join("root");
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: rustix::io::Errno| LabError::io("mount", path)(error.into())
    };
    // Nothing that is mounted here may show up in the lab.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).map_err(failed(Path::new("/")))?;
    let layers = format!(
        "lowerdir={}:/,upperdir={},workdir={}",
        machine.image.display(),
        machine.disk.join("upper").display(),
        machine.disk.join("work").display()
    );
    let layers = CString::new(layers).map_err(|error| LabError::Manifest { path: root.clone(), reason: error.to_string() })?;
    mount("overlay", &root, "overlay", MountFlags::empty(), Some(layers.as_c_str())).map_err(failed(&root))?;
    for directory in PLAIN_DIRECTORIES {
        let target = root.join(directory);
        fs::create_dir_all(&target).map_err(LabError::io("create", &target))?;
        mount_bind(machine.disk.join(directory), &target).map_err(failed(&target))?;
    }
    for (from, to) in &machine.shown {
        let target = root.join(to.strip_prefix("/").unwrap_or(to));
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(LabError::io("create", parent))?;
        }
        fs::File::options().append(true).create(true).open(&target).map_err(LabError::io("create", &target))?;
        mount_bind(from, &target).map_err(failed(&target))?;
        mount_remount(&target, MountFlags::BIND | MountFlags::RDONLY, c"").map_err(failed(&target))?;
    }
    devices::make(&root.join("dev"))
}

/// Makes the tree the root of everything and lets go of the old one.
fn move_in(root: &Path) -> Result<(), LabError> {
    let failed = |error: rustix::io::Errno| LabError::io("move into", root)(error.into());
    rustix::process::chdir(root).map_err(failed)?;
    // The old root ends up on top of the new one and is taken off again, so no directory has to exist for it.
    pivot_root(".", ".").map_err(failed)?;
    unmount(".", UnmountFlags::DETACH).map_err(failed)?;
    rustix::process::chdir("/").map_err(failed)
}

fn mount_system(group: &ControlGroup) -> Result<(), LabError> {
    for (kind, target, options) in
        [("proc", "/proc", None), ("sysfs", "/sys", None), ("tmpfs", "/run", Some(c"mode=0755")), ("tmpfs", "/tmp", Some(c"mode=1777"))]
    {
        mount(kind, target, kind, MountFlags::empty(), options).map_err(|error| LabError::io("mount", target)(error.into()))?;
    }
    group.mount_inside()?;
    // Control groups are mounted below and stay writable; what else can be set in there is the host's.
    mount_remount("/sys", MountFlags::BIND | MountFlags::RDONLY, c"").map_err(|error| LabError::io("protect", "/sys")(error.into()))?;
    // Pods see what is mounted on the machine later, as under systemd.
    mount_change("/", MountPropagationFlags::SHARED | MountPropagationFlags::REC).map_err(|error| LabError::io("share", "/")(error.into()))
}
