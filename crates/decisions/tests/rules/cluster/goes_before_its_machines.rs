//! A cluster that was deleted by hand while it has machines: they leave its record before they are released, as always.

use super::*;
use api::EndpointOrderKind as Kind;

fn machine(name: &str, address: &str, goes: bool) -> Member {
    let mut member = member(name, json!({"status": {"addresses": [{"type": "ExternalIP", "address": address}]}}));
    member.object.metadata.deletion_timestamp = goes.then(|| k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    member
}

/// A cluster that goes, whose name leads to `a` and `b`.
fn with_machines(machines: Vec<Member>) -> Facts {
    let mut facts = named(json!({}));
    facts.object.status = Some(
        serde_json::from_value(json!({"ready": true, "network": {"dnsName": "one-1.maas", "addresses": ["10.0.0.1", "10.0.0.2"]}}))
            .unwrap(),
    );
    let records = Lookup::Found(vec![record(1, &[("10.0.0.1", false), ("10.0.0.2", false)])]);
    going(Facts { records, machines, ..facts })
}

fn addresses(plan: &Plan) -> Vec<String> {
    plan.status.as_ref().unwrap().network.as_ref().unwrap().addresses.clone()
}

fn written(facts: &Facts) -> Option<Kind> {
    match decide(facts, now()).step {
        Some(Step::Intend(intent)) => intent.order.map(|order| order.what),
        _ => None,
    }
}

#[test]
fn a_machine_that_goes_leaves_the_record_and_waits_until_it_has() {
    let facts = with_machines(vec![machine("a", "10.0.0.1", true), machine("b", "10.0.0.2", false)]);
    assert!(facts.concerns_maas());
    assert_eq!(written(&facts), Some(Kind::Write(vec!["10.0.0.2".parse().unwrap()])));
    let plan = decide(&facts, now());
    assert_eq!(addresses(&plan), ["10.0.0.1", "10.0.0.2"], "it is still there");
    assert_eq!(shown(&plan, "Deleting"), "True/WaitingForMachines");
    let last = with_machines(vec![machine("a", "10.0.0.1", true), machine("b", "10.0.0.2", true)]);
    assert_eq!(written(&last), Some(Kind::Write(Vec::new())));
}

#[test]
fn machines_that_stay_keep_their_place_in_the_record() {
    let plan = decide(&with_machines(vec![machine("a", "10.0.0.1", false), machine("b", "10.0.0.2", false)]), now());
    assert_eq!((plan.step.clone(), addresses(&plan).len()), (None, 2));
    assert!(matches!(plan.look_again, LookAgain::After(_)));
}

#[test]
fn no_machine_waits_for_a_record_that_nobody_can_write() {
    let facts = || with_machines(vec![machine("a", "10.0.0.1", true)]);
    let without_rights = AccountFacts { host: "maas.test".to_owned(), user: "us".to_owned(), administrator: false };
    let elsewhere = AccountFacts { host: "other.test".to_owned(), user: "us".to_owned(), administrator: true };
    let mut unreadable = facts();
    merge_object(&mut unreadable, json!({"metadata": {"annotations": {names::ENDPOINT: "{"}}}));
    let rows = [
        Facts { account: Ok(without_rights), ..facts() },
        Facts { account: Ok(elsewhere), ..facts() },
        Facts { records: Lookup::Found(Vec::new()), ..facts() },
        Facts { records: Lookup::Missing, ..facts() },
        Facts { records: Lookup::Forbidden, ..facts() },
        unreadable,
    ];
    for (number, facts) in rows.into_iter().enumerate() {
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), addresses(&plan)), (None, vec![]), "row {number}");
        assert_eq!(shown(&plan, "Deleting"), "True/WaitingForMachines", "row {number}");
    }
}

#[test]
fn while_maas_is_away_nothing_is_said_to_have_left_the_record() {
    let failure = || Failure { kind: FailureKind::Unavailable, words: "no".to_owned() };
    let facts = || with_machines(vec![machine("a", "10.0.0.1", true)]);
    for facts in [Facts { account: Err(failure()), ..facts() }, Facts { records: Lookup::Failed(failure()), ..facts() }] {
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), addresses(&plan).len()), (None, 2));
    }
}
