//! What MAAS is told, in which order, and what is done about silence.

use std::time::Duration;

use super::*;
use decisions::cluster::{FailedStep, Reservation, StepName};

fn step(facts: &Facts) -> Option<StepName> {
    decide(facts, now()).step.map(|step| step.name())
}

fn ordered(seconds_ago: i64, what: &Value) -> Value {
    let since = now().checked_sub(jiff::SignedDuration::from_secs(seconds_ago)).unwrap();
    json!({"order": {"since": since, "what": what}})
}

#[test]
fn a_name_is_written_down_before_its_record_is_made() {
    let Some(Step::Intend(intent)) = decide(&facts(), now()).step else { panic!("not intended") };
    assert!(intent.name.is_some_and(|name| name.starts_with("one-")));
    assert_eq!((intent.maas.as_deref(), intent.order.unwrap().since), (Some("maas.test"), now()));
}

#[test]
fn an_order_is_sent_only_in_the_pass_that_wrote_it_and_soon() {
    let rows = [
        (OrderState::Written, 0, Some(StepName::CreateRecord)),
        (OrderState::Written, 25, Some(StepName::Settle)),
        (OrderState::Answered, 0, Some(StepName::Settle)),
        (OrderState::Unanswered, 0, None),
        (OrderState::Found, 0, None),
        (OrderState::Found, 119, None),
        (OrderState::Found, 121, Some(StepName::Settle)),
    ];
    for (order, ago, expected) in rows {
        let facts = Facts { order, ..named(ordered(ago, &json!("create"))) };
        assert_eq!(step(&facts), expected, "{order:?} after {ago} s");
    }
}

#[test]
fn an_order_nobody_answered_is_settled_as_soon_as_its_effect_is_seen() {
    let here = Reservation { ip: "10.0.0.9".parse().unwrap(), on_machine: false };
    let rows = [
        (json!("create"), vec![record(1, &[])], None, Some(StepName::Settle)),
        (json!({"write": ["10.0.0.1"]}), vec![record(1, &[("10.0.0.1", false)])], None, Some(StepName::Settle)),
        (json!({"write": ["10.0.0.1"]}), vec![record(1, &[("10.0.0.2", false)])], None, None),
        (json!({"free": "10.0.0.9"}), vec![record(1, &[])], None, Some(StepName::ListReservations)),
        (json!({"free": "10.0.0.9"}), vec![record(1, &[])], Some(vec![here.clone()]), None),
        (json!({"free": "10.0.0.9"}), vec![record(1, &[])], Some(vec![]), Some(StepName::Settle)),
        (json!({"reserve": "10.0.0.9"}), vec![record(1, &[])], Some(vec![here]), Some(StepName::Settle)),
        (json!({"reserve": "10.0.0.9"}), vec![record(1, &[])], Some(vec![]), None),
    ];
    for (number, (what, records, reservations, expected)) in rows.into_iter().enumerate() {
        let facts = Facts { records: Lookup::Found(records), reservations, others_are_confirmed: true, ..named(ordered(10, &what)) };
        assert_eq!(step(&facts), expected, "row {number}");
    }
}

#[test]
fn what_maas_failed_at_a_moment_ago_is_not_ordered_again_yet() {
    let held = Facts { hold_until: Some(now() + Duration::from_secs(40)), ..facts() };
    let plan = decide(&held, now());
    assert_eq!((plan.step, plan.look_again), (None, LookAgain::After(Duration::from_secs(40))));
    assert_eq!(step(&Facts { hold_until: Some(now()), ..facts() }), Some(StepName::Intend));
}

#[test]
fn a_record_that_somebody_made_in_between_is_not_ours() {
    let mut refused = named(ordered(1, &json!("create")));
    merge_object(&mut refused, json!({"spec": {"controlPlaneEndpoint": null}}));
    let failure = Failure { kind: FailureKind::Refused, words: "Labels must be unique within their zone.".to_owned() };
    refused.failed = Some(FailedStep { step: StepName::CreateRecord, failure });
    refused.order = OrderState::Answered;
    let Some(Step::Settle(intent)) = decide(&refused, now()).step else { panic!("not settled") };
    assert_eq!((intent.name, intent.order), (None, None));
    merge_object(&mut refused, json!({"spec": {"controlPlaneEndpoint": {"host": "one-1.maas"}}}));
    let Some(Step::Settle(intent)) = decide(&refused, now()).step else { panic!("not settled") };
    assert_eq!((intent.name, intent.order), (None, None), "nor if exactly this name was asked for");
}

#[test]
fn s09_the_end_goes_from_the_record_over_the_addresses_to_the_finalizer() {
    let here = |ip: &str, on_machine| Reservation { ip: ip.parse().unwrap(), on_machine };
    let reserved = json!({"reserved": ["10.0.0.9"]});
    let rows = [
        (json!({}), vec![record(1, &[]), record(2, &[])], None, Some(StepName::RemoveRecord)),
        (json!({"given": true}), vec![record(1, &[])], None, Some(StepName::RemoveFinalizer)),
        (json!({"given": true}), vec![record(1, &[("10.0.0.1", false)])], None, Some(StepName::RemoveFinalizer)),
        (json!({"given": true, "added": ["10.0.0.1"]}), vec![record(1, &[("10.0.0.1", false)])], None, Some(StepName::Intend)),
        (json!({}), vec![], None, Some(StepName::RemoveFinalizer)),
        (reserved.clone(), vec![], None, Some(StepName::ListReservations)),
        (reserved.clone(), vec![], Some(vec![here("10.0.0.9", false)]), Some(StepName::Intend)),
        (reserved.clone(), vec![], Some(vec![here("10.0.0.9", true)]), Some(StepName::Settle)),
        (reserved, vec![], Some(vec![]), Some(StepName::Settle)),
        (json!({"address": "10.0.0.9", "name": null}), vec![], Some(vec![here("10.0.0.9", false)]), Some(StepName::Intend)),
        (json!({"address": "10.0.0.9", "name": null}), vec![], Some(vec![]), Some(StepName::RemoveFinalizer)),
        (ordered(10, &json!("create")), vec![], None, None),
        (ordered(10, &json!({"write": []})), vec![record(1, &[("10.0.0.1", false)])], None, Some(StepName::RemoveRecord)),
    ];
    for (number, (intent, records, reservations, expected)) in rows.into_iter().enumerate() {
        let facts = Facts { records: Lookup::Found(records), reservations, zones: Lookup::Outdated, ..named(intent) };
        let mut facts = going(facts);
        assert_eq!(step(&facts), expected, "row {number}");
        facts.machines_are_confirmed = false;
        assert_eq!(step(&facts), Some(StepName::ListMachines), "row {number} by a cache that may be behind");
        facts.machines = vec![worker("w")];
        let clears_up = |step| matches!(step, StepName::RemoveRecord | StepName::Settle | StepName::RemoveFinalizer);
        assert!(!step(&facts).is_some_and(clears_up), "row {number} with a machine: {:?}", step(&facts));
    }
}

#[test]
fn duplicates_go_and_the_lowest_stays() {
    let facts = Facts { records: Lookup::Found(vec![record(9, &[]), record(4, &[]), record(7, &[])]), ..named(json!({})) };
    assert_eq!(decide(&facts, now()).step, Some(Step::RemoveRecord { id: 9 }));
}

#[test]
fn an_address_that_was_a_persons_is_ours_once_we_reserved_it_and_not_when_somebody_else_has_it() {
    let here = Reservation { ip: "10.0.0.9".parse().unwrap(), on_machine: false };
    let refused = Failure { kind: FailureKind::NotFound, words: "The IP address 10.0.0.9 is already in use.".to_owned() };
    let refused = FailedStep { step: StepName::ReserveAddress, failure: refused };
    for (reservations, failed, given) in [(vec![here], None, false), (vec![], Some(refused), true)] {
        let mut intent = ordered(1, &json!({"reserve": "10.0.0.9"}));
        merge(&mut intent, json!({"address": "10.0.0.9", "addressGiven": true}));
        let mut facts = Facts { order: OrderState::Answered, reservations: Some(reservations), failed, ..named(intent) };
        let shown = json!({"ready": true, "initialization": {"provisioned": true}});
        merge_object(&mut facts, json!({"spec": {"controlPlaneEndpoint": {"host": "10.0.0.9"}}, "status": shown}));
        let Some(Step::Settle(intent)) = decide(&facts, now()).step else { panic!("{:?}", decide(&facts, now())) };
        assert_eq!((intent.address_given, intent.address.is_some()), (given, true));
    }
}

#[test]
fn an_order_written_by_another_clock_is_waited_for_since_it_was_seen() {
    // seconds since the order by its own time, seconds since it was seen, and whether it is waited for
    for (ago, seen, waits) in
        [(130, 130, false), (130, 119, true), (500, 1, true), (500, 121, false), (7_000, 1, false), (-600, 119, true), (-600, 121, false)]
    {
        let seen = now().checked_sub(jiff::SignedDuration::from_secs(seen)).unwrap();
        let plan = decide(&Facts { order_seen_at: Some(seen), ..named(ordered(ago, &json!("create"))) }, now());
        assert_eq!(plan.step.is_none(), waits, "{ago} s ago");
    }
}
