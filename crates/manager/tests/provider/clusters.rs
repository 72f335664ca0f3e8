//! Clusters as the real Cluster API sees them.

use crate::rack::{FLEET, Rack, condition};
use api::names;
use serde_json::{Value, json};

async fn cluster(rack: &Rack, spec: Value) {
    let infrastructure = json!({"apiGroup": names::GROUP, "kind": "MaasCluster", "name": "c2"});
    rack.create(json!({"apiVersion": names::API_VERSION, "kind": "MaasCluster", "metadata": {"name": "c2"}, "spec": spec})).await;
    rack.create(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c2"}, "spec": {"infrastructureRef": infrastructure}})).await;
}

fn names_in_dns(rack: &Rack) -> Vec<String> {
    rack.emulator.world(|world| world.names.values().map(|name| name.name.clone()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn s01_s09_rows_7_8_9_11_12_32_cluster_api_takes_the_endpoint_and_the_zones_and_a_deleted_cluster_leaves_nothing() {
    let rack = Rack::new("clusters", FLEET).await;
    cluster(&rack, json!({"dnsDomain": "maas"})).await;
    let provisioned = |object: &Value| object["status"]["initialization"]["infrastructureProvisioned"] == Value::Bool(true);
    let seen = rack.wait(rack.core("Cluster"), "c2", "its infrastructure is provisioned", provisioned).await;
    let host = seen["spec"]["controlPlaneEndpoint"]["host"].as_str().unwrap().to_owned();
    assert!(host.strip_suffix(".maas").is_some_and(|label| label.starts_with("c2-")), "{host}");
    assert_eq!(seen["spec"]["controlPlaneEndpoint"]["port"], 6443);
    let zones = |object: &Value| object["status"]["failureDomains"].as_array().is_some_and(|zones| zones.len() == 2);
    let seen = rack.wait(rack.core("Cluster"), "c2", "it has its zones", zones).await;
    assert_eq!(seen["status"]["failureDomains"], json!([{"name": "az1", "controlPlane": true}, {"name": "az2", "controlPlane": true}]));
    let mirrored = |object: &Value| condition(object, "InfrastructureReady")["reason"] == "APIServerNotReady";
    rack.wait(rack.core("Cluster"), "c2", "what is not ready is shown", mirrored).await;
    assert_eq!(names_in_dns(&rack).len(), 1);
    rack.delete("Cluster", "c2").await;
    rack.wait(rack.core("Cluster"), "c2", "it is gone", Value::is_null).await;
    assert_eq!(names_in_dns(&rack), Vec::<String>::new());
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_a_hosted_cluster_waits_for_the_endpoint_of_its_cluster() {
    let rack = Rack::new("hosted", FLEET).await;
    cluster(&rack, json!({"dnsDomain": "maas", "endpoint": {"mode": "Hosted"}})).await;
    let waits = |object: &Value| condition(object, "InfrastructureReady")["reason"] == "WaitForEndpoint";
    let seen = rack.wait(rack.core("Cluster"), "c2", "it waits", waits).await;
    assert_eq!(seen["status"]["initialization"]["infrastructureProvisioned"], Value::Null);
    let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": "hosted.example", "port": 443}}});
    let change = kube::api::Patch::Merge(&endpoint);
    rack.core("Cluster").patch("c2", &kube::api::PatchParams::default(), &change).await.unwrap();
    let provisioned = |object: &Value| object["status"]["initialization"]["infrastructureProvisioned"] == Value::Bool(true);
    rack.wait(rack.core("Cluster"), "c2", "its infrastructure is provisioned", provisioned).await;
    assert_eq!(names_in_dns(&rack), Vec::<String>::new());
    rack.delete("Cluster", "c2").await;
    rack.wait(rack.core("Cluster"), "c2", "it is gone", Value::is_null).await;
    rack.finish().await;
}
