//! Leaves a Machine to its owner: writes the condition by which Cluster API is told to replace it, in both of its generations.

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
/// What the API server takes of the older generation, in bytes.
const LONGEST_MESSAGE: usize = 10_000;

/// Sets the Machine's condition. The lists are written as a whole, because only the newer of the two has keys, and so on the version they
/// were read from.
pub async fn hand_over(client: &Client, namespace: &str, name: &str, message: &str, now: Timestamp) -> Result<(), kube::Error> {
    let kind = GroupVersionKind::gvk(names::CLUSTER_API_GROUP, names::CLUSTER_API_VERSION, "Machine");
    let machines: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind));
    let machine = machines.get(name).await?;
    if let Some(status) = with_condition(&machine.data["status"], message, now) {
        let change = json!({"metadata": {"resourceVersion": machine.resource_version()}, "status": status});
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        machines.patch_status(name, &parameters, &Patch::Merge(change)).await?;
    }
    Ok(())
}

/// What changes in the status; nothing if the owner knows already, since it may have begun and says there how far it is.
fn with_condition(status: &Value, message: &str, now: Timestamp) -> Option<Value> {
    let newer = status["conditions"].as_array().cloned().unwrap_or_default();
    let older = status["deprecated"]["v1beta1"]["conditions"].as_array().cloned().unwrap_or_default();
    let is_it = |condition: &Value| condition["type"] == Machine::OWNER_REMEDIATED;
    if newer.iter().any(|condition| is_it(condition) && condition["status"] == "False") {
        return None;
    }
    let message: String = message.char_indices().take_while(|(at, _)| *at < LONGEST_MESSAGE).map(|(_, letter)| letter).collect();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let condition =
        json!({"type": Machine::OWNER_REMEDIATED, "status": "False", "reason": REASON, "message": message, "lastTransitionTime": now});
    let mut with_severity = condition.clone();
    with_severity["severity"] = json!("Warning");
    let replaced = |list: Vec<Value>, condition: Value| -> Vec<Value> {
        list.into_iter().filter(|condition| !is_it(condition)).chain([condition]).collect()
    };
    Some(json!({
        "conditions": replaced(newer, condition),
        "deprecated": {"v1beta1": {"conditions": replaced(older, with_severity)}},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_is_written_in_both_generations_and_the_others_stay() {
        let other = json!({"type": "Ready", "status": "False"});
        let done = json!({"type": "OwnerRemediated", "status": "True"});
        let status = json!({"conditions": [other, done], "deprecated": {"v1beta1": {"conditions": [other]}}, "phase": "Running"});
        let changed = with_condition(&status, "gave up", Timestamp::from_second(60).unwrap()).unwrap();
        let (newer, older) = (&changed["conditions"], &changed["deprecated"]["v1beta1"]["conditions"]);
        assert_eq!((newer.as_array().unwrap().len(), older.as_array().unwrap().len()), (2, 2));
        for list in [newer, older] {
            assert_eq!(list[0], other);
            assert_eq!(
                (&list[1]["type"], &list[1]["status"], &list[1]["reason"]),
                (&json!("OwnerRemediated"), &json!("False"), &json!(REASON))
            );
            assert_eq!((&list[1]["message"], &list[1]["lastTransitionTime"]), (&json!("gave up"), &json!("1970-01-01T00:01:00Z")));
        }
        assert_eq!((&newer[1]["severity"], &older[1]["severity"]), (&Value::Null, &json!("Warning")));
    }

    #[test]
    fn an_owner_that_knows_already_is_not_disturbed() {
        let status = json!({"conditions": [{"type": "OwnerRemediated", "status": "False", "reason": "MachineDeleting"}]});
        assert_eq!(with_condition(&status, "gave up", Timestamp::UNIX_EPOCH), None);
        assert!(with_condition(&Value::Null, "gave up", Timestamp::UNIX_EPOCH).is_some(), "a Machine without a status");
    }
}
