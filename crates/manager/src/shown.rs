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
            let ready = condition::find(conditions, "Ready").map(|ready| format!("{}: {}", ready.reason, ready.message));
            Err(PassError::TryAgain(ready.unwrap_or_else(|| "it will be tried again".to_owned())))
        }
    }
}
