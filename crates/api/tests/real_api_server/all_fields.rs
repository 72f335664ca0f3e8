//! Every field there is goes to the server and back, through the types; what is not set is not there.

use crate::{schema, server::Server};
use api::{
    MaasCluster, MaasClusterTemplate, MaasMachine, MaasMachineSpec, MaasMachineTemplate, MaasRemediation, MaasRemediationTemplate,
    definitions, names,
};
use kube::{
    CustomResourceExt, Resource, ResourceExt,
    api::{Patch, PatchParams, ValidationDirective},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fmt::Debug};

fn machine_spec() -> Value {
    json!({
        "failureDomain": "zone-1", "systemID": "abc123", "parent": "def456", "providerID": "maas:///zone-1/abc123", "resourcePool": "gold",
        "minCPU": 4, "minCpu": 4, "minMemory": 8192, "minMemoryInMB": 8192, "minDiskSize": 60, "tags": ["a", "b"], "notTags": ["c"],
        "architecture": "amd64/generic", "image": "ubuntu/noble", "deployInMemory": false, "ephemeral": false, "hweKernel": "hwe-24.04",
        "hardwareSync": true, "storage": "root:200(ssd)", "interfaces": "eth0:space=rack",
        "staticIP": {"ip": "10.0.0.5", "cidr": "10.0.0.0/24", "poolRef": {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "rack"}, "gateway": "10.0.0.1", "nameservers": ["10.0.0.2"]},
        "networkInterfaces": [{"name": "eth0", "subnet": "10.0.0.0/24", "mode": "static", "ip": "10.0.0.5"}],
        "swap": "Keep", "erase": "Quick",
        "provisioning": {"attempts": 1, "allocateTimeout": "90s", "deployTimeout": "2700s", "releaseTimeout": "1800s"},
        "provisioningMode": "lxd",
        "lxd": {"enabled": true, "vmConfig": {
            "diskSize": 60, "storagePool": "fast", "network": "rack,storage", "interfaceLinkModes": {"eth0": "link_up"}, "autoStart": false}},
        "lxdConfig": {
            "profile": "k8s", "storage": {"size": "60GB", "pool": "fast"}, "network": {"bridge": "br0", "devices": ["br1"]},
            "vmHost": "host-1", "project": "maas"},
    })
}

fn conditions() -> Value {
    json!([{"type": "Ready", "status": "True", "reason": "Deployed", "message": "all is well", "lastTransitionTime": "2026-11-16T04:00:00Z", "observedGeneration": 1}])
}

fn machine_status() -> Value {
    json!({
        "ready": true, "initialization": {"provisioned": true}, "phase": "Deployed", "phaseSince": "2026-11-16T04:00:00Z",
        "expectedEnd": "2026-11-16T04:10:00Z", "machineState": "Deployed", "machinePowered": true, "hostname": "rack-7", "dnsAttached": true,
        "addresses": [{"type": "InternalIP", "address": "10.0.0.5"}], "failureDomain": "zone-1", "resourcePool": "gold",
        "provisioningMode": "lxd", "image": "ubuntu/noble",
        "attempts": [{"systemID": "fff999", "hostname": "rack-6", "cause": "Node has no power", "at": "2026-11-16T03:00:00Z"}], "attemptCount": 1,
        "conditions": conditions(), "lxdHost": "host-1", "lxdProject": "maas",
        "vmResourceUsage": {"allocatedCores": 4, "allocatedMemory": 8192, "allocatedDisk": 60},
    })
}

fn cluster_spec() -> Value {
    json!({
        "dnsDomain": "maas.example", "controlPlaneEndpoint": {"host": "c.maas.example", "port": 6443}, "failureDomains": ["zone-1"],
        "lxdConfig": {
            "enabled": true, "resourcePool": "gold", "zone": "zone-1", "storageBackend": "zfs", "storageSize": "50", "nicType": "macvlan",
            "nicParent": "eth0", "networkBridge": "br0", "skipNetworkUpdate": false},
        "identityRef": {"kind": "Secret", "name": "key"},
        "endpoint": {
            "mode": "VIP", "timeToLive": 30, "vip": {"subnet": "10.0.0.0/24", "address": "10.0.0.9"},
            "addresses": {"interface": "bond0", "tag": "api", "subnets": ["10.0.0.0/24"]}},
    })
}

fn cluster_status() -> Value {
    json!({
        "ready": true, "initialization": {"provisioned": true}, "network": {"dnsName": "c.maas.example", "reservedAddress": "10.0.0.9", "addresses": ["10.0.0.5"]},
        "failureDomains": [{"name": "zone-1", "controlPlane": true, "attributes": {"rack": "7"}}], "conditions": conditions(),
    })
}

fn remediation_spec() -> Value {
    json!({"strategy": {"type": "PowerCycle", "retryLimit": 2, "timeout": "600s"}})
}

fn remediation_status() -> Value {
    json!({"phase": "Running", "attempts": 1, "lastRemediated": "2026-11-16T04:00:00Z", "conditions": conditions()})
}

fn template(spec: &Value) -> Value {
    json!({"template": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": spec}})
}

fn template_status() -> Value {
    json!({"capacity": {"cpu": "4", "memory": "8Gi"}, "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux"}})
}

/// Sends an object with a spec and a status through its type to the server, and looks at what comes back.
async fn there_and_back<Kind>(server: &Server, spec: Value, status: Option<Value>)
where
    Kind: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + CustomResourceExt
        + Clone
        + Debug
        + PartialEq
        + Serialize
        + DeserializeOwned,
{
    let mut sent = json!({"apiVersion": names::API_VERSION, "kind": Kind::kind(&()), "metadata": {"name": "full"}, "spec": spec});
    if let Some(status) = status {
        sent["status"] = status;
    }
    let object: Kind = serde_json::from_value(sent.clone()).unwrap();
    assert_eq!(serde_json::to_value(&object).unwrap(), sent, "the type knows every field");
    let definition = definitions().into_iter().find(|definition| definition.spec.names.kind == Kind::kind(&())).unwrap();
    assert_eq!(missing(&definition, &sent), Vec::<String>::new(), "not tried");

    let strict = PatchParams::apply("tests").validation(ValidationDirective::Strict).force();
    let api = server.typed::<Kind>();
    api.patch("full", &strict, &Patch::Apply(&object)).await.unwrap();
    if sent.get("status").is_some() {
        api.patch_status("full", &strict, &Patch::Apply(&object)).await.unwrap();
    }
    let mut stored = api.get("full").await.unwrap();
    assert_eq!(stored.name_any(), "full");
    *stored.meta_mut() = object.meta().clone();
    assert_eq!(stored, object);
}

/// Fields of the schema that an object does not have.
fn missing(
    definition: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    object: &Value,
) -> Vec<String> {
    let mut there = BTreeSet::new();
    paths(object, "", &mut there);
    let wanted = schema::walk(schema::of(definition), "").into_iter().map(|(path, _)| path);
    wanted.filter(|path| !path.is_empty() && !path.contains('*') && !there.contains(path)).collect()
}

fn paths(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    all.insert(path.to_owned());
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            paths(field, if path.is_empty() { name.clone() } else { format!("{path}.{name}") }.as_str(), all);
        }),
        Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{path}[]"), all)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn row_65_every_field_goes_to_the_server_and_back() {
    let server = Server::with_namespace("all-fields").await;
    there_and_back::<MaasMachine>(&server, machine_spec(), Some(machine_status())).await;
    there_and_back::<MaasCluster>(&server, cluster_spec(), Some(cluster_status())).await;
    there_and_back::<MaasMachineTemplate>(&server, template(&machine_spec()), Some(template_status())).await;
    there_and_back::<MaasClusterTemplate>(&server, template(&cluster_spec()), None).await;
}

#[tokio::test]
async fn row_65_every_field_of_remediations_goes_to_the_server_and_back() {
    let server = Server::with_namespace("all-fields-of-remediations").await;
    there_and_back::<MaasRemediation>(&server, remediation_spec(), Some(remediation_status())).await;
    there_and_back::<MaasRemediationTemplate>(&server, template(&remediation_spec()), None).await;
}

#[test]
fn an_object_made_here_has_no_label_of_its_kind() {
    assert_eq!(MaasMachine::new("one", MaasMachineSpec::default()).metadata.labels, None);
}
