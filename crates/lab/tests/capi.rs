//! Level capi: the real Cluster API managers with their webhooks and conversion, without root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod waiting;

use std::{process::Command, time::Duration};

use kube::{
    Api,
    api::{DynamicObject, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use lab::{
    ComponentState, Lab, Level, Options,
    programs::{Program, Search, find_or_build},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use waiting::until;

/// One lab for the whole binary.
async fn shared() -> &'static Lab {
    static LAB: OnceCell<Lab> = OnceCell::const_new();
    LAB.get_or_init(async || Lab::up(Options::new(Level::Capi)).await.unwrap()).await
}

async fn api(version: &str, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", version, kind);
    Api::default_namespaced_with(shared().await.client().await.unwrap(), &ApiResource::from_gvk(&kind))
}

async fn create(version: &str, kind: &str, name: &str, spec: Value) -> DynamicObject {
    let object = json!({"apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": kind, "metadata": {"name": name}, "spec": spec});
    api(version, kind).await.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

/// A Cluster without a provider: enough for its own controller to work on it.
async fn create_cluster(name: &str) {
    let reference = |kind: &str| json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name});
    create("v1beta2", "Cluster", name, json!({"infrastructureRef": reference("NoSuchCluster")})).await;
}

#[tokio::test]
async fn defaults_come_from_the_real_webhooks() {
    create_cluster("defaults").await;
    let template = json!({"spec": {"clusterName": "defaults", "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": {
        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NoSuchMachineTemplate", "name": "none"}}});
    let deployment = create("v1beta2", "MachineDeployment", "defaults", json!({"clusterName": "defaults", "template": template})).await;
    assert_eq!(deployment.data["spec"]["rollout"]["strategy"]["type"], "RollingUpdate", "{:#}", deployment.data["spec"]);
}

#[tokio::test]
async fn refusals_come_from_the_real_webhooks() {
    let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": {"name": "no-cluster"}, "spec": {
        "clusterName": "a", "selector": {"matchLabels": {"rack": "1"}}, "template": {"metadata": {"labels": {"rack": "2"}}, "spec": {
            "clusterName": "a", "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NoSuchMachineTemplate", "name": "none"}}}}});
    let refused = api("v1beta2", "MachineDeployment").await.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await;
    let words = refused.expect_err("selector and labels contradict each other").to_string();
    assert!(words.contains("must match spec.selector"), "{words}");
}

#[tokio::test]
async fn both_api_versions_show_one_object_in_their_own_words() {
    let reference = json!({"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "any"});
    create("v1beta2", "Cluster", "two-versions", json!({"controlPlaneRef": reference})).await;
    let old = api("v1beta1", "Cluster").await.get("two-versions").await.unwrap();
    assert_eq!(old.data["spec"]["controlPlaneRef"]["apiVersion"], "controlplane.cluster.x-k8s.io/v1beta2");
    let new = api("v1beta2", "Cluster").await.get("two-versions").await.unwrap();
    assert_eq!(new.data["spec"]["controlPlaneRef"]["apiGroup"], "controlplane.cluster.x-k8s.io");
}

#[tokio::test]
async fn the_real_clusterctl_describes_a_cluster() {
    create_cluster("described").await;
    let clusters = api("v1beta2", "Cluster").await;
    until("its controller has looked at the cluster", Duration::from_mins(1), async || {
        clusters.get("described").await.unwrap().data["status"]["conditions"].is_array()
    })
    .await;
    let programs = find_or_build(&Search::from_environment(None), &[Program::Clusterctl], &mut |_| {}).unwrap();
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(programs.path(Program::Clusterctl))
        .args(["describe", "cluster", "described", "--show-conditions=all", "--kubeconfig"])
        .arg(shared().await.kubeconfig_path())
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path())
        // It would ask the outside for a newer version of itself.
        .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
        .output()
        .unwrap();
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{tree}{}", String::from_utf8_lossy(&output.stderr));
    assert!(tree.contains("Cluster/described"), "{tree}");
    assert!(tree.contains("InfrastructureReady"), "{tree}");
}

#[tokio::test]
async fn a_manager_that_dies_is_shown_and_started_again() {
    // None of the others needs this one.
    let status = async || {
        let components = shared().await.control().status().await.unwrap().components;
        components.into_iter().find(|component| component.name == "kubeadm-control-plane").unwrap()
    };
    let before = status().await;
    assert_eq!((before.state, before.restarts), (ComponentState::Running, 0));
    assert!(Command::new("kill").args(["-9", &before.process_id.unwrap().to_string()]).status().unwrap().success());
    until("it answers again", Duration::from_mins(1), async || {
        let now = status().await;
        now.restarts == 1 && now.state == ComponentState::Running && now.last_exit.as_deref() == Some("signal 9")
    })
    .await;
    assert_ne!(status().await.process_id, before.process_id);
}
