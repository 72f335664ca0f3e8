//! What the API server recorded of the provider's calls in one namespace: patches and applies of fields that are ours, nothing else.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    rack::lab,
    recorded_calls::{of_the_provider, wrong},
};

/// What the provider asked for in a namespace, or in none.
fn calls(namespace: &str) -> Vec<Value> {
    let calls = of_the_provider(&futures::executor::block_on(lab()).directory().audit_log());
    let is_here = |call: &Value| call["objectRef"]["namespace"].as_str().is_none_or(|named| named == namespace);
    calls.into_iter().filter(is_here).collect()
}

/// What the provider made in a namespace, but for events.
pub fn created_in(namespace: &str) -> BTreeSet<String> {
    let made = calls(namespace).into_iter().filter(|call| call["verb"] == "create" && call["objectRef"]["resource"] != "events");
    let word = |call: &Value, name: &str| call["objectRef"][name].as_str().unwrap_or_default().to_owned();
    made.map(|call| format!("{} {}", word(&call, "resource"), word(&call, "name"))).collect()
}

/// How often the provider wrote something in a namespace so far.
pub fn writes_in(namespace: &str) -> usize {
    let writes = |call: &&Value| !matches!(call["verb"].as_str(), Some("get" | "list" | "watch"));
    calls(namespace).iter().filter(writes).count()
}

/// Looks at every call that named this namespace, or none.
pub fn check(namespace: &str) {
    let calls = calls(namespace);
    assert_eq!(calls.iter().filter_map(wrong).collect::<Vec<_>>(), Vec::<String>::new());
    let has = |verb: &str, resource: &str| calls.iter().any(|call| call["verb"] == verb && call["objectRef"]["resource"] == resource);
    assert!(has("get", "secrets"), "the record has no reading of a Secret in namespace {namespace}, so it shows nothing about it");
    assert!(has("patch", "maasclusters"), "the record has no change of a MaasCluster in namespace {namespace}");
}
