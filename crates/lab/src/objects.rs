//! Objects that the lab installs from documents of its own.

use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::Value;

use crate::LabError;

/// Creates the objects of a file in their order.
pub(crate) async fn create(client: &Client, file: &str, text: &str) -> Result<(), LabError> {
    let unreadable = |reason: String| LabError::Manifest { path: file.into(), reason };
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| unreadable(error.to_string()))?;
    for object in objects {
        let object: DynamicObject = serde_json::from_value(object).map_err(|error| unreadable(error.to_string()))?;
        let Some(types) = object.types.clone() else { continue };
        let kind = GroupVersionKind::try_from(&types).map_err(|error| unreadable(error.to_string()))?;
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
