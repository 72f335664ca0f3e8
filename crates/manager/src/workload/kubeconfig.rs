//! The Secret with the kubeconfig of a workload cluster, read by its name when a connection is needed: never a list and never a watch.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::connect::ConnectWorkload;
use crate::{describe::describe_of_secret, object_key::ObjectKey};

/// The key of the Secret that holds the kubeconfig; Cluster API's contract.
const KEY: &str = "value";

/// A client made of a Secret.
pub(super) struct Connection {
    pub client: Client,
    /// Which version of the Secret it was made of.
    version: Option<String>,
}

/// Why there is no client.
pub(super) enum NoConnection {
    /// There is no Secret.
    Missing,
    /// Nobody says what it holds, for this reason.
    Unreadable(String),
    /// It cannot be used, for this reason.
    Unusable(String),
}

fn name(cluster: &ObjectKey) -> String {
    format!("{}-kubeconfig", cluster.name)
}

/// How people call the Secret of a Cluster.
pub(super) fn place(cluster: &ObjectKey) -> String {
    format!("the Secret {}/{}", cluster.namespace.as_deref().unwrap_or_default(), name(cluster))
}

/// A client of the cluster; nothing if the present one was made of the same Secret.
pub(super) async fn connect(
    kubernetes: &Client,
    connect: &ConnectWorkload,
    cluster: &ObjectKey,
    present: Option<&Connection>,
) -> Result<Option<Connection>, NoConnection> {
    let api: Api<Secret> = Api::namespaced(kubernetes.clone(), cluster.namespace.as_deref().unwrap_or_default());
    let place = place(cluster);
    let unusable = |words: String| NoConnection::Unusable(format!("{place} cannot be used: {words}"));
    let secret = match api.get_opt(&name(cluster)).await {
        Ok(secret) => secret.ok_or(NoConnection::Missing)?,
        Err(error) => return Err(NoConnection::Unreadable(format!("{place} cannot be read: {}", describe_of_secret(&error)))),
    };
    let version = secret.metadata.resource_version;
    if present.is_some_and(|present| present.version.is_some() && present.version == version) {
        return Ok(None);
    }
    let data = secret.data.and_then(|mut data| data.remove(KEY)).ok_or_else(|| unusable(format!("it has no key `{KEY}`")))?;
    let client = connect(&data.0).map_err(|error| unusable(error.to_string()))?;
    Ok(Some(Connection { client, version }))
}
