//! What people are told where nothing else shows it.

use api::cluster_api::Machine;
use decisions::{
    Failure, FailureKind,
    remediation::{FailedStep, LookAgain, Step, StepName, decide},
};

use super::facts::{does_it, intend, is, message, now, pass, seconds, shown, unhealthy};

#[test]
fn an_attempt_says_what_it_is_about_to_do_and_its_number() {
    let mut facts = unhealthy();
    facts.intent_is_fresh = true;
    intend(&mut facts, now());
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), shown(&plan)), (Some(Step::Begin), is("Running", 1, "PowerCycling")));
    assert!(message(&plan).contains("attempt 1 of"), "{}", message(&plan));
}

#[test]
fn an_order_that_was_too_old_to_be_sent_counts_as_none_and_is_looked_at_again() {
    let mut facts = unhealthy();
    let (_, plan) =
        pass(&mut facts, now(), |step| if matches!(step, Step::PowerOff { .. }) { Err(FailureKind::Expired) } else { does_it(step) });
    let (_, attempts, reason) = shown(&plan);
    assert_eq!(
        (attempts, reason.as_str(), plan.look_again),
        (0, "MachineStateUnclear", LookAgain::After(std::time::Duration::from_secs(1)))
    );
}

#[test]
fn who_gave_up_and_cannot_say_so_tells_why_and_tries_again() {
    let mut facts = unhealthy();
    pass(&mut facts, now(), does_it);
    pass(&mut facts, seconds(600), does_it);
    facts.machine.as_mut().unwrap().conditions.retain(|condition| condition.type_ != Machine::OWNER_REMEDIATED);
    let failure = Failure { kind: FailureKind::Kubernetes, words: "machines is forbidden".to_owned() };
    facts.failed = Some(FailedStep { step: StepName::HandOver, failure });
    let plan = decide(&facts, seconds(601));
    let (_, _, reason) = shown(&plan);
    assert_eq!((plan.step.clone(), reason.as_str(), plan.look_again), (None, "HandOverFailed", LookAgain::AfterBackoff));
    assert!(message(&plan).contains("the Machine could not be changed: machines is forbidden"), "{}", message(&plan));
}
