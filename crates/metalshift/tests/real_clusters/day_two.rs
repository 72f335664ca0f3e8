//! What comes after the first day: scaling, rollouts, a node that lost its power, a pause.

use serde_json::{Value, json};

use crate::{
    pod::answers,
    stage::{CLUSTER_WITHIN, Cluster, SOON, Stage},
    waiting::{is_root, until},
};

#[tokio::test]
async fn s37_s38_a_cluster_is_scaled_rolled_out_paused_and_healed_and_maas_has_all_back_in_the_end() {
    if !is_root("machines need root") {
        return;
    }
    let stage = Stage::up().await;
    stage.create_cluster(&Cluster::default()).await;
    stage.until_nodes("racks", 2).await;
    for (node, provider_id) in stage.ready_nodes("racks").await {
        assert!(provider_id.starts_with(&format!("maas:///zone-{}/", &node[..1])), "{node}: {provider_id}");
    }
    answers(&stage, "racks").await;
    stage.until_is("cluster/racks", ".status.conditions[?(@.type==\"Available\")].status", "True").await;

    // Up, down to nothing, and back.
    scale(&stage, 3).await;
    stage.until_nodes("racks", 4).await;
    assert_eq!(held(&stage).await.len(), 4);
    scale(&stage, 0).await;
    stage.until_nodes("racks", 1).await;
    until("the servers of the workers are back", SOON, async || held(&stage).await.len() == 1).await;
    scale(&stage, 1).await;
    stage.until_nodes("racks", 2).await;

    // A pause: what was asked for meanwhile is done afterwards, once.
    patch(&stage, "cluster/racks", &json!({"spec": {"paused": true}})).await;
    stage.until_is("maascluster/racks", ".status.conditions[?(@.type==\"Paused\")].status", "True").await;
    scale(&stage, 2).await;
    patch(&stage, "cluster/racks", &json!({"spec": {"paused": false}})).await;
    stage.until_nodes("racks", 3).await;
    assert_eq!(held(&stage).await.len(), 3);
    scale(&stage, 1).await;
    stage.until_nodes("racks", 2).await;

    // Another template for the workers, then for the control plane: every machine is replaced, and the old servers go back.
    let old = objects(&stage).await;
    swap_template(
        &stage,
        "racks-workers",
        "machinedeployment/racks-workers",
        |name| json!({"spec": {"template": {"spec": {"infrastructureRef": {"name": name}}}}}),
    )
    .await;
    until_replaced(&stage, &old, 1).await;
    swap_template(
        &stage,
        "racks-control-plane",
        "kubeadmcontrolplane/racks-control-plane",
        |name| json!({"spec": {"machineTemplate": {"spec": {"infrastructureRef": {"name": name}}}}}),
    )
    .await;
    until_replaced(&stage, &old, 2).await;
    answers(&stage, "racks").await;

    // A worker loses its power and its power controller: nobody can tell, so it is left alone, until Cluster API replaces it.
    stage.apply(include_str!("health-check.yaml")).await;
    let before = worker(&stage).await.expect("there is one worker, and it is Ready");
    stage.inject(&json!({"machine": {"machine": before, "harm": {"bmc_error": "no route to host"}}})).await;
    stage.inject(&json!({"incident": {"machine": before, "what": "power_loss"}})).await;
    until("Cluster API gives it up", CLUSTER_WITHIN, async || worker(&stage).await.is_none()).await;
    let given_up = "jsonpath={.items[?(@.metadata.deletionTimestamp)].metadata.name}";
    until("it is on its way back", CLUSTER_WITHIN, async || {
        !stage.kubectl(&["get", "maasmachines", "--output", given_up]).await.is_empty()
    })
    .await;
    // Without its power controller MAAS cannot take it back: it is not let go until somebody mends that.
    stage.heal().await;
    until("another worker is there", CLUSTER_WITHIN, async || worker(&stage).await.is_some_and(|now| now != before)).await;
    stage.kubectl(&["delete", "machinehealthcheck", "racks-workers"]).await;
    stage.delete_cluster("racks").await;
}

/// Servers that belong to somebody.
async fn held(stage: &Stage) -> Vec<String> {
    let machines = stage.maas().await.machines().list(&maas_client::MachineFilter::new()).await.unwrap();
    machines.into_iter().filter(|machine| machine.owner.is_some()).map(|machine| machine.hostname).collect()
}

async fn scale(stage: &Stage, replicas: u32) {
    patch(stage, "machinedeployment/racks-workers", &json!({"spec": {"replicas": replicas}})).await;
}

async fn patch(stage: &Stage, object: &str, change: &Value) {
    stage.kubectl(&["patch", object, "--type=merge", "--patch", &change.to_string()]).await;
}

/// Makes a copy of a template under another name and lets its user use that.
async fn swap_template(stage: &Stage, template: &str, user: &str, change: impl Fn(&str) -> Value) {
    let found = stage.kubectl(&["get", "maasmachinetemplate", template, "--output", "json"]).await;
    let mut copy: Value = serde_json::from_str(&found).unwrap();
    let name = format!("{template}-2");
    copy["metadata"] = json!({"name": name, "namespace": "default"});
    copy["spec"]["template"]["spec"]["minCPU"] = json!(3);
    copy.as_object_mut().unwrap().remove("status");
    stage.apply(&copy.to_string()).await;
    patch(stage, user, &change(&name)).await;
}

/// The names of all machines' objects. Servers may be used again as soon as they are back.
async fn objects(stage: &Stage) -> Vec<String> {
    let names = stage.kubectl(&["get", "maasmachines", "--output", "name"]).await;
    names.lines().map(str::to_owned).collect()
}

/// Waits until so many of the old machines are gone and as many as before are there, each with one server and a node that is Ready.
async fn until_replaced(stage: &Stage, old: &[String], replaced: usize) {
    until(&format!("{replaced} of {old:?} are replaced"), CLUSTER_WITHIN, async || {
        let now = objects(stage).await;
        now.len() == old.len() && old.iter().filter(|name| !now.contains(name)).count() == replaced && held(stage).await.len() == old.len()
    })
    .await;
    stage.until_nodes("racks", old.len()).await;
}

/// The server of the one worker, when its node is Ready.
async fn worker(stage: &Stage) -> Option<String> {
    let found = stage.try_kubectl(&["get", "maasmachines", "--selector", "!cluster.x-k8s.io/control-plane", "--output", "json"]).await?;
    let found: Value = serde_json::from_str(&found).unwrap();
    let machines = found["items"].as_array().unwrap();
    let deployed = machines.iter().filter(|machine| machine["status"]["phase"] == "Deployed");
    let servers: Vec<&str> = deployed.filter_map(|machine| machine["status"]["hostname"].as_str()).collect();
    let nodes = stage.ready_nodes("racks").await;
    match servers[..] {
        [only] if nodes.iter().any(|(node, _)| node == only) => Some(only.to_owned()),
        _ => None,
    }
}
