//! Pods that answer and volumes that bind.

use super::{SOON, apply, inside, kubectl, lab, machine, text};
use crate::waiting::until;

#[tokio::test]
async fn a_deployment_answers_through_its_cluster_ip_and_node_port_from_every_node() {
    let Some(lab) = lab().await else { return };
    // By name: another test has a machine join meanwhile.
    let nodes = text(&kubectl(lab, &["get", "nodes", "management", "worker-1", "-o", "name"]));
    assert_eq!(nodes, "node/management\nnode/worker-1");
    apply(lab, "web", include_str!("web.yaml"));
    let rolled_out = kubectl(lab, &["rollout", "status", "deployment/web", "--timeout=120s"]);
    assert!(rolled_out.status.success(), "{}", text(&kubectl(lab, &["describe", "pods"])));
    let nodes = text(&kubectl(lab, &["get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}"]));
    assert_eq!(nodes, "worker-1", "the pod is where it was asked to be");
    let cluster_ip = text(&kubectl(lab, &["get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"]));
    let node_port = text(&kubectl(lab, &["get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}"]));
    let worker = machine(lab, "worker-1").await.address;
    let ways = [
        (Some("management"), format!("http://{cluster_ip}/passwd")),
        (Some("worker-1"), format!("http://{cluster_ip}/passwd")),
        (None, format!("http://{cluster_ip}/passwd")),
        (None, format!("http://{worker}:{node_port}/passwd")),
    ];
    for (from, address) in ways {
        until(&format!("{address} answers {from:?}"), SOON, async || {
            text(&inside(lab, from, &["timeout", "5", "busybox", "wget", "-qO-", &address]).await).starts_with("root:")
        })
        .await;
    }
}

#[tokio::test]
async fn a_claimed_volume_binds_and_keeps_what_a_pod_wrote() {
    let Some(lab) = lab().await else { return };
    apply(lab, "volume", include_str!("volume.yaml"));
    until("the pod has read what it wrote", SOON, async || {
        text(&kubectl(lab, &["get", "pod", "volume", "-o", "jsonpath={.status.phase}"])) == "Succeeded"
    })
    .await;
    assert_eq!(text(&kubectl(lab, &["get", "pvc", "volume", "-o", "jsonpath={.status.phase}"])), "Bound");
    assert_eq!(text(&kubectl(lab, &["logs", "volume"])), "kept");
    assert!(kubectl(lab, &["delete", "pod/volume", "pvc/volume"]).status.success());
    until("the released volume is gone", SOON, async || text(&kubectl(lab, &["get", "pv", "-o", "name"])).is_empty()).await;
}
