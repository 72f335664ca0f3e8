//! A pod that answers: what a cluster is for.

use crate::{
    stage::{SOON, Stage},
    waiting::{until, until_some},
};

/// A pod behind a Service answers from a node of the cluster.
pub async fn answers(stage: &Stage, cluster: &str) {
    let file = stage.file("pod.yaml", include_str!("pod.yaml"));
    let apply = ["apply", "--server-side", "--filename", &file];
    until("the pod is taken", SOON, async || stage.in_workload(cluster, &apply).await.is_some()).await;
    let address = ["get", "service", "answers", "--output", "jsonpath={.spec.clusterIP}"];
    let address = until_some("the service has an address", SOON, async || stage.in_workload(cluster, &address).await).await;
    for (node, _) in stage.ready_nodes(cluster).await {
        until(&format!("the service answers from {node}"), SOON, async || {
            let mut command = stage.lab.control().enter(Some(&node)).await.unwrap();
            command.args(["timeout", "5", "busybox", "wget", "-qO-", &format!("http://{address}/hostname")]);
            String::from_utf8_lossy(&command.output().unwrap().stdout).starts_with("answers")
        })
        .await;
    }
}
