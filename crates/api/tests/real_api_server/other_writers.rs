//! Objects as other programs write and leave them: older providers, Go programs, people.

use crate::{rules_of_clusters, rules_of_machines, server::Server};
use api::{MaasCluster, MaasMachine};
use serde_json::json;

#[tokio::test]
async fn failure_domains_are_kept_and_read_in_both_shapes() {
    let server = Server::with_namespace("failure-domains").await;
    server.create("MaasCluster", "one", &rules_of_clusters::spec(&json!({})), false).await.unwrap();
    for shape in [
        json!({"a": {"controlPlane": true}, "b": {"controlPlane": true, "attributes": {"rack": "7"}}}),
        json!([{"name": "a", "controlPlane": true}, {"name": "b", "controlPlane": true, "attributes": {"rack": "7"}}]),
    ] {
        server.change_status("MaasCluster", "one", &json!({"failureDomains": null})).await.unwrap();
        let stored = server.change_status("MaasCluster", "one", &json!({"failureDomains": shape})).await.unwrap();
        assert_eq!(stored.data["status"]["failureDomains"], shape, "nothing is pruned");
        let read = server.typed::<MaasCluster>().get("one").await.unwrap();
        assert_eq!(read.status.unwrap().failure_domains.names(), ["a", "b"]);
    }
}

#[tokio::test]
async fn conditions_of_an_older_generation_do_not_stop_anybody() {
    let server = Server::with_namespace("older-conditions").await;
    server.create("MaasMachine", "one", &rules_of_machines::spec(&json!({})), false).await.unwrap();
    let older = json!({"type": "MachineDeployed", "status": "True", "severity": "Info", "lastTransitionTime": "2025-01-01T00:00:00Z"});
    server.change_status("MaasMachine", "one", &json!({"ready": true, "conditions": [older]})).await.unwrap();
    let status = server.typed::<MaasMachine>().get("one").await.unwrap().status.unwrap();
    assert!(status.ready && api::condition::is_true(&status.conditions, "MachineDeployed"));
}

#[tokio::test]
async fn what_is_null_is_dropped_and_what_is_empty_is_read_as_not_given() {
    let server = Server::with_namespace("nothing").await;
    let spec = rules_of_machines::spec(&json!({"failureDomain": null, "lxd": null, "tags": null, "resourcePool": "", "providerID": ""}));
    let stored = server.create("MaasMachine", "one", &spec, false).await.unwrap();
    for dropped in ["failureDomain", "lxd", "tags"] {
        assert_eq!(stored.data["spec"].get(dropped), None, "{dropped}");
    }
    let read = server.typed::<MaasMachine>().get("one").await.unwrap().spec;
    assert_eq!((read.resource_pool, read.provider_id), (None, None));
}

#[tokio::test]
async fn manifests_of_every_generation_are_taken() {
    let server = Server::with_namespace("generations").await;
    for (kind, spec) in [
        ("MaasCluster", json!({"dnsDomain": "maas.local", "controlPlaneEndpoint": {"host": "10.0.0.10", "port": 6443}})),
        (
            "MaasCluster",
            json!({"dnsDomain": "maas.sc", "failureDomains": ["az1"], "lxdConfig": {
            "enabled": true, "storageBackend": "zfs", "storageSize": "50", "nicType": "bridge", "nicParent": "eth0", "skipNetworkUpdate": true}}),
        ),
        (
            "MaasMachineTemplate",
            json!({"template": {"spec": {
            "image": "ubuntu/focal", "minCpu": 2, "minMemoryInMB": 4096, "tags": ["worker", "compute"], "resourcePool": "default", "failureDomain": "rack1"}}}),
        ),
        (
            "MaasMachineTemplate",
            json!({"template": {"spec": {
            "image": "custom/u-2204-0-k-1336-0", "minCPU": 4, "minMemory": 8192, "minDiskSize": 60,
            "lxd": {"enabled": true, "vmConfig": {"diskSize": 60, "network": "10.0.0.0/24,10.1.0.0/24", "interfaceLinkModes": {"eth0": "auto", "eth1": "static"}}},
            "staticIP": {"cidr": "10.1.0.0/24", "gateway": "10.1.0.1", "nameservers": ["10.1.0.2"]}}}}),
        ),
        (
            "MaasMachineTemplate",
            json!({"template": {"spec": {
            "image": "ubuntu/noble", "minCPU": 4, "minMemory": 8192, "provisioningMode": "lxd",
            "lxdConfig": {"profile": "k8s", "storage": {"size": "40GB", "pool": "fast"}, "network": {"bridge": "br0", "devices": ["br1"]}, "vmHost": "host-1", "project": "maas"}}}}),
        ),
        ("MaasMachineTemplate", json!({"template": {"spec": {"image": "custom/u", "minCPU": 0, "minMemory": 0, "ephemeral": true}}})),
    ] {
        let strict = kube::api::PatchParams::apply("tests").validation(kube::api::ValidationDirective::Strict).dry_run();
        let object = json!({"apiVersion": api::names::API_VERSION, "kind": kind, "metadata": {"name": "one"}, "spec": spec});
        let answer = server.objects(kind).patch("one", &strict, &kube::api::Patch::Apply(&object)).await;
        assert!(answer.is_ok(), "{object} was refused: {answer:?}");
    }
}
