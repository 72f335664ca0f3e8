//! Webhooks of the Go provider that nobody answers any more.

use crate::cluster::{Cluster, eventually};
use decisions::leftover_webhooks::{MUTATING, VALIDATING};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn webhook(name: &str, service: &str, path: &str) -> Value {
    json!({"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
        "clientConfig": {"service": {"name": service, "namespace": "capmaas-system", "path": path}},
        "rules": [{"apiGroups": ["infrastructure.cluster.x-k8s.io"], "apiVersions": ["v1beta1"], "operations": ["UPDATE"], "resources": ["maasclusters"]}]})
}

#[tokio::test]
async fn what_is_wholly_the_go_providers_is_removed_and_what_holds_others_too_stays() {
    let cluster = Cluster::with_namespace("leftover-webhooks").await;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let path = "infrastructure-cluster-x-k8s-io-v1beta1-maascluster";
    let theirs = webhook("mmaascluster.kb.io", "capmaas-webhook-service", &format!("/mutate-{path}"));
    let mixed = json!([theirs, webhook("policy.example.com", "policy", "/mutate")]);
    let mixed = serde_json::from_value(json!({"metadata": {"name": MUTATING}, "webhooks": mixed})).unwrap();
    mutating.create(&PostParams::default(), &mixed).await.unwrap();
    let left = webhook("vmaascluster.kb.io", "capmaas-webhook-service", &format!("/validate-{path}"));
    let left = serde_json::from_value(json!({"metadata": {"name": VALIDATING}, "webhooks": [left]})).unwrap();
    validating.create(&PostParams::default(), &left).await.unwrap();

    let stop = CancellationToken::new();
    let removing = tokio::spawn(manager::leftover_webhooks::remove(cluster.client.clone(), stop.clone()));
    // Those that change objects are looked at first.
    eventually("the leftover is gone", || async { validating.get_opt(VALIDATING).await.unwrap().is_none().then_some(()) }).await;
    stop.cancel();
    removing.await.unwrap();
    assert!(mutating.get_opt(MUTATING).await.unwrap().is_some(), "one of its webhooks is somebody else's");
    mutating.delete(MUTATING, &kube::api::DeleteParams::default()).await.unwrap();
}
