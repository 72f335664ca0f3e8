//! Addresses of pools, claimed through the kinds of the real Cluster API; the provider of the pool is the test.

use crate::rack::{Rack, condition};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

const GROUP: &str = "ipam.cluster.x-k8s.io";
const FLEET: &str = "
zones: [{name: az1}]
subnets: [{name: rack, cidr: 10.20.0.0/24, gateway: 10.20.0.1}]
machines: [{hostname: one-, count: 2, zone: az1, cpus: 4, memory: 8192}]
timings: {deploy: [0.2, 0.4], power_on: [0, 0.1], power_off: [0, 0.1]}
";

fn pool() -> Value {
    json!({"apiGroup": GROUP, "kind": "InClusterIPPool", "name": "rack"})
}

/// What the provider of a pool does.
async fn fulfil(rack: &Rack, name: &str, address: &str) {
    rack.create(json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "IPAddress", "metadata": {"name": name},
        "spec": {"claimRef": {"name": name}, "poolRef": pool(), "address": address, "prefix": 24, "gateway": "10.20.0.1"}}))
        .await;
    let given = Patch::Merge(json!({"status": {"addressRef": {"name": name}}}));
    rack.api(GROUP, "v1beta2", "IPAddressClaim").patch_status(name, &PatchParams::default(), &given).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_claimed_from_the_pool_and_the_machine_gets_it() {
    let rack = Rack::new("pooled", FLEET).await;
    rack.machine("m1", json!({"staticIP": {"poolRef": pool()}})).await;
    let claims = || rack.api(GROUP, "v1beta2", "IPAddressClaim");
    let claim = rack.wait(claims(), "m1", "the address is claimed", |claim| !claim.is_null()).await;
    let waits = rack.reason("m1", "WaitingForStaticIP").await;
    let words = "waiting for an address of InClusterIPPool rack: IPAddressClaim m1 is not fulfilled yet";
    assert_eq!(condition(&waits, "Ready")["message"].as_str().map(|message| message.contains(words)), Some(true), "{waits:#}");
    assert_eq!((&claim["spec"]["poolRef"], &claim["spec"]["clusterName"]), (&pool(), &json!("c1")));
    assert_eq!(claim["metadata"]["ownerReferences"][0]["uid"], waits["metadata"]["uid"], "it goes with the machine");
    assert_eq!(rack.calls(), Vec::<String>::new(), "nothing is asked of MAAS before");

    fulfil(&rack, "m1", "10.20.0.50").await;
    let object = rack.provisioned("m1").await;
    assert_eq!((&object["spec"]["staticIP"]["ip"], &object["spec"]["staticIP"]["cidr"]), (&json!("10.20.0.50"), &json!("10.20.0.0/24")));
    let addresses = object["status"]["addresses"].as_array().unwrap();
    assert!(addresses.iter().any(|address| address["type"] == "InternalIP" && address["address"] == "10.20.0.50"), "{object:#}");
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_another_object_is_not_used_and_people_are_told() {
    let rack = Rack::without_provider("foreign-claim", FLEET).await;
    rack.create(json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "IPAddressClaim", "metadata": {"name": "m1"},
        "spec": {"poolRef": pool()}}))
        .await;
    fulfil(&rack, "m1", "10.20.0.51").await;
    let rack = rack.with_provider();
    rack.machine("m1", json!({"staticIP": {"poolRef": pool()}})).await;
    let events = || rack.api("", "v1", "Event");
    let told = |event: &Value| event["reason"] == "AddressNotClaimed" && event["involvedObject"]["name"] == "m1";
    let began = tokio::time::Instant::now();
    let event = loop {
        let events = events().list(&kube::api::ListParams::default()).await.unwrap();
        let events: Vec<Value> = events.items.into_iter().map(|event| serde_json::to_value(event).unwrap()).collect();
        if let Some(event) = events.into_iter().find(told) {
            break event;
        }
        assert!(began.elapsed() < crate::rack::DEADLINE, "nobody was told");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert!(event["message"].as_str().unwrap().contains("belongs to another object: remove it if nobody needs its address"), "{event:#}");
    let object = rack.reason("m1", "WaitingForStaticIP").await;
    assert!(object["spec"]["staticIP"]["ip"].is_null(), "{object:#}");
    rack.finish().await;
}
