//! What `--keep` leaves running: where it is, and how it is reached and ended. The kubeconfig of the demo's cluster is a file of the lab, for
//! people and for the demo itself.

use std::path::PathBuf;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use lab::{Control, LabDirectory, Level};

use super::picture::CLUSTER;
use crate::output;

/// Prints where everything is, and says what can be done with it.
pub async fn introduce(directory: &LabDirectory, key: &str) -> anyhow::Result<()> {
    let status = Control::of(directory).status().await?;
    let maas = status.components.iter().find(|component| component.name == lab::MAAS).context("the lab has no MAAS")?;
    let client = manager::connect(Some(&directory.kubeconfig())).await?;
    // A demo that failed early has no cluster yet.
    let of_the_cluster = workload_kubeconfig(&client, directory).await.ok();
    output::data(format!("kubeconfig of the management cluster: {}", directory.kubeconfig().display()));
    if let Some(file) = &of_the_cluster {
        output::data(format!("kubeconfig of the cluster {CLUSTER}: {}", file.display()));
    }
    output::data(format!("MAAS: {} with the key {key}", maas.address));
    output::data(format!("what MAAS was asked: {}", maas.address.replace("/MAAS", "/emulator/calls (Authorization: Bearer and the key)")));
    output::data(format!("what the management cluster was asked: {}", directory.audit_log().display()));
    let name = directory.name();
    output::note("everything is still running; look around with:");
    output::note(format!("  metalshift lab status --name {name}"));
    if status.components.iter().any(|component| component.name == lab::PROVIDER) {
        output::note(format!("  metalshift lab logs --name {name} {}", lab::PROVIDER));
    }
    output::note(format!("  metalshift lab exec --name {name} -- clusterctl describe cluster {CLUSTER}"));
    if let Some(file) = of_the_cluster {
        output::note(format!("  metalshift lab exec --name {name} -- kubectl --kubeconfig {} get nodes", file.display()));
    }
    if status.level == Level::Nodes {
        output::note("the kubeconfig of the management cluster is for programs out here; the cluster itself is reached by `lab exec` only");
    } else {
        output::note("nodes are simulated: those of machines that you add now will not join");
    }
    output::note(format!("`metalshift lab down --name {name}` ends it all and removes it"));
    Ok(())
}

/// The kubeconfig of the demo's cluster, as a file in the lab's directory.
pub async fn workload_kubeconfig(client: &Client, directory: &LabDirectory) -> anyhow::Result<PathBuf> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secret = secrets.get(&format!("{CLUSTER}-kubeconfig")).await.context("the cluster has no kubeconfig")?;
    let value = secret.data.unwrap_or_default().remove("value").context("the cluster's kubeconfig is empty")?;
    let path = directory.path().join(format!("{CLUSTER}.kubeconfig"));
    lab::write_private(&path, &value.0)?;
    Ok(path)
}
