//! The mark on a workload cluster that its API server answers; whoever prepares the cluster waits for it. Its follower puts it there.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::follower::{ANSWER_WITHIN, words};
use crate::{FIELD_MANAGER, object_key::ObjectKey};

/// The shortest and the longest wait from one attempt to the next.
const WAITS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_mins(10));

/// The mark, put or to be put.
pub(super) enum Label {
    Done,
    Due { at: Instant, failures: u32 },
}

impl Default for Label {
    fn default() -> Self {
        Self::Due { at: Instant::now(), failures: 0 }
    }
}

impl Label {
    /// When the next attempt is due; never if it is there.
    pub fn due(&self) -> Option<Instant> {
        match self {
            Self::Done => None,
            Self::Due { at, .. } => Some(*at),
        }
    }

    /// One attempt. A failure hinders nothing.
    pub async fn put(&mut self, client: &Client, cluster: &ObjectKey) {
        let Self::Due { failures, .. } = *self else { return };
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let label = json!({"metadata": {"labels": {api::names::API_SERVER_READY: "true"}}});
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let words = match timeout(ANSWER_WITHIN, namespaces.patch_metadata("kube-system", &parameters, &Patch::Merge(label))).await {
            Ok(Ok(_)) => {
                *self = Self::Done;
                return;
            }
            Ok(Err(error)) => words(&error),
            Err(_) => format!("it did not answer within {ANSWER_WITHIN:?}"),
        };
        let wait = WAITS.0.saturating_mul(1 << failures.min(10)).min(WAITS.1);
        tracing::debug!(%cluster, words, retry_in = ?wait, "could not label kube-system of the workload cluster");
        *self = Self::Due { at: Instant::now() + wait, failures: failures.saturating_add(1) };
    }
}
