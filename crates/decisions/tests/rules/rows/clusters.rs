//! Rows about clusters.

use api::names;
use decisions::{
    Failure, FailureKind, Lookup,
    cluster::{Facts, Plan, Step, StepName},
};
use serde_json::{Value, json};

use super::{Check, REAL, Rules};
use crate::cluster::{cluster, facts, going, is_provisioned, merge_object, named, now, object, record, shown};

pub const CHECKS: [(u32, Check); 8] =
    [(7, row_07), (8, row_08), (9, row_09), (10, row_10), (12, row_12), (13, row_13), (15, row_15), (16, row_16)];

fn with_records(records: &[i64]) -> Facts {
    Facts { records: Lookup::Found(records.iter().map(|id| record(*id, &[])).collect()), ..named(json!({})) }
}

fn step(rules: &Rules, facts: &Facts) -> Option<StepName> {
    rules.cluster(facts, now()).step.map(|step| step.name())
}

#[test]
fn row_07_a_cluster_says_in_both_words_that_it_is_provisioned() {
    row_07(&REAL);
}

fn row_07(rules: &Rules) {
    let plan = rules.cluster(&with_records(&[1]), now());
    assert!(is_provisioned(&plan) && plan.status.unwrap().ready);
}

#[test]
fn row_08_it_is_provisioned_only_with_its_endpoint_its_record_and_its_zones() {
    row_08(&REAL);
}

fn row_08(rules: &Rules) {
    let failed = || Failure { kind: FailureKind::HalfDone, words: "no".to_owned() };
    let rows = [
        (facts(), false),
        (with_records(&[]), false),
        (with_records(&[1]), true),
        (Facts { zones: Lookup::Failed(failed()), ..with_records(&[1]) }, false),
        (Facts { records: Lookup::Failed(failed()), ..named(json!({})) }, false),
    ];
    for (number, (facts, expected)) in rows.into_iter().enumerate() {
        assert_eq!(is_provisioned(&rules.cluster(&facts, now())), expected, "row {number}");
    }
}

#[test]
fn row_09_an_endpoint_is_written_whole_with_the_port_that_was_asked_for() {
    row_09(&REAL);
}

fn row_09(rules: &Rules) {
    let ours = |host: &str| json!({"spec": {"controlPlaneEndpoint": {"host": host}}});
    let rows: [(Value, Value, (&str, u16)); 4] = [
        (ours("h.example"), json!({}), ("h.example", 6443)),
        (ours("h.example"), json!({"spec": {"clusterNetwork": {"apiServerPort": 8443}}}), ("h.example", 8443)),
        (json!({}), json!({"spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 9443}}}), ("10.0.0.1", 9443)),
        (json!({"spec": {"controlPlaneEndpoint": {"port": 443}}}), json!({"spec": {"controlPlaneEndpoint": {"host": "h"}}}), ("h", 443)),
    ];
    for (ours, theirs, (host, port)) in rows {
        let facts = Facts { object: object(ours), cluster: Some(cluster(theirs)), ..facts() };
        assert_eq!(rules.cluster(&facts, now()).step, Some(Step::WriteEndpoint { host: host.to_owned(), port }));
    }
    let mut unwritten = with_records(&[1]);
    merge_object(&mut unwritten, json!({"spec": {"controlPlaneEndpoint": null}}));
    let expected = Step::WriteEndpoint { host: "one-1.maas".to_owned(), port: 6443 };
    assert_eq!(rules.cluster(&unwritten, now()).step, Some(expected));
}

#[test]
fn row_10_a_hosted_cluster_invents_no_endpoint_and_waits_for_that_of_its_cluster() {
    row_10(&REAL);
}

fn row_10(rules: &Rules) {
    let hosted = Facts { object: object(json!({"spec": {"endpoint": {"mode": "Hosted"}}})), ..facts() };
    let plan = rules.cluster(&hosted, now());
    assert_eq!((plan.step.clone(), is_provisioned(&plan)), (None, false));
    assert_eq!(shown(&plan, "LoadBalancerReady"), "False/WaitForEndpoint");
    let given = cluster(json!({"spec": {"controlPlaneEndpoint": {"host": "h.example", "port": 443}}}));
    let plan = rules.cluster(&Facts { cluster: Some(given), ..hosted }, now());
    assert_eq!((plan.step.clone(), is_provisioned(&plan)), (None, true), "it is the Cluster's to write");
}

#[test]
fn row_12_zones_are_sorted_and_those_of_the_spec_are_checked() {
    row_12(&REAL);
}

fn row_12(rules: &Rules) {
    let names = |plan: &Plan| plan.status.as_ref().unwrap().failure_domains.names().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let rows: [(Value, &[&str], &str); 3] = [
        (json!([]), &["a", "b"], "True/FailureDomainsReady"),
        (json!(["b", "a"]), &["a", "b"], "True/FailureDomainsReady"),
        (json!(["a", "moon"]), &["a"], "False/ZoneNotFound"),
    ];
    for (wanted, expected, condition) in rows {
        let facts = Facts { object: object(json!({"spec": {"failureDomains": wanted}})), ..facts() };
        let plan = rules.cluster(&facts, now());
        assert_eq!(names(&plan), expected);
        assert_eq!(shown(&plan, "FailureDomainsReady"), condition);
        let unread = Facts { zones: Lookup::Outdated, ..facts };
        assert_eq!(names(&rules.cluster(&unread, now())), Vec::<String>::new(), "only what MAAS told");
    }
}

#[test]
fn row_13_a_cluster_nobody_owns_is_left_alone() {
    row_13(&REAL);
}

fn row_13(rules: &Rules) {
    let plan = rules.cluster(&Facts { cluster: None, ..facts() }, now());
    assert_eq!((plan.step, plan.status), (None, None));
}

#[test]
fn row_15_the_finalizer_of_a_cluster_comes_first() {
    row_15(&REAL);
}

fn row_15(rules: &Rules) {
    for finalizers in [json!([]), json!([names::LEGACY_CLUSTER_FINALIZER])] {
        let facts = Facts { object: object(json!({"metadata": {"finalizers": finalizers}})), ..facts() };
        assert_eq!(step(rules, &facts), Some(StepName::AddFinalizer), "that of the Go provider alone is not enough");
    }
}

#[test]
fn row_16_a_cluster_is_let_go_only_when_maas_shows_that_nothing_is_left() {
    row_16(&REAL);
}

fn row_16(rules: &Rules) {
    let down = || Failure { kind: FailureKind::Unavailable, words: "down".to_owned() };
    assert_eq!(step(rules, &going(with_records(&[1]))), Some(StepName::RemoveRecord));
    assert_eq!(step(rules, &going(Facts { account: Err(down()), ..named(json!({})) })), None);
    assert_eq!(step(rules, &going(Facts { records: Lookup::Failed(down()), ..named(json!({})) })), None);
    assert_eq!(step(rules, &going(with_records(&[]))), Some(StepName::RemoveFinalizer));
}
