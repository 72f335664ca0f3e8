//! Tells a node which machine it is. Cluster API finds the node of a Machine by this id, so it is given once and never changed.

use std::time::Duration;

use decisions::{Failure, FailureKind, machine::Learned};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time::timeout;

use super::{followed::Followed, follower::words, node::Node};
use crate::FIELD_MANAGER;

/// Longer than an API server that is well needs for a read and a write.
pub(super) const WITHIN: Duration = Duration::from_secs(15);
/// A kubelet may report in between.
const ATTEMPTS: usize = 3;

/// Gives a node its id if it has none. That it has the same already is fine.
pub(super) async fn name_node(cluster: &Followed, node: &str, provider_id: &str) -> Result<Learned, Failure> {
    let failed = |words: String| Failure { kind: FailureKind::Kubernetes, words };
    let client = cluster.client().ok_or_else(|| failed(format!("there is no way to the workload cluster of node {node}")))?;
    let api: Api<Node> = Api::all(client);
    match timeout(WITHIN, write(&api, node, provider_id)).await {
        Ok(Ok(())) => {
            cluster.named(node, provider_id);
            Ok(Learned::Node(node.to_owned()))
        }
        Ok(Err(failure)) => Err(failure),
        Err(_) => Err(failed(format!("the workload cluster did not answer within {WITHIN:?}"))),
    }
}

/// Every write is guarded by the version that was seen without an id.
async fn write(api: &Api<Node>, node: &str, provider_id: &str) -> Result<(), Failure> {
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let mut conflict = String::new();
    for _ in 0..ATTEMPTS {
        let found = api.get(node).await.map_err(|error| failure(&error))?;
        match found.seen.provider_id {
            Some(known) if known == provider_id => return Ok(()),
            Some(known) => {
                let words = format!("node {node} has provider id {known} already");
                return Err(Failure { kind: FailureKind::Stale, words });
            }
            None => {}
        }
        let change = json!({"metadata": {"resourceVersion": found.metadata.resource_version}, "spec": {"providerID": provider_id}});
        match api.patch(node, &parameters, &Patch::Merge(change)).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.is_conflict() => conflict.clone_from(&status.message),
            Err(error) => return Err(failure(&error)),
        }
    }
    Err(Failure { kind: FailureKind::Stale, words: conflict })
}

pub(super) fn failure(error: &kube::Error) -> Failure {
    let kind = match error {
        kube::Error::Api(status) if status.is_not_found() => FailureKind::Stale,
        _ => FailureKind::Kubernetes,
    };
    Failure { kind, words: words(error) }
}
