//! What the API server may record of the provider: fields of its own are patched, no object is replaced, and nothing secret is read that was
//! not named. Used by tests of other programs too.

use std::path::Path;

use serde_json::Value;

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const ADDRESSES: &str = "ipam.cluster.x-k8s.io";
const CLUSTER_API: &str = "cluster.x-k8s.io";
/// What the provider writes beside objects of its own group.
const WRITES: [(&str, &str); 5] = [
    ("create", "events"),
    ("create", "leases"),
    ("update", "leases"),
    ("delete", "mutatingwebhookconfigurations"),
    ("delete", "validatingwebhookconfigurations"),
];
/// The provider's own, where it is installed from what we ship. Where it is part of the test, the test's user acts for it.
pub const ACCOUNT: &str = "system:serviceaccount:capmaas-system:capmaas-manager";

/// What the API server recorded in this file of the provider's account.
pub fn of_the_provider(record: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(record).unwrap();
    let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    entries.filter(|entry| entry["user"]["username"] == ACCOUNT || entry["impersonatedUser"]["username"] == ACCOUNT).collect()
}

/// Fails if the provider did anything that is not its business, or did so little that it shows nothing.
#[allow(dead_code, reason = "where the provider is part of the test each test looks at its own namespace")]
pub fn assert_the_provider_minded_its_own(record: &Path) {
    let calls = of_the_provider(record);
    assert_eq!(calls.iter().filter_map(wrong).collect::<Vec<_>>(), Vec::<String>::new());
    let changed = calls.iter().any(|call| call["verb"] == "patch" && call["objectRef"]["resource"] == "maasclusters");
    assert!(changed, "the record shows no change of a MaasCluster among {} calls", calls.len());
}

/// What is wrong with a call of the provider.
pub fn wrong(call: &Value) -> Option<String> {
    let (verb, object) = (call["verb"].as_str().unwrap_or_default(), &call["objectRef"]);
    let body = &call["requestObject"];
    let part = object["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
    let resource = object["resource"].as_str().unwrap_or_default().to_owned() + &part;
    let words = match (verb, resource.as_str()) {
        _ if call["responseStatus"]["code"] == 403 => "it is forbidden",
        ("list" | "watch", "secrets" | "configmaps") => "these are read by name only",
        ("update", resource) if resource != "leases" => "objects are patched, never replaced",
        ("get" | "list" | "watch", _) => return None,
        ("patch", _) if object["apiGroup"] == INFRASTRUCTURE => wrong_fields(body)?,
        ("create", "ipaddressclaims") if object["apiGroup"] == ADDRESSES => return None,
        ("patch", "ipaddresses") if object["apiGroup"] == ADDRESSES => more_than_finalizers(body)?,
        ("patch", "machines/status") if object["apiGroup"] == CLUSTER_API => more_than_one_condition(body)?,
        (_, _) if object["apiGroup"] == ADDRESSES => "claims are made and addresses are held, and nothing else",
        (_, _) if object["apiGroup"] == INFRASTRUCTURE => "objects of people are patched, and neither made nor removed",
        call if WRITES.contains(&call) => return None,
        _ => "it is not the provider's to write",
    };
    Some(format!("{words}: {verb} {} {body}", call["requestURI"]))
}

/// What a patch writes besides a list of finalizers that was read in this version.
fn more_than_finalizers(body: &Value) -> Option<&'static str> {
    let is_ours = keys(body) == ["metadata"] && keys(&body["metadata"]) == ["finalizers", "resourceVersion"];
    (!is_ours).then_some("of an address only the finalizers are ours")
}

/// What a patch of a Machine's status writes besides the condition that leaves it to its owner, in the version that was read.
fn more_than_one_condition(body: &Value) -> Option<&'static str> {
    let is_left = |condition: &Value| condition["type"] == "OwnerRemediated" && condition["status"] == "False";
    let conditions = body["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_ours = keys(&body["status"]) == ["conditions"] && matches!(conditions, [condition] if is_left(condition));
    let is_guarded = keys(&body["metadata"]) == ["name", "resourceVersion"];
    (!(is_ours && is_guarded && body["spec"].is_null())).then_some("of a Machine only the condition OwnerRemediated is ours")
}

fn keys(part: &Value) -> Vec<String> {
    part.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

/// Whose field a patch writes besides ours.
fn wrong_fields(body: &Value) -> Option<&'static str> {
    let all = |part: &Value, is_ours: &dyn Fn(&str, &Value) -> bool| {
        part.as_object().is_none_or(|fields| fields.iter().all(|(key, value)| is_ours(key, value)))
    };
    if body.is_array() || !all(body, &|key, _| matches!(key, "apiVersion" | "kind" | "metadata" | "spec" | "status")) {
        return Some("it does not say which fields are meant");
    }
    // What a pool gave, where a pool is asked for it.
    let of_pool = |value: &Value| value.as_object().is_some_and(|given| given.keys().all(|key| key == "ip" || key == "cidr"));
    let in_spec = |key: &str, value: &Value| {
        matches!(key, "systemID" | "providerID" | "controlPlaneEndpoint") || (key == "staticIP" && of_pool(value))
    };
    if !all(&body["spec"], &in_spec) {
        return Some("fields of others are written");
    }
    // The finalizers are a list that is written whole, so those of others stay only where nobody changed it since it was read.
    if !body["metadata"]["finalizers"].is_null() && !body["metadata"]["resourceVersion"].is_string() {
        return Some("finalizers are written over without a look");
    }
    let of_metadata = |key: &str, _: &Value| matches!(key, "annotations" | "finalizers" | "resourceVersion" | "name" | "namespace" | "uid");
    if !all(&body["metadata"], &of_metadata) {
        return Some("only annotations and finalizers of an object are ours");
    }
    if !all(&body["metadata"]["annotations"], &|key, _| key.starts_with("metalshift.io/")) {
        return Some("annotations of others are written");
    }
    None
}
