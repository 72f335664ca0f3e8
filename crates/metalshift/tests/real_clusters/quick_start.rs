//! From nothing to a pod that answers.

use crate::{
    stage::{Cluster, SOON, Stage},
    waiting::{is_root, until},
};

#[tokio::test]
async fn a_cluster_of_one_control_plane_and_a_worker_answers_through_a_service_and_leaves_nothing_when_deleted() {
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
    stage.delete_cluster("racks").await;
}

/// A pod behind a Service answers from a node of the cluster.
pub async fn answers(stage: &Stage, cluster: &str) {
    let file = stage.lab.directory().path().join("pod.yaml");
    std::fs::write(&file, include_str!("pod.yaml")).unwrap();
    let apply = ["apply", "--server-side", "--filename", file.to_str().unwrap()];
    until("the pod is taken", SOON, async || stage.in_workload(cluster, &apply).await.is_some()).await;
    let address = ["get", "service", "answers", "--output", "jsonpath={.spec.clusterIP}"];
    let address = stage.in_workload(cluster, &address).await.unwrap();
    for (node, _) in stage.ready_nodes(cluster).await {
        until(&format!("the service answers from {node}"), SOON, async || {
            let mut command = stage.lab.control().enter(Some(&node)).await.unwrap();
            command.args(["timeout", "5", "busybox", "wget", "-qO-", &format!("http://{address}/hostname")]);
            String::from_utf8_lossy(&command.output().unwrap().stdout).starts_with("answers")
        })
        .await;
    }
}
