//! The MaasMachineTemplate controller: shows what machines of a template will have, for whoever scales a group from zero.

use std::sync::Arc;

use api::{MaasMachineTemplate, names};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{Action, Context, Controller, Controllers, FIELD_MANAGER};

/// The status of a template could not be written.
#[derive(Debug, thiserror::Error)]
#[error("could not write the status of the template")]
pub struct TemplateError(#[from] kube::Error);

/// Adds the controller of templates.
pub fn add(controllers: &mut Controllers) {
    let templates = controllers.watch_primary::<MaasMachineTemplate>();
    let controller = Controller::new("maasmachinetemplate", &templates, reconcile);
    controllers.add(controller);
}

async fn reconcile(template: Arc<MaasMachineTemplate>, context: Context) -> Result<Action, TemplateError> {
    let annotated = |name| template.annotations().contains_key(name);
    let wanted = decisions::template::status(&template.spec.template.spec);
    if template.status.as_ref() == Some(&wanted) || annotated(names::PAUSED) || template.meta().deletion_timestamp.is_some() {
        return Ok(Action::AwaitChange);
    }
    let api: Api<MaasMachineTemplate> = Api::namespaced(context.client, &template.namespace().unwrap_or_default());
    let name = template.name_any();
    let apply = json!({"apiVersion": names::API_VERSION, "kind": "MaasMachineTemplate", "metadata": {"name": name}, "status": wanted});
    match api.patch_status(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(apply)).await {
        Ok(_) => Ok(Action::AwaitChange),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Action::AwaitChange),
        Err(error) => Err(error.into()),
    }
}
