//! A status applied as the controllers do it, over what older providers left.

use crate::server::Server;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

#[tokio::test]
async fn s35_zones_left_as_a_map_by_another_writer_are_replaced_by_an_applied_list() {
    let server = Server::with_namespace("applied").await;
    server.create("MaasCluster", "one", &json!({"dnsDomain": "maas"}), false).await.unwrap();
    let older = PatchParams { field_manager: Some("manager".to_owned()), ..PatchParams::default() };
    let left = json!({"status": {"ready": true, "failureDomains": {"az1": {"controlPlane": true}, "az2": {"controlPlane": true}}, "network": {"dnsName": "one.maas"}}});
    server.objects("MaasCluster").patch_status("one", &older, &Patch::Merge(&left)).await.unwrap();
    let apply = |status: Value| json!({"apiVersion": api::names::API_VERSION, "kind": "MaasCluster", "metadata": {"name": "one"}, "status": status});
    let ours = PatchParams::apply("metalshift").force();
    let list = json!([{"name": "az1", "controlPlane": true}]);
    let first = apply(json!({"ready": true, "failureDomains": list, "network": {"dnsName": "one.maas", "addresses": ["10.0.0.1"]}}));
    let stored = server.objects("MaasCluster").patch_status("one", &ours, &Patch::Apply(&first)).await.unwrap();
    assert_eq!(stored.data["status"]["failureDomains"], list);
    let second = apply(json!({"ready": true, "failureDomains": list, "network": {"dnsName": "one.maas"}}));
    let stored = server.objects("MaasCluster").patch_status("one", &ours, &Patch::Apply(&second)).await.unwrap();
    assert_eq!(stored.data["status"]["network"], json!({"dnsName": "one.maas"}), "what is not applied any more goes");
    assert_eq!(stored.data["status"]["failureDomains"], list);
}
