//! The in-process server behaves as the real one where the controllers can tell.

use futures::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    core::PartialObjectMeta,
    runtime::watcher,
};
use manager::Clock;
use serde_json::{Value, json};
use simulation::{ApiServer, Faults};
use std::time::Duration;

fn server() -> (ApiServer, Client) {
    let server = ApiServer::new(Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()), Faults::none());
    let client = server.client("test");
    (server, client)
}

fn config_map(name: &str, labels: &Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}, "data": {"a": "1"}})).unwrap()
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("not an answer of the server: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_from_an_old_version_is_a_conflict_and_an_empty_one_changes_nothing() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().1);
    let first = api.create(&PostParams::default(), &config_map("a", &json!({}))).await.unwrap();
    assert_eq!(code(&api.create(&PostParams::default(), &first).await.unwrap_err()), 409);
    let mut changed = first.clone();
    changed.data = Some([("a".to_owned(), "2".to_owned())].into());
    let second = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(first.resource_version(), second.resource_version());
    assert_eq!(code(&api.replace("a", &PostParams::default(), &changed).await.unwrap_err()), 409);
    let same = api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": "2"}}))).await.unwrap();
    assert_eq!(same.resource_version(), second.resource_version());
    assert_eq!(code(&api.get("b").await.unwrap_err()), 404);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_a_deleted_object_until_the_last_is_gone() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().1);
    let mut object = config_map("a", &json!({}));
    object.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    api.create(&PostParams::default(), &object).await.unwrap();
    let held = api.delete("a", &DeleteParams::default()).await.unwrap().left().expect("the object, not a status");
    assert!(held.metadata.deletion_timestamp.is_some());
    let release = json!([{"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/other"}, {"op": "remove", "path": "/metadata/finalizers/0"}]);
    let refused = api.patch("a", &PatchParams::default(), &Patch::<()>::Json(serde_json::from_value(release).unwrap())).await.unwrap_err();
    assert_eq!(code(&refused), 422);
    let release = json!([{"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/hold"}, {"op": "remove", "path": "/metadata/finalizers/0"}]);
    api.patch("a", &PatchParams::default(), &Patch::<()>::Json(serde_json::from_value(release).unwrap())).await.unwrap();
    assert_eq!(api.get_opt("a").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_node_begins_with_the_status_its_kubelet_gave_it() {
    let api: Api<Node> = Api::all(server().1);
    let node = json!({"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
    let node: Node = serde_json::from_value(node).unwrap();
    let addresses = api.create(&PostParams::default(), &node).await.unwrap().status.unwrap().addresses.unwrap();
    assert_eq!(addresses[0].address, "10.0.0.1");
}

#[tokio::test(start_paused = true)]
async fn status_and_the_rest_are_written_apart_and_only_the_rest_counts_generations() {
    let (_, client) = server();
    let resource = kube::api::ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&());
    let api: Api<kube::api::DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let draft = kube::api::DynamicObject::new("d", &resource).data(json!({"spec": {"replicas": 1}, "status": {"replicas": 9}}));
    assert_eq!(api.create(&PostParams::default(), &draft).await.unwrap().data.get("status"), None);
    let both = Patch::Merge(json!({"spec": {"replicas": 2}, "status": {"replicas": 2}}));
    let object = api.patch_status("d", &PatchParams::default(), &both).await.unwrap();
    assert_eq!((object.data["spec"]["replicas"].as_i64(), object.data["status"]["replicas"].as_i64()), (Some(1), Some(2)));
    assert_eq!(object.metadata.generation, Some(1));
    let both = Patch::Merge(json!({"spec": {"replicas": 3}, "status": {"replicas": 3}}));
    let object = api.patch("d", &PatchParams::default(), &both).await.unwrap();
    assert_eq!((object.data["spec"]["replicas"].as_i64(), object.data["status"]["replicas"].as_i64()), (Some(3), Some(2)));
    assert_eq!(object.metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_where_it_was_sends_bookmarks_and_ends_in_time() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().1);
    let first = api.create(&PostParams::default(), &config_map("a", &json!({}))).await.unwrap();
    api.create(&PostParams::default(), &config_map("b", &json!({}))).await.unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let began = tokio::time::Instant::now();
    let events = api.watch(&WatchParams::default().timeout(100), &first.resource_version().unwrap()).await.unwrap();
    let kinds: Vec<String> = events
        .map_ok(|event| match event {
            WatchEvent::Added(object) => format!("added {}", object.name_any()),
            WatchEvent::Deleted(object) => format!("deleted {}", object.name_any()),
            WatchEvent::Bookmark(bookmark) => format!("bookmark {}", bookmark.metadata.resource_version),
            other => format!("{other:?}"),
        })
        .try_collect()
        .await
        .unwrap();
    assert_eq!(kinds, ["added b", "deleted a", "bookmark 4"]);
    assert_eq!(began.elapsed(), Duration::from_secs(100));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_loses_the_selected_label_is_deleted_for_that_watch() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().1);
    let made = api.create(&PostParams::default(), &config_map("a", &json!({"team": "blue"}))).await.unwrap();
    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": {"team": "red"}}}))).await.unwrap();
    let events = api.watch(&WatchParams::default().labels("team=blue").timeout(5), &made.resource_version().unwrap()).await.unwrap();
    pin_mut!(events);
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Deleted(object))) if object.name_any() == "a"));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_again_after_the_history_was_forgotten() {
    let (server, client) = server();
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &config_map("a", &json!({}))).await.unwrap();
    let events = watcher(api.clone(), watcher::Config::default().timeout(10));
    pin_mut!(events);
    while !matches!(events.next().await, Some(Ok(watcher::Event::InitDone))) {}
    api.delete("a", &DeleteParams::default()).await.unwrap();
    server.forget_history();
    api.create(&PostParams::default(), &config_map("b", &json!({}))).await.unwrap();
    let mut seen = Vec::new();
    while seen.last().map(String::as_str) != Some("InitDone") {
        seen.push(events.next().await.unwrap().map_or_else(|error| error.to_string(), |event| event.to_string()));
    }
    assert!(seen[0].contains("too old resource version"), "{seen:?}");
    assert_eq!(seen[1..], ["Init", "InitApply(b)", "InitDone"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_comes_without_the_data() {
    let (server, client) = server();
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "s"}, "stringData": {"password": "hidden"}})).unwrap();
    Api::<Secret>::default_namespaced(client.clone()).create(&PostParams::default(), &secret).await.unwrap();
    let listed = Api::<PartialObjectMeta<Secret>>::all(client).list(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(listed.items[0].name_any(), "s");
    let last = server.trace().entries().pop().unwrap().what;
    assert!(!last.contains("hidden"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_was_carried_out_and_a_refused_call_was_not() {
    let (server, client) = server();
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    server.set_faults(Faults { lost_permille: 1000, ..Faults::none() });
    assert!(matches!(api.create(&PostParams::default(), &config_map("lost", &json!({}))).await, Err(kube::Error::Service(_))));
    server.set_faults(Faults { refused_permille: 1000, ..Faults::none() });
    assert_eq!(code(&api.create(&PostParams::default(), &config_map("refused", &json!({}))).await.unwrap_err()), 500);
    server.set_faults(Faults::none());
    assert!(api.get_opt("lost").await.unwrap().is_some());
    assert!(api.get_opt("refused").await.unwrap().is_none());
}
