//! Addresses of pools, claimed through the kinds of the real Cluster API; the provider of the pool is the test.

use crate::rack::{Rack, condition};
use api::names;
use kube::api::{DeleteParams, Patch, PatchParams};
use maas_client::Reserve;
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

fn held(address: &Value) -> bool {
    address["metadata"]["finalizers"].as_array().is_some_and(|finalizers| finalizers.contains(&json!(names::FINALIZER_ADDRESS)))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_whose_claim_goes_first_stays_held_until_maas_shows_the_machine_released() {
    let slow = FLEET.replace("power_off: [0, 0.1]", "power_off: [2, 3]");
    let rack = Rack::new("claim-goes-first", &slow).await;
    let (claims, addresses) = (|| rack.api(GROUP, "v1beta2", "IPAddressClaim"), || rack.api(GROUP, "v1beta2", "IPAddress"));
    rack.machine("m1", json!({"staticIP": {"poolRef": pool()}})).await;
    rack.wait(claims(), "m1", "the address is claimed", |claim| !claim.is_null()).await;
    fulfil(&rack, "m1", "10.20.0.52").await;
    rack.provisioned("m1").await;
    rack.wait(addresses(), "m1", "the address is held", held).await;

    // So it goes in a foreground deletion: with the object already its claim, and the provider of the pool does not wait for anybody.
    rack.delete("Machine", "m1").await;
    rack.wait_machine("m1", "it goes", |object| object["metadata"]["deletionTimestamp"].is_string()).await;
    claims().delete("m1", &DeleteParams::default()).await.unwrap();
    addresses().delete("m1", &DeleteParams::default()).await.unwrap();
    let has_a_server = || rack.emulator.world(|world| world.all_machines().any(|machine| !machine.annotations.is_empty()));
    let began = tokio::time::Instant::now();
    let mut seen_with_both = false;
    loop {
        // In this order: what is seen of MAAS afterwards is newer.
        let address = addresses().get_opt("m1").await.unwrap();
        let is_in_use = has_a_server();
        seen_with_both |= address.is_some() && is_in_use;
        assert!(address.is_some() || !is_in_use, "the pool has the address back while its machine is in use");
        if address.is_none() {
            break;
        }
        assert!(began.elapsed() < crate::rack::DEADLINE, "the address stays: {address:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(seen_with_both, "the machine went back so fast that this shows nothing");
    rack.gone("m1").await;
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_a_machine_had_before_addresses_were_held_is_held_too_and_goes_back_with_its_claim() {
    let mut rack = Rack::new("held-later", FLEET).await;
    rack.machine("m1", json!({"staticIP": {"poolRef": pool()}})).await;
    rack.wait(rack.api(GROUP, "v1beta2", "IPAddressClaim"), "m1", "the address is claimed", |claim| !claim.is_null()).await;
    fulfil(&rack, "m1", "10.20.0.53").await;
    let object = rack.provisioned("m1").await;

    // As an earlier version left it an hour ago.
    rack.kill_provider().await;
    let mut intent: Value = serde_json::from_str(object["metadata"]["annotations"][names::CLAIM].as_str().unwrap()).unwrap();
    assert_eq!(intent.as_object_mut().unwrap().remove("pooled"), Some(json!(["m1"])), "{intent}");
    intent["since"] = json!(jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1));
    let before = Patch::Merge(json!({"metadata": {"annotations": {names::CLAIM: intent.to_string()}}}));
    rack.maas_machines().patch("m1", &PatchParams::default(), &before).await.unwrap();
    let addresses = || rack.api(GROUP, "v1beta2", "IPAddress");
    let not_held = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    addresses().patch("m1", &PatchParams::default(), &not_held).await.unwrap();

    let rack = rack.with_provider();
    let addresses = || rack.api(GROUP, "v1beta2", "IPAddress");
    rack.wait(addresses(), "m1", "the address is held", held).await;
    rack.delete("Machine", "m1").await;
    rack.gone("m1").await;
    let address = rack.wait(addresses(), "m1", "the address is there", |address| !address.is_null()).await;
    assert!(!held(&address), "its claim takes it along: {address:#}");
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_maas_refused_goes_back_when_its_claim_is_deleted_and_the_machine_gets_another_one() {
    let rack = Rack::new("refused-address", FLEET).await;
    let (claims, addresses) = (|| rack.api(GROUP, "v1beta2", "IPAddressClaim"), || rack.api(GROUP, "v1beta2", "IPAddress"));
    rack.person().ip_addresses().reserve(&Reserve { ip: Some("10.20.0.54".parse().unwrap()), ..Reserve::default() }).await.unwrap();
    rack.machine("m1", json!({"staticIP": {"poolRef": pool()}})).await;
    rack.wait(claims(), "m1", "the address is claimed", |claim| !claim.is_null()).await;
    fulfil(&rack, "m1", "10.20.0.54").await;
    rack.reason("m1", "MachinePreparationFailed").await;
    rack.wait(addresses(), "m1", "the address is held", held).await;

    // A person, and the provider of the pool.
    claims().delete("m1", &DeleteParams::default()).await.unwrap();
    addresses().delete("m1", &DeleteParams::default()).await.unwrap();
    let another = Patch::Merge(json!({"spec": {"staticIP": {"ip": null}}}));
    let waits = rack.maas_machines().patch("m1", &PatchParams::default(), &another).await.unwrap();
    let waits = serde_json::to_value(waits).unwrap();
    assert!(waits["spec"]["systemID"].is_string(), "{waits:#}");
    rack.wait(addresses(), "m1", "the pool has the address back", Value::is_null).await;
    rack.wait(claims(), "m1", "another address is claimed", |claim| !claim.is_null()).await;
    fulfil(&rack, "m1", "10.20.0.55").await;
    let object = rack.provisioned("m1").await;
    assert_eq!(object["spec"]["systemID"], waits["spec"]["systemID"]);
    rack.wait(addresses(), "m1", "that address is held", held).await;
    rack.delete("Machine", "m1").await;
    rack.gone("m1").await;
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
    let object = rack.reason("m1", "AddressNotClaimed").await;
    assert!(object["spec"]["staticIP"]["ip"].is_null(), "{object:#}");
    // Somebody removes it.
    rack.api(GROUP, "v1beta2", "IPAddressClaim").delete("m1", &DeleteParams::default()).await.unwrap();
    rack.reason("m1", "WaitingForStaticIP").await;
    rack.finish().await;
}
