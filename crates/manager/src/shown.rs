//! Shows a status: applied as a whole, so that what is not in it any more goes, and fields of others stay. Used at the end of every pass.

use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
    core::NamespaceResourceScope,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use std::fmt;

use crate::{FIELD_MANAGER, ObjectKey};

/// Applies the status; the object as it is then, or nothing if it is gone.
pub async fn show<K, S>(client: &Client, key: &ObjectKey, status: &S) -> Result<Option<K>, kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + fmt::Debug + DeserializeOwned,
    S: Serialize,
{
    let api: Api<K> = Api::namespaced(client.clone(), key.namespace.as_deref().unwrap_or_default());
    let apply = json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": key.name}, "status": status});
    match api.patch_status(&key.name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(apply)).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
