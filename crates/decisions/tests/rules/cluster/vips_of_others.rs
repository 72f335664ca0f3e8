//! An address that two clusters want: one of them gets it, and the other does nothing to it.

use super::*;
use decisions::cluster::{FailedStep, HeldByOther, Reservation, StepName};

const ADDRESS: &str = "10.0.0.9";
const OLDER: &str = "2026-11-15T00:00:00Z";
const YOUNGER: &str = "2026-11-17T00:00:00Z";

/// What another cluster that is like this holds. It is between [`OLDER`] and [`YOUNGER`].
fn other(change: Value) -> Vec<HeldByOther> {
    let mut other = json!({"metadata": {"name": "two", "namespace": "other", "creationTimestamp": "2026-11-16T00:00:00Z"}});
    merge(&mut other, change);
    HeldByOther::of(&object(other))
}

fn recorded(change: Value) -> Value {
    let mut intent = json!({"object": "other/two", "maas": "maas.test", "address": ADDRESS});
    merge(&mut intent, change);
    json!({"metadata": {"annotations": {names::ENDPOINT: intent.to_string()}}})
}

fn asking() -> Value {
    json!({"spec": {"endpoint": {"mode": "VIP", "vip": {"subnet": "racks", "address": ADDRESS}}}})
}

fn shown_to_everybody(mut change: Value) -> Value {
    let host = json!({"spec": {"controlPlaneEndpoint": {"host": ADDRESS, "port": 6443}}});
    merge(&mut change, host);
    merge(&mut change, json!({"status": {"ready": true, "initialization": {"provisioned": true}}}));
    change
}

fn ordered(seconds_ago: i64) -> Value {
    let since = now().checked_sub(jiff::SignedDuration::from_secs(seconds_ago)).unwrap();
    json!({"order": {"since": since, "what": {"reserve": ADDRESS}}})
}

fn reserved(is_reserved: bool) -> Vec<Reservation> {
    is_reserved.then(|| Reservation { ip: ADDRESS.parse().unwrap(), on_machine: false }).into_iter().collect()
}

/// A cluster that asks for the address, with this on record besides.
fn wanting(created: &str, intent: Option<Value>, is_reserved: bool, held_by_others: Vec<HeldByOther>) -> Facts {
    let mut change = json!({"metadata": {"creationTimestamp": created}});
    merge(&mut change, asking());
    if let Some(intent) = intent {
        let mut all = json!({"object": "rack/one", "maas": "maas.test", "address": ADDRESS});
        merge(&mut all, intent);
        merge(&mut change, json!({"metadata": {"annotations": {names::ENDPOINT: all.to_string()}}}));
    }
    let reservations = Some(reserved(is_reserved));
    Facts { object: object(change), reservations, reservations_as_of: Some(now()), held_by_others, ..facts() }
}

fn message(plan: &Plan) -> String {
    let status = plan.status.as_ref().unwrap();
    condition::find(&status.conditions, "LoadBalancerReady").unwrap().message.clone()
}

#[test]
fn an_address_that_another_cluster_has_is_refused_by_its_name_and_nothing_is_done() {
    let given = json!({"addressGiven": true});
    let copied = json!({"metadata": {"annotations": {names::ENDPOINT: json!({"object": "rack/three", "address": ADDRESS}).to_string()}}});
    let mut unreadable = asking();
    merge(&mut unreadable, json!({"metadata": {"annotations": {names::ENDPOINT: "{"}}}));
    let mut going = asking();
    merge(&mut going, json!({"metadata": {"deletionTimestamp": "2026-11-16T00:00:00Z"}}));
    let rows = [
        // what the other is like, whether it is refused to an older one, whether to a younger one
        (recorded(json!({})), true, true),
        (recorded(json!({"maas": "other.test"})), false, false),
        (recorded(ordered(1)), true, true),
        (recorded(given), true, true),
        (recorded(json!({"address": null, "reserved": [ADDRESS]})), true, true),
        (shown_to_everybody(json!({})), true, true),
        (asking(), false, true),
        (going, false, false),
        (unreadable, true, true),
        (copied, false, false),
        (recorded(json!({"address": "10.0.0.8"})), false, false),
    ];
    for (number, (change, to_older, to_younger)) in rows.into_iter().enumerate() {
        for (created, refused, is_reserved) in
            [(OLDER, to_older, false), (OLDER, to_older, true), (YOUNGER, to_younger, false), (YOUNGER, to_younger, true)]
        {
            let plan = decide(&wanting(created, None, is_reserved, other(change.clone())), now());
            let context = format!("row {number}, {created}, reserved {is_reserved}: {:?}", plan.step);
            if refused {
                assert_eq!((plan.step.is_none(), shown(&plan, "LoadBalancerReady").as_str()), (true, "False/AddressTaken"), "{context}");
                assert!(message(&plan).contains("10.0.0.9 is that of the MaasCluster other/two"), "{}", message(&plan));
            } else {
                let expected = if is_reserved { StepName::ListOthers } else { StepName::Intend };
                assert_eq!(plan.step.map(|step| step.name()), Some(expected), "{context}");
            }
        }
    }
}

#[test]
fn a_copied_manifest_does_not_get_the_address_of_the_original_even_if_that_is_nowhere_to_be_seen() {
    let mut facts = wanting(OLDER, Some(json!({"object": "rack/original"})), true, Vec::new());
    for confirmed in [false, true] {
        facts.others_are_confirmed = confirmed;
        let plan = decide(&facts, now());
        assert_eq!((plan.step.is_none(), shown(&plan, "LoadBalancerReady").as_str()), (true, "False/AddressTaken"));
        assert!(message(&plan).contains("was copied from another one, whose address 10.0.0.9 is"), "{}", message(&plan));
    }
    assert_eq!(decide(&going(facts), now()).step, Some(Step::RemoveFinalizer), "and frees nothing when it goes");
}

#[test]
fn an_address_whose_reservation_nobody_answered_is_ours_only_if_no_other_cluster_may_have_it() {
    // One that MAAS may still answer, and one that is as much in doubt as we are.
    let (settled, contending, doubting) = (recorded(json!({})), recorded(ordered(1)), recorded(ordered(241)));
    // seconds since the order, the other, our age, whether it is reserved, then the step, and the address that stays on record
    let rows = [
        (10, json!({}), OLDER, true, Some(Some(ADDRESS))),
        (10, asking(), YOUNGER, true, Some(Some(ADDRESS))),
        (10, json!({}), OLDER, false, None),
        (121, json!({}), OLDER, false, Some(None)),
        (10, settled.clone(), OLDER, true, None),
        (121, settled.clone(), OLDER, true, Some(None)),
        (121, settled, YOUNGER, true, Some(None)),
        (10, contending.clone(), YOUNGER, true, None),
        (121, contending.clone(), YOUNGER, true, None),
        (121, doubting.clone(), YOUNGER, true, Some(None)),
        (121, doubting, OLDER, true, None),
        (10, contending.clone(), OLDER, true, None),
        (121, contending, OLDER, true, None),
    ];
    for (number, (ago, change, created, is_reserved, settles)) in rows.into_iter().enumerate() {
        for deleting in [false, true] {
            let mut facts = wanting(created, Some(ordered(ago)), is_reserved, other(change.clone()));
            if deleting {
                facts = going(facts);
            }
            if is_reserved {
                assert_eq!(decide(&facts, now()).step, Some(Step::ListOthers), "row {number} by a cache that may be behind");
            }
            facts.others_are_confirmed = true;
            let address = settles.map(|address| address.map(|address: &str| address.parse().unwrap()));
            match (decide(&facts, now()).step, address) {
                (None, None) => {}
                (Some(Step::Settle(intent)), Some(address)) => {
                    assert_eq!((intent.address, intent.order), (address, None), "row {number}, deleting {deleting}");
                }
                (step, _) => panic!("row {number}, deleting {deleting}: {step:?}"),
            }
        }
    }
}

#[test]
fn that_nothing_was_reserved_is_believed_only_when_maas_was_asked_after_the_two_minutes() {
    let mut facts = wanting(OLDER, Some(ordered(121)), false, Vec::new());
    facts.reservations_as_of = Some(now().checked_sub(jiff::SignedDuration::from_secs(2)).unwrap());
    assert_eq!(decide(&facts, now()).step, Some(Step::ListReservations));
}

#[test]
fn a_reservation_that_failed_leaves_nothing_on_record_that_looks_as_if_the_address_were_ours() {
    let kinds = [
        (FailureKind::Conflict, false, None),
        (FailureKind::NotFound, true, None),
        (FailureKind::Unavailable, false, None),
        (FailureKind::HalfDone, false, None),
        (FailureKind::HalfDone, true, Some(ADDRESS)),
    ];
    for (kind, is_reserved, stays) in kinds {
        let mut facts = wanting(OLDER, Some(ordered(1)), is_reserved, Vec::new());
        (facts.order, facts.others_are_confirmed) = (OrderState::Answered, true);
        facts.failed = Some(FailedStep { step: StepName::ReserveAddress, failure: Failure { kind, words: "no".to_owned() } });
        let Some(Step::Settle(intent)) = decide(&facts, now()).step else { panic!("{kind:?} is not settled") };
        assert_eq!((intent.address, intent.order), (stays.map(|address| address.parse().unwrap()), None), "{kind:?}");
    }
}

#[test]
fn of_two_that_wrote_a_persons_address_down_at_the_same_time_the_younger_gives_way_and_the_older_waits_for_that() {
    let given = || Some(json!({"addressGiven": true}));
    let rival = || recorded(json!({"addressGiven": true}));
    let mut facts = wanting(OLDER, given(), true, other(rival()));
    assert_eq!(decide(&facts, now()).step, Some(Step::ListOthers), "a cache may be behind");
    facts.others_are_confirmed = true;
    let plan = decide(&facts, now());
    assert_eq!((plan.step.is_none(), shown(&plan, "LoadBalancerReady").as_str()), (true, "False/AddressTaken"));
    assert!(message(&plan).contains("the MaasCluster other/two is about to take the address"), "{}", message(&plan));
    for (created, change) in [(YOUNGER, rival()), (OLDER, shown_to_everybody(rival())), (OLDER, recorded(json!({})))] {
        let facts = Facts { others_are_confirmed: true, ..wanting(created, given(), true, other(change)) };
        let Some(Step::Settle(intent)) = decide(&facts, now()).step else { panic!("it does not give way") };
        assert_eq!((intent.address, intent.address_given), (None, false));
    }
    let alone = Facts { others_are_confirmed: true, ..wanting(YOUNGER, given(), true, other(asking())) };
    assert!(matches!(decide(&alone, now()).step, Some(Step::WriteEndpoint { .. })), "who only asks is no rival");
}

#[test]
fn an_address_of_our_own_is_kept_whoever_else_has_it_on_record() {
    let (kept, told) = ("True/LoadBalancerReady", "False/AddressTaken");
    for (change, expected) in
        [(recorded(json!({})), told), (recorded(ordered(1)), kept), (shown_to_everybody(recorded(json!({}))), told), (asking(), kept)]
    {
        let mut facts = wanting(YOUNGER, Some(json!({})), true, other(change));
        merge_object(&mut facts, shown_to_everybody(json!({})));
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), shown(&plan, "LoadBalancerReady").as_str()), (None, expected));
        assert!(is_provisioned(&plan));
    }
}

#[test]
fn a_cluster_that_goes_frees_its_own_address_and_never_that_of_another() {
    let rows = [
        (json!({}), json!({}), StepName::Intend),
        (json!({}), asking(), StepName::Intend),
        // It is refused or settled there before it can matter.
        (json!({}), recorded(ordered(1)), StepName::Intend),
        (json!({}), recorded(json!({})), StepName::RemoveFinalizer),
        // What it has on record was reserved for it, whoever uses the address: that one may be in another MAAS.
        (json!({}), shown_to_everybody(json!({})), StepName::Intend),
        (json!({"addressGiven": true}), json!({}), StepName::RemoveFinalizer),
        (json!({"address": null}), recorded(json!({})), StepName::RemoveFinalizer),
    ];
    for (number, (intent, change, expected)) in rows.into_iter().enumerate() {
        let facts = going(wanting(OLDER, Some(intent), true, other(change)));
        assert_eq!(decide(&facts, now()).step.map(|step| step.name()), Some(expected), "row {number}");
    }
}

#[test]
fn of_two_that_go_and_have_the_same_address_the_older_frees_it_when_the_younger_is_gone() {
    let mut goes = recorded(json!({}));
    merge(&mut goes, json!({"metadata": {"deletionTimestamp": "2026-11-18T00:00:00Z"}}));
    let plan = decide(&going(wanting(OLDER, Some(json!({})), true, other(goes.clone()))), now());
    assert_eq!((plan.step.is_none(), plan.look_again), (true, LookAgain::After(std::time::Duration::from_mins(1))));
    assert!(
        message(&plan).contains("freed when the MaasCluster other/two, which has it too and goes as well, is gone"),
        "{}",
        message(&plan)
    );
    let younger = going(wanting(YOUNGER, Some(json!({})), true, other(goes)));
    assert_eq!(decide(&younger, now()).step, Some(Step::RemoveFinalizer), "it is the other's to free");
    let last = going(wanting(OLDER, Some(json!({})), true, Vec::new()));
    assert_eq!(decide(&last, now()).step.map(|step| step.name()), Some(StepName::Intend));
}

#[test]
fn an_address_that_somebody_merely_uses_is_no_reason_to_complain_of_our_own() {
    let mut facts = wanting(YOUNGER, Some(json!({})), true, other(shown_to_everybody(json!({}))));
    merge_object(&mut facts, shown_to_everybody(json!({})));
    assert_eq!(shown(&decide(&facts, now()), "LoadBalancerReady"), "True/LoadBalancerReady");
}

#[test]
fn nobody_hears_of_an_address_that_was_asked_for_by_the_endpoint_before_it_is_reserved() {
    let mut facts = wanting(OLDER, Some(ordered(1)), false, Vec::new());
    facts.order = OrderState::Written;
    merge_object(&mut facts, json!({"spec": {"controlPlaneEndpoint": {"host": ADDRESS, "port": 6443}}}));
    let plan = decide(&facts, now());
    assert!(matches!(plan.step, Some(Step::ReserveAddress { .. })) && !is_provisioned(&plan), "{:?}", plan.step);
    merge_object(&mut facts, json!({"status": {"ready": true, "initialization": {"provisioned": true}}}));
    assert!(is_provisioned(&decide(&facts, now())), "what was reached stays reached");
}

#[test]
fn of_two_that_share_an_address_from_before_the_younger_says_so_and_neither_gives_it_up() {
    for (created, is_told) in [(OLDER, false), (YOUNGER, true)] {
        let mut facts = wanting(created, Some(json!({})), true, other(recorded(json!({}))));
        merge_object(&mut facts, shown_to_everybody(json!({})));
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), is_provisioned(&plan)), (None, true), "{created}");
        assert_eq!(shown(&plan, "LoadBalancerReady") == "False/AddressTaken", is_told, "{created}");
        assert_eq!(message(&plan).contains("10.0.0.9 is that of the older MaasCluster other/two too"), is_told, "{}", message(&plan));
        assert_eq!(plan.notes.iter().any(|note| note.warning && note.reason == "AddressTaken"), is_told, "{:?}", plan.notes);
    }
}
