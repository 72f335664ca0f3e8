//! Removes the node of a server that goes back to MAAS before Cluster API knew of it.

use decisions::{Failure, FailureKind, machine::Learned};
use kube::{
    Api,
    api::{DeleteParams, Preconditions},
};
use tokio::time::timeout;

use super::{
    followed::Followed,
    naming::{WITHIN, failure},
    node::Node,
};

/// Removes a node as long as it says this of its machine. That it is gone already is fine.
pub(super) async fn remove_node(cluster: &Followed, node: &str, provider_id: Option<&str>) -> Result<Learned, Failure> {
    let failed = |words: String| Failure { kind: FailureKind::Kubernetes, words };
    let client = cluster.client().ok_or_else(|| failed(format!("there is no way to the workload cluster of node {node}")))?;
    let removed = timeout(WITHIN, delete(&Api::all(client), node, provider_id)).await;
    removed.unwrap_or_else(|_| Err(failed(format!("the workload cluster did not answer within {WITHIN:?}"))))?;
    cluster.changed(node, None);
    Ok(Learned::NodeGone)
}

/// It is that very node which is deleted, and no other one that has come by its name since.
async fn delete(api: &Api<Node>, node: &str, provider_id: Option<&str>) -> Result<(), Failure> {
    let Some(found) = api.get_opt(node).await.map_err(|error| failure(&error))? else { return Ok(()) };
    if found.seen.provider_id.as_deref() != provider_id {
        let words = format!("node {node} has provider id {} now", found.seen.provider_id.as_deref().unwrap_or("none"));
        return Err(Failure { kind: FailureKind::Stale, words });
    }
    let preconditions = Preconditions { uid: found.metadata.uid, ..Preconditions::default() };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(node, &parameters).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(failure(&error)),
    }
}
