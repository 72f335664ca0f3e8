//! The Go provider validated by webhooks. When it is gone and they are not, nobody answers them, and the API server refuses every write of our
//! kinds. Used by the manager when it begins to act.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig};

/// The names of its two configurations.
pub const MUTATING: &str = "capmaas-mutating-webhook-configuration";
/// The other one.
pub const VALIDATING: &str = "capmaas-validating-webhook-configuration";

/// Whether a configuration is the Go provider's and nothing else is in it.
pub fn mutating_is_left_over(configuration: &MutatingWebhookConfiguration) -> bool {
    let webhooks = configuration.webhooks.as_deref().unwrap_or_default();
    is_left_over(webhooks.iter().map(|webhook| &webhook.client_config), "/mutate-")
}

/// Whether a configuration is the Go provider's and nothing else is in it.
pub fn validating_is_left_over(configuration: &ValidatingWebhookConfiguration) -> bool {
    let webhooks = configuration.webhooks.as_deref().unwrap_or_default();
    is_left_over(webhooks.iter().map(|webhook| &webhook.client_config), "/validate-")
}

/// All of them ask the Go provider's service about our kinds. A configuration without webhooks does no harm and is left alone.
fn is_left_over<'a>(mut webhooks: impl ExactSizeIterator<Item = &'a WebhookClientConfig>, act: &str) -> bool {
    let ours = format!("{act}infrastructure-cluster-x-k8s-io-v1beta1-maas");
    webhooks.len() > 0
        && webhooks.all(|webhook| {
            webhook.service.as_ref().is_some_and(|service| {
                service.name == "capmaas-webhook-service" && service.path.as_deref().is_some_and(|path| path.starts_with(&ours))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn webhook(service: &str, path: &str) -> Value {
        json!({"name": "vmaascluster.kb.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"name": service, "namespace": "capmaas-system", "path": path}}})
    }

    fn validating(webhooks: &[Value]) -> bool {
        validating_is_left_over(&serde_json::from_value(json!({"metadata": {"name": VALIDATING}, "webhooks": webhooks})).unwrap())
    }

    #[test]
    fn only_a_configuration_that_is_wholly_the_go_providers_is_left_over() {
        let cluster = webhook("capmaas-webhook-service", "/validate-infrastructure-cluster-x-k8s-io-v1beta1-maascluster");
        let machine = webhook("capmaas-webhook-service", "/validate-infrastructure-cluster-x-k8s-io-v1beta1-maasmachine");
        assert!(validating(&[cluster.clone(), machine.clone()]));
        assert!(!validating(&[]), "there is nothing in it that could be in the way");
        let somebody = webhook("policy", "/validate-infrastructure-cluster-x-k8s-io-v1beta1-maasmachine");
        assert!(!validating(&[cluster.clone(), somebody]), "one of its webhooks is somebody else's");
        assert!(!validating(&[cluster, webhook("capmaas-webhook-service", "/validate-pods")]), "one of them is about something else");
        let mutating = json!({"metadata": {"name": MUTATING}, "webhooks": [machine]});
        assert!(!mutating_is_left_over(&serde_json::from_value(mutating).unwrap()), "it validates, so it is not what this name stands for");
    }
}
