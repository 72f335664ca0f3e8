//! A server that joined its cluster and then failed leaves no node there; nodes of others stay.

use crate::{
    machines::{Rack, environment},
    world::key,
};
use decisions::FailureKind;
use maas_emulator::{
    Fault,
    faults::{MachineFault, MachineHarm},
    world::{machine::Machine, status::Status},
};
use manager::machine::Rules;
use serde_json::{Value, json};

fn word(object: &Value, field: &str) -> String {
    object["status"][field].as_str().unwrap_or_default().to_lowercase()
}

fn address(object: &Value) -> String {
    let addresses = object["status"]["addresses"].as_array().cloned().unwrap_or_default();
    let internal = addresses.into_iter().find(|address| address["type"] == "InternalIP").unwrap_or_default();
    internal["address"].as_str().unwrap_or_default().to_owned()
}

async fn nodes(rack: &Rack) -> Vec<String> {
    let nodes = rack.world.cluster("one").nodes().list(&kube::api::ListParams::default()).await.unwrap();
    nodes.items.into_iter().filter_map(|node| node.metadata.name).collect()
}

fn is_back(rack: &Rack, system_id: &str) -> bool {
    rack.emulator.world(|world| world.all_machines().any(|machine| machine.system_id == system_id && machine.owner.is_none()))
}

/// Lets the first server fail after a node of its name, with this id and at this place, was seen; says which one that was and which nodes
/// are there when another server serves.
async fn after_a_failure(provider_id: Option<&str>, place: impl Fn(&Value) -> String) -> (String, Vec<String>) {
    let rack = Rack::new().await;
    let mut failed = String::new();
    rack.play_from_the_beginning(environment(), Rules::default(), async {
        rack.world.until_it_answers("one").await;
        rack.until("it is being deployed", |object| object["status"]["phase"] == "Deploying" && !address(object).is_empty()).await;
        failed = word(&rack.object(), "hostname");
        rack.world.cluster("one").node_at(&failed, provider_id, &[&place(&rack.object())]).await;
        let machine = rack.object()["spec"]["systemID"].as_str().unwrap().to_owned();
        let harm = MachineHarm::FailDeploy("the disk is broken".to_owned());
        rack.emulator.inject(Fault::Machine(MachineFault { machine: Some(machine.clone()), times: None, harm })).unwrap();
        rack.until("another one serves", |object| {
            object["status"]["initialization"]["provisioned"] == json!(true) && object["spec"]["systemID"] != json!(machine)
        })
        .await;
        // The node goes before the server does: with that one back it is settled which nodes stay.
        rack.until("the first one is back", |_| is_back(&rack, &machine)).await;
    })
    .await;
    (failed, nodes(&rack).await)
}

#[tokio::test(start_paused = true)]
async fn the_node_of_a_server_that_is_given_back_goes_before_it() {
    let (_, left) = after_a_failure(None, address).await;
    assert_eq!(left, Vec::<String>::new());
}

/// Lets the first server fail, and a node of its name and place join as soon as MAAS has it in this state; the nodes that are there when
/// another server serves, and whether the node joined while the object still knew the server.
async fn after_a_late_join(moment: impl Fn(&Machine) -> bool) -> (Vec<String>, bool) {
    let rack = Rack::new().await;
    let mut in_time = false;
    rack.play_from_the_beginning(environment(), Rules::default(), async {
        rack.world.until_it_answers("one").await;
        rack.until("it is being deployed", |object| object["status"]["phase"] == "Deploying" && !address(object).is_empty()).await;
        let machine = rack.object()["spec"]["systemID"].as_str().unwrap().to_owned();
        let (name, place) = (word(&rack.object(), "hostname"), address(&rack.object()));
        let harm = MachineHarm::FailDeploy("the disk is broken".to_owned());
        rack.emulator.inject(Fault::Machine(MachineFault { machine: Some(machine.clone()), times: None, harm })).unwrap();
        let is_there = || rack.emulator.world(|world| world.all_machines().any(|found| found.system_id == machine && moment(found)));
        rack.until("it goes back", |_| is_there()).await;
        rack.world.cluster("one").node_at(&name, None, &[&place]).await;
        in_time = rack.object()["spec"]["systemID"] == json!(machine);
        // The node goes before the object forgets the server.
        rack.until("another one serves", |object| {
            object["status"]["initialization"]["provisioned"] == json!(true) && object["spec"]["systemID"] != json!(machine)
        })
        .await;
    })
    .await;
    (nodes(&rack).await, in_time)
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_while_its_server_is_released_goes_too() {
    assert_eq!(after_a_late_join(|machine| machine.status == Status::Releasing).await, (Vec::new(), true));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joined_just_before_the_power_went_off_goes_too() {
    assert_eq!(after_a_late_join(|machine| machine.owner.is_none()).await, (Vec::new(), true));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_elsewhere_or_says_that_it_is_another_machine_stays() {
    let (failed, left) = after_a_failure(None, |_| "192.0.2.9".to_owned()).await;
    assert_eq!(left, [failed], "a host of the same name in another domain");
    let (failed, left) = after_a_failure(Some("maas:///az1/another"), address).await;
    assert_eq!(left, [failed], "it says whose it is");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_changed_since_it_was_seen_is_not_removed() {
    let rack = Rack::new().await;
    rack.world.cluster("one").node("host", Some("maas:///az1/another")).await;
    rack.world
        .while_following(async {
            rack.world.until_it_answers("one").await;
            let failure = rack.world.workload.remove_node(&key("one"), "host", None).await.unwrap_err();
            assert_eq!((failure.kind, failure.words.as_str()), (FailureKind::Stale, "node host has provider id maas:///az1/another now"));
            rack.world.workload.remove_node(&key("one"), "gone", None).await.unwrap();
            assert_eq!(nodes(&rack).await, ["host"]);
            rack.world.workload.remove_node(&key("one"), "host", Some("maas:///az1/another")).await.unwrap();
            assert_eq!(nodes(&rack).await, Vec::<String>::new());
        })
        .await;
}
