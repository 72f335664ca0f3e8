//! Machines with power switches: reboots, cuts, shutdowns, and nodes that come back.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use lab::MachineState;

use super::{SOON, boot, console, inside, kubectl, lab, machine, text, wait_for_boot};
use crate::waiting::until;

#[tokio::test]
async fn a_user_data_that_ends_with_a_reboot_is_applied_once_and_a_shutdown_waits_for_its_time() {
    let Some(lab) = lab().await else { return };
    lab.control().add_machine("again").await.unwrap();
    let user_data = "#cloud-config\nruncmd:\n- echo once >> /var/lib/count\npower_state: {mode: reboot, delay: now}\n";
    lab.control().power_on("again", Some(user_data.as_bytes())).await.unwrap();
    until("it has rebooted", SOON, async || {
        console(lab, "again").matches("---- power on").count() == 2 && machine(lab, "again").await.state == MachineState::Running
    })
    .await;
    assert_eq!(console(lab, "again").matches("starts for the first time").count(), 1, "{}", console(lab, "again"));
    assert_eq!(text(&inside(lab, Some("again"), &["cat", "/var/lib/count"]).await), "once");
    assert!(inside(lab, Some("again"), &["shutdown", "-h", "+1"]).await.status.success());
    assert!(inside(lab, Some("again"), &["shutdown", "-c"]).await.status.success());
    assert!(!inside(lab, Some("again"), &["shutdown", "-h", "soon"]).await.status.success());
    assert_eq!(machine(lab, "again").await.state, MachineState::Running);
    assert!(inside(lab, Some("again"), &["shutdown", "-h", "now"]).await.status.success());
    until("it is off", SOON, async || machine(lab, "again").await.state == MachineState::Off).await;
    assert_eq!(machine(lab, "again").await.detail, None, "it has not died");
    lab.control().remove_machine("again").await.unwrap();
}

#[tokio::test]
async fn power_cut_while_a_machine_reboots_itself_stays_off_and_every_dead_machine_is_buried() {
    let Some(lab) = lab().await else { return };
    boot(lab, "restless", "#cloud-config\n{}\n").await;
    // At its beginning, in the middle of it and after it; what a cut does at the very moment in between is shown by a test of the rack alone.
    for moment in [0, 100, 300, 900].map(Duration::from_millis) {
        assert!(inside(lab, Some("restless"), &["reboot"]).await.status.success());
        tokio::time::sleep(moment).await;
        lab.control().power_off("restless", false).await.unwrap();
        assert_eq!(machine(lab, "restless").await.state, MachineState::Off, "{moment:?}: {}", console(lab, "restless"));
        // One that came back by itself would have power already.
        lab.control().power_on("restless", None).await.unwrap();
        wait_for_boot(lab, "restless", MachineState::Running).await;
    }
    lab.control().remove_machine("restless").await.unwrap();
    let unburied = "awk '/^Name/{n=$2} /^State/{z=$2==\"Z\"} /^PPid/{if (z && $2==1) print n}' /proc/[0-9]*/status 2>/dev/null; true";
    until("no dead process is the supervisor's to bury", SOON, async || text(&inside(lab, None, &["sh", "-c", unburied]).await).is_empty())
        .await;
}

#[tokio::test]
async fn a_command_that_was_stopped_on_a_machine_does_not_keep_its_power() {
    let Some(lab) = lab().await else { return };
    boot(lab, "held", "#cloud-config\n{}\n").await;
    let mut command = lab.control().enter(Some("held")).await.unwrap();
    let mut stopped = command.args(["sleep", "54321"]).process_group(0).spawn().unwrap();
    until("the command runs", SOON, async || {
        let seen = inside(lab, Some("held"), &["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q 'sleep [5]4321'"]).await;
        seen.status.success()
    })
    .await;
    // As Ctrl-Z at a terminal does.
    let signal = |signal: &str| Command::new("kill").args([signal, "--", &format!("-{}", stopped.id())]).status().unwrap().success();
    assert!(signal("-STOP"));
    let removed = lab.control().remove_machine("held").await;
    let left = Command::new("find")
        .args(["/sys/fs/cgroup", "-maxdepth", "3", "-type", "d", "-path", &format!("*metalshift-{}-*/held", lab.directory().name())])
        .output()
        .unwrap();
    assert!(signal("-KILL"));
    stopped.wait().unwrap();
    removed.unwrap();
    assert_eq!(text(&left), "", "control groups of a machine that is gone");
}

#[tokio::test]
async fn a_machine_that_joins_becomes_a_node_and_a_machine_that_reboots_itself_comes_back() {
    let Some(lab) = lab().await else { return };
    lab.control().add_machine("late").await.unwrap();
    let user_data = lab.control().join_user_data("late").await.unwrap();
    boot(lab, "late", &user_data).await;
    let ready = async || {
        let condition = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        text(&kubectl(lab, &["get", "node", "late", "-o", condition])) == "True"
    };
    until("the node is Ready", SOON, ready).await;
    let before = machine(lab, "late").await.since;
    assert!(inside(lab, Some("late"), &["reboot"]).await.status.success());
    until("it has booted again", SOON, async || {
        let now = machine(lab, "late").await;
        now.state == MachineState::Running && now.since > before
    })
    .await;
    until("the kubelet is back", SOON, async || inside(lab, Some("late"), &["systemctl", "is-active", "kubelet"]).await.status.success())
        .await;
    assert!(kubectl(lab, &["delete", "node", "late"]).status.success());
    lab.control().remove_machine("late").await.unwrap();
}
