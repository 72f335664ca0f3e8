//! Changes of objects that Kubernetes refuses unless the object is still the one they were decided on. Used by the hands of all kinds.

use std::fmt;

use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
    core::NamespaceResourceScope,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::FIELD_MANAGER;

/// Merges a change into an object of version `guard`; without one, into whatever it is now. The object as it is then.
pub async fn change<K>(client: &Client, object: &K, guard: Option<&str>, mut change: Value) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + fmt::Debug + DeserializeOwned,
{
    if let Some(guard) = guard {
        change["metadata"]["resourceVersion"] = json!(guard);
    }
    let api: Api<K> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(&object.name_any(), &parameters, &Patch::Merge(change)).await
}

/// Takes these finalizers from an object of version `guard`; one that is gone has none.
pub async fn remove_finalizers<K>(client: &Client, object: &K, guard: Option<&str>, ours: &[&str]) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + fmt::Debug + DeserializeOwned,
{
    let others: Vec<&String> = object.finalizers().iter().filter(|name| !ours.contains(&name.as_str())).collect();
    match change(client, object, guard, json!({"metadata": {"finalizers": others}})).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        outcome => outcome.map(drop),
    }
}
