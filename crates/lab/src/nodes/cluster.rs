//! What a management cluster has installed before anybody uses it: DNS for pods, rights of kube-proxy, a `StorageClass`.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::Value;
use tokio::time::Instant;

use super::join::CLUSTER_DNS;
use crate::{LabError, programs::recipe};

const OBJECTS: &str = include_str!("cluster.yaml");

/// Creates the objects of `cluster.yaml`.
pub(super) async fn install(client: &Client) -> Result<(), LabError> {
    let text = OBJECTS.replace("{cluster_dns}", CLUSTER_DNS).replace("{coredns_version}", recipe::coredns_version());
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)
        .map_err(|error| LabError::Manifest { path: "cluster.yaml".into(), reason: error.to_string() })?;
    for object in objects {
        let object: DynamicObject = serde_json::from_value(object)
            .map_err(|error| LabError::Manifest { path: "cluster.yaml".into(), reason: error.to_string() })?;
        let Some(types) = object.types.clone() else { continue };
        let kind = GroupVersionKind::try_from(&types)
            .map_err(|error| LabError::Manifest { path: "cluster.yaml".into(), reason: error.to_string() })?;
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let name = object.metadata.name.clone().unwrap_or_default();
        api.create(&PostParams::default(), &object).await.map_err(LabError::kubernetes(format!("create {} {name}", kind.kind)))?;
    }
    Ok(())
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
                reason: "no pod of kube-system/coredns is available; see `metalshift lab logs management`".to_owned(),
                log_tail: String::new(),
            });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
