//! Twelve busy minutes: two managers, a lease, forty widgets with children, users who change and delete them, and a bad day of
//! the server. The first manager is killed in the middle. Everything a run does is decided by its seed.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, CustomResource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use manager::{Action, Clock, Context, Controller, Controllers, Jitter, LeaseSettings, Listeners, ObjectKey, RunError, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use simulation::{ApiServer, Faults};
use std::{num::NonZeroUsize, sync::Arc, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

pub const WIDGETS: usize = 40;
const FINALIZER: &str = "example.com/widget";

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
pub struct WidgetSpec {
    pub size: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WidgetStatus {
    #[serde(default)]
    pub observed_size: i64,
}

#[derive(Debug, thiserror::Error)]
#[error("could not reconcile the widget")]
pub struct WidgetError(#[from] kube::Error);

/// Builds a world of one thread whose clock is paused, and runs `scenario` in it.
pub fn in_paused_time<Scenario: Future>(scenario: Scenario) -> Scenario::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(scenario)
}

pub fn epoch() -> Clock {
    Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap())
}

/// The whole scenario; `jitter` is the randomness of the managers, `seed` that of the server's faults.
pub async fn twelve_busy_minutes(seed: u64, jitter: Jitter) -> ApiServer {
    let clock = epoch();
    let server = ApiServer::new(clock, Faults::bad_day(seed));
    let stop = CancellationToken::new();
    let first = manage_again_and_again(&server, "first", clock, jitter, &stop);
    let second = async {
        sleep(Duration::from_secs(20)).await;
        manage_again_and_again(&server, "second", clock, jitter, &stop).await;
    };
    let first_until_killed = tokio::time::timeout(Duration::from_mins(5), first);
    let script = async {
        people(server.client("people")).await;
        sleep(Duration::from_mins(10)).await;
        stop.cancel();
    };
    let (_killed, (), ()) = tokio::join!(first_until_killed, second, script);
    server
}

/// A process that is started afresh whenever it ends by itself, under a new identity, as a pod would be.
async fn manage_again_and_again(server: &ApiServer, name: &str, clock: Clock, jitter: Jitter, stop: &CancellationToken) {
    for life in 1.. {
        let identity = format!("{name}-{life}");
        let settings = settings(&identity, clock, jitter);
        if manage(server.client(&identity), settings, stop.clone()).await.is_ok() {
            return;
        }
    }
}

fn settings(identity: &str, clock: Clock, jitter: Jitter) -> Settings {
    let lease = LeaseSettings::new("default", identity);
    Settings { lease: Some(lease), sync_period: Duration::from_secs(200), ..Settings::new(clock, jitter) }
}

async fn manage(client: Client, settings: Settings, stop: CancellationToken) -> Result<(), RunError> {
    let mut controllers = Controllers::new(client, settings);
    let widgets = controllers.watch_primary::<Widget>();
    let children = controllers.watch_related::<ConfigMap>();
    let controller = Controller::new("widget", &widgets, reconcile)
        .watches(&children, |child: &ConfigMap| vec![ObjectKey::of(child)])
        .concurrency(NonZeroUsize::new(4).unwrap())
        .timeout(Duration::from_secs(20));
    controllers.add(controller);
    controllers.run(Listeners::default(), stop.cancelled_owned()).await
}

async fn reconcile(widget: Arc<Widget>, context: Context) -> Result<Action, WidgetError> {
    let namespace = widget.namespace().unwrap_or_default();
    let widgets: Api<Widget> = Api::namespaced(context.client.clone(), &namespace);
    let children: Api<ConfigMap> = Api::namespaced(context.client, &namespace);
    let name = widget.name_any();
    if widget.metadata.deletion_timestamp.is_some() {
        match children.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            result => drop(result?),
        }
        let guarded = json!({"metadata": {"finalizers": [], "resourceVersion": widget.resource_version()}});
        widgets.patch(&name, &PatchParams::default(), &Patch::Merge(guarded)).await?;
        return Ok(Action::AwaitChange);
    }
    assert!(widget.spec.size % 17 != 3 || widget.status.is_some() || context.failures > 1, "some sizes panic twice");
    if widget.finalizers().is_empty() {
        let guarded = json!({"metadata": {"finalizers": [FINALIZER], "resourceVersion": widget.resource_version()}});
        widgets.patch(&name, &PatchParams::default(), &Patch::Merge(guarded)).await?;
    }
    let apply = PatchParams::apply("widget-controller").force();
    let child =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"size": widget.spec.size.to_string()}});
    children.patch(&name, &apply, &Patch::Apply(child)).await?;
    let status = json!({"apiVersion": "example.com/v1", "kind": "Widget", "status": {"observedSize": widget.spec.size}});
    widgets.patch_status(&name, &apply, &Patch::Apply(status)).await?;
    Ok(if widget.spec.size % 2 == 0 { Action::RequeueAfter(Duration::from_secs(45)) } else { Action::AwaitChange })
}

/// Creates all widgets at once, then changes some and deletes a third; tries again until each wish is fulfilled.
async fn people(client: Client) {
    let widgets: Api<Widget> = Api::namespaced(client, "default");
    for number in 0..WIDGETS {
        let widget = Widget::new(&format!("w{number:02}"), WidgetSpec { size: i64::try_from(number).unwrap() });
        loop {
            match widgets.create(&PostParams::default(), &widget).await {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if status.is_already_exists() => break,
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }
    for number in (0..WIDGETS).step_by(3) {
        sleep(Duration::from_secs(5)).await;
        let name = format!("w{number:02}");
        let change = Patch::Merge(json!({"spec": {"size": 100 + number}}));
        while widgets.patch(&name, &PatchParams::default(), &change).await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
    }
    for number in (1..WIDGETS).step_by(3) {
        sleep(Duration::from_secs(3)).await;
        while let Err(error) = widgets.delete(&format!("w{number:02}"), &DeleteParams::default()).await {
            if matches!(&error, kube::Error::Api(status) if status.is_not_found()) {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}
