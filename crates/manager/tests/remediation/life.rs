//! What becomes of remediations.

use std::time::Duration;

use maas_emulator::{
    Fault,
    faults::{Happening, Incident, MachineFault, MachineHarm},
};
use serde_json::json;
use tokio::time::sleep;

use crate::world::{World, condition};

fn happens(world: &World, what: Happening) {
    world.emulator.inject(Fault::Incident(Incident { after_seconds: 0.0, machine: "only".to_owned(), what })).unwrap();
}

fn is_left_to_its_owner(world: &World) -> bool {
    condition(&world.machine(), "OwnerRemediated")["status"] == "False"
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_node_is_unhealthy_is_switched_off_and_on_once_and_nothing_else_is_done() {
    let world = World::with_a_machine().await;
    let before = world.maas_machine()["spec"].clone();
    world
        .play(async {
            world.becomes_unhealthy(json!({})).await;
            world.until("it is off", |world| !world.has_power()).await;
            assert_eq!(world.remediation()["status"]["attempts"], 1, "written down before");
            world.until("it is on again", World::has_power).await;
            world.until("its node is waited for", |world| world.state() == "Running/WaitingForNode").await;
            sleep(Duration::from_mins(4)).await;
            assert_eq!(world.power_calls(), ["power_off", "power_on"]);
            world.says_healthy(true).await;
            world.until("it succeeded", |world| world.state() == "Succeeded/MachineHealthy").await;
            world.delete("MaasRemediation", "one").await;
            sleep(Duration::from_mins(30)).await;
            assert_eq!(world.power_calls(), ["power_off", "power_on"]);
            assert!(!is_left_to_its_owner(&world));
            assert_eq!(world.maas_machine()["spec"], before);
            assert_eq!(condition(&world.maas_machine(), "Ready")["status"], "True");
            assert_eq!(world.events("PowerCycling").len(), 1);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn attempts_are_made_as_often_as_allowed_and_then_the_machine_is_left_to_its_owner() {
    let world = World::with_a_machine().await;
    world
        .play(async {
            world.becomes_unhealthy(json!({"type": "PowerCycle", "retryLimit": 2, "timeout": "5m"})).await;
            world.until("it is left to its owner", is_left_to_its_owner).await;
            world.until("it failed", |world| world.state() == "Failed/AttemptsExhausted").await;
            sleep(Duration::from_mins(30)).await;
            assert_eq!(world.power_calls(), ["power_off", "power_on", "power_off", "power_on"]);
            let machine = world.machine();
            let message = condition(&machine, "OwnerRemediated")["message"].as_str().unwrap().to_owned();
            assert!(message.contains("switched off and on 2 times"), "{message}");
            assert_eq!(condition(&machine, "HealthCheckSucceeded")["status"], "False", "conditions of others stay");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_remediation_at_work_asks_maas_at_known_moments_only() {
    let world = World::with_a_machine().await;
    world
        .play(async {
            world.becomes_unhealthy(json!({"timeout": "8h"})).await;
            world.until("it is on again", |world| world.power_calls().len() == 2 && world.has_power()).await;
            sleep(Duration::from_mins(10)).await;
            let about_machines =
                || world.emulator.journal(|journal| journal.entries().filter(|entry| entry.uri.contains("/machines/")).count());
            let before = about_machines();
            sleep(Duration::from_hours(6)).await;
            // A sweep every ten minutes and a sync of each object, whatever is remediated.
            assert!(about_machines() - before < 6 * 6 * 4, "{} calls in six hours", about_machines() - before);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_power_controller_that_does_not_answer_is_told_in_its_own_words_and_the_owner_gets_the_machine() {
    let world = World::with_a_machine().await;
    let harm = MachineHarm::BmcError("Failed to power the node: connection timeout to 10.0.0.9".to_owned());
    world.emulator.inject(Fault::Machine(MachineFault { machine: Some("only".to_owned()), times: None, harm })).unwrap();
    world
        .play(async {
            world.becomes_unhealthy(json!({})).await;
            world.until("it is told", |world| world.state() == "Running/PowerCycleFailed").await;
            let message = condition(&world.remediation(), "Remediated")["message"].as_str().unwrap().to_owned();
            assert!(message.contains("connection timeout to 10.0.0.9"), "{message}");
            assert!(world.events("PowerCycleFailed")[0].contains("connection timeout to 10.0.0.9"));
            world.until("it is left to its owner", is_left_to_its_owner).await;
            let message = condition(&world.machine(), "OwnerRemediated")["message"].as_str().unwrap().to_owned();
            assert!(message.contains("connection timeout to 10.0.0.9"), "{message}");
            assert_eq!(world.power_cycles(), 1);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_taken_away_is_left_to_its_owner_at_once_and_not_touched() {
    for what in [Happening::Released, Happening::Deleted, Happening::DeployedBy("admin".to_owned())] {
        let world = World::with_a_machine().await;
        happens(&world, what.clone());
        world
            .play(async {
                sleep(Duration::from_secs(30)).await;
                world.becomes_unhealthy(json!({})).await;
                world.until("it is left to its owner", is_left_to_its_owner).await;
                sleep(Duration::from_mins(5)).await;
                assert_eq!((world.state().as_str(), world.power_calls()), ("Failed/MachineLost", vec![]), "{what:?}");
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_released_while_its_node_is_waited_for_is_given_up_before_the_time_is_up() {
    let world = World::with_a_machine().await;
    world
        .play(async {
            world.becomes_unhealthy(json!({"timeout": "8h"})).await;
            world.until("it is on again", |world| world.power_calls().len() == 2 && world.has_power()).await;
            happens(&world, Happening::Released);
            world.until("it is left to its owner", is_left_to_its_owner).await;
            assert!(matches!(world.state().as_str(), "Failed/MachineLost" | "Failed/MachineFailed"), "{}", world.state());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_lost_its_power_is_switched_on_once_and_not_off() {
    let world = World::with_a_machine().await;
    world
        .play(async {
            happens(&world, Happening::PowerLoss);
            world.becomes_unhealthy(json!({})).await;
            world.until("it is on again", |world| !world.power_calls().is_empty() && world.has_power()).await;
            // What was told a moment ago gets its time; a node that came back by it is not disturbed.
            sleep(Duration::from_mins(1)).await;
            world.says_healthy(true).await;
            sleep(Duration::from_mins(30)).await;
            assert_eq!(world.power_calls(), ["power_on"], "whoever of the two was first");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_while_the_cluster_is_paused_and_everything_afterwards() {
    let world = World::with_a_machine().await;
    world.patch("Cluster", "c1", json!({"spec": {"paused": true}})).await;
    world
        .play(async {
            world.becomes_unhealthy(json!({})).await;
            sleep(Duration::from_hours(1)).await;
            assert_eq!(condition(&world.remediation(), "Paused")["status"], "True");
            assert_eq!(world.power_calls(), Vec::<String>::new());
            world.patch("Cluster", "c1", json!({"spec": {"paused": false}})).await;
            world.until("it is on again", |world| world.power_calls().len() == 2 && world.has_power()).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_deleted_right_after_its_power_was_taken_goes_back_and_stays_as_it_is_there() {
    let world = World::with_a_machine().await;
    world
        .play(async {
            world.becomes_unhealthy(json!({})).await;
            world.until("its power was taken", |world| world.power_cycles() == 1).await;
            world.delete("MaasMachine", "one").await;
            world.until("it is gone", |world| world.maas_machine().is_null()).await;
            sleep(Duration::from_mins(30)).await;
            let owner = world.emulator.world(|world| world.all_machines().find(|machine| machine.hostname == "only").unwrap().owner);
            assert_eq!((owner, world.power_cycles()), (None, 1));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_taken_back_right_after_the_power_was_taken_leaves_no_machine_without_power() {
    let world = World::with_a_machine().await;
    world
        .play(async {
            world.becomes_unhealthy(json!({})).await;
            world.until("its power was taken", |world| world.power_cycles() == 1).await;
            world.delete("MaasRemediation", "one").await;
            // The rules of machines find it by an event, or in a list of all machines every ten minutes.
            sleep(Duration::from_mins(22)).await;
            assert!(world.has_power(), "{:?}", world.told());
            assert_eq!(world.power_cycles(), 1);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_power_controller_that_takes_its_time_is_told_once_whoever_tells_it() {
    let fleet = "
zones: [{name: az1}]
timings: {deploy: [20, 60], power_on: [5, 6], power_off: [3, 4]}
machines: [{hostname: only, zone: az1, cpus: 4, memory: 8192}]
";
    let world = World::with_a_machine_of(fleet).await;
    world
        .play(async {
            happens(&world, Happening::PowerLoss);
            sleep(Duration::from_mins(10)).await;
            assert_eq!((world.power_calls(), world.has_power()), (vec!["power_on".to_owned()], true));
            world.becomes_unhealthy(json!({})).await;
            sleep(Duration::from_mins(5)).await;
            assert_eq!((world.power_calls(), world.has_power()), (["power_on", "power_off", "power_on"].map(str::to_owned).to_vec(), true));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_repeated_ever_more_rarely_although_each_makes_events() {
    let world = World::with_a_machine().await;
    world
        .play(async {
            let harm = MachineHarm::BmcError("no route to host".to_owned());
            world.emulator.inject(Fault::Machine(MachineFault { machine: Some("only".to_owned()), times: None, harm })).unwrap();
            world.delete("MaasMachine", "one").await;
            sleep(Duration::from_mins(10)).await;
            let times = world.operations(|operation| operation == "release").len();
            assert!((5..=16).contains(&times), "it was told {times} times");
            assert!(!world.maas_machine().is_null(), "it is not let go");
        })
        .await;
}
