//! Leaves a Machine to its owner: writes the condition by which Cluster API is told to replace it.

use jiff::Timestamp;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use api::{cluster_api::Machine, names};

use crate::FIELD_MANAGER;

/// What Cluster API's own health check says when it leaves a Machine to its owner.
const REASON: &str = "WaitingForRemediation";
/// What the API server takes, in bytes.
const LONGEST_MESSAGE: usize = 10_000;

/// Sets the Machine's condition, and touches no other. Owners have read the newer generation of conditions alone since Cluster API 1.11, and
/// write the older one themselves when they begin.
pub async fn hand_over(client: &Client, namespace: &str, name: &str, message: &str, now: Timestamp) -> Result<(), kube::Error> {
    let kind = GroupVersionKind::gvk(names::CLUSTER_API_GROUP, names::CLUSTER_API_VERSION, "Machine");
    let machines: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind));
    let machine = machines.get(name).await?;
    if knows_already(&machine.data["status"]) {
        return Ok(());
    }
    let apply = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"name": name, "resourceVersion": machine.resource_version()},
        "status": {"conditions": [condition(message, now)]},
    });
    machines.patch_status(name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(apply)).await?;
    Ok(())
}

/// An owner that knows may have begun, and says there how far it is.
fn knows_already(status: &Value) -> bool {
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == Machine::OWNER_REMEDIATED && condition["status"] == "False")
}

fn condition(message: &str, now: Timestamp) -> Value {
    let message: String = message.char_indices().take_while(|(at, _)| *at < LONGEST_MESSAGE).map(|(_, letter)| letter).collect();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    json!({"type": Machine::OWNER_REMEDIATED, "status": "False", "reason": REASON, "message": message, "lastTransitionTime": now})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_has_whole_seconds_and_no_more_words_than_the_server_takes() {
        let written = condition(&"ö".repeat(LONGEST_MESSAGE), Timestamp::from_millisecond(60_999).unwrap());
        assert_eq!(written["lastTransitionTime"], "1970-01-01T00:01:00Z");
        assert_eq!(written["message"].as_str().unwrap().len(), LONGEST_MESSAGE);
    }

    #[test]
    fn an_owner_that_knows_already_is_not_disturbed() {
        let with = |status: &str| json!({"conditions": [{"type": "OwnerRemediated", "status": status, "reason": "MachineDeleting"}]});
        assert!(knows_already(&with("False")));
        assert!(!knows_already(&with("True")));
        assert!(!knows_already(&Value::Null), "a Machine without a status");
    }
}
