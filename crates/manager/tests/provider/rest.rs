//! Many machines that are ready cost nothing: no write to the API server, and of MAAS only what is new in its event log.
//!
//! The usual run has a few machines and a short while; `METALSHIFT_MACHINES=500 METALSHIFT_QUIET_SECONDS=600` is the long one.

use crate::{
    audit::writes_in,
    rack::{DEADLINE, Rack, condition},
};
use kube::ResourceExt as _;
use maas_emulator::{
    Fault,
    faults::{Happening, Incident},
};
use serde_json::json;
use std::{fmt::Write as _, time::Duration};
use tokio::time::{Instant, sleep};

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// The calls to MAAS since there were so many.
fn calls_since(rack: &Rack, before: u64) -> Vec<String> {
    rack.emulator.journal(|journal| {
        let made = usize::try_from(journal.total() - before).unwrap();
        journal.entries().rev().take(made).map(|entry| entry.uri.clone()).collect()
    })
}

fn is_poll(uri: &str) -> bool {
    uri.contains("events/")
}

/// Waits until MAAS was asked so many times what is new: whoever is awake has had as many occasions to do something.
async fn polled(rack: &Rack, times: u64) {
    let (began, before) = (Instant::now(), rack.emulator.journal(|journal| journal.total()));
    loop {
        let polls = calls_since(rack, before).iter().filter(|uri| is_poll(uri)).count();
        if u64::try_from(polls).unwrap() >= times {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60 + 3 * times), "MAAS was asked {polls} times of {times} what is new");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until nobody writes anything and MAAS is asked only what is new.
async fn settled(rack: &Rack) {
    let began = Instant::now();
    loop {
        let (before, calls) = (writes_in("rest-many"), rack.emulator.journal(|journal| journal.total()));
        polled(rack, 3).await;
        let only_polls = calls_since(rack, calls).iter().all(|uri| is_poll(uri));
        if only_polls && writes_in("rest-many") == before {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "it did not come to rest");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_machines_at_rest_cost_nothing_and_a_change_of_one_is_seen_at_once() {
    let machines = setting("METALSHIFT_MACHINES", 12);
    let quiet = setting("METALSHIFT_QUIET_SECONDS", 12);
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
    settled(&rack).await;
    let (before, calls, began) = (writes_in("rest-many"), rack.emulator.journal(|journal| journal.total()), Instant::now());
    // Once a second.
    polled(&rack, quiet).await;
    assert_eq!(writes_in("rest-many"), before, "nobody wrote anything");
    let (recent, took) = (calls_since(&rack, calls), began.elapsed().as_secs());
    // Beside the poll one list of our machines in ten minutes, which finds what no event tells.
    let lists = recent.iter().filter(|uri| uri.contains("machines/?owner=")).count();
    assert!(u64::try_from(lists).unwrap() <= took / 600 + 1, "{lists} lists of all our machines");
    assert!(recent.iter().all(|uri| is_poll(uri) || uri.contains("machines/?owner=")), "{recent:?}");
    assert!(u64::try_from(recent.len()).unwrap() <= took + 3, "{} calls in {took} s", recent.len());

    // Only this one is looked at: a list of all of them takes longer than what is waited for.
    let list = rack.maas_machines().list(&kube::api::ListParams::default()).await.unwrap();
    let hostname = |machine: &api::MaasMachine| machine.status.as_ref().and_then(|status| status.hostname.clone());
    let object = list.items.iter().find(|machine| hostname(machine).as_deref() == Some("m-03")).unwrap().name_any();
    let began = Instant::now();
    rack.emulator.inject(Fault::Incident(Incident { after_seconds: 0.0, machine: "m-03".to_owned(), what: Happening::Released })).unwrap();
    loop {
        let now = serde_json::to_value(rack.maas_machines().get(&object).await.unwrap()).unwrap();
        if condition(&now, "Ready")["status"] == "False" {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "nobody noticed");
        sleep(Duration::from_millis(20)).await;
    }
    eprintln!("a change of one machine was seen after {:?}", began.elapsed());
    rack.finish().await;
}
