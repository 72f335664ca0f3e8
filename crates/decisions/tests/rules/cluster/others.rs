//! Names that other clusters have. Addresses are in `vips_of_others`.

use super::*;
use decisions::cluster::{HeldByOther, Hold};

fn names_of(change: Value) -> Vec<HeldByOther> {
    let mut other = json!({"metadata": {"name": "two", "namespace": "other", "creationTimestamp": "2026-11-16T00:00:00Z"}});
    merge(&mut other, change);
    HeldByOther::of(&object(other))
}

fn recorded(maas: &str) -> Value {
    let text = json!({"object": "other/two", "maas": maas, "name": "api.maas"}).to_string();
    json!({"metadata": {"annotations": {names::ENDPOINT: text}}})
}

fn with_host(change: Value) -> Value {
    let mut all = json!({"spec": {"controlPlaneEndpoint": {"host": "API.maas.", "port": 6443}}});
    merge(&mut all, change);
    all
}

/// What comes of asking for `api.maas`, by an object that is older or younger than that of the others.
fn asked_for(held_by_others: &[HeldByOther], created: &str, records: &[Record]) -> Plan {
    let change = json!({"metadata": {"creationTimestamp": created}, "spec": {"controlPlaneEndpoint": {"host": "api.maas", "port": 6443}}});
    let facts =
        Facts { object: object(change), held_by_others: held_by_others.to_vec(), records: Lookup::Found(records.to_vec()), ..facts() };
    decide(&facts, now())
}

const OLDER: &str = "2026-11-15T00:00:00Z";
const YOUNGER: &str = "2026-11-17T00:00:00Z";

#[test]
fn a_name_that_another_cluster_has_is_refused_by_its_name_and_nothing_is_done() {
    let unreadable = json!({"metadata": {"annotations": {names::ENDPOINT: "{"}}});
    let custom = json!({"metadata": {"annotations": {names::CUSTOM_ENDPOINT: ""}}});
    let copied = json!({"metadata": {"annotations": {names::ENDPOINT: json!({"object": "rack/three", "name": "api.maas"}).to_string()}}});
    let rows = [
        // what the other is like, whether it is refused to an older one, whether to a younger one
        (recorded("maas.test"), true, true),
        (recorded("other.test"), false, false),
        (with_host(recorded("other.test")), false, false),
        (with_host(json!({})), false, true),
        (with_host(custom), true, true),
        (with_host(unreadable), true, true),
        (with_host(json!({"status": {"ready": true, "initialization": {"provisioned": true}}})), true, true),
        (with_host(copied.clone()), false, true),
        (copied, false, false),
        (json!({"spec": {"controlPlaneEndpoint": {"host": "another.maas"}}}), false, false),
    ];
    for (number, (other, to_older, to_younger)) in rows.into_iter().enumerate() {
        let others = names_of(other);
        for (created, refused) in [(OLDER, to_older), (YOUNGER, to_younger)] {
            for records in [vec![], vec![record(1, &[("10.0.0.1", false)])]] {
                let plan = asked_for(&others, created, &records);
                assert_eq!(plan.step.is_none(), refused, "row {number}, {created}, {records:?}: {:?}", plan.step);
                if refused {
                    let status = plan.status.as_ref().unwrap();
                    let message = &condition::find(&status.conditions, "LoadBalancerReady").unwrap().message;
                    assert_eq!(shown(&plan, "LoadBalancerReady"), "False/DNSNameTaken", "row {number}");
                    assert!(message.contains("api.maas is that of the MaasCluster other/two"), "{message}");
                }
            }
        }
    }
}

#[test]
fn a_name_on_record_is_kept_whoever_else_asks_for_it() {
    let held_by_others = vec![HeldByOther {
        object: "other/two".to_owned(),
        what: "one-1.maas".to_owned(),
        maas: Some("maas.test".to_owned()),
        hold: Hold::Has,
        since: None,
        ordered: None,
        goes: false,
    }];
    let facts = Facts { held_by_others, records: Lookup::Found(vec![record(1, &[])]), ..named(json!({})) };
    assert_eq!(shown(&decide(&facts, now()), "LoadBalancerReady"), "True/LoadBalancerReady");
}

#[test]
fn what_the_go_provider_left_is_not_removed_while_another_cluster_has_its_name() {
    let left = json!({"metadata": {"finalizers": [names::LEGACY_CLUSTER_FINALIZER]}, "spec": {"controlPlaneEndpoint": {"host": "api.maas", "port": 1}}});
    let left = Facts { object: object(left), records: Lookup::Found(vec![record(1, &[])]), ..facts() };
    assert!(matches!(decide(&going(left.clone()), now()).step, Some(Step::Settle(_))));
    let left = Facts { held_by_others: names_of(recorded("maas.test")), ..left };
    assert_eq!(decide(&going(left), now()).step, Some(Step::RemoveFinalizer));
}
