//! The controllers of clusters and machines together.

use crate::world::{World, quiet};
use serde_json::{Value, json};

fn machine(world: &World, name: &str) -> Value {
    world.server.objects("maasmachines").into_iter().find(|object| object["metadata"]["name"] == name).unwrap_or_default()
}

fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).map(|condition| condition["status"].clone()).unwrap_or_default()
}

/// A cluster with a machine `a` of its control plane, to which its name leads.
async fn with_control_plane(world: &World) {
    world.plain_cluster().await;
    world.until("it is provisioned", World::is_provisioned).await;
    world.patch_status("Cluster", "one", json!({"initialization": {"infrastructureProvisioned": true}})).await;
    world.create("Secret", json!({"metadata": {"name": "boot"}, "data": {"value": "I2Nsb3VkLWNvbmZpZwo="}})).await;
    let reference = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasMachine", "name": "a"});
    let spec = json!({"clusterName": "one", "bootstrap": {"dataSecretName": "boot"}, "infrastructureRef": reference});
    world.create("Machine", json!({"metadata": {"name": "a"}, "spec": spec})).await;
    let labels = json!({"cluster.x-k8s.io/cluster-name": "one", "cluster.x-k8s.io/control-plane": ""});
    let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "a", "uid": "u"}]);
    let metadata = json!({"name": "a", "labels": labels, "ownerReferences": owner});
    let spec = json!({"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy"});
    world.create("MaasMachine", json!({"metadata": metadata, "spec": spec})).await;
    world.until("the machine is being deployed", |world| machine(world, "a")["status"]["machineState"] == "Deploying").await;
    world.until("the name leads to it", |world| world.addresses().len() == 1).await;
    assert_eq!(machine(world, "a")["status"]["machineState"], "Deploying", "before it is deployed");
    world.until("the machine is ready", |world| condition(&machine(world, "a"), "Ready") == "True").await;
    assert_eq!(condition(&machine(world, "a"), "DNSAttached"), "True");
    quiet().await;
    world.forget_calls();
}

fn assert_it_left_the_name_before_it_was_released(world: &World) {
    let writes = world.writes();
    let detached = writes.iter().position(|call| call.starts_with("PUT dnsresources")).unwrap_or_else(|| panic!("{writes:?}"));
    let released = writes.iter().position(|call| call.contains("op=release") && call.contains("machines/")).unwrap();
    assert!(detached < released, "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn s23_a_machine_is_attached_to_the_name_and_leaves_it_before_it_is_released() {
    let world = World::new();
    world
        .play_with_machines(async {
            with_control_plane(&world).await;
            world.delete("MaasMachine", "a").await;
            world.until("the machine is gone", |world| machine(world, "a").is_null()).await;
            assert_it_left_the_name_before_it_was_released(&world);
            assert!(world.addresses().is_empty() && world.reserved().is_empty());
            world.delete("MaasCluster", "one").await;
            world.until("the cluster is gone", |world| world.one().is_null()).await;
            assert_eq!((world.names(), world.reserved().len()), (vec![], 0));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_leaves_the_name_before_it_is_released_also_when_the_cluster_was_deleted_first() {
    let world = World::new();
    world
        .play_with_machines(async {
            with_control_plane(&world).await;
            world.delete("MaasCluster", "one").await;
            quiet().await;
            assert_eq!((world.addresses().len(), world.writes()), (1, vec![]), "it serves for as long as it is there");
            assert_eq!(condition(&machine(&world, "a"), "DNSAttached"), "True");
            world.delete("MaasMachine", "a").await;
            world.until("both are gone", |world| machine(world, "a").is_null() && world.one().is_null()).await;
            assert_it_left_the_name_before_it_was_released(&world);
            assert_eq!((world.names(), world.reserved().len()), (vec![], 0));
        })
        .await;
}
