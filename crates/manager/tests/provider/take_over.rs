//! Objects as the Go provider leaves them, and as `clusterctl move` brings them.

use crate::rack::{Rack, condition};
use api::names;
use kube::api::{Patch, PatchParams};
use serde_json::json;

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
    let finalizers = json!({"metadata": {"finalizers": [names::LEGACY_MACHINE_FINALIZER]}});
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
