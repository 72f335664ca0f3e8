//! Level api: a real API server for a test binary, without root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod waiting;

use std::{fs, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use lab::{ComponentState, Lab, LabDirectory, LabError, Level, Options};
use serde_json::json;
use tokio::sync::OnceCell;
use waiting::until;

/// One lab for the whole binary, as controllers' tests use it: it dies with this process.
async fn shared() -> &'static Lab {
    static LAB: OnceCell<Lab> = OnceCell::const_new();
    LAB.get_or_init(async || Lab::up(Options::new(Level::Api).with_controller_manager()).await.unwrap()).await
}

fn config_map(name: &str, machines: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"machines": machines}})).unwrap()
}

#[tokio::test]
async fn an_api_server_keeps_what_it_is_given() {
    let maps: Api<ConfigMap> = Api::namespaced(shared().await.client().await.unwrap(), "default");
    maps.create(&PostParams::default(), &config_map("rack", "24")).await.unwrap();
    assert_eq!(maps.get("rack").await.unwrap().data.unwrap()["machines"], "24");
}

#[tokio::test]
async fn a_namespace_and_what_is_in_it_really_go() {
    let client = shared().await.client().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "short-lived"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "short-lived");
    maps.create(&PostParams::default(), &config_map("rack", "24")).await.unwrap();
    namespaces.delete("short-lived", &DeleteParams::default()).await.unwrap();
    until("the namespace is gone", Duration::from_mins(1), async || namespaces.get_opt("short-lived").await.unwrap().is_none()).await;
}

#[tokio::test]
async fn a_lab_that_somebody_holds_can_be_taken_down_by_another() {
    let lab = Lab::up(Options::new(Level::Api)).await.unwrap();
    let directory = lab.directory().clone();
    // Who holds it does not hear of it; in less than the time after which `lab down` takes sterner measures.
    let ended = tokio::time::timeout(Duration::from_secs(45), lab::background::down(&directory)).await;
    assert!(ended.expect("an end").unwrap());
    assert!(!directory.path().exists() && !directory.is_owned());
    let next = Lab::up(Options { name: directory.name().clone(), ..Options::new(Level::Api) }).await.unwrap();
    lab.down().await;
    assert!(next.client().await.unwrap().apiserver_version().await.is_ok(), "who has lost a lab takes the next of its name down");
}

#[tokio::test]
async fn etcd_answers_nobody_but_who_has_the_labs_certificate() {
    let lab = shared().await;
    let etcd = lab.control().status().await.unwrap().components.into_iter().find(|component| component.name == "etcd").unwrap();
    let ask = async |certificate: Option<&str>| {
        let mut config = Config::new(etcd.address.parse().unwrap());
        config.accept_invalid_certs = true;
        let file =
            |end: &str| certificate.map(|name| lab.directory().path().join(format!("certificates/{name}.{end}")).display().to_string());
        (config.auth_info.client_certificate, config.auth_info.client_key) = (file("crt"), file("key"));
        let request = http::Request::get("/version").body(Vec::new()).unwrap();
        Client::try_from(config).unwrap().request_text(request).await
    };
    assert!(ask(Some("etcd-client")).await.unwrap().contains("etcdserver"));
    for stranger in [None, Some("kubelet-client")] {
        assert!(ask(stranger).await.is_err(), "{stranger:?} was let in");
    }
}

#[tokio::test]
async fn an_added_api_server_has_objects_of_its_own() {
    let lab = shared().await;
    let kubeconfig = Kubeconfig::read_from(lab.control().add_api_server("tenant").await.unwrap()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let theirs: Api<ConfigMap> = Api::namespaced(Client::try_from(config).unwrap(), "default");
    let ours: Api<ConfigMap> = Api::namespaced(lab.client().await.unwrap(), "default");
    theirs.create(&PostParams::default(), &config_map("only-there", "3")).await.unwrap();
    assert!(ours.get_opt("only-there").await.unwrap().is_none());
    assert_eq!(theirs.get("only-there").await.unwrap().data.unwrap()["machines"], "3");
}

#[tokio::test]
async fn labs_side_by_side_do_not_meet_and_leave_nothing() {
    let (first, second) = tokio::join!(Lab::up(Options::new(Level::Api)), Lab::up(Options::new(Level::Api)));
    let (first, second) = (first.unwrap(), second.unwrap());
    let maps = async |lab: &Lab| -> Api<ConfigMap> { Api::namespaced(lab.client().await.unwrap(), "default") };
    maps(&first).await.create(&PostParams::default(), &config_map("mine", "1")).await.unwrap();
    assert!(maps(&second).await.get_opt("mine").await.unwrap().is_none());
    let directories = [first.directory().path(), second.directory().path()];
    tokio::join!(first.down(), second.down());
    for directory in directories {
        assert!(!directory.exists(), "{} was left behind", directory.display());
    }
}

#[tokio::test]
async fn a_component_that_dies_is_shown_and_started_again() {
    let lab = Lab::up(Options::new(Level::Api)).await.unwrap();
    let status = async || {
        let components = lab.control().status().await.unwrap().components;
        components.into_iter().find(|component| component.name == "kube-apiserver").unwrap()
    };
    let before = status().await;
    assert_eq!((before.state, before.restarts), (ComponentState::Running, 0));
    let process = before.process_id.unwrap();
    assert!(std::process::Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
    until("it was started again", Duration::from_mins(1), async || {
        let now = status().await;
        now.restarts == 1 && now.process_id.is_some_and(|now| now != process) && now.last_exit.as_deref() == Some("signal 9")
    })
    .await;
    let maps: Api<ConfigMap> = Api::namespaced(lab.client().await.unwrap(), "default");
    until("it answers again", Duration::from_mins(1), async || maps.get_opt("any").await.is_ok()).await;
    lab.down().await;
}

#[tokio::test]
async fn a_component_that_hangs_is_shown_and_well_again_when_it_answers() {
    let lab = Lab::up(Options::new(Level::Api)).await.unwrap();
    let status = async |name: &str| {
        let components = lab.control().status().await.unwrap().components;
        components.into_iter().find(|component| component.name == name).unwrap()
    };
    let before = status("kube-apiserver").await;
    let signal = |signal: &str| {
        let process = before.process_id.unwrap().to_string();
        assert!(std::process::Command::new("kill").args([signal, &process]).status().unwrap().success());
    };
    signal("-STOP");
    until("it is known to hang", Duration::from_mins(2), async || status("kube-apiserver").await.state == ComponentState::Unhealthy).await;
    let shown = serde_json::to_value(status("kube-apiserver").await).unwrap();
    assert_eq!((&shown["state"], &shown["process_id"]), (&json!("unhealthy"), &json!(before.process_id)), "{shown}");
    assert!(shown["trouble"]["failed_looks"].as_u64() >= Some(3), "{shown}");
    assert!(shown["trouble"]["words"].as_str().is_some_and(|words| words.contains("no answer within")), "{shown}");
    assert_eq!(status("etcd").await.state, ComponentState::Running);
    signal("-CONT");
    until("it is well again", Duration::from_mins(1), async || status("kube-apiserver").await.state == ComponentState::Running).await;
    let after = status("kube-apiserver").await;
    assert_eq!((after.process_id, after.restarts, after.trouble), (before.process_id, 0, None), "it went on, and nobody has ended it");
    lab.down().await;
}

#[tokio::test]
async fn a_second_lab_of_the_same_name_is_refused() {
    let lab = shared().await;
    let again = Options { name: lab.directory().name().clone(), ..Options::new(Level::Api) };
    match Lab::up(again).await {
        Err(LabError::AlreadyUp { name }) => assert_eq!(name, lab.directory().name().to_string()),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("two labs have one name"),
    }
}

#[tokio::test]
async fn a_program_that_is_no_program_is_named_and_nothing_stays() {
    let programs = tempfile::tempdir().unwrap();
    // Another user may run this test on the same files.
    fs::set_permissions(programs.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let broken = programs.path().join("etcd");
    fs::write(&broken, "#!/bin/sh\necho etcd is broken on purpose >&2\nexit 3\n").unwrap();
    fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let options = Options { programs: Some(programs.path().to_owned()), ..Options::new(Level::Api) };
    let directory = LabDirectory::of(&options.name).path();
    let error = Lab::up(options).await.err().expect("a broken etcd cannot start").to_string();
    assert!(error.contains("etcd"), "{error}");
    assert!(!directory.exists(), "{} was left behind", directory.display());
}
