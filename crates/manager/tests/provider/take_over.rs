//! Objects as the Go provider leaves them, and as `clusterctl move` brings them.

use crate::rack::{DEADLINE, Rack, condition};
use api::names;
use decisions::leftover_webhooks::VALIDATING;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// One machine that is already deployed for somebody of our user, without marks.
const FLEET: &str = "
users:
  - {name: admin, superuser: true, keys: [{key: \"emulatorconsumer00:emulatortokenkey00:emulatortokensecret0000000000000\"}]}
machines:
  - {hostname: old, system_id: old123, cpus: 4, memory: 8192, status: deployed, owner: admin, image: ubuntu/jammy}
  - {hostname: spare, cpus: 4, memory: 8192}
timings: {deploy: [0.2, 0.4], power_on: [0, 0.1], power_off: [0, 0.1]}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_the_go_provider_is_taken_over_with_its_marks_as_the_only_change() {
    let rack = Rack::without_provider("goprovider", FLEET).await;
    rack.machine("m1", json!({"systemID": "old123", "providerID": "maas:///default/old123"})).await;
    let finalizers = json!({"metadata": {"finalizers": [names::LEGACY_MACHINE_FINALIZER, names::LEGACY_EVACUATION_FINALIZER]}});
    rack.maas_machines().patch("m1", &PatchParams::default(), &Patch::Merge(finalizers)).await.unwrap();
    let rack = rack.with_provider();
    let object = rack.wait_machine("m1", "it is ready", |object| condition(object, "Ready")["status"] == "True").await;
    assert_eq!(object["spec"]["providerID"], "maas:///default/old123");
    assert_eq!(object["status"]["initialization"]["provisioned"], true);
    assert_eq!(rack.calls(), ["set_workload_annotations old 200"]);
    rack.delete("Machine", "m1").await;
    rack.gone("m1").await;
    assert_eq!(rack.in_maas("old"), ("Ready".to_owned(), None));
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_43_an_object_without_its_status_is_recognised_and_nothing_is_allocated() {
    let mut rack = Rack::new("moved", FLEET).await;
    rack.machine("m1", json!({})).await;
    let before = rack.provisioned("m1").await;
    rack.kill_provider().await;
    rack.maas_machines().patch_status("m1", &PatchParams::default(), &Patch::Merge(json!({"status": null}))).await.unwrap();
    let calls = rack.calls();
    rack.start(manager::machine::Rules::default());
    let after = rack.provisioned("m1").await;
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(rack.calls(), calls, "nothing was changed in MAAS");
    rack.finish().await;
}

/// A control plane and a worker that run for a cluster of the Go provider.
const RUNNING: &str = "
users:
  - {name: admin, superuser: true, keys: [{key: \"emulatorconsumer00:emulatortokenkey00:emulatortokensecret0000000000000\"}]}
zones: [{name: az1}]
subnets: [{name: racks, cidr: 10.20.0.0/16, gateway: 10.20.0.1}]
machines:
  - {hostname: old-one, system_id: oldcp1, zone: az1, cpus: 4, memory: 8192, status: deployed, owner: admin, image: ubuntu/jammy, interfaces: [{name: eth0, links: [{mode: static, subnet: 1, address: 10.20.0.11}]}]}
  - {hostname: old-two, system_id: oldwk1, zone: az1, cpus: 4, memory: 8192, status: deployed, owner: admin, image: ubuntu/jammy, interfaces: [{name: eth0, links: [{mode: static, subnet: 1, address: 10.20.0.12}]}]}
timings: {power_off: [0, 0.1]}
";
const NAME: &str = "c2-abcdef.maas";

/// The cluster and its machines, as the Go provider leaves them.
async fn left_by_the_go_provider(rack: &Rack) {
    let endpoint = json!({"controlPlaneEndpoint": {"host": NAME, "port": 6443}});
    rack.cluster(
        "c2",
        endpoint.clone(),
        json!({}),
        json!({"controlPlaneEndpoint": endpoint["controlPlaneEndpoint"], "failureDomains": ["az1"]}),
    )
    .await;
    let by_go = PatchParams { field_manager: Some("manager".to_owned()), ..PatchParams::default() };
    let finalizers = |name: &str| json!({"metadata": {"finalizers": [name]}});
    let clusters = rack.maas_clusters();
    clusters.patch("c2", &by_go, &Patch::Merge(finalizers(names::LEGACY_CLUSTER_FINALIZER))).await.unwrap();
    let status = json!({"ready": true, "network": {"dnsName": NAME}, "failureDomains": {"az1": {"controlPlane": true}}});
    clusters.patch_status("c2", &by_go, &Patch::Merge(json!({"status": status}))).await.unwrap();
    for (name, id, labels) in [
        ("one", "oldcp1", json!({names::CLUSTER_NAME: "c2", names::CONTROL_PLANE: ""})),
        ("two", "oldwk1", json!({names::CLUSTER_NAME: "c2"})),
    ] {
        let spec = json!({"systemID": id, "providerID": format!("maas:///az1/{id}"), "failureDomain": "az1"});
        rack.machine_of(&labels, name, spec, json!({"dataSecretName": "boot"})).await;
        rack.maas_machines().patch(name, &by_go, &Patch::Merge(finalizers(names::LEGACY_MACHINE_FINALIZER))).await.unwrap();
        let status = json!({"ready": true, "machineState": "Deployed", "machinePowered": true, "hostname": format!("old-{name}")});
        rack.maas_machines().patch_status(name, &by_go, &Patch::Merge(json!({"status": status}))).await.unwrap();
    }
    rack.person().dns_resources().create(NAME, Some(maas_client::TimeToLive(10)), &["10.20.0.11".parse().unwrap()]).await.unwrap();
    // Nobody answers it any more, so that nothing of this namespace can be written.
    let webhook = json!({
        "name": "vmaas.kb.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
        "clientConfig": {"service": {"name": "capmaas-webhook-service", "namespace": "capmaas-system", "path": "/validate-infrastructure-cluster-x-k8s-io-v1beta1-maascluster"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": rack.namespace}},
        "rules": [{"apiGroups": [names::GROUP], "apiVersions": [names::VERSION], "operations": ["UPDATE"], "resources": ["*/*"]}],
    });
    let left = serde_json::from_value(json!({"metadata": {"name": VALIDATING}, "webhooks": [webhook]})).unwrap();
    Api::<ValidatingWebhookConfiguration>::all(rack.client.clone()).create(&PostParams::default(), &left).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_the_go_provider_is_taken_over_whole_with_marks_as_the_only_change_in_maas() {
    let rack = Rack::without_provider("go-cluster", RUNNING).await;
    left_by_the_go_provider(&rack).await;
    let before = rack.calls().len();
    let rack = rack.with_provider();
    // As `manage` does when it begins to act.
    let stop = CancellationToken::new();
    let removing = tokio::spawn(manager::leftover_webhooks::remove(rack.client.clone(), stop.clone()));
    for name in ["one", "two"] {
        let object = rack.wait_machine(name, "it is ready", |object| condition(object, "Ready")["status"] == "True").await;
        assert_eq!(object["status"]["initialization"]["provisioned"], true, "{object}");
    }
    let listed = |object: &Value| object["status"]["failureDomains"] == json!([{"name": "az1", "controlPlane": true}]);
    rack.wait(rack.maas_clusters(), "c2", "its zones are a list", listed).await;
    rack.cluster_provisioned("c2").await;
    let polls = || rack.emulator.journal(|journal| journal.entries().filter(|entry| entry.uri.contains("/events/")).count());
    let (seen, began) = (polls(), Instant::now());
    while polls() < seen + 4 {
        assert!(began.elapsed() < DEADLINE, "MAAS is not looked at any more");
        sleep(std::time::Duration::from_millis(50)).await;
    }
    let mut changes = rack.calls().split_off(before);
    changes.sort();
    assert_eq!(changes, ["set_workload_annotations old-one 200", "set_workload_annotations old-two 200"]);
    assert_eq!(rack.names(), [("c2-abcdef".to_owned(), vec!["10.20.0.11".to_owned()])]);
    stop.cancel();
    removing.await.unwrap();
    rack.delete_cluster("c2").await;
    assert_eq!((rack.allocated(), rack.names()), (vec![], vec![]));
    rack.finish().await;
}
