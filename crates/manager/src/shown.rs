//! The end of every pass: the status is shown, applied as a whole, so that what is not in it any more goes and fields of others stay; and
//! it is said when to look again. Used by the controllers of all kinds.

use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
    core::NamespaceResourceScope,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use std::{fmt, time::Duration};

use api::condition::{self, Condition};
use decisions::{LookAgain, Note, Plan};

use crate::{Action, FIELD_MANAGER, events::Events, written::Written};

/// When the cache is behind our own writes, it is looked again after this time.
pub const CACHE_LAG: Duration = Duration::from_millis(500);
/// When a pass is cut short, the next one begins after this time.
pub const CUT_SHORT: Duration = Duration::from_secs(5);

/// A pass that has to be repeated after a while.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// Waiting for something that does not announce itself.
    #[error("{0}")]
    TryAgain(String),
    /// Somebody changed the object after it was looked at. The cache may be far behind, so each repetition waits longer.
    #[error("the object was changed meanwhile")]
    Stale,
    /// The status could not be written.
    #[error("could not write the status")]
    Status(#[from] kube::Error),
}

/// Applies the status to the object it was decided on, and to no later state of it: a write that was held up somewhere must not undo what
/// was shown since. The object as it is then, or nothing if it is gone.
pub async fn show<K, S>(client: &Client, object: &K, status: &S) -> Result<Option<K>, PassError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + fmt::Debug + DeserializeOwned,
    S: Serialize,
{
    let api: Api<K> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let name = object.name_any();
    let metadata = json!({"name": name, "resourceVersion": object.resource_version()});
    let apply = json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": metadata, "status": status});
    match api.patch_status(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(apply)).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(kube::Error::Api(status)) if status.is_conflict() => Err(PassError::Stale),
        Err(error) => Err(error.into()),
    }
}

/// Shows the status of a plan and tells people what is new in it. The object as it is then, or nothing if it is gone.
pub async fn publish<K, Step, S>(
    client: &Client,
    written: &Written,
    events: &Events,
    object: &K,
    plan: &Plan<Step, S>,
) -> Result<Option<K>, PassError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + fmt::Debug + DeserializeOwned,
    S: Serialize,
{
    let shown = show(client, object, &plan.status).await?;
    if let Some(shown) = &shown {
        written.note(shown);
        tell(events, object, &plan.notes).await;
    }
    Ok(shown)
}

/// Tells people.
pub async fn tell<K: Resource<DynamicType = ()>>(events: &Events, object: &K, notes: &[Note]) {
    for note in notes {
        events.tell(object, note.warning, &note.reason, &note.message).await;
    }
}

/// When to look at an object again; the queue lets failures wait longer and longer.
pub fn look_again(look_again: LookAgain, conditions: &[Condition]) -> Result<Action, PassError> {
    match look_again {
        LookAgain::OnChange => Ok(Action::AwaitChange),
        LookAgain::After(time) => Ok(Action::RequeueAfter(time)),
        LookAgain::AfterBackoff => {
            let words = trouble(conditions).map(|found| format!("{}: {}", found.reason, found.message));
            Err(PassError::TryAgain(words.unwrap_or_else(|| "it will be tried again".to_owned())))
        }
    }
}

/// The condition that says why it is tried again. When MAAS is away it is that, whatever else is missing; what was made stays ready then, so
/// `Ready` need not be the one.
fn trouble(conditions: &[Condition]) -> Option<&Condition> {
    let is_trouble = |found: &&Condition| found.status != "True" && !["Paused", "Deleting"].contains(&found.type_.as_str());
    let first = ["MaasAvailable", "Ready"].into_iter().find_map(|kind| condition::find(conditions, kind).filter(is_trouble));
    first.or_else(|| conditions.iter().find(is_trouble))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_again_is_told_in_the_words_of_the_condition_that_is_not_true() {
        let condition = |kind: &str, status: &str, reason: &str, message: &str| {
            let found =
                json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-11-16T00:00:00Z"});
            serde_json::from_value::<Condition>(found).unwrap()
        };
        let paused = condition("Paused", "False", "NotPaused", "");
        let away = condition("MaasAvailable", "False", "MaasUnavailable", "no answer");
        let words = |conditions: &[Condition]| look_again(LookAgain::AfterBackoff, conditions).unwrap_err().to_string();
        assert_eq!(words(&[paused.clone(), condition("Ready", "True", "Ready", ""), away.clone()]), "MaasUnavailable: no answer");
        let (no_match, there) =
            (condition("Ready", "False", "NoMatch", "none fits"), condition("MaasAvailable", "True", "MaasAvailable", ""));
        assert_eq!(words(&[no_match.clone(), away]), "MaasUnavailable: no answer");
        assert_eq!(words(&[paused.clone(), no_match, there]), "NoMatch: none fits");
        assert_eq!(words(&[paused]), "it will be tried again");
    }
}
