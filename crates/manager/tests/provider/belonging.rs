//! Who belongs to whom, as the real Cluster API sees it: owners up to the Cluster, and nodes of machines.

use crate::rack::{FLEET, Rack, lab};
use api::names;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The kinds on the way from an object to the end of its owners.
async fn owners(rack: &Rack, object: &Value) -> Vec<String> {
    let (mut way, mut object) = (Vec::new(), object.clone());
    while let Some(owner) = object["metadata"]["ownerReferences"].as_array().and_then(|owners| owners.first()).cloned() {
        let text = |name: &str| owner[name].as_str().unwrap().to_owned();
        let (group, version) = owner["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        object = serde_json::to_value(rack.api(group, version, &text("kind")).get(&text("name")).await.unwrap()).unwrap();
        assert_eq!(object["metadata"]["uid"], owner["uid"], "it is the same one");
        way.push(text("kind"));
        assert!(way.len() < 10, "{way:?}");
    }
    way
}

#[tokio::test(flavor = "multi_thread")]
async fn row_55_everything_of_ours_belongs_to_a_cluster_in_the_end_and_nothing_else_is_made() {
    let rack = Rack::new("row55", FLEET).await;
    rack.create(json!({"apiVersion": names::API_VERSION, "kind": "MaasMachineTemplate", "metadata": {"name": "t"},
        "spec": {"template": {"spec": {"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy"}}}}))
        .await;
    rack.create(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": {"name": "md"},
        "spec": {"clusterName": "c1", "replicas": 1, "selector": {"matchLabels": {"pool": "a"}},
            "template": {"metadata": {"labels": {"pool": "a"}}, "spec": {"clusterName": "c1", "version": "v1.35.0",
                "bootstrap": {"dataSecretName": "boot"},
                "infrastructureRef": {"apiGroup": names::GROUP, "kind": "MaasMachineTemplate", "name": "t"}}}}}))
        .await;
    rack.wait(rack.core("MachineDeployment"), "md", "its machine is allocated", |_| rack.allocated().len() == 1).await;
    let ours = |kind: &'static str| rack.api(names::GROUP, names::VERSION, kind);
    let owned = |object: &Value| object["metadata"]["ownerReferences"].is_array();
    for (kind, name) in [("MaasCluster", "c1"), ("MaasMachineTemplate", "t")] {
        let object = rack.wait(ours(kind), name, "it is owned", owned).await;
        assert_eq!(owners(&rack, &object).await, ["Cluster"], "{kind}");
    }
    let machines = ours("MaasMachine").list(&ListParams::default()).await.unwrap().items;
    let name = machines[0].metadata.name.clone().unwrap();
    let by_machine = |object: &Value| object["metadata"]["ownerReferences"][0]["kind"] == "Machine";
    let object = rack.wait(ours("MaasMachine"), &name, "its Machine owns it", by_machine).await;
    assert_eq!(owners(&rack, &object).await, ["Machine", "MachineSet", "MachineDeployment", "Cluster"]);
    assert_eq!(crate::audit::created_in(&rack.namespace), BTreeSet::new(), "the provider makes nothing");
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s22_rows_23_40_a_machine_gets_its_node_and_no_node_is_called_interruptible() {
    let rack = Rack::new("row40", FLEET).await;
    let kubeconfig = lab().await.control().add_api_server("row40").await.unwrap();
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig).unwrap(), &KubeConfigOptions::default()).await.unwrap();
    let nodes: Api<Node> = Api::all(Client::try_from(config).unwrap());
    let secret = json!({"metadata": {"name": "c1-kubeconfig", "labels": {names::CLUSTER_NAME: "c1"}},
        "type": "cluster.x-k8s.io/secret", "stringData": {"value": text}});
    let secret: Secret = serde_json::from_value(secret).unwrap();
    Api::namespaced(rack.client.clone(), &rack.namespace).create(&PostParams::default(), &secret).await.unwrap();
    rack.machine("m1", json!({})).await;
    let object = rack.provisioned("m1").await;
    let host = object["status"]["hostname"].as_str().unwrap();
    let node: Node = serde_json::from_value(json!({"metadata": {"name": host}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let joined = |machine: &Value| machine["status"]["nodeRef"]["name"] == host;
    rack.wait(rack.core("Machine"), "m1", "Cluster API found its node", joined).await;
    let node = nodes.get(host).await.unwrap();
    assert_eq!(json!(node.spec.unwrap().provider_id), object["spec"]["providerID"]);
    let labels = node.metadata.labels.unwrap_or_default();
    assert!(!labels.contains_key("cluster.x-k8s.io/interruptible"), "MAAS takes no machine back by itself: {labels:?}");
    assert_eq!(object["status"]["interruptible"], Value::Null);
    rack.finish().await;
}
