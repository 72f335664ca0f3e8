//! Level nodes: pods that answer, volumes that bind, machines with power switches. One lab serves all tests here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "../../../lab/tests/waiting/mod.rs"]
mod waiting;

use std::{
    fs,
    os::unix::process::CommandExt as _,
    process::{Command, Output, Stdio},
    time::Duration,
};

use lab::{Lab, Level, MachineState, MachineStatus, Options, programs::Program};
use tokio::sync::OnceCell;
use waiting::{is_root, left_out, until};

const SOON: Duration = Duration::from_mins(2);

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

const NAMED_FLEET: &str = "
users: [{name: admin, superuser: true, keys: [{key: 'names:token:secret'}]}]
domains: [{name: racks.example}]
subnets: [{id: 1, cidr: 10.20.0.0/24}]
machines:
  - {hostname: rack-a, interfaces: [{name: eth0, links: [{mode: static, subnet: 1, address: 10.20.0.11}]}]}
";
const KEY: &str = "names:token:secret";

/// The lab, or nothing where there cannot be one.
async fn lab() -> Option<&'static Lab> {
    static LAB: OnceCell<Lab> = OnceCell::const_new();
    if !is_root("level nodes needs root") {
        return None;
    }
    let options = Options { workers: 1, ..Options::new(Level::Nodes).executed_by(env!("CARGO_BIN_EXE_metalshift")) };
    Some(LAB.get_or_init(async || Lab::up(options).await.unwrap()).await)
}

/// kubectl on the host, with the kubeconfig `lab up` prints.
fn kubectl(lab: &Lab, arguments: &[&str]) -> Output {
    Command::new(lab.programs().path(Program::Kubectl)).args(arguments).env("KUBECONFIG", lab.kubeconfig_path()).output().unwrap()
}

fn apply(lab: &Lab, name: &str, documents: &str) {
    let file = lab.directory().path().join(format!("{name}.yaml"));
    fs::write(&file, documents).unwrap();
    let output = kubectl(lab, &["apply", "-f", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs a command on a machine, or beside the control plane.
async fn inside(lab: &Lab, machine: Option<&str>, words: &[&str]) -> Output {
    lab.control().enter(machine).await.unwrap().args(words).output().unwrap()
}

async fn machine(lab: &Lab, name: &str) -> MachineStatus {
    lab.control().status().await.unwrap().machines.into_iter().find(|machine| machine.name == name).unwrap()
}

fn console(lab: &Lab, machine: &str) -> String {
    fs::read_to_string(lab.directory().logs().join(format!("{machine}.log"))).unwrap()
}

async fn boot(lab: &Lab, name: &str, user_data: &str) {
    lab.control().add_machine(name).await.unwrap();
    lab.control().power_on(name, Some(user_data.as_bytes())).await.unwrap();
    wait_for_boot(lab, name, MachineState::Running).await;
}

async fn wait_for_boot(lab: &Lab, name: &str, wanted: MachineState) {
    until("the boot is through", SOON, async || machine(lab, name).await.state != MachineState::Booting).await;
    assert_eq!(machine(lab, name).await.state, wanted, "{}", console(lab, name));
}

#[tokio::test]
async fn a_deployment_answers_through_its_cluster_ip_and_node_port_from_every_node() {
    let Some(lab) = lab().await else { return };
    assert_eq!(text(&kubectl(lab, &["get", "nodes", "-o", "name"])), "node/management\nnode/worker-1");
    apply(lab, "web", include_str!("web.yaml"));
    let rolled_out = kubectl(lab, &["rollout", "status", "deployment/web", "--timeout=120s"]);
    assert!(rolled_out.status.success(), "{}", text(&kubectl(lab, &["describe", "pods"])));
    let nodes = text(&kubectl(lab, &["get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}"]));
    assert_eq!(nodes, "worker-1", "the pod is where it was asked to be");
    let cluster_ip = text(&kubectl(lab, &["get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"]));
    let node_port = text(&kubectl(lab, &["get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}"]));
    let worker = machine(lab, "worker-1").await.address;
    let ways = [
        (Some("management"), format!("http://{cluster_ip}/passwd")),
        (Some("worker-1"), format!("http://{cluster_ip}/passwd")),
        (None, format!("http://{cluster_ip}/passwd")),
        (None, format!("http://{worker}:{node_port}/passwd")),
    ];
    for (from, address) in ways {
        until(&format!("{address} answers {from:?}"), SOON, async || {
            text(&inside(lab, from, &["timeout", "5", "busybox", "wget", "-qO-", &address]).await).starts_with("root:")
        })
        .await;
    }
}

#[tokio::test]
async fn a_claimed_volume_binds_and_keeps_what_a_pod_wrote() {
    let Some(lab) = lab().await else { return };
    apply(lab, "volume", include_str!("volume.yaml"));
    until("the pod has read what it wrote", SOON, async || {
        text(&kubectl(lab, &["get", "pod", "volume", "-o", "jsonpath={.status.phase}"])) == "Succeeded"
    })
    .await;
    assert_eq!(text(&kubectl(lab, &["get", "pvc", "volume", "-o", "jsonpath={.status.phase}"])), "Bound");
    assert_eq!(text(&kubectl(lab, &["logs", "volume"])), "kept");
    assert!(kubectl(lab, &["delete", "pod/volume", "pvc/volume"]).status.success());
    until("the released volume is gone", SOON, async || text(&kubectl(lab, &["get", "pv", "-o", "name"])).is_empty()).await;
}

#[tokio::test]
async fn names_of_machines_and_domains_resolve_inside_and_nothing_has_a_way_out() {
    let Some(lab) = lab().await else { return };
    lab.control().set_name("api.example.lab", &[[10, 88, 0, 9].into(), [10, 88, 0, 10].into()]).await.unwrap();
    for (from, name, address) in [(None, "worker-1", "10.88.0.17"), (Some("management"), "worker-1.lab", "10.88.0.17")] {
        let found = inside(lab, from, &["getent", "ahostsv4", name]).await;
        assert!(text(&found).starts_with(address), "{name}: {found:?}");
    }
    until("a name given later has both its addresses", SOON, async || {
        let found = text(&inside(lab, Some("worker-1"), &["getent", "ahostsv4", "api.example.lab"]).await);
        found.contains("10.88.0.9") && found.contains("10.88.0.10")
    })
    .await;
    let unknown = inside(lab, Some("worker-1"), &["getent", "ahostsv4", "example.org"]).await;
    assert_eq!(unknown.status.code(), Some(2), "an unknown name is said to be unknown");
    // Only routes are asked for: no packet is sent anywhere. 192.0.2.1 is nobody's address.
    let routes = inside(lab, None, &["ip", "route", "get", "192.0.2.1"]).await;
    assert!(!routes.status.success(), "the lab has a way out: {}", text(&routes));
}

#[tokio::test]
async fn names_of_a_maas_resolve_on_machines_and_in_pods_once_its_domains_are_passed_on() {
    let Some(lab) = lab().await else { return };
    let fleet = lab.directory().path().join("named.yaml");
    fs::write(&fleet, NAMED_FLEET).unwrap();
    let mut maas = lab.control().enter(None).await.unwrap();
    maas.args(["setpriv", "--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_metalshift"), "emulator", "--fleet"]).arg(&fleet);
    let mut maas =
        maas.args(["--listen", "10.88.0.1:5250", "--dns", "10.88.0.1:5253"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let key: Vec<&str> = KEY.split(':').collect();
    let authorization = format!(
        "Authorization: OAuth oauth_signature_method=PLAINTEXT, oauth_consumer_key={}, oauth_token={}, oauth_signature=%26{}, \
         oauth_timestamp=4102444800, oauth_nonce=1",
        key[0], key[1], key[2]
    );
    let create = ["busybox", "wget", "-qO-", "--header", &authorization, "--post-data", "fqdn=api.racks.example&ip_addresses=10.20.0.21"];
    until("the MAAS has made the name of a cluster", SOON, async || {
        inside(lab, None, &[&create[..], &["http://10.88.0.1:5250/MAAS/api/2.0/dnsresources/"]].concat()).await.status.success()
    })
    .await;
    assert_eq!(text(&inside(lab, Some("worker-1"), &["dig", "+short", "rack-a.racks.example"]).await), "", "nobody answers for it yet");

    let server = "10.88.0.1:5253".parse().unwrap();
    lab.control().forward_domains(server, &["racks.example".into(), "0.20.10.in-addr.arpa".into()]).await.unwrap();
    let questions: [(&[&str], &str); 5] = [
        (&["rack-a.racks.example"], "10.20.0.11"),
        (&["api.racks.example"], "10.20.0.21"),
        (&["+tcp", "api.racks.example"], "10.20.0.21"),
        (&["-x", "10.20.0.11"], "rack-a.racks.example."),
        (&["@10.96.0.10", "api.racks.example"], "10.20.0.21"),
    ];
    for (question, expected) in questions {
        until(&format!("{question:?} is {expected}"), SOON, async || {
            let words = [&["dig", "+short", "+time=1", "+tries=1"], question].concat();
            text(&inside(lab, Some("worker-1"), &words).await) == expected
        })
        .await;
    }
    assert_eq!(text(&inside(lab, Some("worker-1"), &["dig", "+short", "worker-1.lab"]).await), "10.88.0.17", "the lab's own names stay");

    let refused = lab.control().forward_domains(server, &["lab".into()]).await.expect_err("the lab's own domain").to_string();
    assert!(refused.contains("answers for the domain lab itself"), "{refused}");
    lab.control().forward_domains(server, &[]).await.unwrap();
    until("the domain is nobody's again", SOON, async || {
        text(&inside(lab, Some("worker-1"), &["dig", "+time=1", "+tries=1", "api.racks.example"]).await).contains("status: NXDOMAIN")
    })
    .await;
    maas.kill().unwrap();
    maas.wait().unwrap();
}

#[tokio::test]
async fn cloud_init_applies_a_user_data_once_and_the_disk_survives_a_power_cycle_but_not_a_wipe() {
    let Some(lab) = lab().await else { return };
    boot(lab, "keeper", USER_DATA).await;
    let read = async |file: &str| text(&inside(lab, Some("keeper"), &["cat", file]).await);
    assert_eq!(read("/etc/rack").await, "keeper é");
    assert_eq!(read("/var/lib/cloud/instance/user-data.txt").await, USER_DATA.trim(), "not a byte of it was changed");
    assert_eq!(read("/proc/sys/net/ipv4/ip_default_ttl").await, "41", "files of settings have their effect at the first boot");
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
async fn a_machine_cannot_be_called_like_a_part_of_the_lab() {
    let Some(lab) = lab().await else { return };
    for name in ["gateway", "etcd"] {
        let refused = lab.control().add_machine(name).await.expect_err("a name of the lab").to_string();
        assert!(refused.contains("a part of the lab itself has that name"), "{refused}");
    }
    assert!(text(&inside(lab, Some("worker-1"), &["getent", "hosts", "gateway"]).await).starts_with("10.88.0.1 "));
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
