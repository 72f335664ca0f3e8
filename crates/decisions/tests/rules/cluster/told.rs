//! What people are told where nothing else shows it.

use super::*;
use decisions::cluster::{FailedStep, StepName};

fn words(plan: &Plan, kind: &str) -> String {
    condition::find(&plan.status.as_ref().unwrap().conditions, kind).unwrap().message.clone()
}

fn failing(mut facts: Facts, step: StepName, kind: FailureKind) -> Facts {
    facts.failed = Some(FailedStep { step, failure: Failure { kind, words: "MAAS says no".to_owned() } });
    facts
}

/// A cluster that wants an address of a subnet.
fn reserving(free: Option<Vec<(std::net::IpAddr, std::net::IpAddr)>>) -> Facts {
    let object = object(json!({"spec": {"endpoint": {"mode": "VIP", "vip": {"subnet": "racks"}}}}));
    Facts { object, reservations: Some(Vec::new()), reservations_as_of: Some(now()), free, ..facts() }
}

#[test]
fn what_is_in_the_way_of_an_endpoint_is_told_and_tried_again() {
    let unreadable = || Facts { object: object(json!({"metadata": {"annotations": {names::ENDPOINT: "yes"}}})), ..facts() };
    let goes = || Facts { records: Lookup::Found(vec![record(1, &[("10.0.0.1", true)])]), ..going(named(json!({}))) };
    let removing = |kind| failing(goes(), StepName::RemoveRecord, kind);
    let rows = [
        ("NoFreeAddress", reserving(Some(Vec::new())), "subnet racks has no free address"),
        ("NoFreeAddress", failing(reserving(None), StepName::ListFree, FailureKind::NotFound), "no address can be reserved: MAAS says no"),
        ("EndpointUnreadable", unreadable(), "annotation metalshift.io/endpoint cannot be read"),
        ("EndpointUnreadable", going(unreadable()), "annotation metalshift.io/endpoint cannot be read"),
        ("DNSDomainNotFound", Facts { records: Lookup::Missing, ..named(json!({})) }, "MAAS does not have the DNS domain maas"),
        ("DNSRightsMissing", removing(FailureKind::NotPermitted), "the DNS record cannot be written: MAAS says no"),
        ("LoadBalancerFailed", removing(FailureKind::Refused), "the DNS record could not be written: MAAS says no"),
    ];
    for (expected, facts, said) in rows {
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), shown(&plan, "LoadBalancerReady")), (None, format!("False/{expected}")), "{expected}");
        assert!(words(&plan, "LoadBalancerReady").contains(said), "{expected}: {}", words(&plan, "LoadBalancerReady"));
        assert_eq!(plan.look_again, LookAgain::AfterBackoff, "{expected}");
    }
}

#[test]
fn a_name_that_is_being_made_is_told_and_that_nobody_answers_at_it_yet() {
    let plan = decide(&named(json!({})), now());
    assert_eq!(shown(&plan, "LoadBalancerReady"), "False/WaitForDNSName", "{:?}", plan.step);
    assert_eq!(shown(&plan, "APIServerAvailable"), "False/APIServerNotReady");
}

#[test]
fn a_cluster_that_goes_says_that_it_cleans_up_and_when_nothing_is_left() {
    let cleaning = Facts { records: Lookup::Found(vec![record(1, &[("10.0.0.1", true)])]), ..going(named(json!({}))) };
    let plan = decide(&cleaning, now());
    assert_eq!((plan.step.clone(), shown(&plan, "LoadBalancerReady").as_str()), (Some(Step::RemoveRecord { id: 1 }), "False/CleaningUp"));
    let plan = decide(&Facts { records: Lookup::Found(Vec::new()), ..cleaning }, now());
    assert_eq!((plan.step.clone(), shown(&plan, "LoadBalancerReady").as_str()), (Some(Step::RemoveFinalizer), "False/Removed"));
}

#[test]
fn zones_that_maas_has_not_told_are_unknown_and_those_it_told_before_stay() {
    let failure = Failure { kind: FailureKind::Refused, words: "MAAS says no".to_owned() };
    let mut silent = Facts { zones: Lookup::Failed(failure), ..facts() };
    let plan = decide(&silent, now());
    assert_eq!(shown(&plan, "FailureDomainsReady"), "Unknown/FailureDomainsUnknown");
    assert_eq!(words(&plan, "FailureDomainsReady"), "MAAS says no");
    silent.object.status = decide(&facts(), now()).status;
    assert_eq!(shown(&decide(&silent, now()), "FailureDomainsReady"), "True/FailureDomainsReady");
}
