//! The provider in these tests has the account and the rights that it has where it is installed from what we ship, and no others.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{
    Api, Client, Config, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::fmt::Debug;

use crate::recorded_calls::ACCOUNT;

const COMPONENTS: &str = include_str!("../../../../manifests/infrastructure-maas/infrastructure-components.yaml");

/// Gives the account its rights.
pub async fn gets_its_rights(administrator: &Client) {
    for document in COMPONENTS.split("\n---\n") {
        match document.lines().find_map(|line| line.strip_prefix("kind: ")) {
            Some("ClusterRole") => apply::<ClusterRole>(administrator, document).await,
            Some("ClusterRoleBinding") => apply::<ClusterRoleBinding>(administrator, document).await,
            _ => {}
        }
    }
}

async fn apply<K>(administrator: &Client, document: &str)
where
    K: Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let object: Value = serde_saphyr::from_str(document).unwrap();
    let object: K = serde_json::from_value(object).unwrap();
    let api: Api<K> = Api::all(administrator.clone());
    api.patch(&object.name_any(), &PatchParams::apply("tests").force(), &Patch::Apply(&object)).await.unwrap();
}

/// A client that is this account.
pub async fn client(lab: &lab::Lab) -> Client {
    let kubeconfig = Kubeconfig::read_from(lab.kubeconfig_path()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    config.proxy_url = None;
    config.auth_info.impersonate = Some(ACCOUNT.to_owned());
    Client::try_from(config).unwrap()
}
