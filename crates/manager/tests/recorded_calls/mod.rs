//! What the API server may record of the provider: fields of its own are patched, no object is replaced, and nothing secret is read that was
//! not named. Used by tests of other programs too.

use serde_json::Value;

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// What is wrong with a call of the provider.
pub fn wrong(call: &Value) -> Option<String> {
    let (verb, object) = (call["verb"].as_str().unwrap_or_default(), &call["objectRef"]);
    let body = &call["requestObject"];
    let words = match (verb, object["resource"].as_str().unwrap_or_default()) {
        _ if call["responseStatus"]["code"] == 403 => "it is forbidden",
        ("list" | "watch", "secrets" | "configmaps") => "these are read by name only",
        ("update", resource) if resource != "leases" => "objects are patched, never replaced",
        ("get" | "list" | "watch", _) => return None,
        ("patch", _) if object["apiGroup"] == INFRASTRUCTURE => wrong_fields(body)?,
        (_, _) if object["apiGroup"] == INFRASTRUCTURE => "objects of people are patched, and neither made nor removed",
        _ => return None,
    };
    Some(format!("{words}: {verb} {} {body}", call["requestURI"]))
}

/// Whose field a patch writes besides ours.
fn wrong_fields(body: &Value) -> Option<&'static str> {
    let all = |part: &Value, is_ours: &dyn Fn(&str, &Value) -> bool| {
        part.as_object().is_none_or(|fields| fields.iter().all(|(key, value)| is_ours(key, value)))
    };
    // What a pool gave, where a pool is asked for it.
    let of_pool = |value: &Value| value.as_object().is_some_and(|given| given.keys().all(|key| key == "ip" || key == "cidr"));
    let in_spec = |key: &str, value: &Value| {
        matches!(key, "systemID" | "providerID" | "controlPlaneEndpoint") || (key == "staticIP" && of_pool(value))
    };
    if !all(&body["spec"], &in_spec) {
        return Some("fields of others are written");
    }
    if !all(&body["metadata"]["annotations"], &|key, _| key.starts_with("metalshift.io/")) {
        return Some("annotations of others are written");
    }
    (!body["metadata"]["labels"].is_null()).then_some("labels are not ours")
}
