//! Mistakes made on purpose, each by turning facts or plans around before the real rules see them or after: the witness finds every one.

use std::sync::Arc;

use decisions::{
    Lookup, Server,
    machine::{Facts, Plan, Step, decide},
};
use jiff::Timestamp;
use manager::machine::Rules;
use simulation::explorer::{Scenario, Story, Troubles, run};

/// Runs the story with these rules until the witness sees something; says what.
fn found(story: Story, decide: impl Fn(&Facts, Timestamp) -> Plan + Send + Sync + 'static) -> String {
    let rules = Rules { decide: Arc::new(decide), ..Rules::default() };
    found_with(story, &rules)
}

fn found_with(story: Story, rules: &Rules) -> String {
    for seed in 0..40 {
        let scenario = Scenario { rules: rules.clone(), ..Scenario::new(seed, story, Troubles::Seeded { seed, from: 0, most: 6 }) };
        if let Some(violation) = run(&scenario).violations.first() {
            eprintln!("seed {seed}: {violation}");
            return violation.to_string();
        }
    }
    panic!("nobody noticed in 40 runs of {story:?}");
}

fn deleting(facts: &Facts) -> bool {
    facts.object.metadata.deletion_timestamp.is_some()
}

#[test]
fn a_release_without_the_verdict_is_found() {
    let pretend_it_is_ours = |facts: &Facts, now| {
        let mut facts = facts.clone();
        if let (Some(intent), Some(Lookup::Found(server))) = (facts.intent(), &mut facts.recorded) {
            server.marks.insert("metalshift-claim".to_owned(), intent.claim.to_string());
        }
        decide(&facts, now)
    };
    let violation = found(Story::TakenAway, pretend_it_is_ours);
    assert!(violation.contains("somebody's who took it over by hand"), "{violation}");
}

#[test]
fn a_finalizer_dropped_early_is_found() {
    let let_go_before_the_release = |facts: &Facts, now| {
        let mut plan = decide(facts, now);
        if deleting(facts) && matches!(plan.step, Some(Step::Release { .. })) {
            plan.step = Some(Step::RemoveFinalizer);
        }
        plan
    };
    let violation = found(Story::Plain, let_go_before_the_release);
    assert!(violation.contains("is let go while"), "{violation}");
}

#[test]
fn a_blind_second_allocation_is_found() {
    let never_wait = |facts: &Facts, now| {
        let facts = Facts { unanswered_until: None, ..facts.clone() };
        decide(&facts, now)
    };
    let violation = found(Story::Plain, never_wait);
    assert!(violation.contains("a second allocation"), "{violation}");
}

#[test]
fn an_agent_name_taken_as_proof_is_found() {
    let overlook_marks_of_others = |facts: &Facts, now| {
        let mut facts = facts.clone();
        if let Lookup::Found(claimed) = &mut facts.claimed {
            let ours = facts.object.metadata.annotations.clone().unwrap_or_default();
            let foreign = |server: &&mut Server| {
                server.marks.get("metalshift-claim").is_some_and(|mark| !ours.values().any(|text| text.contains(mark.as_str())))
            };
            claimed.iter_mut().filter(foreign).for_each(|server| server.marks.clear());
        }
        decide(&facts, now)
    };
    let violation = found(Story::Namesake, overlook_marks_of_others);
    assert!(violation.contains("held by somebody of our user"), "{violation}");
}

#[test]
fn a_claim_overwritten_from_a_stale_cache_is_found() {
    let unguarded = |facts: &Facts, now| Plan { guard: None, ..decide(facts, now) };
    found(Story::TwoLeaders, unguarded);
}

#[test]
fn a_release_while_paused_is_found() {
    let overlook_the_pause = |facts: &Facts, now| {
        let mut facts = facts.clone();
        if let Some(cluster) = &mut facts.cluster {
            cluster.paused = false;
        }
        decide(&facts, now)
    };
    let rules = Rules { concerns_maas: |_| true, decide: Arc::new(overlook_the_pause) };
    let violation = found_with(Story::Paused, &rules);
    assert!(violation.contains("while it is paused"), "{violation}");
}
