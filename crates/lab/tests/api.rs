//! Level api: a real API server for every test binary, without root.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use lab::{Lab, Level, Options};
use serde_json::json;

#[tokio::test]
async fn an_api_server_keeps_what_it_is_given() {
    let lab = Lab::up(Options::new(Level::Api)).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(lab.client().await.unwrap(), "default");
    let map = serde_json::from_value(json!({"metadata": {"name": "rack"}, "data": {"machines": "24"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    assert_eq!(maps.get("rack").await.unwrap().data.unwrap()["machines"], "24");
    let directory = lab.directory().path();
    lab.down().await;
    assert!(!directory.exists(), "{} was left behind", directory.display());
}
