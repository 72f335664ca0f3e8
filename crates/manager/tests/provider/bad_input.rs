//! What people get wrong: a condition with a stable reason, MAAS's words and the next step; nothing is allocated.

use crate::rack::{FLEET, Rack, condition};
use serde_json::json;
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_had_is_told_in_the_words_of_maas_and_nothing_is_allocated() {
    let rack = Rack::new("badinput", FLEET).await;
    for (name, spec, reason, words) in [
        ("zone", json!({"failureDomain": "atlantis"}), "AllocationRefused", "atlantis"),
        ("pool", json!({"resourcePool": "swimming"}), "AllocationRefused", "swimming"),
        ("tag", json!({"tags": ["nobody-has-it"]}), "AllocationRefused", "nobody-has-it"),
        ("image", json!({"image": "ubuntu/warty"}), "ImageNotFound", "ubuntu/warty"),
        ("size", json!({"minMemory": 99_999_999}), "NoMatchingMachine", "99999999"),
        ("lxd", json!({"provisioningMode": "lxd"}), "LXDNotSupported", "virtual machine"),
    ] {
        rack.machine(name, spec).await;
        let object = rack.reason(name, reason).await;
        let message = condition(&object, "Ready")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "{name}: {message}");
    }
    assert_eq!(rack.allocated(), Vec::<String>::new());
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bootstrap_data_that_is_not_there_is_told() {
    let rack = Rack::new("nodata", FLEET).await;
    rack.machine_with("m1", json!({}), json!({"dataSecretName": "nowhere"})).await;
    let object = rack.reason("m1", "BootstrapDataUnreadable").await;
    assert!(condition(&object, "Ready")["message"].as_str().unwrap().contains("nowhere"), "{object}");
    assert_eq!(rack.allocated(), Vec::<String>::new());
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_that_cannot_be_met_is_tried_again_with_growing_pauses() {
    let rack = Rack::new("pauses", FLEET).await;
    rack.machine("m1", json!({"minMemory": 99_999_999, "provisioningMode": "bare-metal"})).await;
    rack.reason("m1", "NoMatchingMachine").await;
    let tries = || rack.calls().iter().filter(|call| call.starts_with("allocate")).count();
    let mut seen = Vec::new();
    for number in 1..=5 {
        rack.wait_machine("m1", &format!("it is tried {number} times"), |_| tries() >= number).await;
        seen.push(Instant::now());
    }
    let (first, last) = (seen[2] - seen[0], seen[4] - seen[2]);
    assert!(first < last, "two tries in {first:?}, two more in {last:?}");
    rack.finish().await;
}
