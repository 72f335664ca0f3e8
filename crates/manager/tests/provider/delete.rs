//! Machines that go: nothing is leaked, nothing is released early.

use crate::{
    rack::{FLEET, Rack, condition},
    wishes::{forms, holds},
};
use kube::api::{DeleteParams, Patch, PatchParams};
use maas_emulator::{
    Fault,
    faults::{MachineFault, MachineHarm},
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn s23_rows_16_17_a_machine_is_released_before_its_object_goes() {
    let slow = FLEET.replace("power_off: [0, 0.1]", "power_off: [2, 2]");
    let rack = Rack::new("s23", &slow).await;
    rack.machine("m1", json!({"erase": "Quick"})).await;
    let object = rack.provisioned("m1").await;
    let host = object["status"]["hostname"].as_str().unwrap().to_owned();
    let legacy = json!([api::names::FINALIZER_MACHINE, api::names::LEGACY_MACHINE_FINALIZER]);
    rack.maas_machines().patch("m1", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": legacy}}))).await.unwrap();
    rack.delete("Machine", "m1").await;
    let leaving =
        rack.wait_machine("m1", "it is on its way back", |object| object.is_null() || object["status"]["phase"] == "Releasing").await;
    assert!(!leaving.is_null(), "it is not gone before MAAS has the machine back");
    rack.gone("m1").await;
    assert_eq!(rack.in_maas(&host), ("Ready".to_owned(), None));
    assert_eq!(rack.calls().iter().filter(|call| call.starts_with("release")).count(), 1, "{:?}", rack.calls());
    let released = forms(&rack, "release");
    assert!(
        holds(&released[0], &["erase=true", "quick_erase=true"]) && released[0].contains("comment=") && released[0].contains("m1"),
        "{released:?}"
    );
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s24_row_22_what_was_never_allocated_goes_at_once_whatever_the_cluster_is_like() {
    let rack = Rack::new("s24", FLEET).await;
    rack.machine("m1", json!({"minCPU": 4000})).await;
    rack.reason("m1", "NoMatchingMachine").await;
    let began = tokio::time::Instant::now();
    rack.delete("Machine", "m1").await;
    rack.gone("m1").await;
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(rack.allocated(), Vec::<String>::new());
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_69_a_machine_deleted_in_the_middle_of_its_deployment_is_given_back() {
    let slow = FLEET.replace("deploy: [0.2, 0.4]", "deploy: [30, 30]");
    let rack = Rack::new("row69", &slow).await;
    rack.machine("m1", json!({})).await;
    rack.reason("m1", "MachineDeploying").await;
    rack.delete("Machine", "m1").await;
    rack.gone("m1").await;
    assert_eq!(rack.allocated(), Vec::<String>::new());
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_16_a_release_that_fails_keeps_the_object_and_says_why() {
    let rack = Rack::new("row16", FLEET).await;
    rack.machine("m1", json!({})).await;
    let object = rack.provisioned("m1").await;
    let host = object["status"]["hostname"].as_str().unwrap().to_owned();
    let fault = MachineFault { machine: Some(host), times: Some(2), harm: MachineHarm::BmcError("ipmi: timeout".to_owned()) };
    rack.emulator.inject(Fault::Machine(fault)).unwrap();
    rack.delete("Machine", "m1").await;
    let stuck = rack.wait_machine("m1", "it says why", |object| condition(object, "Deleting")["reason"] == "MachineReleaseFailed").await;
    assert!(condition(&stuck, "Deleting")["message"].as_str().unwrap().contains("ipmi: timeout"), "{stuck}");
    assert_eq!(condition(&stuck, "Ready")["reason"], "MachineReleaseFailed", "the reason that kubectl get shows");
    rack.gone("m1").await;
    assert_eq!(rack.allocated(), Vec::<String>::new());
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_52_a_hook_before_the_end_is_respected() {
    let rack = Rack::new("row52", FLEET).await;
    rack.machine("m1", json!({})).await;
    rack.provisioned("m1").await;
    let hook = json!({"metadata": {"annotations": {"pre-terminate.delete.hook.machine.cluster.x-k8s.io/test": ""}}});
    rack.core("Machine").patch("m1", &PatchParams::default(), &Patch::Merge(hook)).await.unwrap();
    rack.delete("Machine", "m1").await;
    rack.wait(rack.core("Machine"), "m1", "it waits for the hook", |machine| {
        condition(machine, "Deleting")["reason"] == "WaitingForPreTerminateHook"
    })
    .await;
    assert_eq!(rack.allocated().len(), 1, "nobody released it");
    let without = json!({"metadata": {"annotations": {"pre-terminate.delete.hook.machine.cluster.x-k8s.io/test": null}}});
    rack.core("Machine").patch("m1", &PatchParams::default(), &Patch::Merge(without)).await.unwrap();
    rack.gone("m1").await;
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_68_an_object_deleted_by_hand_is_shown_and_not_made_again() {
    let rack = Rack::new("row68", FLEET).await;
    rack.machine("m1", json!({})).await;
    rack.provisioned("m1").await;
    rack.wait(rack.core("Machine"), "m1", "it is taken over", |machine| {
        machine["status"]["initialization"]["infrastructureProvisioned"] == true
    })
    .await;
    rack.maas_machines().delete("m1", &DeleteParams::default()).await.unwrap();
    rack.gone("m1").await;
    rack.wait(rack.core("Machine"), "m1", "it is shown", |machine| condition(machine, "InfrastructureReady")["reason"] == "ObjectDeleted")
        .await;
    assert_eq!(rack.allocated(), Vec::<String>::new());
    rack.finish().await;
}
