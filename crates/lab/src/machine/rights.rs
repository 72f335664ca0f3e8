//! What a machine may not do, although its processes are root's: whatever would change the host and not the machine. Used by the start
//! of a machine and by whoever enters one (`lab exec --machine`).

use std::path::Path;

use rustix::mount::{MountFlags, mount_bind, mount_bind_recursive, mount_remount};

use crate::LabError;

/// Rights no process of a machine has, in the words of `setpriv --bounding-set`: the clock and alarms, modules, raw access to memory and
/// ports, loading of another kernel, accounting, audit and security modules are the host's. Making device nodes stays, because every
/// container has some of its own, and so does reading the kernel's log, without which no kubelet starts.
pub(crate) const BOUNDING_SET: &str =
    "-sys_time,-wake_alarm,-block_suspend,-sys_module,-sys_rawio,-sys_boot,-sys_pacct,-audit_control,-mac_admin,-mac_override";

/// What /proc/swaps of a machine says.
pub(crate) const NO_SWAP: &str = "/usr/lib/metalshift/swaps";

/// Where the parameters below are kept in a machine.
pub(crate) const PARAMETERS: &str = "/usr/lib/metalshift/parameters";

/// Kernel parameters that no kubelet starts without: what it does not find so it sets, and they are the host's. A machine says that they
/// are so, whatever they are.
pub(crate) const WANTED_BY_KUBELETS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

/// Kernel parameters outside the network are readable, not to be set, and the host's swap is not seen: kubeadm would refuse to run
/// with it, and `swapoff -a` would take it from the host.
pub(crate) fn protect_parameters() -> Result<(), LabError> {
    let failed = |error: rustix::io::Errno| LabError::io("protect", "/proc/sys")(error.into());
    mount_bind("/proc/sys/net", "/proc/sys/net").map_err(failed)?;
    mount_bind_recursive("/proc/sys", "/proc/sys").map_err(failed)?;
    mount_remount("/proc/sys", MountFlags::BIND | MountFlags::RDONLY, c"").map_err(failed)?;
    for (parameter, _) in WANTED_BY_KUBELETS {
        let shown = Path::new("/proc/sys").join(parameter);
        if shown.exists() {
            let failed = |error: rustix::io::Errno| LabError::io("show", &shown)(error.into());
            mount_bind(Path::new(PARAMETERS).join(parameter), &shown).map_err(failed)?;
            mount_remount(&shown, MountFlags::BIND | MountFlags::RDONLY, c"").map_err(failed)?;
        }
    }
    if Path::new("/proc/swaps").exists() {
        mount_bind(NO_SWAP, "/proc/swaps").map_err(|error| LabError::io("hide", "/proc/swaps")(error.into()))?;
    }
    Ok(())
}
