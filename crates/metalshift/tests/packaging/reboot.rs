//! The management node loses its power while a cluster is being made, at a bad moment: MAAS was asked for something and has not answered.

use std::path::Path;

use lab::MachineState;
use serde_json::{Value, json};

use crate::{
    management::{SOON, expect},
    site::Site,
    waiting::until,
};

/// The node with the provider's pod on it.
const NODE: &str = "management";
/// What a management cluster of one node loses with that node; the lab runs it beside the node, and starts it again.
const CONTROL_PLANE: [&str; 2] = ["etcd", "kube-apiserver"];

/// The cluster's name is asked for, the node goes, MAAS makes the name while nobody is there. When the node is back, the provider goes on
/// with that name and makes the rest.
pub async fn is_survived(site: &Site) {
    // MAAS hangs up and does the work later: the answer never comes, whoever waits for it. A second name of the same words would be
    // made without a murmur. (After an unanswered allocation a machine cannot be deleted for two minutes, which nobody needs to wait for.)
    let pattern = json!({"method": "POST", "path": "dnsresources/"});
    let late = json!({"call": {"matching": pattern, "times": 1, "harm": {"late_commit": {"seconds": 20}}}});
    site.emulator("faults", &["--data", &late.to_string()]).await;
    let before = times_asked_for_a_name(site).await;
    site.apply(include_str!("cluster.yaml")).await;
    until("MAAS is asked for a name", SOON, async || times_asked_for_a_name(site).await > before).await;

    site.lab.control().power_off(NODE, false).await.unwrap();
    kill_control_plane(site).await;
    until("MAAS has made a name", SOON, async || !site.left_in_maas().await.is_empty()).await;
    assert_eq!(site.left_in_maas().await.len(), 1, "and nothing else");
    let machines = site.lab.control().status().await.unwrap().machines;
    assert!(machines.iter().any(|machine| machine.name == NODE && machine.state == MachineState::Off), "the node came back by itself");

    site.lab.control().power_on(NODE, None).await.unwrap();
    site.until_is("maasmachine racks-0", ".status.initialization.provisioned", "true").await;
    let held = site.left_in_maas().await;
    assert!(held.len() == 2 && held.iter().any(|one| one.starts_with("machine ")), "one machine and one name, not {held:?}");
    assert_eq!(times_asked_for_a_name(site).await, before + 1);
}

async fn kill_control_plane(site: &Site) {
    let components = site.lab.control().status().await.unwrap().components;
    let processes = components.iter().filter(|component| CONTROL_PLANE.contains(&component.name.as_str()));
    let processes: Vec<String> = processes.filter_map(|component| component.process_id).map(|process| process.to_string()).collect();
    assert_eq!(processes.len(), CONTROL_PLANE.len());
    expect(site.inside(Path::new("kill")).await.arg("-KILL").args(&processes));
}

async fn times_asked_for_a_name(site: &Site) -> usize {
    let journal: Value = serde_json::from_str(&site.emulator("calls", &[]).await).unwrap();
    let asks = |call: &&Value| call["method"] == "POST" && call["uri"].as_str().unwrap().ends_with("/dnsresources/");
    journal["calls"].as_array().unwrap().iter().filter(asks).count()
}
