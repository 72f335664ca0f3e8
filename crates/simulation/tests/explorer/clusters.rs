//! Mistakes made on purpose about a cluster's name or address: the witness finds every one.

use std::sync::Arc;

use decisions::cluster::{Facts, Plan, Step, decide};
use jiff::Timestamp;
use manager::cluster::Rules;
use simulation::explorer::{ClusterScenario, ClusterStory, Fate, Trouble, Troubles, run_cluster};

/// Makes the runs with these rules until the witness sees something; says what.
fn found(
    scenarios: impl IntoIterator<Item = ClusterScenario>,
    decide: impl Fn(&Facts, Timestamp) -> Plan + Send + Sync + 'static,
) -> String {
    let rules = Rules { decide: Arc::new(decide), ..Rules::default() };
    for scenario in scenarios {
        let scenario = ClusterScenario { rules: rules.clone(), ..scenario };
        if let Some(violation) = run_cluster(&scenario).violations.first() {
            eprintln!("seed {}, {:?}: {violation}", scenario.seed, scenario.troubles);
            return violation.to_string();
        }
    }
    panic!("nobody noticed");
}

fn bad_days(story: ClusterStory) -> impl Iterator<Item = ClusterScenario> {
    (0..40).map(move |seed| ClusterScenario::new(seed, story, Troubles::Seeded { seed, from: 0, most: 6 }))
}

/// Every call is carried out late, one in each run.
fn late_calls(story: ClusterStory) -> impl Iterator<Item = ClusterScenario> {
    (1..60).map(move |call| ClusterScenario::new(1, story, Troubles::One(Trouble { call, fate: Fate::LateCommit })))
}

#[test]
fn a_name_emptied_on_a_blip_is_found() {
    let overlook_who_is_off = |facts: &Facts, now| {
        let mut facts = facts.clone();
        let serves = |status: &api::MaasMachineStatus| api::condition::is_true(&status.conditions, "MachineDeployed");
        facts.machines.retain(|member| member.object.status.as_ref().is_some_and(serves));
        decide(&facts, now)
    };
    let violation = found(bad_days(ClusterStory::Dns), overlook_who_is_off);
    assert!(violation.contains("is emptied while"), "{violation}");
}

#[test]
fn a_persons_name_that_loses_what_the_person_had_in_it_is_found() {
    let write_only_ours = |facts: &Facts, now| {
        let mut facts = facts.clone();
        let intent = api::EndpointIntent::of(&facts.object.metadata).ours().filter(|intent| intent.given);
        if let (Some(mut intent), Some(records)) = (intent, facts.records.found()) {
            intent.added = records.iter().flat_map(decisions::cluster::Record::set).collect();
            let annotations = facts.object.metadata.annotations.get_or_insert_default();
            annotations.insert(api::names::ENDPOINT.to_owned(), intent.to_annotation());
        }
        decide(&facts, now)
    };
    let violation = found(bad_days(ClusterStory::Given), write_only_ours);
    assert!(violation.contains("which is a person's"), "{violation}");
}

#[test]
fn a_cluster_let_go_before_its_name_is_found() {
    let let_go_early = |facts: &Facts, now| {
        let mut plan = decide(facts, now);
        if facts.is_deleting() && matches!(plan.step, Some(Step::RemoveRecord { .. })) {
            plan.step = Some(Step::RemoveFinalizer);
        }
        plan
    };
    let violation = found(bad_days(ClusterStory::Dns), let_go_early);
    assert!(violation.contains("the cluster is let go while"), "{violation}");
}

#[test]
fn an_address_that_is_not_freed_is_found() {
    let forget_what_was_reserved = |facts: &Facts, now| {
        let mut plan = decide(facts, now);
        if let Some(Step::Intend(intent) | Step::Settle(intent)) = &mut plan.step {
            intent.reserved.clear();
        }
        plan
    };
    let violation = found(bad_days(ClusterStory::Dns), forget_what_was_reserved);
    assert!(violation.contains("reserved") || violation.contains("left"), "{violation}");
}

#[test]
fn a_cluster_that_does_not_wait_for_what_nobody_answered_is_found() {
    let never_wait = |facts: &Facts, now| {
        let mut facts = facts.clone();
        if facts.is_deleting() && facts.order == decisions::cluster::OrderState::Found {
            facts.order = decisions::cluster::OrderState::Answered;
        }
        decide(&facts, now)
    };
    let violation = found(late_calls(ClusterStory::DeletedEarly), never_wait);
    assert!(violation.contains("when no cluster is there") || violation.contains("left"), "{violation}");
}

#[test]
fn a_second_cluster_at_the_same_address_is_found() {
    let overlook_others = |facts: &Facts, now| decide(&Facts { held_by_others: Vec::new(), ..facts.clone() }, now);
    let violation = found(bad_days(ClusterStory::VipOfTwo), overlook_others);
    assert!(violation.contains("are both at 10.30.0.77"), "{violation}");
}

#[test]
fn a_reservation_that_is_taken_for_the_answer_nobody_heard_is_found() {
    let believe_what_is_there = |facts: &Facts, now| {
        let mut facts = facts.clone();
        let order = facts.intent().and_then(|intent| intent.order);
        if matches!(order, Some(api::EndpointOrder { what: api::EndpointOrderKind::Reserve(_), .. })) {
            facts.held_by_others.clear();
        }
        decide(&facts, now)
    };
    let lost = (0..8).flat_map(|seed| {
        let kinds = run_cluster(&ClusterScenario::new(seed, ClusterStory::VipOfTwo, Troubles::None)).kinds;
        let calls = (1..).zip(kinds).filter(|(_, kind)| kind.0 == "maas POST ipaddresses reserve").map(|(call, _)| call);
        let lose = move |call| ClusterScenario::new(seed, ClusterStory::VipOfTwo, Troubles::One(Trouble { call, fate: Fate::AnswerLost }));
        calls.map(lose).collect::<Vec<_>>()
    });
    let violation = found(lost, believe_what_is_there);
    assert!(violation.contains("are both at 10.30.0.77"), "{violation}");
}
