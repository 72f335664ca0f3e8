//! The way to the cluster: a file named by flag, else `KUBECONFIG` or the usual file, else the service account of the pod.

use kube::{
    Client, Config,
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use std::path::{Path, PathBuf};

/// No way to the cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file named by flag is of no use.
    #[error("cannot use the kubeconfig {}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: KubeconfigError,
    },
    /// Neither a file nor a service account.
    #[error("found no cluster: name a file with --kubeconfig or KUBECONFIG, or run in a pod with a service account")]
    NoCluster {
        /// What was tried.
        source: InferConfigError,
    },
    /// The configuration makes no client.
    #[error("cannot make a client of the cluster's configuration")]
    Client {
        /// Why.
        source: kube::Error,
    },
}

/// Makes a client. Nothing is sent yet.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, ConnectError> {
    // Whoever came first has chosen the same one: the workspace has a single provider.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut config = match kubeconfig {
        Some(path) => read(path).await.map_err(|source| ConnectError::Kubeconfig { path: path.to_owned(), source })?,
        None => Config::infer().await.map_err(|source| ConnectError::NoCluster { source })?,
    };
    // The client would hold a call for up to 15 attempts; a reconcile is tried again as a whole instead, with fresh facts.
    config.default_retry = false;
    Client::try_from(config).map_err(|source| ConnectError::Client { source })
}

async fn read(path: &Path) -> Result<Config, KubeconfigError> {
    Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &KubeConfigOptions::default()).await
}
