//! Attempts: begun once each, looked after, repeated, given up.

use std::time::Duration;

use api::cluster_api::Machine;
use decisions::{
    FailureKind, Lookup, Power,
    remediation::{Facts, Learned, LookAgain, Ordered, Step, StepName, decide},
};
use serde_json::json;

use super::facts::{Answer, does_it, goes_off_slowly, intend, is, message, now, pass, says, seconds, server, shown, strategy, unhealthy};

const BEGIN: [StepName; 3] = [StepName::Intend, StepName::Begin, StepName::PowerOff];
const CYCLE: [StepName; 5] = [StepName::Intend, StepName::Begin, StepName::PowerOff, StepName::QueryPower, StepName::PowerOn];

const ON: [StepName; 3] = [StepName::QueryPower, StepName::Intend, StepName::PowerOn];

fn off(facts: &mut Facts) {
    facts.server = Lookup::Found(decisions::Server { power: Power::Off, ..server() });
}

#[test]
fn the_attempt_is_written_down_before_the_power_is_taken_and_then_the_node_is_waited_for() {
    let mut facts = unhealthy();
    let (steps, plan) = pass(&mut facts, now(), does_it);
    assert_eq!(steps, CYCLE);
    assert_eq!(shown(&plan), is("Running", 1, "WaitingForNode"));
    assert_eq!(plan.status.as_ref().unwrap().last_remediated.as_ref().unwrap().0, now());
    // The next known moments: when nobody can be switching it any more, and the end of the attempt.
    assert_eq!(plan.look_again, LookAgain::After(Duration::from_mins(2)));
    let (steps, plan) = pass(&mut facts, seconds(120), does_it);
    assert_eq!((steps, plan.look_again), (vec![], LookAgain::After(Duration::from_mins(8))));
}

#[test]
fn an_attempt_that_is_written_down_is_never_carried_out_by_another_pass() {
    let mut facts = unhealthy();
    // The process ends after the attempt was written down, before or after MAAS was told: nobody can tell.
    facts.intent_is_fresh = true;
    intend(&mut facts, now());
    let plan = decide(&facts, now());
    assert_eq!(plan.step, Some(Step::Begin));
    facts.object.status = plan.status;
    for second in [1, 60, 119, 121, 300, 599] {
        let (steps, plan) = pass(&mut facts, seconds(second), |step| panic!("{step:?}"));
        assert_eq!((steps, shown(&plan)), (vec![], is("Running", 1, "WaitingForNode")), "after {second} s");
    }
}

#[test]
fn a_node_that_is_well_ends_it_whatever_is_left() {
    let mut facts = unhealthy();
    pass(&mut facts, now(), does_it);
    says(&mut facts, Machine::HEALTH_CHECK_SUCCEEDED, "True", 100);
    let (steps, plan) = pass(&mut facts, seconds(700), does_it);
    assert_eq!((steps, shown(&plan), plan.look_again), (vec![], is("Succeeded", 1, "MachineHealthy"), LookAgain::OnChange));
}

#[test]
fn without_a_health_check_the_node_itself_counts_if_it_came_back_since() {
    for (since, steps, expected) in
        [(100, vec![], is("Succeeded", 1, "MachineHealthy")), (-100, CYCLE.to_vec(), is("Running", 2, "WaitingForNode"))]
    {
        let mut facts = unhealthy();
        strategy(&mut facts, &json!({"retryLimit": 2}));
        facts.machine.as_mut().unwrap().conditions.clear();
        pass(&mut facts, now(), does_it);
        says(&mut facts, Machine::NODE_READY, "True", since);
        let (taken, plan) = pass(&mut facts, seconds(700), does_it);
        assert_eq!((taken, shown(&plan)), (steps, expected), "ready since {since}");
    }
}

#[test]
fn it_is_tried_as_often_as_it_says_and_then_the_machine_is_left_to_its_owner_once() {
    let mut facts = unhealthy();
    strategy(&mut facts, &json!({"retryLimit": 3, "timeout": "5m"}));
    for attempt in 0..3 {
        assert_eq!(pass(&mut facts, seconds(300 * attempt), does_it).0, CYCLE);
        let (steps, _) = pass(&mut facts, seconds(300 * attempt + 299), does_it);
        assert_eq!(steps, []);
    }
    let (steps, plan) = pass(&mut facts, seconds(900), does_it);
    assert_eq!((steps, shown(&plan)), (vec![StepName::HandOver], is("Failed", 3, "AttemptsExhausted")));
    assert!(message(&plan).contains("3 times") && message(&plan).contains("node-7"), "{}", message(&plan));
    assert_eq!(pass(&mut facts, seconds(901), does_it).0, [], "once is enough");
}

#[test]
fn who_gave_up_and_could_not_say_so_says_it_later() {
    let mut facts = unhealthy();
    pass(&mut facts, now(), does_it);
    pass(&mut facts, seconds(600), does_it);
    // As if the process had ended between the two writes.
    facts.machine.as_mut().unwrap().conditions.retain(|condition| condition.type_ != Machine::OWNER_REMEDIATED);
    assert_eq!(pass(&mut facts, seconds(601), does_it).0, [StepName::HandOver]);
}

#[test]
fn a_power_controller_that_fails_is_told_in_its_words_and_the_attempt_counts() {
    for kind in [FailureKind::HalfDone, FailureKind::Refused, FailureKind::Conflict, FailureKind::NotPermitted, FailureKind::NotFound] {
        let mut facts = unhealthy();
        let answer: Answer = match kind {
            FailureKind::HalfDone => |_| Err(FailureKind::HalfDone),
            FailureKind::Refused => |_| Err(FailureKind::Refused),
            FailureKind::Conflict => |_| Err(FailureKind::Conflict),
            FailureKind::NotPermitted => |_| Err(FailureKind::NotPermitted),
            _ => |_| Err(FailureKind::NotFound),
        };
        let (steps, plan) = pass(&mut facts, now(), answer);
        assert_eq!((steps, shown(&plan)), (BEGIN.to_vec(), is("Running", 1, "PowerCycleFailed")), "{kind:?}");
        assert!(message(&plan).contains("the BMC said no"), "{}", message(&plan));
        assert!(plan.notes.iter().any(|note| note.warning && note.message.contains("the BMC said no")), "{:?}", plan.notes);
        // It stays to be read, and is part of the end.
        assert_eq!(shown(&pass(&mut facts, seconds(300), does_it).1).2, "PowerCycleFailed");
        let (_, plan) = pass(&mut facts, seconds(600), does_it);
        assert_eq!(shown(&plan), is("Failed", 1, "AttemptsExhausted"));
        assert!(message(&plan).contains("the BMC said no. The Machine is left to its owner"), "{}", message(&plan));
    }
}

#[test]
fn an_attempt_of_which_nothing_can_have_come_does_not_count() {
    let answers: [(FailureKind, Answer); 5] = [
        (FailureKind::Unavailable, |_| Err(FailureKind::Unavailable)),
        (FailureKind::Later(Duration::from_secs(9)), |_| Err(FailureKind::Later(Duration::from_secs(9)))),
        (FailureKind::Unauthenticated, |_| Err(FailureKind::Unauthenticated)),
        (FailureKind::Stale, |_| Err(FailureKind::Stale)),
        (FailureKind::Expired, |_| Err(FailureKind::Expired)),
    ];
    for (kind, answer) in answers {
        let mut facts = unhealthy();
        let (steps, plan) = pass(&mut facts, now(), answer);
        assert_eq!(steps, BEGIN, "{kind:?}");
        let (phase, attempts, _) = shown(&plan);
        assert_eq!((phase.as_str(), attempts, &plan.status.unwrap().last_remediated), ("Waiting", 0, &None), "{kind:?}");
        // Not at once, because what was about to be told is on record.
        assert_eq!(pass(&mut facts, seconds(60), does_it).0, [], "{kind:?}");
        assert_eq!(pass(&mut facts, seconds(121), does_it).0, CYCLE, "{kind:?}");
    }
}

#[test]
fn an_order_that_nobody_answered_is_not_repeated_but_looked_after() {
    let mut facts = unhealthy();
    let (steps, plan) = pass(&mut facts, now(), |_| Err(FailureKind::Unknown));
    assert_eq!((steps, shown(&plan)), (BEGIN.to_vec(), is("Running", 1, "MaasAnswerOutstanding")));
    assert_eq!(plan.look_again, LookAgain::After(Duration::from_mins(2)));
    off(&mut facts);
    assert_eq!(pass(&mut facts, seconds(60), does_it).0, [], "it may still come on");
    assert_eq!(pass(&mut facts, seconds(120), does_it).0, ON);
}

#[test]
fn a_machine_without_power_is_only_switched_on_and_only_on_its_power_controllers_word() {
    let mut facts = unhealthy();
    off(&mut facts);
    let (steps, plan) = pass(&mut facts, now(), does_it);
    assert_eq!(steps, [StepName::Intend, StepName::Begin, StepName::QueryPower, StepName::PowerOn]);
    assert_eq!(shown(&plan), is("Running", 1, "WaitingForNode"));
    let mut facts = unhealthy();
    off(&mut facts);
    let (steps, _) = pass(&mut facts, now(), goes_off_slowly);
    assert_eq!(steps, [StepName::Intend, StepName::Begin, StepName::QueryPower, StepName::PowerOff]);
}

#[test]
fn what_the_rules_about_machines_are_switching_on_is_not_switched_on_here_as_well() {
    let mut facts = unhealthy();
    pass(&mut facts, now(), goes_off_slowly);
    // They told MAAS to, just now, and its power controller says that it is still off.
    intend(&mut facts, seconds(4));
    for second in [5, 60, 123] {
        assert_eq!(pass(&mut facts, seconds(second), does_it).0, [StepName::QueryPower], "after {second} s");
    }
    let (steps, plan) = pass(&mut facts, seconds(124), does_it);
    assert_eq!((steps, shown(&plan)), (ON.to_vec(), is("Running", 1, "WaitingForNode")));
}

#[test]
fn a_machine_that_goes_off_slowly_is_looked_at_until_it_is_and_one_that_is_on_again_is_left_alone() {
    let mut facts = unhealthy();
    let (_, plan) = pass(&mut facts, now(), goes_off_slowly);
    assert_eq!((shown(&plan), plan.look_again), (is("Running", 1, "SwitchedOff"), LookAgain::After(Duration::from_secs(5))));
    for second in [5, 20, 119] {
        let (steps, plan) = pass(&mut facts, seconds(second), goes_off_slowly);
        assert_eq!((steps, shown(&plan)), (vec![StepName::QueryPower], is("Running", 1, "SwitchedOff")), "after {second} s");
        assert_eq!(plan.look_again, LookAgain::After(Duration::from_secs(15)));
    }
    let mut on_again = facts.clone();
    assert_eq!(shown(&pass(&mut on_again, seconds(120), goes_off_slowly).1), is("Running", 1, "WaitingForNode"));
    assert_eq!(pass(&mut facts, seconds(120), does_it).0, ON);
}

#[test]
fn a_machine_that_loses_its_power_while_its_node_is_waited_for_is_switched_on_when_nobody_else_can_be_at_it() {
    let mut facts = unhealthy();
    pass(&mut facts, now(), does_it);
    off(&mut facts);
    assert_eq!(pass(&mut facts, seconds(60), does_it).0, [], "it may still come on");
    assert_eq!(pass(&mut facts, seconds(125), does_it).0, ON);
}

#[test]
fn a_power_controller_that_fails_to_switch_on_is_told_and_asked_again_every_minute() {
    let mut facts = unhealthy();
    pass(&mut facts, now(), goes_off_slowly);
    off(&mut facts);
    let (_, plan) = pass(&mut facts, seconds(5), |_| Err(FailureKind::HalfDone));
    assert_eq!((shown(&plan).2.as_str(), plan.look_again), ("PowerCycleFailed", LookAgain::After(Duration::from_mins(1))));
    assert_eq!(pass(&mut facts, seconds(125), does_it).0, ON);
}

#[test]
fn a_machine_that_only_a_person_can_switch_is_left_to_its_owner_at_once() {
    let mut facts = unhealthy();
    let (steps, plan) = pass(&mut facts, now(), |_| Ok(Learned::Ordered(Ordered::NotSwitchable)));
    assert_eq!(steps, [&BEGIN[..], &[StepName::HandOver]].concat());
    assert_eq!(shown(&plan), is("Failed", 1, "PowerNotSwitchable"));
}

#[test]
fn nothing_is_begun_while_something_that_maas_was_told_before_may_be_under_way() {
    let mut facts = unhealthy();
    intend(&mut facts, seconds(-30));
    let (steps, plan) = pass(&mut facts, now(), does_it);
    assert_eq!((steps, shown(&plan)), (vec![], is("Waiting", 0, "WaitingForEarlierOrder")));
    assert_eq!(plan.look_again, LookAgain::After(Duration::from_secs(90)));
    assert_eq!(pass(&mut facts, seconds(90), does_it).0, CYCLE);
}

#[test]
fn the_intent_names_another_writer_than_that_of_machines() {
    let Some(Step::Intend { intent }) = decide(&unhealthy(), now()).step else { panic!("it is about to be written") };
    assert_eq!((intent.writer.as_deref(), intent.since), (Some("remediation 1"), Some(now())));
    assert_eq!(intent.claim, super::facts::claim());
}

#[test]
fn what_became_of_switching_on_right_after_is_told_and_the_attempt_counts_in_any_case() {
    let cases: [(FailureKind, &str); 4] = [
        (FailureKind::Unknown, "MaasAnswerOutstanding"),
        (FailureKind::HalfDone, "PowerCycleFailed"),
        (FailureKind::Unavailable, "SwitchedOff"),
        (FailureKind::Expired, "SwitchedOff"),
    ];
    for (kind, reason) in cases {
        let mut facts = unhealthy();
        let (steps, plan) = pass(&mut facts, now(), |step| match step {
            Step::PowerOn { .. } => Err(kind),
            _ => does_it(step),
        });
        assert_eq!((steps, shown(&plan)), (CYCLE.to_vec(), is("Running", 1, reason)), "{kind:?}");
        off(&mut facts);
        let again = if reason == "SwitchedOff" { 5 } else { 120 };
        assert_eq!(pass(&mut facts, seconds(again), does_it).0, ON, "{kind:?}");
    }
}
