//! Machines whose nodes are unhealthy: what a remediation does on the real API server, and what it tells the real Cluster API.

use crate::rack::{FLEET, Rack, condition};
use api::{MaasRemediation, names};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use maas_emulator::{
    Fault,
    faults::{MachineFault, MachineHarm},
};
use serde_json::{Value, json};

fn remediations(rack: &Rack) -> Api<MaasRemediation> {
    Api::namespaced(rack.client.clone(), &rack.namespace)
}

/// A machine that was deployed an hour ago; just now would have to be waited for.
async fn deployed_long_ago(rack: &Rack, name: &str) -> Value {
    rack.machine(name, json!({})).await;
    rack.provisioned(name).await;
    let object = rack.wait_machine(name, "it is ready", |object| condition(object, "Ready")["status"] == "True").await;
    let mut intent: Value = serde_json::from_str(object["metadata"]["annotations"][names::CLAIM].as_str().unwrap()).unwrap();
    intent["since"] = json!(jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1));
    let change = json!({"metadata": {"annotations": {names::CLAIM: intent.to_string()}}});
    rack.maas_machines().patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    object
}

/// What a `MachineHealthCheck` does: it says so on the Machine and asks for a remediation.
async fn becomes_unhealthy(rack: &Rack, name: &str, strategy: Value) {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let failed =
        json!({"type": "HealthCheckSucceeded", "status": "False", "reason": "NodeNotReady", "message": "", "lastTransitionTime": now});
    let says = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": name}, "status": {"conditions": [failed]}});
    let machine = rack.core("Machine").patch_status(name, &PatchParams::apply("health-check").force(), &Patch::Apply(says)).await.unwrap();
    let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": machine.uid()});
    rack.create(json!({"apiVersion": names::API_VERSION, "kind": "MaasRemediation",
        "metadata": {"name": name, "labels": {names::CLUSTER_NAME: "c1"}, "ownerReferences": [owner]}, "spec": {"strategy": strategy}}))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_54_a_machine_is_switched_off_and_on_and_the_order_can_be_taken_back_at_any_time() {
    let rack = Rack::new("remediation", FLEET).await;
    let before = deployed_long_ago(&rack, "m1").await;
    becomes_unhealthy(&rack, "m1", json!({"type": "PowerCycle"})).await;
    let object = rack
        .wait(remediations(&rack), "m1", "its node is waited for", |object| condition(object, "Remediated")["reason"] == "WaitingForNode")
        .await;
    assert_eq!((&object["status"]["phase"], &object["status"]["attempts"]), (&json!("Running"), &json!(1)));
    let switched: Vec<String> = rack.calls().into_iter().filter(|call| call.starts_with("power")).collect();
    let host = before["status"]["hostname"].as_str().unwrap();
    assert_eq!(switched, [format!("power_off {host} 200"), format!("power_on {host} 200")]);
    assert!(object["metadata"]["finalizers"].is_null());
    remediations(&rack).delete("m1", &DeleteParams::default()).await.unwrap();
    rack.wait(remediations(&rack), "m1", "it is gone", Value::is_null).await;
    let after = rack.wait_machine("m1", "it is ready", |object| condition(object, "Ready")["status"] == "True").await;
    assert_eq!((&after["spec"], rack.allocated()), (&before["spec"], vec![host.to_owned()]), "the same server as before");
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_54_a_machine_that_is_given_up_is_left_to_its_owner_and_its_other_conditions_stay() {
    let rack = Rack::new("given-up", FLEET).await;
    deployed_long_ago(&rack, "m1").await;
    let harm = MachineHarm::BmcError("no route to host".to_owned());
    rack.emulator.inject(Fault::Machine(MachineFault { machine: None, times: None, harm })).unwrap();
    becomes_unhealthy(&rack, "m1", json!({"timeout": "2s"})).await;
    let given_up = |machine: &Value| condition(machine, "OwnerRemediated")["status"] == "False";
    let machine = rack.wait(rack.core("Machine"), "m1", "it is left to its owner", given_up).await;
    assert_eq!(condition(&machine, "OwnerRemediated")["reason"], "WaitingForRemediation");
    let message = condition(&machine, "OwnerRemediated")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("no route to host"), "{message}");
    for others in ["InfrastructureReady", "HealthCheckSucceeded", "Ready"] {
        assert!(condition(&machine, others)["status"].is_string(), "{others} is gone: {machine}");
    }
    let object = rack.wait(remediations(&rack), "m1", "it failed", |object| object["status"]["phase"] == "Failed").await;
    assert_eq!(condition(&object, "Remediated")["reason"], "AttemptsExhausted");
    rack.finish().await;
}
