//! The devices of a machine: a /dev of its own with nodes of its own, so that nothing done to them reaches the host's, and the devices of
//! the host that none of its processes may open, whatever nodes they make. Used by the start of a machine.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    mount::{MountFlags, mount},
};

use crate::LabError;

/// Devices without a memory, the kernel's log, and what containers and networks are made with: path below /dev and mode.
const NODES: [(&str, u32); 9] = [
    ("null", 0o666),
    ("zero", 0o666),
    ("full", 0o666),
    ("random", 0o666),
    ("urandom", 0o666),
    ("tty", 0o666),
    ("kmsg", 0o644),
    ("fuse", 0o666),
    ("net/tun", 0o666),
];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Terminals, shared memory and message queues are the machine's own.
const FILE_SYSTEMS: [(&str, &str, &std::ffi::CStr); 3] =
    [("devpts", "pts", c"newinstance,ptmxmode=0666,mode=0620"), ("tmpfs", "shm", c"mode=1777"), ("mqueue", "mqueue", c"")];

/// Drivers, as /proc/devices calls them, whose character devices a machine may open; of two of them only some.
const DRIVERS: [&str; 7] = ["mem", "/dev/tty", "/dev/console", "/dev/ptmx", "ptm", "pts", "misc"];
/// The memory and the ports of the host: minor numbers of `mem`.
const RAW_MEMORY: [u32; 3] = [1, 2, 4];
/// Of `misc`, as /proc/misc calls them.
const MISCELLANEOUS: [&str; 2] = ["fuse", "tun"];

/// Makes the machine's /dev at `devices`.
pub(crate) fn make(devices: &Path) -> Result<(), LabError> {
    let mounted = |path: &Path, result: rustix::io::Result<()>| result.map_err(|error| LabError::io("mount", path)(error.into()));
    mounted(devices, mount("tmpfs", devices, "tmpfs", MountFlags::NOSUID, Some(c"mode=0755,size=1m")))?;
    for (name, mode) in NODES {
        // What the host has not, a machine cannot have.
        let Ok(host) = fs::metadata(Path::new("/dev").join(name)) else { continue };
        node(&devices.join(name), FileType::CharacterDevice, mode, host.rdev())?;
    }
    // The machine's init reads it: what is written there is on the machine's console, not on the host's.
    node(&devices.join("console"), FileType::Fifo, 0o622, 0)?;
    for (name, target) in LINKS {
        symlink(target, devices.join(name)).map_err(LabError::io("create", devices.join(name)))?;
    }
    for (kind, name, options) in FILE_SYSTEMS {
        let target = devices.join(name);
        fs::create_dir(&target).map_err(LabError::io("create", &target))?;
        let result = mount(kind, &target, kind, MountFlags::NOSUID | MountFlags::NOEXEC, Some(options));
        // Kernels without message queues are fine.
        if kind != "mqueue" {
            mounted(&target, result)?;
        }
    }
    Ok(())
}

fn node(path: &Path, kind: FileType, mode: u32, device: u64) -> Result<(), LabError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(LabError::io("create", parent))?;
    }
    mknodat(CWD, path, kind, Mode::from_raw_mode(mode), device).map_err(|error| LabError::io("make the device", path)(error.into()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(LabError::io("make the device", path))
}

/// The rules of a `devices` control group that keep machines from the host's devices: all disks, and every driver that is not known to be
/// harmless. Nodes for them can still be made, because runtimes insist on that right; only opening them is refused.
pub(crate) fn refused() -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    rules(&read("/proc/devices"), &read("/proc/misc"))
}

fn rules(devices: &str, miscellaneous: &str) -> Vec<String> {
    let numbered = |text: &str| -> Vec<(u32, String)> {
        let pairs = text.lines().filter_map(|line| line.trim().split_once(' '));
        pairs.filter_map(|(number, name)| Some((number.parse().ok()?, name.trim().to_owned()))).collect()
    };
    let characters = numbered(devices.split("Block devices:").next().unwrap_or_default());
    let allowed: Vec<u32> = characters.iter().filter(|(_, name)| DRIVERS.contains(&name.as_str())).map(|(major, _)| *major).collect();
    let mut rules = vec!["b *:* rw".to_owned()];
    let mut majors: Vec<u32> = characters.iter().map(|(major, _)| *major).filter(|major| !allowed.contains(major)).collect();
    majors.dedup();
    rules.extend(majors.iter().map(|major| format!("c {major}:* rw")));
    rules.extend(RAW_MEMORY.iter().map(|minor| format!("c 1:{minor} rw")));
    let others = numbered(miscellaneous).into_iter().filter(|(_, name)| !MISCELLANEOUS.contains(&name.as_str()));
    rules.extend(others.map(|(minor, _)| format!("c 10:{minor} rw")));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_raw_memory_and_unknown_drivers_are_refused_and_what_containers_need_is_not() {
        let devices = "Character devices:\n  1 mem\n  4 /dev/vc/0\n  4 tty\n  5 /dev/tty\n  5 /dev/console\n 10 misc\n136 pts\n242 nvme\n\n\
                       Block devices:\n  7 loop\n254 virtblk\n";
        let rules = rules(devices, "229 fuse\n200 tun\n237 loop-control\n");
        assert_eq!(rules, ["b *:* rw", "c 4:* rw", "c 242:* rw", "c 1:1 rw", "c 1:2 rw", "c 1:4 rw", "c 10:237 rw"]);
    }
}
