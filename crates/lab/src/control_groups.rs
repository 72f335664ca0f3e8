//! Control groups of machines. Two kubelets in one tree would destroy each other's pods, so every machine has a group of its
//! own in every hierarchy and sees only what is below it. Both layouts of Linux are served: version 1 with a hierarchy a
//! controller, and the unified version 2.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::{
    mount::{MountFlags, mount},
    process::{Pid, Signal, kill_process},
};

use crate::{LabError, machine::refused_devices};

const ROOT: &str = "/sys/fs/cgroup";
/// Below a machine's group, where version 2 lets no process be in a group that has others below it.
const INIT: &str = "init";
/// What kubelets and containers use. Others are left alone: who hands one down changes the host's root group too.
const CONTROLLERS: [&str; 6] = ["cpu", "cpuset", "hugetlb", "io", "memory", "pids"];

/// One mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    mount_point: PathBuf,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Version 1, with the mount options that name its controllers.
    Controllers(String),
    /// Version 2.
    Unified,
}

/// The group of one machine in every hierarchy of this host.
#[derive(Clone, Debug)]
pub(crate) struct ControlGroup {
    hierarchies: Vec<Hierarchy>,
    /// Path below each hierarchy.
    path: PathBuf,
}

impl ControlGroup {
    /// The group of a machine below that of its lab; `create` makes it.
    pub fn of(lab: &str, machine: &str) -> Result<Self, LabError> {
        let mounts = fs::read_to_string("/proc/mounts").map_err(LabError::io("read", "/proc/mounts"))?;
        Ok(Self { hierarchies: hierarchies(&mounts), path: Path::new(lab).join(machine) })
    }

    /// Makes the group everywhere.
    pub fn create(&self) -> Result<(), LabError> {
        for hierarchy in &self.hierarchies {
            let mut directory = hierarchy.mount_point.clone();
            for part in &self.path {
                let parent = directory.clone();
                directory.push(part);
                fs::create_dir_all(&directory).map_err(LabError::io("create the control group", &directory))?;
                match &hierarchy.kind {
                    Kind::Controllers(options) if has(options, "cpuset") => {
                        // An empty set of processors takes no process.
                        for file in ["cpuset.cpus", "cpuset.mems"] {
                            let value = fs::read(parent.join(file)).map_err(LabError::io("read", parent.join(file)))?;
                            fs::write(directory.join(file), value).map_err(LabError::io("write", directory.join(file)))?;
                        }
                    }
                    // On the lab's group, so that a machine, which may write its own, cannot take it back.
                    Kind::Controllers(options) if parent == hierarchy.mount_point && has(options, "devices") => {
                        for rule in refused_devices() {
                            fs::write(directory.join("devices.deny"), &rule)
                                .map_err(LabError::io("protect the host's devices in", &directory))?;
                        }
                    }
                    Kind::Unified if self.is_unified_only() => hand_down_controllers(&parent)?,
                    // Beside version 1 it has no controllers that anybody needs.
                    Kind::Controllers(_) | Kind::Unified => {}
                }
            }
        }
        Ok(())
    }

    /// The files a process of a running machine is written to, so that it counts as the machine's.
    pub fn process_lists(&self) -> Vec<PathBuf> {
        let below = if self.is_unified_only() { INIT } else { "" };
        self.hierarchies.iter().map(|hierarchy| hierarchy.mount_point.join(&self.path).join(below).join("cgroup.procs")).collect()
    }

    fn is_unified_only(&self) -> bool {
        matches!(self.hierarchies.as_slice(), [Hierarchy { kind: Kind::Unified, .. }])
    }

    /// Moves this process into the group; its children follow.
    pub fn join(&self) -> Result<(), LabError> {
        self.hierarchies.iter().try_for_each(|hierarchy| enter(&hierarchy.mount_point.join(&self.path)))
    }

    /// Moves this process, which has joined, to where the processes of a running machine are. With version 2 that is a step down: a group
    /// whose controllers are handed down must hold no process itself.
    pub fn settle(&self) -> Result<(), LabError> {
        let [Hierarchy { mount_point, kind: Kind::Unified }] = self.hierarchies.as_slice() else { return Ok(()) };
        let machine = mount_point.join(&self.path);
        let init = machine.join(INIT);
        fs::create_dir_all(&init).map_err(LabError::io("create the control group", &init))?;
        enter(&init)?;
        hand_down_controllers(&machine)
    }

    /// Mounts the hierarchies inside a machine, whose root of all groups is its own group (`unshare --cgroup`).
    pub fn mount_inside(&self) -> Result<(), LabError> {
        let fail = |what, path: &Path| LabError::io(what, path.to_owned());
        if self.is_unified_only() {
            return mount("cgroup2", ROOT, "cgroup2", MountFlags::empty(), None)
                .map_err(|error| fail("mount", Path::new(ROOT))(error.into()));
        }
        mount("tmpfs", ROOT, "tmpfs", MountFlags::empty(), Some(c"mode=755"))
            .map_err(|error| fail("mount", Path::new(ROOT))(error.into()))?;
        for hierarchy in &self.hierarchies {
            fs::create_dir_all(&hierarchy.mount_point).map_err(fail("create", &hierarchy.mount_point))?;
            let mounted = match &hierarchy.kind {
                Kind::Controllers(options) => mount(
                    "cgroup",
                    &hierarchy.mount_point,
                    "cgroup",
                    MountFlags::empty(),
                    std::ffi::CString::new(options.as_str()).ok().as_deref(),
                ),
                Kind::Unified => mount("cgroup2", &hierarchy.mount_point, "cgroup2", MountFlags::empty(), None),
            };
            mounted.map_err(|error| fail("mount", &hierarchy.mount_point)(error.into()))?;
        }
        Ok(())
    }

    /// Memory of every process in the group, without what the page cache holds.
    pub fn resident_memory(&self) -> Option<u64> {
        self.hierarchies.iter().find_map(|hierarchy| {
            let text = fs::read_to_string(hierarchy.mount_point.join(&self.path).join("memory.stat")).ok()?;
            let field = if hierarchy.kind == Kind::Unified { "anon " } else { "total_rss " };
            text.lines().find_map(|line| line.strip_prefix(field))?.trim().parse().ok()
        })
    }

    /// Kills whatever is in the group or below it.
    pub fn kill_processes(&self) {
        for hierarchy in &self.hierarchies {
            kill_tree(&hierarchy.mount_point.join(&self.path));
        }
    }

    /// Removes the group and every group that was made below it; fails while a process is in it.
    pub fn remove(&self) -> io::Result<()> {
        self.hierarchies.iter().try_for_each(|hierarchy| remove_tree(&hierarchy.mount_point.join(&self.path)))
    }
}

/// Moves this process into a group.
fn enter(group: &Path) -> Result<(), LabError> {
    let file = group.join("cgroup.procs");
    fs::write(&file, "0").map_err(LabError::io("join", &file))
}

/// Lets groups below `parent` use the controllers it has.
fn hand_down_controllers(parent: &Path) -> Result<(), LabError> {
    let path = parent.join("cgroup.controllers");
    let controllers = fs::read_to_string(&path).map_err(LabError::io("read", path))?;
    let file = parent.join("cgroup.subtree_control");
    for controller in controllers.split_whitespace().filter(|controller| CONTROLLERS.contains(controller)) {
        match fs::write(&file, format!("+{controller}")) {
            // A process is in the group itself, and no container would start on this machine.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                return Err(LabError::io("hand down controllers in", &file)(error));
            }
            // One that the kernel keeps (real-time processes keep `cpu`) stays away; the kubelet names what it misses.
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Removes a control group and those below it. Only directories can be removed there; the files go with them.
pub(crate) fn remove_tree(group: &Path) -> io::Result<()> {
    let absent = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let entries = match fs::read_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path())?;
        }
    }
    absent(fs::remove_dir(group))
}

/// Kills every process of a control group and of those below it. Processes outside of this PID namespace have no number here and
/// cannot be reached.
pub(crate) fn kill_tree(group: &Path) {
    let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    for process in processes.lines().filter_map(|line| line.parse().ok()).filter_map(Pid::from_raw) {
        // Gone in between is as good as killed.
        let _ = kill_process(process, Signal::KILL);
    }
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            kill_tree(&entry.path());
        }
    }
}

/// The groups of a lab, as far as they exist.
pub(crate) fn of_lab(lab: &str) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let groups = hierarchies(&mounts).into_iter().map(|hierarchy| hierarchy.mount_point.join(lab));
    groups.filter(|group| group.is_dir()).collect()
}

/// Reads the mounted hierarchies out of /proc/mounts.
fn hierarchies(mounts: &str) -> Vec<Hierarchy> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (mount_point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            let kind = match kind {
                "cgroup2" => Kind::Unified,
                "cgroup" => Kind::Controllers(controllers(options)),
                _ => return None,
            };
            Some(Hierarchy { mount_point: mount_point.into(), kind }).filter(|hierarchy| hierarchy.mount_point.starts_with(ROOT))
        })
        .collect()
}

fn has(options: &str, controller: &str) -> bool {
    options.split(',').any(|option| option == controller)
}

/// The options that say which hierarchy it is, without those that say how it is mounted.
fn controllers(options: &str) -> String {
    let mut kept: Vec<&str> = options
        .split(',')
        .filter(|option| {
            !matches!(*option, "rw" | "ro" | "nosuid" | "nodev" | "noexec" | "relatime" | "noatime" | "xattr" | "clone_children")
        })
        .filter(|option| !option.starts_with("release_agent="))
        .collect();
    if kept.iter().any(|option| option.starts_with("name=")) {
        kept.insert(0, "none");
    }
    kept.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_are_read_from_the_mount_table() {
        let version_1 = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,relatime,cpu,cpuacct 0 0\n\
                         cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,xattr,name=systemd 0 0\n\
                         proc /proc proc rw 0 0\n";
        let kinds: Vec<Kind> = hierarchies(version_1).into_iter().map(|hierarchy| hierarchy.kind).collect();
        assert_eq!(kinds, [Kind::Controllers("cpu,cpuacct".into()), Kind::Controllers("none,name=systemd".into())]);
        let version_2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime 0 0\n";
        assert_eq!(hierarchies(version_2), [Hierarchy { mount_point: ROOT.into(), kind: Kind::Unified }]);
    }
}
