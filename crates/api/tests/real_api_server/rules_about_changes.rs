//! What cannot be changed in an object that exists.

use crate::{
    rules::{Case, try_all},
    rules_of_clusters, rules_of_machines,
    server::Server,
};
use serde_json::{Value, json};

pub fn cases() -> Vec<Case> {
    let machine = |path, message, before: Value, refused, taken| {
        let before = Some(rules_of_machines::spec(&before));
        Case { kind: "MaasMachine", path, message, before, refused, taken }
    };
    let cluster = |path, message, before: Value, refused, taken| {
        let before = Some(rules_of_clusters::spec(&before));
        Case { kind: "MaasCluster", path, message, before, refused, taken }
    };
    vec![
        machine(
            "spec.image",
            "image cannot be changed: make a new MaasMachineTemplate, and Cluster API replaces the machines",
            json!({}),
            json!({"image": "ubuntu/jammy"}),
            json!({"image": "ubuntu/noble", "tags": ["other"]}),
        ),
        machine(
            "spec.minCPU",
            "minCPU cannot be changed: make a new MaasMachineTemplate, and Cluster API replaces the machines",
            json!({"minCPU": null, "minCpu": 4}),
            json!({"minCPU": 5, "minCpu": 5}),
            json!({"minCPU": 4, "minCpu": null}),
        ),
        machine(
            "spec.minMemory",
            "minMemory cannot be changed: make a new MaasMachineTemplate, and Cluster API replaces the machines",
            json!({"minMemory": 1024}),
            json!({"minMemory": 2048}),
            json!({"minMemory": null, "minMemoryInMB": 1024}),
        ),
        machine(
            "spec.providerID",
            "providerID cannot be changed once it is set: delete the Machine to get another one",
            json!({"providerID": "maas:///zone-1/abc123"}),
            json!({"providerID": null}),
            json!({"providerID": "maas:///zone-1/abc123", "systemID": "abc123"}),
        ),
        machine(
            "spec.systemID",
            "systemID cannot be changed once providerID is set: delete the Machine to get another one",
            json!({"systemID": "abc123", "providerID": "maas:///zone-1/abc123"}),
            json!({"systemID": "def456"}),
            json!({"systemID": "abc123"}),
        ),
        machine(
            "spec.provisioningMode",
            "metal does not become a virtual machine, nor the other way: make a new MaasMachineTemplate, and Cluster API replaces the machines",
            json!({"systemID": "abc123"}),
            json!({"provisioningMode": "lxd"}),
            json!({"provisioningMode": "bare-metal"}),
        ),
        cluster(
            "spec.dnsDomain",
            "dnsDomain cannot be changed: the names in certificates and kubeconfigs are made of it, so make a new cluster",
            json!({}),
            json!({"dnsDomain": "other.example"}),
            json!({"failureDomains": ["zone-1"]}),
        ),
        cluster(
            "spec.controlPlaneEndpoint",
            "controlPlaneEndpoint.host cannot be changed once it is set: certificates and kubeconfigs name it, so make a new cluster",
            json!({"controlPlaneEndpoint": {"host": "c.maas.example"}}),
            json!({"controlPlaneEndpoint": null}),
            json!({"controlPlaneEndpoint": {"port": 6443}}),
        ),
        cluster(
            "spec.endpoint",
            "endpoint.mode cannot be changed once controlPlaneEndpoint.host is set: the host was made by it and would be kept by nobody, so make a new cluster",
            json!({"controlPlaneEndpoint": {"host": "c.maas.example"}}),
            json!({"endpoint": {"mode": "VIP", "vip": {"subnet": "racks"}}}),
            json!({"endpoint": {"mode": "DNS", "timeToLive": 30}}),
        ),
    ]
}

#[tokio::test]
async fn every_rule_about_changes_refuses_with_words_and_takes_what_is_right() {
    try_all(&Server::with_namespace("changes").await, cases()).await;
}

#[tokio::test]
async fn row_24_an_identity_is_written_once_and_until_then_another_machine_may_be_tried() {
    let server = Server::with_namespace("identity").await;
    server.create("MaasMachine", "one", &rules_of_machines::spec(&json!({})), false).await.unwrap();
    for change in [
        json!({"systemID": "abc123"}),
        json!({"systemID": null}),
        json!({"systemID": "def456"}),
        json!({"providerID": "maas:///zone-1/def456"}),
        json!({"providerID": "maas:///zone-1/def456", "systemID": "def456"}),
    ] {
        server.change("MaasMachine", "one", &json!({"spec": change}), false).await.unwrap();
    }
    for change in [json!({"systemID": null}), json!({"providerID": "maas:///zone-2/def456"}), json!({"providerID": ""})] {
        let said = server.change("MaasMachine", "one", &json!({"spec": change}), false).await.unwrap_err();
        assert!(said.contains("cannot be changed once"), "{change} was answered with {said}");
    }
}

#[tokio::test]
async fn the_way_to_an_endpoint_may_be_changed_until_there_is_one() {
    let server = Server::with_namespace("endpoint-mode").await;
    server.create("MaasCluster", "one", &rules_of_clusters::spec(&json!({})), false).await.unwrap();
    let vip = json!({"mode": "VIP", "vip": {"subnet": "racks"}});
    let change = async |spec: Value| server.change("MaasCluster", "one", &json!({"spec": spec}), false).await;
    change(json!({"endpoint": {"mode": "Hosted"}})).await.unwrap();
    change(json!({"endpoint": vip, "controlPlaneEndpoint": {"host": "10.20.0.7", "port": 6443}})).await.unwrap();
    for endpoint in [Value::Null, json!({"mode": null, "vip": null}), json!({"mode": "Hosted", "vip": null})] {
        let said = change(json!({"endpoint": endpoint})).await.unwrap_err();
        assert!(said.contains("endpoint.mode cannot be changed once"), "{endpoint} was answered with {said}");
    }
    change(json!({"endpoint": {"vip": {"address": "10.20.0.7"}}})).await.unwrap();
}

#[tokio::test]
async fn an_endpoint_that_was_given_empty_is_filled_in_once() {
    let server = Server::with_namespace("empty-endpoint").await;
    let spec = rules_of_clusters::spec(&json!({"controlPlaneEndpoint": {"host": "", "port": 0}}));
    server.create("MaasCluster", "one", &spec, false).await.unwrap();
    let cluster = server.typed::<api::MaasCluster>().get("one").await.unwrap();
    assert_eq!(cluster.spec.control_plane_endpoint, None, "Go programs write an empty endpoint when they mean none");
    let host = |host: &str| json!({"spec": {"controlPlaneEndpoint": {"host": host, "port": 6443}}});
    server.change("MaasCluster", "one", &host("c.maas.example"), false).await.unwrap();
    server.change("MaasCluster", "one", &host("d.maas.example"), false).await.unwrap_err();
    assert_eq!(server.typed::<api::MaasCluster>().get("one").await.unwrap().spec.endpoint_host(), Some("c.maas.example"));
}
