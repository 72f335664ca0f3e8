//! What comes after the first day: scaling, rollouts, a node that lost its power, a pause.

use serde_json::{Value, json};

use crate::{
    management::is_write,
    pod::answers,
    stage::{CLUSTER_WITHIN, Cluster, SOON, Stage},
    waiting::{is_root, until, until_some},
};

#[tokio::test]
async fn s37_s38_a_cluster_is_scaled_rolled_out_paused_and_healed_and_maas_has_all_back_in_the_end() {
    if !is_root("machines need root") {
        return;
    }
    let stage = Stage::up().await;
    stage.create_cluster(&Cluster::default()).await;
    stage.until_nodes("racks", 2).await;
    until("every node is told which machine it is", SOON, async || {
        let nodes = stage.ready_nodes("racks").await;
        nodes.len() == 2 && nodes.iter().all(|(node, provider_id)| provider_id.starts_with(&format!("maas:///zone-{}/", &node[..1])))
    })
    .await;
    answers(&stage, "racks").await;
    stage.until_is("cluster/racks", ".status.conditions[?(@.type==\"Available\")].status", "True").await;

    // Up, down to nothing, and back.
    for workers in [3, 0, 1] {
        scale(&stage, workers).await;
        until_at_rest(&stage, workers + 1).await;
    }

    pause(&stage).await;

    // Another template for the workers, then for the control plane: every machine is replaced, and the old servers go back.
    let old = objects(&stage).await;
    swap_template(
        &stage,
        "racks-workers",
        "machinedeployment/racks-workers",
        |name| json!({"spec": {"template": {"spec": {"infrastructureRef": {"name": name}}}}}),
    )
    .await;
    lose_maas_for_a_while(&stage, old.len() + 1).await;
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
    let before = until_some("there is one worker, and it is Ready", SOON, async || worker(&stage).await).await;
    stage.inject(&json!({"machine": {"machine": before.server, "harm": {"bmc_error": "no route to host"}}})).await;
    stage.inject(&json!({"incident": {"machine": before.server, "what": "power_loss"}})).await;
    let deleted = "jsonpath={.items[?(@.metadata.deletionTimestamp)].metadata.name}";
    until("Cluster API gives it up", CLUSTER_WITHIN, async || {
        stage.kubectl(&["get", "maasmachines", "--output", deleted]).await.split_whitespace().any(|name| name == before.object)
    })
    .await;
    // Without its power controller MAAS cannot take it back: it is not let go until somebody mends that. Then another object may have it.
    stage.heal().await;
    until("another worker is there", CLUSTER_WITHIN, async || worker(&stage).await.is_some_and(|now| now.object != before.object)).await;
    stage.kubectl(&["delete", "machinehealthcheck", "racks-workers"]).await;
    stage.delete_cluster("racks").await;
}

/// A pause: a worker that was deleted meanwhile keeps its server until it is over, and then goes and is replaced, once.
async fn pause(stage: &Stage) {
    let (before, all) =
        (until_some("there is one worker, and it is Ready", SOON, async || worker(stage).await).await, objects(stage).await);
    let object = format!("maasmachine/{}", before.object);
    patch(stage, "cluster/racks", &json!({"spec": {"paused": true}})).await;
    for paused in ["maascluster/racks", &object] {
        stage.until_is(paused, ".status.conditions[?(@.type==\"Paused\")].status", "True").await;
    }
    let (owners, last) = (held(stage).await, last_call(stage).await);
    stage.kubectl(&["delete", &format!("machine/{}", before.object), &object, "--wait=false"]).await;
    until("the provider has seen that it shall go", SOON, async || {
        let shown = "--output=jsonpath={.metadata.deletionTimestamp} {.metadata.generation} {.status.conditions[?(@.type==\"Paused\")].observedGeneration}";
        let shown = stage.kubectl(&["get", &object, shown]).await;
        matches!(shown.split(' ').collect::<Vec<_>>()[..], [deleted, generation, seen] if !deleted.is_empty() && generation == seen)
    })
    .await;
    // It goes on to look at MAAS, and could have done something since.
    let seen = last_call(stage).await;
    until("MAAS was looked at several times since", SOON, async || {
        let polls = stage.calls_after(seen).await.into_iter().filter(|call| call["uri"].as_str().unwrap().contains("/events/"));
        polls.count() >= 4
    })
    .await;
    let writes: Vec<Value> = stage.calls_after(last).await.into_iter().filter(is_write).collect();
    assert_eq!(writes, Vec::<Value>::new(), "a pause asks MAAS for nothing");
    assert_eq!((held(stage).await, objects(stage).await), (owners, all.clone()), "everybody keeps what they have");
    patch(stage, "cluster/racks", &json!({"spec": {"paused": false}})).await;
    until_replaced(stage, &all, 1).await;
}

/// The number of the latest call.
async fn last_call(stage: &Stage) -> u64 {
    stage.calls_after(0).await.last().map_or(0, |call| call["number"].as_u64().unwrap())
}

/// MAAS goes away as soon as there are so many machines, the new one of a rollout among them, and comes back when that is told.
async fn lose_maas_for_a_while(stage: &Stage, machines: usize) {
    until("the rollout has begun", SOON, async || objects(stage).await.len() == machines).await;
    stage.inject(&json!({"call": {"harm": {"status": {"status": 503, "body": "MAAS is being upgraded"}}}})).await;
    let (object, message) = until_some("a machine says that MAAS is away", SOON, async || {
        let found: Value = serde_json::from_str(&stage.kubectl(&["get", "maasmachines", "--output=json"]).await).unwrap();
        let machines = found["items"].as_array().unwrap().clone();
        machines.iter().find_map(|machine| {
            let conditions = machine["status"]["conditions"].as_array()?;
            let away = conditions.iter().find(|condition| condition["reason"] == "MaasUnavailable")?;
            Some((machine["metadata"]["name"].as_str()?.to_owned(), away["message"].as_str()?.to_owned()))
        })
    })
    .await;
    assert!(message.contains("503") || message.contains("MAAS is being upgraded"), "{object} does not say what MAAS answers: {message}");
    stage.heal().await;
}

/// Servers that belong to somebody.
async fn held(stage: &Stage) -> Vec<String> {
    let machines = stage.maas().await.machines().list(&maas_client::MachineFilter::new()).await.unwrap();
    machines.into_iter().filter(|machine| machine.owner.is_some()).map(|machine| machine.hostname).collect()
}

async fn scale(stage: &Stage, replicas: usize) {
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

/// Waits until there are so many machines, each with one server and a node that is Ready, and none on its way out.
async fn until_at_rest(stage: &Stage, machines: usize) {
    until(&format!("{machines} machines have one server each"), CLUSTER_WITHIN, async || {
        objects(stage).await.len() == machines && held(stage).await.len() == machines
    })
    .await;
    stage.until_nodes("racks", machines).await;
}

/// Waits until so many of the old machines are gone and as many as before are there.
async fn until_replaced(stage: &Stage, old: &[String], replaced: usize) {
    until(&format!("{replaced} of {old:?} are replaced"), CLUSTER_WITHIN, async || {
        let now = objects(stage).await;
        old.iter().filter(|name| !now.contains(name)).count() == replaced
    })
    .await;
    until_at_rest(stage, old.len()).await;
}

struct Worker {
    object: String,
    server: String,
}

/// The one worker, when its node is Ready.
async fn worker(stage: &Stage) -> Option<Worker> {
    let found = stage.try_kubectl(&["get", "maasmachines", "--selector", "!cluster.x-k8s.io/control-plane", "--output", "json"]).await?;
    let found: Value = serde_json::from_str(&found).unwrap();
    let machines = found["items"].as_array().unwrap();
    let deployed = machines.iter().filter(|machine| machine["status"]["phase"] == "Deployed");
    let [only] = deployed.collect::<Vec<_>>()[..] else { return None };
    let (object, server) = (only["metadata"]["name"].as_str()?.to_owned(), only["status"]["hostname"].as_str()?.to_owned());
    stage.ready_nodes("racks").await.iter().any(|(node, _)| *node == server).then_some(Worker { object, server })
}
