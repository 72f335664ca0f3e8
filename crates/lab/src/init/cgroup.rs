//! One control group a unit, so that all its processes can be found and ended, whatever they forked.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::unit::UnitName;

/// The tree in which units are tracked.
#[derive(Debug, Clone)]
pub struct ControlGroups {
    base: Option<PathBuf>,
}

impl ControlGroups {
    /// Finds a tree: the unified one, or on version 1 the one named for this very purpose. Whoever starts the machine sees to it that in the
    /// unified one controllers reach the groups below.
    pub fn find(root: &Path) -> Self {
        if getpid() == Pid::INIT {
            sweep(root);
        }
        let unified = root.join("cgroup.procs").exists().then(|| root.to_owned());
        let named = root.join("systemd");
        let named = named.join("cgroup.procs").exists().then_some(named);
        let base = unified.or(named);
        Self { base: base.filter(|path| fs::create_dir_all(path.join("system.slice")).is_ok()) }
    }

    /// No tracking: only processes we started ourselves are known.
    pub fn none() -> Self {
        Self { base: None }
    }

    /// Whether units can be tracked.
    pub fn available(&self) -> bool {
        self.base.is_some()
    }

    /// The group of a unit, made if needed.
    pub fn of(&self, unit: &UnitName) -> Option<PathBuf> {
        let path = self.path(unit)?;
        fs::create_dir_all(&path).ok().map(|()| path)
    }

    /// All processes of a unit, those of groups below included.
    pub fn processes(&self, unit: &UnitName) -> Vec<Pid> {
        self.path(unit).map(|path| processes_below(&path)).unwrap_or_default()
    }

    /// Sends a signal to all processes of a unit but one.
    pub fn signal(&self, unit: &UnitName, signal: Signal, except: Option<Pid>) {
        for pid in self.processes(unit).into_iter().filter(|pid| Some(*pid) != except) {
            // It may have ended in the meantime, which is what was wanted.
            let _ = kill_process(pid, signal);
        }
    }

    /// Removes the empty group of a unit.
    pub fn remove(&self, unit: &UnitName) {
        if let Some(path) = self.path(unit) {
            remove_below(&path);
        }
    }

    fn path(&self, unit: &UnitName) -> Option<PathBuf> {
        self.base.as_ref().map(|base| base.join("system.slice").join(unit.as_str()))
    }
}

/// Removes the empty groups an earlier boot of this machine left: a real one starts with none, and a kubelet waits seconds for each
/// container it takes for a running one.
fn sweep(root: &Path) {
    let trees = if root.join("cgroup.procs").exists() { vec![root.to_owned()] } else { groups_below(root) };
    for group in trees.iter().filter(|tree| tree.join("cgroup.procs").exists()).flat_map(|tree| groups_below(tree)) {
        remove_below(&group);
    }
}

fn processes_of(group: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok().and_then(Pid::from_raw)).collect()
}

fn groups_below(group: &Path) -> Vec<PathBuf> {
    fs::read_dir(group).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn processes_below(group: &Path) -> Vec<Pid> {
    let below = groups_below(group).into_iter().flat_map(|path| processes_below(&path));
    processes_of(group).into_iter().chain(below).collect()
}

fn remove_below(group: &Path) {
    for path in groups_below(group) {
        remove_below(&path);
    }
    let _ = fs::remove_dir(group);
}
