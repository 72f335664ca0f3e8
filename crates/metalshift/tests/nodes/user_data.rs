//! What machines make of the user-data they boot with.

use lab::MachineState;

use super::{SOON, boot, console, inside, lab, machine, text, wait_for_boot};
use crate::waiting::until;

const USER_DATA: &str = r#"## template: jinja
#cloud-config
ntp: {enabled: true}
ssh_pwauth: true
users:
- name: ada
  ssh_import_id: ["gh:ada"]
  ssh_authorized_keys: ["ssh-ed25519 AAAA ada"]
write_files:
- path: /etc/rack
  content: "{{ ds.meta_data.local_hostname }} é"
- path: /etc/systemd/system/later.service
  content: "[Service]\nExecStart=/bin/sleep 1000000\nTasksMax=7\n[Install]\nWantedBy=multi-user.target\n"
- {path: /etc/sysctl.d/50-rack.conf, content: "net.ipv4.ip_default_ttl = 41\nkernel.msgmax = 4242\n"}
- {path: /usr/lib/sysctl.d/60-rack.conf, content: "net.ipv4.tcp_retries2 = 7\nkernel.msgmnb = 4243\n"}
- {path: /usr/lib/sysctl.d/50-rack.conf, content: "net.ipv4.ip_default_ttl = 42\n"}
- {path: /etc/modules-load.d/rack.conf, content: "flux_capacitor\n"}
- {path: /etc/fstab, content: "/dev/sdz1 /data ext4 defaults 0 2\n"}
- {path: /etc/sysusers.d/rack.conf, content: "u racker -\n"}
- {path: /etc/cron.d/rack, content: "* * * * * root true\n"}
- {path: /etc/crontab, content: "* * * * * root true\n"}
- {path: /etc/logrotate.d/rack, content: "/var/log/rack {}\n"}
- {path: /etc/netplan/50-cloud-init.yaml, content: "network: {version: 2}\n"}
- {path: /etc/rc.local, permissions: "0755", content: "\x23!/bin/sh\necho ran > /run/local\necho here > /dev/console\n"}
runcmd:
- echo once >> /var/lib/count
- systemctl daemon-reload
- systemctl enable --now later.service
"#;

#[tokio::test]
async fn cloud_init_applies_a_user_data_once_and_the_disk_survives_a_power_cycle_but_not_a_wipe() {
    let Some(lab) = lab().await else { return };
    boot(lab, "keeper", USER_DATA).await;
    let read = async |file: &str| text(&inside(lab, Some("keeper"), &["cat", file]).await);
    assert_eq!(read("/etc/rack").await, "keeper é");
    assert_eq!(read("/var/lib/cloud/instance/user-data.txt").await, USER_DATA.trim(), "not a byte of it was changed");
    assert_eq!(read("/proc/sys/net/ipv4/ip_default_ttl").await, "41", "files of settings have their effect at the first boot");
    assert_eq!(read("/proc/sys/net/ipv4/tcp_retries2").await, "7", "wherever sysctl reads them");
    assert_eq!(read("/run/local").await, "ran");
    assert!(inside(lab, Some("keeper"), &["getent", "passwd", "racker"]).await.status.success());
    until("what a program writes to its console is on it", SOON, async || console(lab, "keeper").contains("console: here")).await;
    let printed = console(lab, "keeper");
    for vain in [
        "cloud-config key ntp has no effect",
        "ssh_import_id of user ada has no effect",
        "ssh_authorized_keys of user ada has no effect",
        "cloud-config ssh_pwauth has no effect",
        "/etc/logrotate.d/rack has no effect",
        "kernel.msgmax = 4242 in /etc/sysctl.d/50-rack.conf has no effect",
        "kernel.msgmnb = 4243 in /usr/lib/sysctl.d/60-rack.conf has no effect",
        "module flux_capacitor of modules-load.d is not loaded",
        "/dev/sdz1 of /etc/fstab is not mounted at /data",
        "/etc/cron.d/rack has no effect",
        "/etc/crontab has no effect",
        "/etc/netplan/50-cloud-init.yaml has no effect",
        "TasksMax=7 in [Service] has no effect",
    ] {
        assert_eq!(printed.matches(vain).count(), 1, "what the machine cannot do is on its console, once: {vain}: {printed}");
    }
    assert!(!printed.contains("Invalid cloud-config"), "{printed}");
    // On a host where cloud-init was installed for labs, a file keeps it from the host.
    assert_eq!(text(&inside(lab, Some("keeper"), &["cloud-init", "status"]).await), "status: done");

    lab.control().power_cycle("keeper").await.unwrap();
    wait_for_boot(lab, "keeper", MachineState::Running).await;
    assert_eq!(read("/var/lib/count").await, "once", "a kept disk is not a new instance");
    let later = inside(lab, Some("keeper"), &["systemctl", "is-active", "later"]).await;
    assert_eq!(text(&later), "active", "what the user-data enabled is started at every boot");

    let refused = lab.control().wipe("keeper").await.expect_err("a disk in use").to_string();
    assert!(refused.contains("has power"), "{refused}");
    lab.control().power_off("keeper", true).await.unwrap();
    assert_eq!(machine(lab, "keeper").await.state, MachineState::Off);
    lab.control().wipe("keeper").await.unwrap();
    lab.control().power_on("keeper", Some(b"#cloud-config\n{}\n")).await.unwrap();
    wait_for_boot(lab, "keeper", MachineState::Running).await;
    assert!(!inside(lab, Some("keeper"), &["test", "-e", "/var/lib/count"]).await.status.success());
    lab.control().remove_machine("keeper").await.unwrap();
    assert!(!lab.control().status().await.unwrap().machines.iter().any(|machine| machine.name == "keeper"));
}

#[tokio::test]
async fn ignition_writes_files_its_units_run_and_what_has_no_effect_is_on_the_console() {
    let Some(lab) = lab().await else { return };
    boot(lab, "ignited", include_str!("ignition.json")).await;
    let read = async |file: &str| text(&inside(lab, Some("ignited"), &["cat", file]).await);
    for (file, content) in [
        ("/etc/rack", "written by ignition"),
        ("/proc/sys/kernel/hostname", "renamed"),
        ("/proc/sys/net/ipv4/ip_default_ttl", "42"),
        ("/run/instance", "seven"),
        ("/var/lib/unit-ran", "yes"),
    ] {
        assert_eq!(read(file).await, content, "{file}: {}", console(lab, "ignited"));
    }
    assert!(inside(lab, Some("ignited"), &["test", "-d", "/run/rack"]).await.status.success());
    let printed = console(lab, "ignited");
    for vain in [
        "ignition storage.disks (1 entries) has no effect",
        "kernel.msgmax = 4242 in /etc/sysctl.d/10-rack.conf has no effect",
        "module flux_capacitor of modules-load.d is not loaded",
        "/dev/sdz1 of /etc/fstab is not mounted at /data",
    ] {
        assert!(printed.contains(vain), "{vain}: {printed}");
    }
    lab.control().power_cycle("ignited").await.unwrap();
    wait_for_boot(lab, "ignited", MachineState::Running).await;
    assert_eq!(read("/var/lib/unit-ran").await, "yes\nyes", "the unit runs at each boot");
    assert_eq!(read("/proc/sys/kernel/hostname").await, "renamed");
    assert!(console(lab, "ignited").contains("ignition was applied to this instance before"));
    lab.control().remove_machine("ignited").await.unwrap();
}

#[tokio::test]
async fn an_ignition_configuration_as_cluster_api_writes_it_is_understood() {
    let Some(lab) = lab().await else { return };
    boot(lab, "older", include_str!("ignition-2.json")).await;
    let ran = text(&inside(lab, Some("older"), &["cat", "/run/kubeadm-ran"]).await);
    assert!(ran.contains("(ada)"), "{ran}: {}", console(lab, "older"));
    lab.control().remove_machine("older").await.unwrap();
}

#[tokio::test]
async fn a_boot_that_fails_says_so_with_the_words_of_what_failed() {
    let Some(lab) = lab().await else { return };
    lab.control().add_machine("broken").await.unwrap();
    let user_data = "#cloud-config\nruncmd:\n- echo the disk controller is on fire\n- exit 7\n";
    lab.control().power_on("broken", Some(user_data.as_bytes())).await.unwrap();
    wait_for_boot(lab, "broken", MachineState::Failed).await;
    assert!(console(lab, "broken").contains("the disk controller is on fire"));
    let detail = machine(lab, "broken").await.detail.unwrap();
    assert!(detail.contains("the disk controller is on fire"), "{detail}");
    let init = machine(lab, "broken").await.process_id.unwrap().to_string();
    assert!(inside(lab, None, &["kill", "-KILL", &init]).await.status.success());
    until("it has died", SOON, async || machine(lab, "broken").await.state == MachineState::Off).await;
    assert!(machine(lab, "broken").await.detail.is_some(), "a machine that died is told from one that is off");
    lab.control().power_on("broken", None).await.unwrap();
    lab.control().power_off("broken", false).await.unwrap();
    assert_eq!(machine(lab, "broken").await.detail, None, "power that was cut is no death");
    lab.control().remove_machine("broken").await.unwrap();
}
