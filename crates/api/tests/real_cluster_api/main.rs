//! The real Cluster API core reads our kinds, and we read its: in both versions that it serves, converted by its own webhooks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

use api::{
    ApiEndpoint, MaasCluster, MaasMachine,
    cluster_api::{Cluster, Machine, owner},
    definitions, names,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind, NamespaceResourceScope},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{fmt::Debug, time::Duration};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_mins(1);

async fn install_kinds(client: &Client) {
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions() {
        let name = definition.name_any();
        kinds.patch(&name, &PatchParams::apply("tests").force(), &Patch::Apply(&definition)).await.unwrap();
        timeout(DEADLINE, await_condition(kinds.clone(), &name, is_crd_established())).await.expect("the kind is served in time").unwrap();
    }
}

fn typed<Kind: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(client: &Client) -> Api<Kind> {
    Api::namespaced(client.clone(), "default")
}

async fn create<Kind>(client: &Client, object: Value)
where
    Kind: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let kind = ApiResource::erase::<Kind>(&());
    let objects: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
    objects.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Writes what the provider would.
async fn provide<Kind>(client: &Client, spec: Value, status: Value)
where
    Kind: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let (objects, merge) = (typed::<Kind>(client), PatchParams::default());
    objects.patch("one", &merge, &Patch::Merge(json!({"spec": spec}))).await.unwrap();
    objects.patch_status("one", &merge, &Patch::Merge(json!({"status": status}))).await.unwrap();
}

/// Waits until an object is as wanted.
async fn eventually<Kind>(client: &Client, wanted: impl Fn(&Kind) -> bool + Send) -> Kind
where
    Kind: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let condition = |object: Option<&Kind>| object.is_some_and(&wanted);
    let object = timeout(DEADLINE, await_condition(typed::<Kind>(client), "one", condition)).await;
    object.unwrap_or_else(|_| panic!("{} did not become what was wanted in time", Kind::kind(&()))).unwrap().unwrap()
}

/// The same object in a version of Cluster API, as our type and as it is.
async fn in_version<Kind>(client: &Client, version: &str) -> (Kind, Value)
where
    Kind: Resource<DynamicType = ()> + DeserializeOwned,
{
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(names::CLUSTER_API_GROUP, version, &Kind::kind(&())));
    let object = Api::<DynamicObject>::namespaced_with(client.clone(), "default", &kind).get("one").await.unwrap();
    let value = serde_json::to_value(object).unwrap();
    assert_eq!(value["apiVersion"], format!("{}/{version}", names::CLUSTER_API_GROUP));
    (serde_json::from_value(value.clone()).unwrap(), value)
}

/// The same state of an object in both versions of Cluster API, newer first: between two reads its controllers may have written.
async fn in_both_versions<Kind>(client: &Client) -> ((Kind, Value), (Kind, Value))
where
    Kind: Resource<DynamicType = ()> + DeserializeOwned,
{
    let read = async {
        loop {
            let newer = in_version::<Kind>(client, "v1beta2").await;
            let older = in_version::<Kind>(client, "v1beta1").await;
            if newer.0.meta().resource_version == older.0.meta().resource_version {
                return (newer, older);
            }
        }
    };
    timeout(DEADLINE, read).await.expect("the object is at rest for two reads")
}

/// The parts of metadata that no conversion touches.
fn without_metadata<Kind: Resource<DynamicType = ()>>(mut object: Kind) -> Kind {
    object.meta_mut().annotations = None;
    object.meta_mut().managed_fields = None;
    object.meta_mut().resource_version = None;
    object
}

fn ready(reason: &str) -> Value {
    json!([{"type": "Ready", "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-11-16T04:00:00Z"}])
}

#[tokio::test]
async fn row_64_cluster_api_reads_our_kinds_and_its_own_are_read_in_both_versions() {
    let lab = lab::Lab::up(lab::Options::new(lab::Level::Capi)).await.unwrap();
    let client = lab.client().await.unwrap();
    install_kinds(&client).await;
    let ours = |kind: &str, spec: Value| json!({"apiVersion": names::API_VERSION, "kind": kind, "metadata": {"name": "one"}, "spec": spec});
    let theirs = |kind: &str, spec: Value| json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "one"}, "spec": spec});
    let reference = |kind: &str| json!({"apiGroup": names::GROUP, "kind": kind, "name": "one"});
    create::<MaasCluster>(&client, ours("MaasCluster", json!({"dnsDomain": "maas.example"}))).await;
    create::<MaasMachine>(&client, ours("MaasMachine", json!({"image": "ubuntu/noble", "minCPU": 1, "minMemory": 1024}))).await;
    let cluster = json!({"clusterNetwork": {"apiServerPort": 8443}, "infrastructureRef": reference("MaasCluster"), "paused": false});
    create::<Cluster>(&client, theirs("Cluster", cluster)).await;
    let machine = json!({
        "clusterName": "one", "version": "v1.35.0", "failureDomain": "zone-1", "bootstrap": {"dataSecretName": "data"},
        "infrastructureRef": reference("MaasMachine"),
    });
    create::<Machine>(&client, theirs("Machine", machine)).await;

    let owned = eventually::<MaasCluster>(&client, |cluster| owner(&cluster.metadata, "Cluster").is_some()).await;
    assert_eq!(owned.labels()[names::CLUSTER_NAME], "one");
    eventually::<MaasMachine>(&client, |machine| owner(&machine.metadata, "Machine").is_some()).await;
    let status = json!({
        "ready": true, "initialization": {"provisioned": true}, "failureDomains": [{"name": "zone-1", "controlPlane": true}], "conditions": ready("Provisioned"),
    });
    provide::<MaasCluster>(&client, json!({"controlPlaneEndpoint": {"host": "one.maas.example", "port": 6443}}), status).await;
    let status = json!({
        "ready": true, "initialization": {"provisioned": true}, "failureDomain": "zone-1", "conditions": ready("Deployed"),
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
    });
    provide::<MaasMachine>(&client, json!({"systemID": "abc123", "providerID": "maas:///zone-1/abc123"}), status).await;

    let seen =
        eventually::<Cluster>(&client, |cluster| cluster.infrastructure_provisioned && cluster.control_plane_endpoint.is_some()).await;
    assert_eq!(seen.control_plane_endpoint, Some(ApiEndpoint { host: Some("one.maas.example".to_owned()), port: Some(6443) }));
    assert_eq!((seen.api_server_port, seen.paused, seen.control_plane_initialized), (Some(8443), false, false));
    assert_eq!(seen.infrastructure_ref.as_ref().unwrap().kind, "MaasCluster");
    let ((newer, newer_value), (older, value)) = in_both_versions::<Cluster>(&client).await;
    assert_eq!(newer_value["status"]["failureDomains"][0]["name"], "zone-1");
    assert!(value["status"]["infrastructureReady"] == true && value["status"].get("initialization").is_none(), "{value}");
    assert_eq!(without_metadata(older), without_metadata(newer));

    // Its controller has seen it, so that both versions have conditions, which v1beta1 keeps in two places.
    let seen = eventually::<Machine>(&client, |machine| !machine.conditions.is_empty()).await;
    assert_eq!((seen.cluster_name.as_str(), seen.bootstrap_wanted, seen.failure_domain.as_deref()), ("one", true, Some("zone-1")));
    assert_eq!((seen.version.as_deref(), seen.node_name), (Some("v1.35.0"), None));
    let ((newer, _), (older, value)) = in_both_versions::<Machine>(&client).await;
    assert_eq!(value["spec"]["infrastructureRef"]["apiVersion"], names::API_VERSION);
    assert_eq!(without_metadata(older), without_metadata(newer));
}
