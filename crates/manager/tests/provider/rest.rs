//! Many machines that are ready cost nothing: no write to the API server, and of MAAS only what is new in its event log.
//!
//! The usual run has a few machines and a short while; `METALSHIFT_MACHINES=500 METALSHIFT_QUIET_SECONDS=600` is the long one.

use crate::rack::{Rack, condition, lab};
use maas_emulator::{
    Fault,
    faults::{Happening, Incident},
};
use serde_json::{Value, json};
use std::{fmt::Write as _, time::Duration};
use tokio::time::{Instant, sleep};

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// The provider's writes in a namespace so far.
async fn writes(namespace: &str) -> usize {
    let text = std::fs::read_to_string(lab().await.directory().audit_log()).unwrap();
    let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ours = entries.filter(|entry| {
        entry["objectRef"]["namespace"] == namespace && entry["userAgent"].as_str().is_none_or(|agent| !agent.contains("cluster-api"))
    });
    ours.filter(|entry| {
        entry["requestURI"].as_str().is_some_and(|uri| uri.contains("fieldManager=metalshift"))
            || entry["objectRef"]["resource"] == "events"
    })
    .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_machines_at_rest_cost_nothing_and_a_change_of_one_is_seen_at_once() {
    let machines = setting("METALSHIFT_MACHINES", 12);
    let quiet = Duration::from_secs(setting("METALSHIFT_QUIET_SECONDS", 12));
    let mut fleet = String::from(
        "timings: {deploy: [0.2, 0.4], power_on: [0, 0.1], power_off: [0, 0.1]}\nsubnets: [{name: all, cidr: 10.0.0.0/16, gateway: 10.0.0.1}]\n",
    );
    writeln!(fleet, "machines: [{{hostname: m-, count: {machines}, cpus: 4, memory: 8192}}]").unwrap();
    let mut rack = Rack::without_provider("rest-many", &fleet).await;
    rack.sweep_period = Duration::from_mins(10);
    let rack = rack.with_provider();
    rack.create(json!({"apiVersion": api::names::API_VERSION, "kind": "MaasMachineTemplate", "metadata": {"name": "t"},
        "spec": {"template": {"spec": {"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy"}}}}))
        .await;
    rack.create(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": {"name": "md"},
        "spec": {"clusterName": "c1", "replicas": machines, "selector": {"matchLabels": {"pool": "a"}},
            "template": {"metadata": {"labels": {"pool": "a"}}, "spec": {"clusterName": "c1", "version": "v1.35.0",
                "bootstrap": {"dataSecretName": "boot"},
                "infrastructureRef": {"apiGroup": api::names::GROUP, "kind": "MaasMachineTemplate", "name": "t"}}}}}))
        .await;
    let began = Instant::now();
    loop {
        let list = rack.maas_machines().list(&kube::api::ListParams::default()).await.unwrap();
        let ready = list
            .items
            .iter()
            .filter(|machine| machine.status.as_ref().is_some_and(|status| api::condition::is_true(&status.conditions, "Ready")));
        let ready = u64::try_from(ready.count()).unwrap();
        if ready == machines {
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(15), "only {ready} of {machines} are ready");
        sleep(Duration::from_millis(500)).await;
    }
    eprintln!("{machines} machines ready after {:?}, {} calls to MAAS", began.elapsed(), rack.emulator.journal(|journal| journal.total()));
    sleep(Duration::from_secs(5)).await;
    let (before, calls) = (writes("rest-many").await, rack.emulator.journal(|journal| journal.total()));
    sleep(quiet).await;
    assert_eq!(writes("rest-many").await, before, "nobody wrote anything");
    let made = rack.emulator.journal(|journal| journal.total()) - calls;
    let recent: Vec<String> = rack
        .emulator
        .journal(|journal| journal.entries().rev().take(usize::try_from(made).unwrap()).map(|entry| entry.uri.clone()).collect());
    // Beside the poll one list of our machines in ten minutes, which finds what no event tells.
    let lists = recent.iter().filter(|uri| uri.contains("machines/?owner=")).count();
    assert!(u64::try_from(lists).unwrap() <= quiet.as_secs() / 600 + 1, "{lists} lists of all our machines");
    assert!(recent.iter().all(|uri| uri.contains("events/") || uri.contains("machines/?owner=")), "{recent:?}");
    assert!(made <= quiet.as_secs() + 2, "{made} calls in {quiet:?}");

    let began = Instant::now();
    rack.emulator.inject(Fault::Incident(Incident { after_seconds: 0.0, machine: "m-03".to_owned(), what: Happening::Released })).unwrap();
    loop {
        let list = rack.maas_machines().list(&kube::api::ListParams::default()).await.unwrap();
        let objects = list.items.iter().map(|object| serde_json::to_value(object).unwrap());
        if objects.into_iter().any(|object| condition(&object, "Ready")["status"] == "False") {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "nobody noticed");
        sleep(Duration::from_millis(20)).await;
    }
    eprintln!("a change of one machine was seen after {:?}", began.elapsed());
    rack.finish().await;
}
