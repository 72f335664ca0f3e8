//! What happens on a machine stays there: clocks, devices, control groups.

use std::fs;
use std::process::Command;

use super::{SOON, apply, inside, kubectl, lab, text};
use crate::waiting::{left_out, until};

#[tokio::test]
async fn a_machine_cannot_change_the_clock_the_swap_or_the_modules_of_the_host() {
    let Some(lab) = lab().await else { return };
    // To what it is, so that a host whose clock can be set is not hurt by this test.
    let clock = inside(lab, Some("worker-1"), &["sh", "-c", "date -s @$(date +%s)"]).await;
    let words = String::from_utf8_lossy(&clock.stderr).into_owned();
    assert!(!clock.status.success() && words.contains("cannot set date: Operation not permitted"), "{words}");
    // Units get their rights from the machine's init, what is run from outside gets them on its way in.
    for process in ["/proc/1/status", "/proc/self/status"] {
        let rights = text(&inside(lab, Some("worker-1"), &["grep", "CapBnd", process]).await);
        let rights = u64::from_str_radix(rights.split_whitespace().last().unwrap(), 16).unwrap();
        for (name, number) in [("sys_module", 16), ("sys_rawio", 17), ("sys_boot", 22), ("sys_time", 25)] {
            assert_eq!(rights >> number & 1, 0, "{process} has {name}");
        }
    }
    assert!(inside(lab, Some("worker-1"), &["swapoff", "-a"]).await.status.success());
    let swaps = text(&inside(lab, Some("worker-1"), &["cat", "/proc/swaps"]).await);
    assert!(swaps.starts_with("Filename") && swaps.lines().count() == 1, "{swaps}");
    // A host without swap shows none either; the machine's list is a file of its own.
    let mounts = text(&inside(lab, Some("worker-1"), &["cat", "/proc/self/mounts"]).await);
    assert!(mounts.lines().any(|line| line.split(' ').nth(1) == Some("/proc/swaps")), "{mounts}");
    // A kubelet would set what it does not find as it wants it, and these are the host's.
    for (parameter, value) in [("vm/overcommit_memory", "1"), ("kernel/panic", "10"), ("kernel/panic_on_oops", "1")] {
        let path = format!("/proc/sys/{parameter}");
        assert_eq!(text(&inside(lab, Some("worker-1"), &["cat", &path]).await), value, "{parameter}");
        assert!(mounts.lines().any(|line| line.split(' ').nth(1) == Some(&*path)), "{parameter} is the host's");
        assert!(!inside(lab, Some("worker-1"), &["sh", "-c", &format!("echo 0 > {path}")]).await.status.success(), "{parameter}");
    }
}

#[tokio::test]
async fn nothing_a_machine_or_a_privileged_pod_does_to_devices_reaches_the_host() {
    let Some(lab) = lab().await else { return };
    let mode = || fs::metadata("/dev/null").map(|file| std::os::unix::fs::MetadataExt::mode(&file)).unwrap();
    let before = mode();
    let script = "touch /dev/of-a-machine && chmod 600 /dev/null && chmod 666 /dev/null && ls /dev/vda /dev/sda /dev/loop0 2>&1 | wc -l; \
                  find /dev -type b; stat -c %d /dev/null";
    let seen = text(&inside(lab, Some("worker-1"), &["sh", "-c", script]).await);
    let host = Command::new("stat").args(["-c", "%d", "/dev/null"]).output().unwrap();
    assert_eq!(seen.lines().count(), 2, "there are disks in /dev: {seen}");
    assert_ne!(seen.lines().last(), Some(text(&host).as_str()), "/dev/null is the host's own");
    assert!(!fs::exists("/dev/of-a-machine").unwrap() && mode() == before);

    let file = lab.directory().path().join("disk");
    fs::write(&file, vec![b'.'; 65_536]).unwrap();
    let attached = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
    let Some(disk) = attached.ok().filter(|output| output.status.success()).map(|output| text(&output)) else {
        left_out("no loop device can be had here");
        return;
    };
    let number = disk.trim_start_matches("/dev/loop").to_owned();
    let devices_are_controlled = fs::exists("/sys/fs/cgroup/devices").unwrap();
    let attack = format!("mknod /run/disk b 7 {number} && printf PWNED > /run/disk; head -c 1 /run/disk; sync; true");
    let done = inside(lab, Some("worker-1"), &["sh", "-c", &attack]).await;
    apply(lab, "privileged", &include_str!("privileged.yaml").replace("NUMBER", &number));
    let phase = async || text(&kubectl(lab, &["get", "pod", "privileged", "-o", "jsonpath={.status.phase}"]));
    until("the pod has ended", SOON, async || matches!(phase().await.as_str(), "Succeeded" | "Failed")).await;
    let words = text(&kubectl(lab, &["logs", "privileged"]));
    assert!(Command::new("losetup").args(["--detach", &disk]).status().unwrap().success());
    let content = fs::read(&file).unwrap();
    assert!(kubectl(lab, &["delete", "pod", "privileged", "--wait=false"]).status.success());
    if !devices_are_controlled {
        eprintln!("left out: this host has no control groups of version 1 that keep machines from devices");
        return;
    }
    assert!(content.iter().all(|byte| *byte == b'.'), "a disk of the host was written");
    assert_eq!(text(&done), "", "a disk of the host was read");
    assert!(words.contains("tried") && !words.contains("wrote"), "{words}");
}

#[tokio::test]
async fn what_is_run_on_a_machine_from_outside_counts_as_the_machines() {
    let Some(lab) = lab().await else { return };
    let groups = text(&inside(lab, Some("worker-1"), &["cat", "/proc/self/cgroup"]).await);
    assert!(!groups.is_empty() && groups.lines().all(|line| !line.contains("/..")), "{groups}");
}
