//! Removes the webhooks that the Go provider leaves behind, once, when this process begins to act. `manage` adds it.

use crate::describe::describe;
use decisions::leftover_webhooks::{MUTATING, VALIDATING, mutating_is_left_over, validating_is_left_over};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Preconditions},
};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Between attempts; what stands in the way also refuses our writes, so this is worth no hurry.
const PAUSE: Duration = Duration::from_secs(30);

/// Removes them as soon as the API server lets it, then waits for the end.
pub async fn remove(client: Client, stop: CancellationToken) {
    let removed = async {
        remove_one::<MutatingWebhookConfiguration>(&client, MUTATING, mutating_is_left_over).await;
        remove_one::<ValidatingWebhookConfiguration>(&client, VALIDATING, validating_is_left_over).await;
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => return,
        () = removed => {}
    }
    stop.cancelled().await;
}

async fn remove_one<K>(client: &Client, name: &str, is_left_over: fn(&K) -> bool)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    loop {
        match attempt(&api, name, is_left_over).await {
            Ok(()) => return,
            // Who may not ask has an installation that looks after it.
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                return tracing::info!(
                    name,
                    "may not look for webhooks of the Go provider; if writes of our kinds are refused by them, delete them"
                );
            }
            Err(error) => tracing::warn!(name, cause = describe(&error), "could not remove the webhooks of the Go provider; tries again"),
        }
        sleep(PAUSE).await;
    }
}

async fn attempt<K>(api: &Api<K>, name: &str, is_left_over: fn(&K) -> bool) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let Some(found) = api.get_opt(name).await? else { return Ok(()) };
    if !is_left_over(&found) {
        tracing::info!(name, "has the name of the Go provider's webhooks, but holds others too, and stays");
        return Ok(());
    }
    // Only what was looked at.
    let preconditions = Preconditions { uid: found.meta().uid.clone(), resource_version: found.meta().resource_version.clone() };
    match api.delete(name, &DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }).await {
        Ok(_) => tracing::info!(name, "removed: webhooks of the Go provider, which nobody answers any more"),
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => return Err(error),
    }
    Ok(())
}
