//! What the API server recorded of the provider's own account: nothing it may not do, and no Secret that it did not name.

use std::{collections::BTreeSet, path::Path};

use serde_json::{Value, json};

const ACCOUNT: &str = "system:serviceaccount:capmaas-system:capmaas-manager";

/// Every call of the account.
pub fn calls(record: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(record).unwrap();
    let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    entries.filter(|entry| entry["user"]["username"] == ACCOUNT).collect()
}

/// What is wrong with calls.
fn wrong(calls: &[Value]) -> Vec<String> {
    let is_wrong = |call: &&Value| {
        let reads_all = ["list", "watch"].iter().any(|verb| call["verb"] == *verb);
        let about_secrets = call["objectRef"]["resource"] == "secrets" || call["objectRef"]["resource"] == "configmaps";
        call["responseStatus"]["code"] == 403 || reads_all && about_secrets
    };
    let line = |call: &Value| format!("{} {}: {}", call["verb"], call["requestURI"], call["responseStatus"]);
    calls.iter().filter(is_wrong).map(line).collect()
}

/// Fails for a forbidden call, for Secrets that were listed or watched, and for a record that shows too little to say so.
pub fn check(calls: &[Value]) {
    assert_eq!(wrong(calls), Vec::<String>::new());
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let done: BTreeSet<(String, String)> = calls
        .iter()
        .map(|call| {
            let part = call["objectRef"]["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
            (word(&call["verb"]), word(&call["objectRef"]["resource"]) + &part)
        })
        .collect();
    let expected = [
        ("get", "namespaces"),
        ("get", "secrets"),
        ("get", "configmaps"),
        ("create", "events"),
        ("create", "leases"),
        ("update", "leases"),
        ("list", "clusters"),
        ("list", "machines"),
        ("list", "maasclusters"),
        ("patch", "maasmachines"),
        ("patch", "maasmachines/status"),
        ("patch", "maasclusters/status"),
        ("patch", "maasmachinetemplates/status"),
    ];
    for (verb, resource) in expected {
        let call = (verb.to_owned(), resource.to_owned());
        assert!(done.contains(&call), "the record has no {verb} of {resource}, so it shows too little: {done:?}");
    }
}

#[test]
fn planted_row_66_a_forbidden_call_and_a_list_of_secrets_are_found() {
    let call = |verb: &str, resource: &str, code: u16| json!({"verb": verb, "objectRef": {"resource": resource}, "responseStatus": {"code": code}});
    assert_eq!(wrong(&[call("get", "secrets", 200), call("list", "machines", 200)]), Vec::<String>::new());
    assert_eq!(wrong(&[call("list", "secrets", 200), call("watch", "secrets", 200), call("get", "nodes", 403)]).len(), 3);
}
