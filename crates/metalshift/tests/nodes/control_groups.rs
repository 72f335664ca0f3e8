//! Most hosts of today have control groups of version 2 alone. Where this one has both, a lab that sees only version 2 shows as much of it as
//! the controllers allow that version 1 leaves: too few for a kubelet, so that such a lab is looked at on its way up.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use super::SOON;
use crate::waiting::{is_root, until, until_some};

#[tokio::test]
async fn with_version_2_alone_a_machine_can_hand_every_controller_to_its_containers() {
    if !is_root("level nodes needs root") {
        return;
    }
    let name = format!("two-{}", std::process::id());
    let only_version_2 = "umount --recursive /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec \"$@\"";
    let mut starting = Command::new("unshare")
        .args(["--mount", "--propagation=private", "sh", "-c", only_version_2, "sh", env!("CARGO_BIN_EXE_metalshift")])
        .args(["lab", "up", "--level", "nodes", "--workers", "0", "--name", &name])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let group = until_some("the machine has a group", SOON, async || group_of(&name, "management")).await;
    let read = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
    until("its init tracks units", SOON, async || group.join("system.slice/containerd.service").exists()).await;
    let (processes, controllers, handed_down) = (read("cgroup.procs"), read("cgroup.controllers"), read("cgroup.subtree_control"));
    Command::new("kill").args(["-INT", &starting.id().to_string()]).status().unwrap();
    let ended = starting.wait().unwrap();
    assert_eq!(processes, "", "a group that hands controllers down holds no process itself");
    let used = ["cpu", "cpuset", "hugetlb", "io", "memory", "pids"];
    for controller in controllers.split_whitespace().filter(|controller| used.contains(controller)) {
        assert!(handed_down.split_whitespace().any(|handed| handed == controller), "{controller} of {controllers:?}: {handed_down:?}");
    }
    assert!(!ended.success(), "it was interrupted");
    assert_eq!(group_of(&name, "management"), None, "nothing is left of it");
}

/// The group of a lab's machine in the hierarchy of version 2, as the host sees it.
fn group_of(lab: &str, machine: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let unified = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|words| words[2] == "cgroup2")?[1].to_owned();
    let groups = fs::read_dir(unified).unwrap().flatten().map(|entry| entry.path());
    let mut labs = groups.filter(|group| group.to_string_lossy().contains(&format!("/metalshift-{lab}-")));
    labs.next().map(|group| group.join(machine)).filter(|group| group.exists())
}
