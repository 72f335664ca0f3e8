//! What a management cluster has installed before anybody uses it: DNS for pods, rights of kube-proxy, a `StorageClass`.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client};
use tokio::time::Instant;

use super::join::CLUSTER_DNS;
use crate::{LabError, objects, programs::recipe};

const OBJECTS: &str = include_str!("cluster.yaml");

/// Creates the objects of `cluster.yaml`.
pub(super) async fn install(client: &Client) -> Result<(), LabError> {
    let text = OBJECTS.replace("{cluster_dns}", CLUSTER_DNS).replace("{coredns_version}", recipe::coredns_version());
    objects::create(client, "cluster.yaml", &text).await
}

/// Waits until pods can resolve names.
pub(super) async fn wait_for_dns(client: &Client, deadline: Instant) -> Result<(), LabError> {
    let deployments = Api::<Deployment>::namespaced(client.clone(), "kube-system");
    loop {
        let deployment = deployments.get("coredns").await.map_err(LabError::kubernetes("look at the cluster's DNS"))?;
        if deployment.status.is_some_and(|status| status.available_replicas.unwrap_or(0) > 0) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(LabError::ComponentFailed {
                component: "coredns".to_owned(),
                reason: "no pod of kube-system/coredns is available in the time it has".to_owned(),
                log_tail: String::new(),
            });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
