//! What the API server recorded of the provider's calls in one namespace: patches and applies of fields that are ours, nothing else.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{rack::lab, recorded_calls::wrong};

/// The program of the tests and the provider share a user; the provider's calls are told apart by their field manager or their verbs.
const OUR_MANAGER: &str = "fieldManager=metalshift";

/// What this program, and so also the provider in it, made in a namespace, but for events.
pub fn created_in(namespace: &str) -> BTreeSet<String> {
    let log = futures::executor::block_on(lab()).directory().audit_log();
    let text = std::fs::read_to_string(log).unwrap();
    let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let made = entries.filter(|entry| {
        let from_here = entry["userAgent"].as_str().is_none_or(str::is_empty);
        from_here && entry["verb"] == "create" && entry["objectRef"]["namespace"] == namespace && entry["objectRef"]["resource"] != "events"
    });
    let word = |entry: &Value, name: &str| entry["objectRef"][name].as_str().unwrap_or_default().to_owned();
    made.map(|entry| format!("{} {}", word(&entry, "resource"), word(&entry, "name"))).collect()
}

/// Looks at every call that named this namespace.
pub fn check(namespace: &str) {
    let log = futures::executor::block_on(lab()).directory().audit_log();
    let text = std::fs::read_to_string(log).unwrap();
    let (mut ours, mut secrets) = (0, 0);
    for line in text.lines() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        let uri = entry["requestURI"].as_str().unwrap_or_default();
        let verb = entry["verb"].as_str().unwrap_or_default();
        // Cluster API's managers name themselves; this program, and the provider in it, does not.
        let from_here = entry["userAgent"].as_str().is_none_or(str::is_empty);
        if entry["objectRef"]["resource"] == "secrets" && from_here {
            assert!(!matches!(verb, "list" | "watch"), "Secrets are read by name only: {uri}");
            secrets += u32::from(verb == "get");
        }
        if entry["objectRef"]["namespace"] != namespace || entry["objectRef"]["apiGroup"] != "infrastructure.cluster.x-k8s.io" {
            continue;
        }
        assert!(!(from_here && verb == "update"), "objects are patched, never replaced: {uri}");
        if uri.contains(OUR_MANAGER) {
            ours += 1;
            assert_eq!(verb, "patch", "{uri}");
            assert_eq!(wrong(&entry), None);
        }
    }
    assert!(secrets > 0, "the record of the API server has no reading of a Secret, so it shows nothing about it");
    assert!(ours > 0, "the record of the API server has nothing of the provider in namespace {namespace}");
}
