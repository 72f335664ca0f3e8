//! A worker of a cluster with three control planes hangs: it is switched off and on and comes back as the same node. What becomes of one whose power controller is dead is shown
//! by the tests of the provider, in virtual time.

use std::collections::BTreeSet;

use maas_client::{DnsFilter, EventFilter, EventLevel, EventPlace};
use serde_json::{Value, json};

use crate::{
    stage::{CLUSTER_WITHIN, Cluster, Stage},
    waiting::{is_root, until, until_some},
};

#[tokio::test]
async fn s38_row_54_a_node_that_hangs_comes_back_by_a_power_cycle_and_three_control_planes_become_one() {
    if !is_root("machines need root") {
        return;
    }
    let stage = Stage::up().await;
    stage.create_cluster(&Cluster { control_planes: 3, ..Cluster::default() }).await;
    // The rest of the control plane joins while this goes on.
    let before = until_some("the worker's node is Ready", CLUSTER_WITHIN, async || worker(&stage).await).await;
    stage.apply(include_str!("remediation.yaml")).await;

    hangs(&stage, &before.server).await;
    // Its order may be done and taken back between two looks; what MAAS was told stays.
    until("it is switched off", CLUSTER_WITHIN, async || times_switched_off(&stage, &before.system_id).await == 1).await;
    let after = until_some("its node is Ready again and the health check took its order back", CLUSTER_WITHIN, async || {
        let none = remediations(&stage).await.is_empty();
        worker(&stage).await.filter(|_| none)
    })
    .await;
    assert_eq!(after, before, "the same Machine, server and Node");
    assert_eq!(times_switched_off(&stage, &before.system_id).await, 1);

    stage.kubectl(&["delete", "machinehealthcheck", "racks-workers"]).await;

    // A control plane of three, spread over the zones, behind one name; then of one.
    until_control_plane(&stage, 3).await;
    stage.until_nodes("racks", 4).await;
    stage.until_is("cluster/racks", ".status.conditions[?(@.type==\"Available\")].status", "True").await;
    let one = json!({"spec": {"replicas": 1}}).to_string();
    stage.kubectl(&["patch", "kubeadmcontrolplane/racks-control-plane", "--type=merge", "--patch", &one]).await;
    until_control_plane(&stage, 1).await;
    stage.until_nodes("racks", 2).await;
    stage.delete_cluster("racks").await;
}

/// Waits until the control plane has so many machines, in as many zones, and the cluster's name in MAAS leads to all of them and no others.
async fn until_control_plane(stage: &Stage, machines: usize) {
    until(&format!("the name of the cluster leads to {machines} machines in as many zones"), CLUSTER_WITHIN, async || {
        let selector = "--selector=cluster.x-k8s.io/control-plane";
        let found: Value = serde_json::from_str(&stage.kubectl(&["get", "maasmachines", selector, "--output=json"]).await).unwrap();
        let found = found["items"].as_array().unwrap();
        let zones: BTreeSet<&str> = found.iter().filter_map(|machine| machine["status"]["failureDomain"].as_str()).collect();
        let addresses = found.iter().flat_map(|machine| machine["status"]["addresses"].as_array().cloned().unwrap_or_default());
        let addresses = addresses.filter(|address| address["type"] == "InternalIP");
        let addresses: BTreeSet<String> = addresses.filter_map(|address| address["address"].as_str().map(str::to_owned)).collect();
        let names = stage.maas().await.dns_resources().list(&DnsFilter::default()).await.unwrap();
        let reached: BTreeSet<String> =
            names.into_iter().filter_map(|name| name.ip_addresses).flatten().map(|address| address.ip).collect();
        found.len() == machines && zones.len() == machines && reached.len() == machines && reached == addresses
    })
    .await;
}

/// The one worker, when its node is Ready.
#[derive(Debug, PartialEq, Eq)]
struct Worker {
    machine: String,
    system_id: String,
    server: String,
    node_uid: String,
}

async fn worker(stage: &Stage) -> Option<Worker> {
    let found = stage.try_kubectl(&["get", "maasmachines", "--selector=!cluster.x-k8s.io/control-plane", "--output=json"]).await?;
    let found: Value = serde_json::from_str(&found).unwrap();
    let deployed = |machine: &&Value| machine["status"]["phase"] == "Deployed" && machine["metadata"]["deletionTimestamp"].is_null();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let machine = found["items"].as_array().unwrap().iter().find(deployed)?;
    let server = word(&machine["status"]["hostname"]);
    stage.ready_nodes("racks").await.into_iter().find(|(node, _)| *node == server)?;
    let node_uid = stage.in_workload("racks", &["get", "node", &server, "--output=jsonpath={.metadata.uid}"]).await?;
    Some(Worker { machine: word(&machine["metadata"]["name"]), system_id: word(&machine["spec"]["systemID"]), server, node_uid })
}

/// Lets a machine hang: it has power, and nothing on it that the cluster would hear of works any more.
async fn hangs(stage: &Stage, server: &str) {
    let mut command = stage.lab.control().enter(Some(server)).await.unwrap();
    let stopped = command.args(["systemctl", "stop", "kubelet"]).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
}

async fn remediations(stage: &Stage) -> String {
    stage.kubectl(&["get", "maasremediations", "--output=name"]).await
}

/// How often somebody told MAAS to take the power of a server.
async fn times_switched_off(stage: &Stage, system_id: &str) -> usize {
    let filter = EventFilter::new().level(EventLevel::Debug).machine(&system_id.into());
    let page = stage.maas().await.events().query(&filter, EventPlace::Newest, Some(1000)).await.unwrap();
    page.events.iter().filter(|event| event.kind == "User powering down node").count()
}
