//! Clusters as the real Cluster API sees them.

use crate::rack::{FLEET, Rack, condition};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn s01_s09_rows_7_8_9_11_12_32_cluster_api_takes_the_endpoint_and_the_zones_and_a_deleted_cluster_leaves_nothing() {
    let rack = Rack::new("clusters", FLEET).await;
    rack.cluster("c2", json!({}), json!({}), json!({})).await;
    let seen = rack.cluster_provisioned("c2").await;
    let host = seen["spec"]["controlPlaneEndpoint"]["host"].as_str().unwrap().to_owned();
    assert!(host.strip_suffix(".maas").is_some_and(|label| label.starts_with("c2-")), "{host}");
    assert_eq!(seen["spec"]["controlPlaneEndpoint"]["port"], 6443);
    let zones = |object: &Value| object["status"]["failureDomains"].as_array().is_some_and(|zones| zones.len() == 2);
    let seen = rack.wait(rack.core("Cluster"), "c2", "it has its zones", zones).await;
    assert_eq!(seen["status"]["failureDomains"], json!([{"name": "az1", "controlPlane": true}, {"name": "az2", "controlPlane": true}]));
    let mirrored = |object: &Value| condition(object, "InfrastructureReady")["reason"] == "APIServerNotReady";
    rack.wait(rack.core("Cluster"), "c2", "what is not ready is shown", mirrored).await;
    assert_eq!(rack.names().len(), 1);
    rack.delete_cluster("c2").await;
    assert_eq!(rack.names(), []);
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_a_hosted_cluster_waits_for_the_endpoint_of_its_cluster() {
    let rack = Rack::new("hosted", FLEET).await;
    rack.cluster("c2", json!({}), json!({}), json!({"endpoint": {"mode": "Hosted"}})).await;
    let waits = |object: &Value| condition(object, "InfrastructureReady")["reason"] == "WaitForEndpoint";
    let seen = rack.wait(rack.core("Cluster"), "c2", "it waits", waits).await;
    assert_eq!(seen["status"]["initialization"]["infrastructureProvisioned"], Value::Null);
    let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": "hosted.example", "port": 443}}});
    let change = kube::api::Patch::Merge(&endpoint);
    rack.core("Cluster").patch("c2", &kube::api::PatchParams::default(), &change).await.unwrap();
    rack.cluster_provisioned("c2").await;
    assert_eq!(rack.names(), []);
    rack.delete_cluster("c2").await;
    rack.finish().await;
}
