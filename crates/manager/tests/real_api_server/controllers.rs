//! Controllers on the real kube-apiserver: watch, reconcile, status; errors, panics, scope and stop.

use crate::{
    cluster::{Cluster, Running, Widget, WidgetError, WidgetSpec, eventually, get, write_status},
    log,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, CustomResource, CustomResourceExt, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use manager::{Action, Context, Controller, Controllers, ObjectKey, Settings, WATCH_FILTER_LABEL};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

/// A manager with one controller of widgets whose reconcile writes the status.
fn observing(cluster: &Cluster, settings: Settings) -> Controllers {
    let mut controllers = Controllers::new(cluster.client.clone(), settings);
    let widgets = controllers.watch_primary::<Widget>();
    let reconcile = |widget: Arc<Widget>, context: Context| async move {
        write_status(context.client, &widget, "observer").await?;
        Ok::<_, WidgetError>(Action::AwaitChange)
    };
    controllers.add(Controller::new("widget", &widgets, reconcile));
    controllers
}

#[tokio::test]
async fn a_change_is_seen_reconciled_and_told_in_the_status() {
    let cluster = Cluster::with_namespace("status").await;
    cluster.create_widget("before", 1).await;
    let running = Running::start(observing(&cluster, cluster.settings())).await;
    cluster.create_widget("after", 2).await;
    cluster.widget_with("before", |status| status.observed_size == Some(1)).await;
    cluster.widget_with("after", |status| status.observed_size == Some(2)).await;
    cluster.widgets().patch("after", &PatchParams::default(), &Patch::Merge(json!({"spec": {"size": 5}}))).await.unwrap();
    cluster.widget_with("after", |status| status.observed_size == Some(5)).await;
    let page = eventually("the last reconcile is on the metrics page", || async {
        let page = get(running.metrics, "/metrics").await.1;
        let ended = page.lines().find_map(|line| line.strip_prefix(r#"metalshift_reconciles_total{kind="widget",outcome="success"} "#));
        ended.is_some_and(|count| count.parse::<u32>().unwrap() >= 3).then_some(page)
    })
    .await;
    for line in ["metalshift_is_leader 1", "metalshift_build_info{version=", "metalshift_reconcile_duration_seconds_bucket{le=", "# EOF"] {
        assert!(page.contains(line), "{line} is not on\n{page}");
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn every_line_of_a_reconcile_tells_in_json_which_reconcile_of_what_object_it_is() {
    let cluster = Cluster::with_namespace("spans").await;
    let mut controllers = Controllers::new(cluster.client.clone(), cluster.settings());
    let widgets = controllers.watch_primary::<Widget>();
    controllers.add(Controller::new("widget", &widgets, |widget: Arc<Widget>, context: Context| async move {
        tracing::info!(size = widget.spec.size, "looked");
        write_status(context.client, &widget, "observer").await?;
        tracing::info!("told");
        Ok::<_, WidgetError>(Action::AwaitChange)
    }));
    let running = Running::start(controllers).await;
    let uid = cluster.create_widget("one", 1).await.uid().unwrap();
    cluster.create_widget("two", 2).await;
    for (name, size) in [("one", 1), ("two", 2)] {
        cluster.widget_with(name, |status| status.observed_size == Some(size)).await;
    }
    running.stop().await.unwrap();
    let lines: Vec<Value> = log::lines().into_iter().filter(|line| line["span"]["namespace"] == "spans").collect();
    let of = |name: &str, message: &str| {
        let found = lines.iter().find(|line| line["message"] == message && line["span"]["object"] == name);
        found.unwrap_or_else(|| panic!("nothing of {name} was {message} in {lines:?}"))
    };
    let (looked, told) = (of("one", "looked"), of("one", "told"));
    assert_eq!((&looked["size"], &looked["span"]["name"]), (&json!(1), &json!("reconcile")));
    assert_eq!([&looked["span"]["kind"], &looked["span"]["namespace"], &looked["span"]["uid"]], ["widget", "spans", uid.as_str()]);
    let id = looked["span"]["reconcile_id"].as_str().unwrap();
    assert!(id.len() == 16 && id.chars().all(|digit| digit.is_ascii_hexdigit()), "{id}");
    assert_eq!(told["span"]["reconcile_id"], id, "lines of one reconcile belong together");
    assert_ne!(of("two", "looked")["span"]["reconcile_id"], id);
}

#[tokio::test]
async fn a_panic_is_contained_counted_and_tried_again_while_others_go_on() {
    let cluster = Cluster::with_namespace("panics").await;
    let mut controllers = Controllers::new(cluster.client.clone(), cluster.settings());
    let widgets = controllers.watch_primary::<Widget>();
    let reconcile = |widget: Arc<Widget>, context: Context| async move {
        assert!(widget.name_any() != "fragile" || context.failures >= 2, "broken on purpose");
        write_status(context.client, &widget, "survivor").await?;
        Ok::<_, WidgetError>(Action::AwaitChange)
    };
    controllers.add(Controller::new("widget", &widgets, reconcile));
    let running = Running::start(controllers).await;
    cluster.create_widget("fragile", 1).await;
    cluster.create_widget("sound", 2).await;
    cluster.widget_with("sound", |status| status.observed_size == Some(2)).await;
    cluster.widget_with("fragile", |status| status.observed_size == Some(1)).await;
    let page = get(running.metrics, "/metrics").await.1;
    let panics: u32 =
        page.lines().find_map(|line| line.strip_prefix(r#"metalshift_reconcile_panics_total{kind="widget"} "#)).unwrap().parse().unwrap();
    assert!(panics >= 2, "{page}");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_reconcile_that_hangs_is_ended_by_its_timeout_and_tried_again() {
    let cluster = Cluster::with_namespace("hangs").await;
    let mut controllers = Controllers::new(cluster.client.clone(), cluster.settings());
    let widgets = controllers.watch_primary::<Widget>();
    let reconcile = |widget: Arc<Widget>, context: Context| async move {
        if context.failures == 0 {
            std::future::pending::<()>().await;
        }
        write_status(context.client, &widget, "second attempt").await?;
        Ok::<_, WidgetError>(Action::AwaitChange)
    };
    controllers.add(Controller::new("widget", &widgets, reconcile).timeout(Duration::from_millis(500)));
    let running = Running::start(controllers).await;
    cluster.create_widget("slow", 1).await;
    cluster.widget_with("slow", |status| status.by.as_deref() == Some("second attempt")).await;
    assert!(get(running.metrics, "/metrics").await.1.contains(r#"metalshift_reconciles_total{kind="widget",outcome="timeout"}"#));
    running.stop().await.unwrap();
}

#[tokio::test]
async fn without_a_sync_period_only_changes_lead_to_a_reconcile() {
    let cluster = Cluster::with_namespace("no-sync").await;
    let mut controllers = Controllers::new(cluster.client.clone(), Settings { sync_period: Duration::ZERO, ..cluster.settings() });
    let widgets = controllers.watch_primary::<Widget>();
    let (turns, counted) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
    let (their_turns, their_counted) = (Arc::clone(&turns), Arc::clone(&counted));
    let reconcile = move |_: Arc<Widget>, _: Context| {
        their_turns.fetch_add(1, Ordering::Relaxed);
        their_counted.notify_one();
        async { Ok::<_, WidgetError>(Action::AwaitChange) }
    };
    controllers.add(Controller::new("widget", &widgets, reconcile));
    let running = Running::start(controllers).await;
    for name in ["first", "second", "third"] {
        cluster.create_widget(name, 1).await;
        counted.notified().await;
    }
    running.stop().await.unwrap();
    assert_eq!(turns.load(Ordering::Relaxed), 3, "one turn for each object");
}

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "late.manager.example.com", version = "v1", kind = "Gadget", namespaced)]
struct GadgetSpec {}

#[tokio::test]
async fn a_manager_is_ready_only_when_every_kind_it_watches_was_listed() {
    let cluster = Cluster::with_namespace("ready").await;
    let mut controllers = observing(&cluster, cluster.settings());
    let _gadgets = controllers.watch_related::<Gadget>();
    let running = Running::start(controllers).await;
    let waiting = eventually("only the missing kind is waited for", || async {
        let (code, body) = get(running.health, "/readyz").await;
        (code == 503 && !body.contains("widgets")).then_some(body)
    })
    .await;
    assert_eq!(waiting, "[-] gadgets.late.manager.example.com in namespace ready: not synced yet\n");
    assert_eq!(get(running.health, "/healthz").await, (200, "ok\n".to_owned()));
    cluster.install(&Gadget::crd()).await;
    eventually("the manager is ready", || async { (get(running.health, "/readyz").await == (200, "ok\n".to_owned())).then_some(()) }).await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn row_61_only_the_named_namespaces_and_the_filtered_objects_are_reconciled() {
    let cluster = Cluster::with_namespace("scope-a").await;
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    for namespace in ["scope-b", "scope-c"] {
        cluster.create_namespace(namespace).await;
    }
    for namespace in ["scope-a", "scope-b", "scope-c"] {
        let widgets: Api<Widget> = Api::namespaced(cluster.client.clone(), namespace);
        for (name, filter) in [("chosen", Some("blue")), ("other", Some("red")), ("plain", None)] {
            let mut widget = Widget::new(name, WidgetSpec { size: 1 });
            widget.metadata.labels = filter.map(|filter| [(WATCH_FILTER_LABEL.to_owned(), filter.to_owned())].into());
            widgets.create(&PostParams::default(), &widget).await.unwrap();
        }
    }
    let settings = Settings { namespaces: "scope-a,scope-b".parse().unwrap(), watch_filter: Some("blue".to_owned()), ..cluster.settings() };
    let mut controllers = Controllers::new(cluster.client.clone(), settings);
    let widgets = controllers.watch_primary::<Widget>();
    let noted = Arc::clone(&seen);
    let reconcile = move |widget: Arc<Widget>, _: Context| {
        noted.lock().unwrap().insert(ObjectKey::of(&*widget).to_string());
        async { Ok::<_, WidgetError>(Action::AwaitChange) }
    };
    controllers.add(Controller::new("widget", &widgets, reconcile));
    let running = Running::start(controllers).await;
    // The label arrives last: when this one was seen, everything listed before was looked at.
    let label = json!({"metadata": {"labels": {WATCH_FILTER_LABEL: "blue"}}});
    let api: Api<Widget> = Api::namespaced(cluster.client.clone(), "scope-b");
    api.patch("plain", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    eventually("the widget labelled last is seen", || async { seen.lock().unwrap().contains("scope-b/plain").then_some(()) }).await;
    running.stop().await.unwrap();
    let expected = ["scope-a/chosen", "scope-b/chosen", "scope-b/plain"].map(str::to_owned);
    assert_eq!(*seen.lock().unwrap(), BTreeSet::from(expected));
}

#[tokio::test]
async fn a_related_object_and_a_poke_from_outside_make_an_object_due() {
    let cluster = Cluster::with_namespace("due").await;
    let mut controllers = Controllers::new(cluster.client.clone(), cluster.settings());
    let widgets = controllers.watch_primary::<Widget>();
    let related = controllers.watch_related::<ConfigMap>();
    let reconciles = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&reconciles);
    let reconcile = move |_: Arc<Widget>, _: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, WidgetError>(Action::AwaitChange) }
    };
    let owner =
        |child: &ConfigMap| child.name_any().strip_prefix("of-").map(|name| ObjectKey::namespaced("due", name)).into_iter().collect();
    let controller = Controller::new("widget", &widgets, reconcile).watches(&related, owner);
    let pokes = controller.pokes();
    controllers.add(controller);
    cluster.create_widget("parent", 1).await;
    let running = Running::start(controllers).await;
    let count = |wanted: u32| {
        let reconciles = &reconciles;
        eventually(format!("{wanted} reconciles"), move || async move { (reconciles.load(Ordering::SeqCst) >= wanted).then_some(()) })
    };
    count(1).await;
    let child: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "of-parent"}})).unwrap();
    Api::<ConfigMap>::namespaced(cluster.client.clone(), "due").create(&PostParams::default(), &child).await.unwrap();
    count(2).await;
    pokes.poke(ObjectKey::namespaced("due", "parent"));
    count(3).await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn row_67_a_stop_lets_the_reconcile_in_flight_end_and_starts_no_other() {
    let cluster = Cluster::with_namespace("stop").await;
    let mut controllers = Controllers::new(cluster.client.clone(), cluster.settings());
    let widgets = controllers.watch_primary::<Widget>();
    let (begun, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let shared = (Arc::clone(&begun), Arc::clone(&finish));
    let reconcile = move |widget: Arc<Widget>, context: Context| {
        let (begun, finish) = shared.clone();
        async move {
            begun.notify_one();
            finish.notified().await;
            write_status(context.client, &widget, "the last one").await?;
            Ok::<_, WidgetError>(Action::RequeueAfter(Duration::ZERO))
        }
    };
    controllers.add(Controller::new("widget", &widgets, reconcile));
    cluster.create_widget("inflight", 1).await;
    let running = Running::start(controllers).await;
    begun.notified().await;
    let stopping = tokio::spawn(running.stop());
    cluster.create_widget("too-late", 1).await;
    finish.notify_one();
    stopping.await.unwrap().unwrap();
    cluster.widget_with("inflight", |status| status.by.as_deref() == Some("the last one")).await;
    assert_eq!(cluster.widgets().get("too-late").await.unwrap().status, None);
}

#[tokio::test]
async fn a_manager_without_controllers_is_ready_and_stops() {
    let cluster = Cluster::with_namespace("empty").await;
    let running = Running::start(Controllers::new(cluster.client.clone(), cluster.settings())).await;
    assert_eq!(get(running.health, "/readyz").await.0, 200);
    running.stop().await.unwrap();
}
