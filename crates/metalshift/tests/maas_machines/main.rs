//! Machines that a MAAS deploys and that really boot: through its API alone they become a cluster, fail with the words of their console,
//! keep or lose their disks. One lab with a MAAS of its own serves all tests here; they talk to it with the client of the product.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "../../../lab/tests/waiting/mod.rs"]
mod waiting;

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use lab::{Lab, Level, MachineState, MachineStatus, Options, programs::Program};
use maas_client::{
    Allocate, Client, Commission, Deploy, EventFilter, EventLevel, EventPlace, LinkMode, LinkSubnet, Machine, MachineStatus as Status,
    PowerOff, PowerState, Release, SystemId, Test, UserData,
};
use tokio::sync::OnceCell;
use waiting::{is_root, until};

const SOON: Duration = Duration::from_mins(2);
const PROGRAM: &str = env!("CARGO_BIN_EXE_metalshift");
/// The key of both fleets.
const KEY: &str = "c:t:s";

/// The lab, or nothing where there cannot be one.
async fn lab() -> Option<&'static Lab> {
    static LAB: OnceCell<Lab> = OnceCell::const_new();
    if !is_root("machines need root") {
        return None;
    }
    let options = Options::new(Level::Nodes).executed_by(PROGRAM).with_maas(Some(fleet("fleet.yaml")));
    Some(LAB.get_or_init(async || Lab::up(options).await.unwrap()).await)
}

fn fleet(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/maas_machines").join(name)
}

/// The lab's own MAAS, as somebody on the host reaches it.
async fn maas(lab: &Lab) -> Client {
    let components = lab.control().status().await.unwrap().components;
    let address = &components.iter().find(|component| component.name == lab::MAAS).unwrap().address;
    Client::builder(address, KEY).unwrap().build().unwrap()
}

/// Allocates a machine and begins to deploy it.
async fn deploy(maas: &Client, user_data: &str, in_memory: bool) -> Machine {
    deploy_one_of(maas, "default", user_data, in_memory).await
}

/// The same with a machine of this pool. What a test releases and goes on with is in a pool of its own: no other test is to get it.
async fn deploy_one_of(maas: &Client, pool: &str, user_data: &str, in_memory: bool) -> Machine {
    let machine = maas.machines().allocate(&Allocate::new().pool(pool)).await.unwrap();
    deploy_again(maas, &machine.system_id, user_data, in_memory).await
}

async fn deploy_again(maas: &Client, id: &SystemId, user_data: &str, in_memory: bool) -> Machine {
    let user_data = Some(UserData::new(user_data));
    let deploying = maas.machine(id).deploy(&Deploy { user_data, ephemeral_deploy: Some(in_memory), ..Deploy::default() }).await.unwrap();
    assert_eq!(deploying.status, Status::Deploying);
    deploying
}

/// Waits until MAAS shows another state than one that is under way; it must be this one.
async fn settles(maas: &Client, id: &SystemId, wanted: Status) -> Machine {
    let under_way = [Status::Deploying, Status::Releasing, Status::DiskErasing, Status::Testing, Status::Commissioning];
    until(&format!("{id} is {wanted:?}"), SOON, async || !under_way.contains(&maas.machine(id).read().await.unwrap().status)).await;
    let machine = maas.machine(id).read().await.unwrap();
    assert_eq!(machine.status, wanted, "{}", machine.error_description);
    machine
}

async fn power_is(maas: &Client, id: &SystemId, wanted: PowerState) {
    until(&format!("the power of {id} is {wanted:?}"), SOON, async || maas.machine(id).query_power_state().await.unwrap() == wanted).await;
}

/// The words MAAS's event log has for a failure.
async fn failure(maas: &Client, id: &SystemId) -> String {
    let filter = EventFilter::new().machine(id).level(EventLevel::Error);
    let events = maas.events().query(&filter, EventPlace::Newest, None).await.unwrap().events;
    events.into_iter().find(|event| event.kind == "Marking node failed").unwrap().description
}

/// The machine in the lab; it is called as in MAAS.
async fn in_the_lab(lab: &Lab, hostname: &str) -> MachineStatus {
    lab.control().status().await.unwrap().machines.into_iter().find(|machine| machine.name == hostname).unwrap()
}

/// Everything a machine has printed so far.
fn console(lab: &Lab, machine: &Machine) -> String {
    std::fs::read_to_string(lab.directory().logs().join(format!("{}.log", machine.hostname))).unwrap_or_default()
}

/// Runs a command on a machine, or beside the control plane.
async fn inside(lab: &Lab, machine: Option<&str>, words: &[&str]) -> Output {
    lab.control().enter(machine).await.unwrap().args(words).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn two_machines_deployed_through_the_api_alone_form_a_cluster_whose_endpoint_is_a_name_of_maas() {
    let Some(lab) = lab().await else { return };
    let maas = maas(lab).await;
    let first = deploy(&maas, include_str!("control-plane.yaml"), false).await;
    let second = deploy(&maas, include_str!("worker.yaml"), false).await;
    let address = maas.machine(&first.system_id).read().await.unwrap().ip_addresses[0].clone();
    maas.dns_resources().create("api.first.example", None, &[address.parse().unwrap()]).await.unwrap();
    for machine in [&first, &second] {
        let deployed = settles(&maas, &machine.system_id, Status::Deployed).await;
        assert_eq!(deployed.power_state, PowerState::On);
        assert_eq!(
            in_the_lab(lab, &deployed.hostname).await.address.to_string(),
            deployed.ip_addresses[0],
            "MAAS's address is the machine's"
        );
    }
    let kubeconfig = lab.directory().path().join("first.kubeconfig");
    std::fs::write(&kubeconfig, inside(lab, Some(&first.hostname), &["cat", "/etc/kubernetes/admin.conf"]).await.stdout).unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let kubectl = lab.programs().path(Program::Kubectl).to_str().unwrap().to_owned();
    let ready = "jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type==\"Ready\")].status} {end}";
    let wanted = format!("{} True {} True", first.hostname, second.hostname);
    until("both nodes are Ready", SOON, async || {
        text(&inside(lab, None, &[&kubectl, "--kubeconfig", kubeconfig, "get", "nodes", "-o", ready]).await) == wanted
    })
    .await;
    let shown = text(&inside(lab, None, &[&kubectl, "--kubeconfig", kubeconfig, "cluster-info"]).await);
    assert!(shown.contains("https://api.first.example:6443"), "{shown}");

    // Names in both directions, as a machine sees them.
    let found = text(&inside(lab, Some(&second.hostname), &["getent", "ahostsv4", &first.fqdn]).await);
    assert!(found.starts_with(&address), "{found}");
    let reverse = text(&inside(lab, Some(&second.hostname), &["dig", "+short", "-x", &address]).await);
    assert!(reverse.contains(&format!("{}.", first.fqdn)), "{reverse}");
    for machine in [first, second] {
        maas.machine(&machine.system_id).release(&Release::default()).await.unwrap();
        let released = settles(&maas, &machine.system_id, Status::Ready).await;
        assert_eq!((released.owner, released.power_state), (None, PowerState::Off));
        assert_eq!(in_the_lab(lab, &machine.hostname).await.state, MachineState::Off);
    }
}

#[tokio::test]
async fn first_boots_that_fail_hang_or_lose_power_are_failed_deployments_with_the_words_of_the_console() {
    let Some(lab) = lab().await else { return };
    let mut emulator = Emulator::start(lab, "impatient.yaml", &["--seed", "2"]);
    let maas = Client::builder(&emulator.endpoint, KEY).unwrap().build().unwrap();
    let fails = deploy(&maas, "#cloud-config\nruncmd:\n- echo the disk controller is on fire\n- exit 7\n", false).await;
    let ignites = deploy(&maas, r#"{"ignition": {"version": "9.9.9"}}"#, false).await;
    let waits = "#cloud-config\nruncmd:\n- echo waiting for the other rack\n- sleep 100000\n";
    let hangs = deploy(&maas, waits, false).await;
    let struck = deploy(&maas, waits, false).await;
    let unplugged = deploy(&maas, waits, false).await;
    for machine in [&struck, &unplugged] {
        until("it is in the middle of its first boot", SOON, async || console(lab, machine).contains("waiting for the other rack")).await;
    }
    // Once by a fault of the MAAS, once behind its back.
    inject(&emulator.endpoint, &format!(r#"{{"incident": {{"machine": "{}", "what": "power_loss"}}}}"#, struck.system_id));
    lab.control().power_off(&unplugged.hostname, false).await.unwrap();
    for machine in [&struck, &unplugged] {
        let failed = settles(&maas, &machine.system_id, Status::FailedDeployment).await;
        assert_eq!(failed.power_state, PowerState::Off);
        let words = failure(&maas, &machine.system_id).await;
        for part in ["The machine lost its power during its first boot", "waiting for the other rack"] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert_eq!(failed.error_description, words);
    }
    assert_eq!(maas.machine(&hangs.system_id).read().await.unwrap().status, Status::Deploying, "power is missed before MAAS is impatient");

    for (machine, said) in [(&fails, "the disk controller is on fire"), (&ignites, "does not know this version")] {
        settles(&maas, &machine.system_id, Status::FailedDeployment).await;
        let words = failure(&maas, &machine.system_id).await;
        assert!(words.contains(said), "{words}");
    }
    assert_eq!(in_the_lab(lab, &fails.hostname).await.state, MachineState::Failed, "it is left as it is, to be looked at");
    let failed = settles(&maas, &hangs.system_id, Status::FailedDeployment).await;
    let words = failure(&maas, &hangs.system_id).await;
    for part in ["Node operation 'Deploying' timed out after 1 minutes.", "It is still booting", "waiting for the other rack"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(failed.error_description, words);

    // A failed machine works again once it was released.
    maas.machine(&fails.system_id).release(&Release::default()).await.unwrap();
    settles(&maas, &fails.system_id, Status::Ready).await;
    deploy_again(&maas, &fails.system_id, "#!/bin/sh\necho fine\n", false).await;
    settles(&maas, &fails.system_id, Status::Deployed).await;
    for machine in [&fails, &ignites, &hangs, &struck, &unplugged] {
        maas.machine(&machine.system_id).delete(false).await.unwrap();
        until("a machine that left MAAS leaves the lab", SOON, async || {
            lab.control().status().await.unwrap().machines.iter().all(|known| known.name != machine.hostname)
        })
        .await;
    }
    emulator.stop();
}

#[tokio::test]
async fn a_release_keeps_the_disk_or_erases_it_and_power_cycles_keep_it() {
    let Some(lab) = lab().await else { return };
    let maas = maas(lab).await;
    let kept = deploy_one_of(&maas, "disks", "#!/bin/sh\necho first >> /root/boots\n", false).await;
    let ignition =
        r#"{"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/root/boots", "contents": {"source": "data:,first"}}]}}"#;
    let erased = deploy_one_of(&maas, "disks", ignition, false).await;
    for machine in [&kept, &erased] {
        let id = &machine.system_id;
        settles(&maas, id, Status::Deployed).await;
        maas.machine(id).power_off(PowerOff::Hard, None).await.unwrap();
        power_is(&maas, id, PowerState::Off).await;
        assert_eq!(in_the_lab(lab, &machine.hostname).await.state, MachineState::Off);
        maas.machine(id).power_on(None).await.unwrap();
        power_is(&maas, id, PowerState::On).await;
        boots_to(lab, &machine.hostname, "first").await;
    }
    // Tests run in place of what is deployed, which boots again afterwards.
    let before = in_the_lab(lab, &kept.hostname).await.since;
    maas.machine(&kept.system_id).test(&Test::default()).await.unwrap();
    settles(&maas, &kept.system_id, Status::Deployed).await;
    until("it boots its disk again", SOON, async || {
        let now = in_the_lab(lab, &kept.hostname).await;
        now.state == MachineState::Running && now.since > before
    })
    .await;
    boots_to(lab, &kept.hostname, "first").await;

    maas.machine(&kept.system_id).release(&Release::default()).await.unwrap();
    maas.machine(&erased.system_id).release(&Release { erase: true, ..Release::default() }).await.unwrap();
    for (machine, left) in [(&kept, "first"), (&erased, "")] {
        settles(&maas, &machine.system_id, Status::Ready).await;
        assert_eq!(in_the_lab(lab, &machine.hostname).await.state, MachineState::Off);
        switched_on_boots_to(lab, &machine.hostname, left).await;
    }
    deploy_again(&maas, &kept.system_id, "#!/bin/sh\necho second >> /root/boots\n", false).await;
    settles(&maas, &kept.system_id, Status::Deployed).await;
    boots_to(lab, &kept.hostname, "second").await;
}

#[tokio::test]
async fn rescue_mode_and_an_erasing_that_fails_leave_the_disk_alone_and_the_power_is_shown_as_it_is() {
    let Some(lab) = lab().await else { return };
    let maas = maas(lab).await;
    let machine = deploy(&maas, "#!/bin/sh\necho first >> /root/boots\n", false).await;
    let id = &machine.system_id;
    settles(&maas, id, Status::Deployed).await;
    let is_off = async || {
        power_is(&maas, id, PowerState::Off).await;
        assert_eq!(maas.machine(id).read().await.unwrap().power_state, PowerState::Off);
        until("the machine has no power", SOON, async || in_the_lab(lab, &machine.hostname).await.state == MachineState::Off).await;
    };

    maas.machine(id).rescue_mode().await.unwrap();
    until("it is in rescue mode", SOON, async || maas.machine(id).read().await.unwrap().status == Status::RescueMode).await;
    is_off().await;
    maas.machine(id).exit_rescue_mode().await.unwrap();
    until("it is back", SOON, async || maas.machine(id).read().await.unwrap().status == Status::Deployed).await;
    power_is(&maas, id, PowerState::On).await;
    boots_to(lab, &machine.hostname, "first").await;

    let fault = format!(r#"{{"machine": {{"machine": "{id}", "times": 1, "harm": "fail_erase"}}}}"#);
    inject(maas.address().as_str(), &fault);
    maas.machine(id).release(&Release { erase: true, ..Release::default() }).await.unwrap();
    settles(&maas, id, Status::FailedDiskErasing).await;
    is_off().await;
    maas.machine(id).release(&Release::default()).await.unwrap();
    settles(&maas, id, Status::Ready).await;
    switched_on_boots_to(lab, &machine.hostname, "first").await;
    maas.machine(id).delete(false).await.unwrap();
}

/// Switches a machine on that MAAS has just taken back, until a file on its disk holds this. MAAS shows it as Ready before the machine has
/// heard of it, which then costs it its power once more.
async fn switched_on_boots_to(lab: &Lab, hostname: &str, content: &str) {
    until(&format!("{hostname} boots to {content:?}"), SOON, async || {
        let _ = lab.control().power_on(hostname, None).await;
        let _ = lab.control().wait_while(hostname, MachineState::Booting).await;
        let Ok(mut command) = lab.control().enter(Some(hostname)).await else { return false };
        let output = command.args(["sh", "-c", "cat /root/boots; true"]).output().unwrap();
        output.status.success() && text(&output) == content
    })
    .await;
}

/// Waits for a boot; a file on the disk must hold this then.
async fn boots_to(lab: &Lab, hostname: &str, content: &str) {
    lab.control().wait_while(hostname, MachineState::Booting).await.unwrap();
    assert_eq!(text(&inside(lab, Some(hostname), &["sh", "-c", "cat /root/boots; true"]).await), content);
}

#[tokio::test]
async fn a_machine_by_dhcp_is_shown_with_the_address_it_got_and_a_commissioned_one_without_power() {
    let Some(lab) = lab().await else { return };
    let maas = maas(lab).await;
    let machine = maas.machines().allocate(&Allocate::new().pool("leases")).await.unwrap();
    let interface = &machine.interface_set[0];
    let interfaces = maas.interfaces(&machine.system_id);
    let subnet = interface.links[0].subnet.as_ref().map(|subnet| subnet.id);
    for link in &interface.links {
        interfaces.unlink_subnet(interface.id, link.id).await.unwrap();
    }
    interfaces.link_subnet(interface.id, &LinkSubnet { mode: LinkMode::Dhcp, subnet, ..LinkSubnet::default() }).await.unwrap();
    deploy_again(&maas, &machine.system_id, "#!/bin/sh\ntrue\n", false).await;
    let deployed = settles(&maas, &machine.system_id, Status::Deployed).await;
    assert_eq!(deployed.ip_addresses, [in_the_lab(lab, &machine.hostname).await.address.to_string()]);
    maas.machine(&machine.system_id).release(&Release::default()).await.unwrap();
    settles(&maas, &machine.system_id, Status::Ready).await;

    maas.machine(&machine.system_id).commission(&Commission::default()).await.unwrap();
    let ready = settles(&maas, &machine.system_id, Status::Ready).await;
    assert_eq!(ready.power_state, PowerState::Off);
    assert_eq!(maas.machine(&machine.system_id).query_power_state().await.unwrap(), PowerState::Off);
}

#[tokio::test]
async fn what_runs_in_memory_is_gone_with_the_power_and_begins_anew() {
    let Some(lab) = lab().await else { return };
    let maas = maas(lab).await;
    let machine = deploy(&maas, "#!/bin/sh\necho first >> /root/boots\n", true).await;
    settles(&maas, &machine.system_id, Status::Deployed).await;
    for end in ["poweroff", "reboot"] {
        inside(lab, Some(&machine.hostname), &["sh", "-c", "echo more >> /root/boots"]).await;
        boots_to(lab, &machine.hostname, "first\nmore").await;
        let before = in_the_lab(lab, &machine.hostname).await.since;
        assert!(inside(lab, Some(&machine.hostname), &[end]).await.status.success());
        if end == "poweroff" {
            power_is(&maas, &machine.system_id, PowerState::Off).await;
            maas.machine(&machine.system_id).power_on(None).await.unwrap();
        }
        until("it has booted again", SOON, async || {
            let now = in_the_lab(lab, &machine.hostname).await;
            now.state == MachineState::Running && now.since > before
        })
        .await;
        boots_to(lab, &machine.hostname, "first").await;
    }
}

#[tokio::test]
async fn a_maas_that_dies_and_is_started_again_has_lost_neither_machines_nor_what_they_do() {
    let Some(lab) = lab().await else { return };
    let state = tempfile::tempdir().unwrap();
    let state = state.path().join("state.json");
    let mut emulator = Emulator::start(lab, "forgetful.yaml", &["--seed", "3", "--state", state.to_str().unwrap()]);
    let maas = Client::builder(&emulator.endpoint, KEY).unwrap().build().unwrap();
    let waits = "#!/bin/sh\necho waiting to go on\nwhile ! test -e /run/go-on; do sleep 0.2; done\n";
    let (first, second, third) = (deploy(&maas, waits, false).await, deploy(&maas, waits, false).await, deploy(&maas, waits, false).await);
    // What a process has not saved yet dies with it.
    let saved = async || std::fs::read_to_string(&state).is_ok_and(|text| text.matches("User starting deployment").count() == 3);
    until("the deployments are saved", SOON, saved).await;
    for machine in [&first, &second, &third] {
        until("it boots", SOON, async || console(lab, machine).contains("waiting to go on")).await;
    }
    emulator.stop();
    // One is through before anybody hears of it, one goes on, and of one the lab has never heard.
    lab.control().remove_machine(&third.hostname).await.unwrap();
    inside(lab, Some(&first.hostname), &["touch", "/run/go-on"]).await;
    lab.control().wait_while(&first.hostname, MachineState::Booting).await.unwrap();

    let mut emulator = Emulator::start(lab, "forgetful.yaml", &["--state", state.to_str().unwrap(), "--listen", &emulator.address()]);
    settles(&maas, &first.system_id, Status::Deployed).await;
    inside(lab, Some(&second.hostname), &["touch", "/run/go-on"]).await;
    settles(&maas, &second.system_id, Status::Deployed).await;
    until("what was lost is deployed once more", SOON, async || console(lab, &third).matches("waiting to go on").count() == 2).await;
    inside(lab, Some(&third.hostname), &["touch", "/run/go-on"]).await;
    settles(&maas, &third.system_id, Status::Deployed).await;
    for machine in [first, second, third] {
        maas.machine(&machine.system_id).release(&Release::default()).await.unwrap();
        settles(&maas, &machine.system_id, Status::Ready).await;
        assert_eq!(in_the_lab(lab, &machine.hostname).await.state, MachineState::Off);
    }
    emulator.stop();
}

#[tokio::test]
async fn below_level_nodes_a_maas_with_simulated_machines_answers_on_loopback_and_is_started_again_when_it_dies() {
    let options = Options::new(Level::Api).executed_by(PROGRAM).with_maas(None);
    let lab = Lab::up(options).await.unwrap();
    let component = async || {
        let components = lab.control().status().await.unwrap().components;
        components.into_iter().find(|component| component.name == lab::MAAS).unwrap()
    };
    let before = component().await;
    let maas = Client::builder(&before.address, maas_emulator::Fleet::DEFAULT_KEY).unwrap().build().unwrap();
    let machine = maas.machines().allocate(&Allocate::new().zone("zone-b")).await.unwrap();
    let state = lab.directory().path().join("maas.json");
    until("the allocation is saved", SOON, async || std::fs::read_to_string(&state).is_ok_and(|text| text.contains("User acquiring node")))
        .await;
    assert!(Command::new("kill").args(["-KILL", &before.process_id.unwrap().to_string()]).status().unwrap().success());
    until("it is started again", SOON, async || {
        let now = component().await;
        now.restarts == 1 && now.process_id.is_some_and(|process| Some(process) != before.process_id)
    })
    .await;
    until("it answers", SOON, async || maas.version().await.is_ok()).await;
    let kept = maas.machine(&machine.system_id).read().await.unwrap();
    assert_eq!((kept.status, kept.owner.as_deref()), (Status::Allocated, Some("admin")));
    lab.down().await;
}

/// Lets something go wrong at the MAAS of this address.
fn inject(maas: &str, fault: &str) {
    let address = maas.replace("/MAAS", "/emulator/faults");
    let ask = |more: &[&str]| Command::new("curl").args(["--silent", "--fail", "--noproxy", "*", &address]).args(more).output().unwrap();
    assert!(!ask(&["--data", fault]).status.success(), "only who has a key may");
    let posted = ask(&["--oauth2-bearer", KEY, "--data", fault]);
    assert!(posted.status.success(), "{posted:?}");
}

/// One more MAAS on the machines of the lab, outside of it.
struct Emulator {
    process: Child,
    endpoint: String,
}

impl Emulator {
    fn start(lab: &Lab, fleet_file: &str, more: &[&str]) -> Self {
        let anywhere: &[&str] = if more.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        // It ends with the thread of its test, however that ends.
        let mut process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", PROGRAM, "emulator", "--lab", &lab.directory().name().to_string()])
            .arg("--fleet")
            .arg(fleet(fleet_file))
            .args(anywhere)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let endpoint = lines.find_map(|line| Some(line.ok()?.strip_prefix("MAAS_ENDPOINT=")?.to_owned())).unwrap();
        Emulator { process, endpoint }
    }

    fn address(&self) -> String {
        self.endpoint.trim_start_matches("http://").trim_end_matches("/MAAS").to_owned()
    }

    fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
