//! What `clusterctl init` leaves behind for later `clusterctl` commands: notes of which providers are installed in which version.
//! With them `clusterctl init --infrastructure` adds only what is missing, and `clusterctl move` knows what both ends have.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;

use crate::{LabError, objects, programs::recipe};

const KINDS: &str = include_str!("inventory-kinds.yaml");

/// What a provider is to clusterctl.
pub(crate) struct Entry {
    /// As its objects are labelled: `bootstrap-kubeadm`.
    pub label: &'static str,
    /// `kubeadm`.
    pub name: &'static str,
    /// `BootstrapProvider`.
    pub kind: &'static str,
    /// Where an installation has its Deployment.
    pub namespace: &'static str,
}

/// The kinds the notes are of.
pub(crate) fn kinds() -> Result<Vec<CustomResourceDefinition>, LabError> {
    serde_saphyr::from_multiple(KINDS)
        .map_err(|error| LabError::Manifest { path: "inventory-kinds.yaml".into(), reason: error.to_string() })
}

/// Notes that these providers are installed; their kinds are served by now.
pub(crate) async fn note(client: &Client, entries: impl Iterator<Item = &Entry>) -> Result<(), LabError> {
    let version = recipe::cluster_api_version();
    for Entry { label, name, kind, namespace } in entries {
        let labels =
            format!("{{clusterctl.cluster.x-k8s.io: '', clusterctl.cluster.x-k8s.io/core: inventory, cluster.x-k8s.io/provider: {label}}}");
        let documents = format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}\n---\n\
             {{apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3, kind: Provider, providerName: {name}, type: {kind}, version: {version}, \
             metadata: {{name: {label}, namespace: {namespace}, labels: {labels}}}}}"
        );
        objects::create(client, "inventory", &documents).await?;
    }
    Ok(())
}
