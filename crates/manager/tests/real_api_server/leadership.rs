//! Two managers and one lease on the real kube-apiserver: who acts, and how the other takes over.

use crate::cluster::{Cluster, Running, Widget, WidgetError, eventually, get, write_status};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use manager::{Action, Context, Controller, Controllers, LeaseSettings, RunError, Settings};
use std::{sync::Arc, time::Duration};

/// A manager that signs the status with its name; short times, so that the test of an expiry takes seconds.
async fn start(cluster: &Cluster, identity: &'static str) -> Running {
    let lease = LeaseSettings {
        duration: Duration::from_secs(6),
        renew_deadline: Duration::from_secs(4),
        retry_period: Duration::from_millis(300),
        ..LeaseSettings::new(&cluster.namespace, identity)
    };
    let mut controllers = Controllers::new(cluster.client.clone(), Settings { lease: Some(lease), ..cluster.settings() });
    let widgets = controllers.watch_primary::<Widget>();
    let reconcile = move |widget: Arc<Widget>, context: Context| async move {
        write_status(context.client, &widget, identity).await?;
        Ok::<_, WidgetError>(Action::AwaitChange)
    };
    controllers.add(Controller::new("widget", &widgets, reconcile));
    Running::start(controllers).await
}

async fn leads(running: &Running) -> bool {
    get(running.metrics, "/metrics").await.1.contains("\nmetalshift_is_leader 1\n")
}

async fn until_ready(running: &Running) {
    eventually("the manager is ready", || async { (get(running.health, "/readyz").await.0 == 200).then_some(()) }).await;
}

async fn lease(cluster: &Cluster) -> Lease {
    Api::namespaced(cluster.client.clone(), &cluster.namespace).get(LeaseSettings::DEFAULT_NAME).await.unwrap()
}

#[tokio::test]
async fn row_67_the_second_is_ready_waits_and_takes_over_at_once_when_the_first_stops() {
    let cluster = Cluster::with_namespace("handover").await;
    let first = start(&cluster, "first").await;
    cluster.create_widget("w", 1).await;
    cluster.widget_with("w", |status| status.by.as_deref() == Some("first")).await;
    let second = start(&cluster, "second").await;
    until_ready(&second).await;
    assert!(leads(&first).await && !leads(&second).await);
    first.stop().await.unwrap();
    cluster.widget_with("w", |status| status.by.as_deref() == Some("second")).await;
    assert!(leads(&second).await);
    let spec = lease(&cluster).await.spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("second"), Some(1)));
    second.stop().await.unwrap();
    assert_eq!(lease(&cluster).await.spec.unwrap().holder_identity.as_deref(), Some(""));
}

#[tokio::test]
async fn the_second_takes_over_after_the_lease_expired_when_the_first_was_killed() {
    let cluster = Cluster::with_namespace("killed").await;
    let first = start(&cluster, "first").await;
    cluster.create_widget("w", 1).await;
    cluster.widget_with("w", |status| status.by.as_deref() == Some("first")).await;
    let second = start(&cluster, "second").await;
    until_ready(&second).await;
    first.kill().await;
    assert_eq!(lease(&cluster).await.spec.unwrap().holder_identity.as_deref(), Some("first"), "a killed leader releases nothing");
    cluster.widget_with("w", |status| status.by.as_deref() == Some("second")).await;
    second.stop().await.unwrap();
}

#[tokio::test]
async fn a_leader_whose_lease_was_taken_ends_with_an_error() {
    let cluster = Cluster::with_namespace("taken").await;
    let first = start(&cluster, "first").await;
    eventually("the first leads", || async { leads(&first).await.then_some(()) }).await;
    let api: Api<Lease> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let thief = serde_json::json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600}});
    api.patch(LeaseSettings::DEFAULT_NAME, &kube::api::PatchParams::default(), &kube::api::Patch::Merge(thief)).await.unwrap();
    let error = first.ended().await.unwrap_err();
    assert!(matches!(&error, RunError::LeaseLost(_)) && error.to_string().contains("somebody"), "{error}");
}
