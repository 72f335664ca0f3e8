//! Tables of the rules about MaasClusters. What they come to in the whole is tested in the manager, on an emulated MAAS.

mod endpoints;
mod given;
mod goes_before_its_machines;
mod membership;
mod orders;
mod others;
mod told;
mod vips_of_others;

use std::collections::BTreeSet;

use api::{MaasCluster, MaasMachine, cluster_api::Cluster, condition, names};
use jiff::Timestamp;
use serde_json::{Value, json};

use decisions::{
    Failure, FailureKind, Lookup,
    cluster::{ApiServer, Facts, LookAgain, Member, OrderState, Plan, Record, RecordAddress, Step, Zone, decide},
    machine::AccountFacts,
};

pub fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

pub fn object(change: Value) -> MaasCluster {
    let mut object = json!({"apiVersion": names::API_VERSION, "kind": "MaasCluster", "spec": {"dnsDomain": "maas"},
        "metadata": {"name": "one", "namespace": "rack", "generation": 3, "resourceVersion": "7", "finalizers": [names::FINALIZER_CLUSTER],
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "one", "uid": "u"}]}});
    merge(&mut object, change);
    serde_json::from_value(object).unwrap()
}

pub fn cluster(change: Value) -> Cluster {
    let mut object = json!({"metadata": {"name": "one", "namespace": "rack", "uid": "u"}});
    merge(&mut object, change);
    serde_json::from_value(object).unwrap()
}

pub fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, from) => *into = from,
    }
}

/// A cluster of which nothing is made yet, and a MAAS that answers.
pub fn facts() -> Facts {
    let zone = |name: &str, has_machines| Zone { name: name.to_owned(), has_machines };
    Facts {
        object: object(json!({})),
        cluster: Some(cluster(json!({}))),
        machines: Vec::new(),
        preferred_subnets: Lookup::Missing,
        account: Ok(AccountFacts { host: "maas.test".to_owned(), user: "us".to_owned(), administrator: true }),
        zones: Lookup::Found(vec![zone("b", true), zone("a", true), zone("empty", false)]),
        records: Lookup::Found(Vec::new()),
        interfaces: Lookup::Missing,
        reservations: None,
        reservations_as_of: None,
        free: None,
        machines_are_confirmed: false,
        held_by_others: Vec::new(),
        others_are_confirmed: false,
        api_server: ApiServer::NotYet,
        shown: None,
        order: OrderState::Found,
        order_seen_at: None,
        hold_until: None,
        failed: None,
    }
}

/// The same with a name on record.
pub fn named(intent: Value) -> Facts {
    let mut text = json!({"object": "rack/one", "maas": "maas.test", "name": "one-1.maas"});
    merge(&mut text, intent);
    let endpoint = json!({"host": "one-1.maas", "port": 6443});
    let change = json!({"metadata": {"annotations": {names::ENDPOINT: text.to_string()}}, "spec": {"controlPlaneEndpoint": endpoint}});
    Facts { object: object(change), ..facts() }
}

pub fn record(id: i64, addresses: &[(&str, bool)]) -> Record {
    let address = |(ip, ours): &(&str, bool)| RecordAddress { ip: ip.parse().unwrap(), is_our_reservation: *ours };
    Record { id, time_to_live: Some(10), addresses: addresses.iter().map(address).collect() }
}

pub fn member(name: &str, change: Value) -> Member {
    let mut machine = json!({"apiVersion": names::API_VERSION, "kind": "MaasMachine",
        "metadata": {"name": name, "namespace": "rack", "labels": {names::CONTROL_PLANE: "", names::CLUSTER_NAME: "one"}},
        "spec": {"minCPU": 1, "minMemory": 1024, "image": "ubuntu/jammy", "systemID": name},
        "status": {"ready": true, "phase": "Deployed", "machineState": "Deployed", "addresses": [{"type": "ExternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "MachineDeployed", "status": "True", "reason": "MachineDeployed", "message": "", "lastTransitionTime": "2026-11-16T00:00:00Z"}]}});
    merge(&mut machine, change);
    let object: MaasMachine = serde_json::from_value(machine).unwrap();
    Member { object, joined: false }
}

/// A machine that is not of the control plane.
pub fn worker(name: &str) -> Member {
    let mut worker = member(name, json!({}));
    worker.object.metadata.labels.as_mut().unwrap().remove(names::CONTROL_PLANE);
    worker
}

pub fn shown(plan: &Plan, kind: &str) -> String {
    let status = plan.status.as_ref().unwrap();
    let found = condition::find(&status.conditions, kind).unwrap();
    // What Ready and the conditions of Cluster API itself say beside that is not ours to explain.
    let is_known =
        [decisions::cluster::REASONS, decisions::cluster::SHARED_REASONS].concat().iter().any(|known| known.name == found.reason);
    assert!(
        is_known || matches!(kind, "Ready" | "Paused" | "Deleting"),
        "docs/troubleshooting.md does not say what {} means",
        found.reason
    );
    format!("{}/{}", found.status, found.reason)
}

pub fn is_provisioned(plan: &Plan) -> bool {
    plan.status.as_ref().unwrap().initialization.as_ref().and_then(|reached| reached.provisioned).unwrap_or_default()
}

#[test]
fn row_30_reasons_are_words_that_kubernetes_takes_and_each_is_there_once() {
    let names: Vec<&str> = decisions::cluster::REASONS.iter().map(|reason| reason.name).collect();
    assert!(names.iter().all(|name| condition::is_reason(name)));
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    for reason in decisions::cluster::REASONS {
        assert!(reason.meaning.ends_with('.') && reason.remedy.ends_with('.'), "{}", reason.name);
        let also = decisions::machine::Reason::ALL.iter().find(|other| other.name == reason.name);
        assert_eq!(also, None, "one word means one thing");
    }
}

#[test]
fn a_cluster_that_is_to_host_virtual_machines_says_that_this_is_not_there_yet_and_goes_on() {
    let plan = decide(&Facts { object: object(json!({"spec": {"lxdConfig": {"enabled": true}}})), ..facts() }, now());
    assert_eq!(shown(&plan, "LXDReady"), "False/LXDNotSupported");
    assert!(plan.step.is_some(), "its machines are metal like all others");
    let plan = decide(&facts(), now());
    assert!(condition::find(&plan.status.as_ref().unwrap().conditions, "LXDReady").is_none());
}

#[test]
fn an_event_has_the_reason_and_the_words_of_the_condition_that_is_new() {
    let failure = Failure { kind: FailureKind::Unauthenticated, words: "MAAS refused the key".to_owned() };
    let plan = decide(&Facts { account: Err(failure), ..facts() }, now());
    let shown = condition::find(&plan.status.as_ref().unwrap().conditions, "MaasAvailable").unwrap();
    let told = plan.notes.iter().find(|note| note.reason == shown.reason).unwrap();
    assert_eq!((told.warning, &told.message, told.reason.as_str()), (true, &shown.message, "MaasKeyRefused"));
}

#[test]
fn nothing_is_written_to_what_is_not_ours() {
    let foreign = [
        Facts { cluster: None, ..facts() },
        Facts { object: object(json!({"metadata": {"annotations": {names::MANAGED_BY: ""}}})), ..facts() },
        Facts { object: object(json!({"metadata": {"labels": {names::MANAGED_BY: "x"}}})), ..facts() },
    ];
    for facts in foreign {
        let plan = decide(&facts, now());
        assert_eq!((plan.step, plan.status), (None, None));
        assert!(!facts.concerns_maas());
    }
}

#[test]
fn row_29_every_condition_is_there_from_the_first_pass_on() {
    let plan = decide(&facts(), now());
    for kind in ["Ready", "LoadBalancerReady", "APIServerAvailable", "FailureDomainsReady", "MaasAvailable", "Paused", "Deleting"] {
        let status = plan.status.as_ref().unwrap();
        let found = condition::find(&status.conditions, kind).unwrap_or_else(|| panic!("{kind} is missing"));
        assert_eq!(found.observed_generation, Some(3), "{kind}");
    }
}

#[test]
fn row_29_an_object_first_seen_while_it_is_paused_has_ready_too_and_a_pause_changes_nothing_else() {
    let pause = |facts: &Facts| Facts { cluster: Some(cluster(json!({"spec": {"paused": true}}))), ..facts.clone() };
    let kinds = |plan: &Plan| plan.status.as_ref().unwrap().conditions.iter().map(|found| found.type_.clone()).collect::<BTreeSet<_>>();
    for facts in [facts(), going(facts())] {
        let plan = decide(&pause(&facts), now());
        assert_eq!((shown(&plan, "Ready"), shown(&plan, "Paused")), ("Unknown/NotYetKnown".to_owned(), "True/Paused".to_owned()));
        assert_eq!(kinds(&plan), ["Paused", "Ready"].map(str::to_owned).into());
    }
    let mut before = facts();
    before.object.status = decide(&before, now()).status;
    let mut after = decide(&pause(&before), now() + std::time::Duration::from_secs(9)).status.unwrap();
    let is_pause = |found: &condition::Condition| found.type_ == "Paused";
    after.conditions.retain(|found| !is_pause(found));
    let mut before = before.object.status.unwrap();
    before.conditions.retain(|found| !is_pause(found));
    assert_eq!(after, before);
}

#[test]
fn the_first_step_is_the_finalizer_and_the_go_providers_alone_is_not_enough() {
    for finalizers in [json!([]), json!([names::LEGACY_CLUSTER_FINALIZER])] {
        let facts = Facts { object: object(json!({"metadata": {"finalizers": finalizers}})), ..facts() };
        assert_eq!(decide(&facts, now()).step, Some(Step::AddFinalizer));
    }
}

#[test]
fn what_was_reached_once_stays_reached_whatever_happens() {
    let mut facts = named(json!({}));
    facts.object.status = Some(serde_json::from_value(json!({"ready": true, "initialization": {"provisioned": true}})).unwrap());
    for kind in [FailureKind::Unavailable, FailureKind::Unauthenticated, FailureKind::NotMaas, FailureKind::NoAccess] {
        let plan = decide(&Facts { account: Err(Failure { kind, words: "no".to_owned() }), ..facts.clone() }, now());
        assert!(is_provisioned(&plan) && plan.status.unwrap().ready, "{kind:?}");
    }
}

#[test]
fn another_maas_is_not_believed() {
    let plan = decide(&named(json!({"maas": "other.test"})), now());
    assert_eq!((plan.step.clone(), plan.look_again), (None, LookAgain::AfterBackoff));
    assert_eq!(shown(&plan, "MaasAvailable"), "False/OtherMaas");
    assert_eq!(decide(&going(named(json!({"maas": "other.test"}))), now()).step, None, "nor when it goes");
}

/// The same cluster when it is deleted, and Kubernetes itself said that its machines are these.
pub fn going(mut facts: Facts) -> Facts {
    merge_object(&mut facts, json!({"metadata": {"deletionTimestamp": "2026-11-16T00:00:00Z"}}));
    Facts { machines_are_confirmed: true, ..facts }
}

pub fn merge_object(facts: &mut Facts, change: Value) {
    let mut object = serde_json::to_value(&facts.object).unwrap();
    merge(&mut object, change);
    facts.object = serde_json::from_value(object).unwrap();
}
