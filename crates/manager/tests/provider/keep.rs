//! Machines in use: what people and hardware do to them in MAAS.

use crate::rack::{FLEET, Rack, condition};
use kube::api::{Patch, PatchParams};
use maas_emulator::{
    Fault,
    faults::{Happening, Incident},
};
use serde_json::{Value, json};
use std::time::Duration;

fn happens(rack: &Rack, hostname: &str, what: Happening) {
    rack.emulator.inject(Fault::Incident(Incident { after_seconds: 0.0, machine: hostname.to_owned(), what })).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn s19_s20_rows_24_70_what_is_taken_away_is_told_and_never_deployed_again() {
    let rack = Rack::new("s19", FLEET).await;
    for name in ["deleted", "released"] {
        rack.machine(name, json!({})).await;
        rack.provisioned(name).await;
    }
    let before = rack.calls().len();
    let host = |object: &Value| object["status"]["hostname"].as_str().unwrap().to_owned();
    let deleted = rack.provisioned("deleted").await;
    let released = rack.provisioned("released").await;
    happens(&rack, &host(&deleted), Happening::Deleted);
    happens(&rack, &host(&released), Happening::Released);
    let object = rack.reason("deleted", "MachineNotFound").await;
    assert_eq!(object["spec"]["providerID"], deleted["spec"]["providerID"]);
    assert_eq!(object["status"]["initialization"]["provisioned"], true, "once provisioned, for ever");
    let object = rack.reason("released", "MachineTakenAway").await;
    assert!(condition(&object, "Ready")["message"].as_str().unwrap().contains("Delete the Machine"), "{object}");
    rack.wait(rack.core("Machine"), "released", "Cluster API shows it", |machine| {
        condition(machine, "InfrastructureReady")["reason"] == "MachineTakenAway"
    })
    .await;
    assert_eq!(rack.calls().len(), before, "nothing was done in MAAS");
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s21_a_machine_that_lost_its_power_is_switched_on() {
    let rack = Rack::new("s21", FLEET).await;
    rack.machine("m1", json!({})).await;
    let object = rack.provisioned("m1").await;
    let host = object["status"]["hostname"].as_str().unwrap();
    happens(&rack, host, Happening::PowerLoss);
    rack.wait_machine("m1", "it is switched on", |_| rack.calls().iter().any(|call| call.starts_with("power_on"))).await;
    rack.wait_machine("m1", "it is ready again", |object| condition(object, "Ready")["status"] == "True").await;
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_19_20_s36_nothing_happens_while_it_is_paused_and_everything_afterwards() {
    let rack = Rack::new("s36", FLEET).await;
    let pause = async |paused: bool| {
        let change = Patch::Merge(json!({"spec": {"paused": paused}}));
        rack.core("Cluster").patch("c1", &PatchParams::default(), &change).await.unwrap();
    };
    rack.machine("m1", json!({})).await;
    rack.provisioned("m1").await;
    pause(true).await;
    let paused = rack.wait_machine("m1", "it is shown as paused", |object| condition(object, "Paused")["status"] == "True").await;
    rack.maas_machines().delete("m1", &kube::api::DeleteParams::default()).await.unwrap();
    let before = rack.calls().len();
    // To be deleted is a generation of its own.
    let noticed = |object: &Value| condition(object, "Paused")["observedGeneration"] == object["metadata"]["generation"];
    let goes = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
    let still = rack.wait_machine("m1", "its deletion is noticed", |object| goes(object) && noticed(object)).await;
    assert_eq!(still["metadata"]["finalizers"], paused["metadata"]["finalizers"]);
    assert_eq!(rack.calls().len(), before);
    pause(false).await;
    rack.gone("m1").await;
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_31_34_a_machine_at_rest_is_not_written_and_labels_of_others_stay() {
    let rack = Rack::new("rest", FLEET).await;
    rack.machine("m1", json!({})).await;
    rack.wait_machine("m1", "it is ready", |object| condition(object, "Ready")["status"] == "True").await;
    let label = Patch::Merge(json!({"metadata": {"labels": {"team": "blue"}, "annotations": {"note": "x"}}}));
    rack.maas_machines().patch("m1", &PatchParams::default(), &label).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = rack.wait_machine("m1", "it is there", |object| !object.is_null()).await;
    let calls = rack.calls();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let after = rack.wait_machine("m1", "it is there", |object| !object.is_null()).await;
    assert_eq!(after, before, "nobody wrote it");
    assert_eq!(after["metadata"]["labels"]["team"], "blue");
    assert_eq!(rack.calls(), calls);
    rack.finish().await;
}
