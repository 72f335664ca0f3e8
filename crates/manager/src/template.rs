//! The MaasMachineTemplate controller: shows what machines of a template will have, for whoever scales a group from zero.

use std::sync::Arc;

use api::{MaasMachineTemplate, names};
use kube::{Resource, ResourceExt};

use crate::{
    Action, Context, Controller, Controllers,
    shown::{PassError, show},
};

/// Adds the controller of templates.
pub fn add(controllers: &mut Controllers) {
    let templates = controllers.watch_primary::<MaasMachineTemplate>();
    let controller = Controller::new("maasmachinetemplate", &templates, reconcile);
    controllers.add(controller);
}

async fn reconcile(template: Arc<MaasMachineTemplate>, context: Context) -> Result<Action, PassError> {
    let annotated = |name| template.annotations().contains_key(name);
    let wanted = decisions::template::status(&template.spec.template.spec);
    if template.status.as_ref() == Some(&wanted) || annotated(names::PAUSED) || template.meta().deletion_timestamp.is_some() {
        return Ok(Action::AwaitChange);
    }
    show(&context.client, &*template, &wanted).await.map(|_| Action::AwaitChange)
}
