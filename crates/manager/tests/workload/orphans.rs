//! The real controller of `MaasMachine`s, and what is left to a machine when its Cluster is gone or what it knows is old.

use crate::machines::{ENDPOINT, Rack};
use jiff::SignedDuration;
use k8s_openapi::ByteString;
use kube::api::{DeleteParams, Patch, PatchParams};
use maas_emulator::{
    Fault, Fleet,
    faults::{CallFault, CallHarm, CallPattern},
    world::machine::Machine,
};
use manager::machine::Rules;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::sleep;

const OURS: &str = "infrastructure.cluster.x-k8s.io";
const THEIRS: &str = "cluster.x-k8s.io";

/// How old at a decision is what was listed by our claim, and what is known of the recorded machine.
type Ages = (Option<SignedDuration>, Option<SignedDuration>);

/// The only key there is, in a Secret that the infrastructure of the cluster names.
async fn key_by_infrastructure(rack: &Rack, metadata: Value) {
    let data = json!({"url": ByteString(ENDPOINT.as_bytes().to_vec()), "apiKey": ByteString(Fleet::DEFAULT_KEY.as_bytes().to_vec())});
    rack.create("", "v1", "Secret", "key", json!({"data": data})).await;
    let infrastructure = json!({"metadata": metadata, "spec": {"dnsDomain": "maas", "identityRef": {"kind": "Secret", "name": "key"}}});
    rack.create(OURS, "v1beta1", "MaasCluster", "infrastructure", infrastructure).await;
    let reference = json!({"apiGroup": OURS, "kind": "MaasCluster", "name": "infrastructure"});
    let change = Patch::Merge(json!({"spec": {"infrastructureRef": reference}}));
    rack.api(THEIRS, "v1beta2", "Cluster").patch("one", &PatchParams::default(), &change).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn row_22_a_machine_whose_cluster_is_gone_is_released_with_the_key_its_infrastructure_names() {
    let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "one", "uid": "u"});
    for metadata in [json!({"ownerReferences": [owner]}), json!({"labels": {"cluster.x-k8s.io/cluster-name": "one"}})] {
        let rack = Rack::new().await;
        key_by_infrastructure(&rack, metadata.clone()).await;
        // Controllers have an owner too.
        let is_taken = |machine: &&Machine| machine.hostname.starts_with("Free-") && machine.owner.is_some();
        let taken = || rack.emulator.world(|maas| maas.machines.values().filter(is_taken).count());
        rack.play_with(None, Rules::default(), async {
            assert_eq!(taken(), 1);
            rack.api(THEIRS, "v1beta2", "Cluster").delete("one", &DeleteParams::default()).await.unwrap();
            rack.api(THEIRS, "v1beta2", "Machine").delete("a", &DeleteParams::default()).await.unwrap();
            sleep(Duration::from_mins(1)).await;
            rack.api(OURS, "v1beta1", "MaasMachine").delete("a", &DeleteParams::default()).await.unwrap();
            rack.until("it is gone", Value::is_null).await;
            assert_eq!(taken(), 0, "{metadata}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_maas_shows_is_as_old_as_the_question() {
    let rack = Rack::new().await;
    key_by_infrastructure(&rack, json!({})).await;
    let ages: Arc<Mutex<Vec<Ages>>> = Arc::default();
    let noted = Arc::clone(&ages);
    let decide = move |facts: &decisions::machine::Facts, now: jiff::Timestamp| {
        let age = |server: &decisions::Server| now.duration_since(server.read_at);
        let listed = facts.claimed.found().and_then(|claimed| claimed.first()).map(age);
        noted.lock().unwrap().push((listed, facts.recorded.as_ref().and_then(|recorded| recorded.found()).map(age)));
        decisions::machine::decide(facts, now)
    };
    let rules = Rules { decide: Arc::new(decide), ..Rules::default() };
    rack.play_with(None, rules, async {
        let matching = CallPattern { method: Some("GET".to_owned()), path: Some("machines/".to_owned()), ..CallPattern::default() };
        let harm = CallHarm::Slow { seconds: 7.0 };
        rack.emulator.inject(Fault::Call(CallFault { matching, skip: 0, times: None, harm })).unwrap();
        for is_listed in [true, false] {
            if !is_listed {
                // As after a release that failed: it is not found by our claim any more and read by its id.
                rack.emulator.world(|maas| maas.machines.values_mut().for_each(|machine| machine.agent_name.clear()));
            }
            sleep(Duration::from_mins(1)).await;
            ages.lock().unwrap().clear();
            let change = Patch::Merge(json!({"metadata": {"annotations": {"look": is_listed.to_string()}}}));
            rack.api(OURS, "v1beta1", "MaasMachine").patch("a", &PatchParams::default(), &change).await.unwrap();
            sleep(Duration::from_mins(1)).await;
            let ages = ages.lock().unwrap().clone();
            let is_old = |age: Option<SignedDuration>| age.is_some_and(|age| age >= SignedDuration::from_secs(7));
            let is_right = |(listed, read): &Ages| listed.is_some() == is_listed && (!is_listed || is_old(*listed)) && is_old(*read);
            assert!(!ages.is_empty() && ages.iter().all(is_right), "listed: {is_listed}, {ages:?}");
        }
    })
    .await;
}
