//! What the API server recorded of the provider's own account: nothing it may not do, and no Secret that it did not name.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::recorded_calls;

/// What is wrong with calls.
fn wrong(calls: &[Value]) -> Vec<String> {
    calls.iter().filter_map(recorded_calls::wrong).collect()
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

#[test]
fn what_is_not_the_providers_to_write_is_found() {
    let group = "infrastructure.cluster.x-k8s.io";
    let call = |verb: &str, body: Value| json!({"verb": verb, "objectRef": {"resource": "maasmachines", "apiGroup": group}, "requestObject": body});
    let ours = [
        json!({"metadata": {"annotations": {"metalshift.io/claim": "x"}}, "spec": {"providerID": "maas:///a/b"}}),
        json!({"status": {"ready": true}}),
        json!({"spec": {"staticIP": {"ip": "10.0.0.1"}}}),
        json!({"metadata": {"finalizers": [], "resourceVersion": "7"}}),
    ];
    assert_eq!(wrong(&ours.map(|body| call("patch", body))), Vec::<String>::new());
    let of_others = [
        json!({"spec": {"image": "ubuntu/noble"}}),
        json!({"spec": {"staticIP": {"poolRef": {}}}}),
        json!({"metadata": {"annotations": {"example.com/note": "x"}}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"metadata": {"ownerReferences": [], "resourceVersion": "7"}}),
        json!({"metadata": {"finalizers": []}}),
        json!([{"op": "remove", "path": "/spec/image"}]),
    ];
    let count = of_others.len();
    assert_eq!(wrong(&of_others.map(|body| call("patch", body))).len(), count);
    assert_eq!(wrong(&["update", "create", "delete"].map(|verb| call(verb, Value::Null))).len(), 3);
}

#[test]
fn what_is_written_beside_our_own_kinds_is_on_a_closed_list() {
    let call =
        |verb: &str, resource: &str, part: Option<&str>| json!({"verb": verb, "objectRef": {"resource": resource, "subresource": part}});
    assert_eq!(wrong(&[call("create", "events", None), call("update", "leases", None)]).len(), 0);
    let of_others = [
        call("patch", "machines", None),
        call("patch", "secrets", None),
        call("create", "configmaps", None),
        call("delete", "ipaddressclaims", None),
        call("deletecollection", "events", None),
    ];
    assert_eq!(wrong(&of_others).len(), of_others.len());
}

#[test]
fn of_a_machine_of_cluster_api_nothing_is_written_but_that_it_is_left_to_its_owner() {
    let call = |group: &str, body: Value| json!({"verb": "patch", "objectRef": {"resource": "machines", "subresource": "status", "apiGroup": group}, "requestObject": body});
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let with = |conditions: Value, metadata: Value| json!({"metadata": metadata, "status": {"conditions": conditions}});
    let read = || json!({"name": "m1", "resourceVersion": "7"});
    let left = || json!([condition("OwnerRemediated", "False")]);
    let ours = "cluster.x-k8s.io";
    assert_eq!(wrong(&[call(ours, with(left(), read()))]), Vec::<String>::new());
    let mut with_spec = with(left(), read());
    with_spec["spec"] = json!({"paused": true});
    let of_others = [
        call(ours, with(json!([condition("OwnerRemediated", "False"), condition("Ready", "True")]), read())),
        call(ours, with(json!([condition("OwnerRemediated", "True")]), read())),
        call(ours, with(left(), json!({"name": "m1"}))),
        call(ours, with_spec),
        call("example.com", with(left(), read())),
        call(ours, Value::Null),
    ];
    assert_eq!(wrong(&of_others).len(), of_others.len());
}
