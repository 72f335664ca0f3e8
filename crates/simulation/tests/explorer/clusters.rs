//! The life of a cluster's name or address, with everything going wrong that can.

use std::sync::Arc;

use decisions::cluster::{Facts, Plan, Step, decide};
use jiff::Timestamp;
use manager::cluster::Rules;
use simulation::explorer::{ClusterScenario, ClusterStory, Fate, Matrix, Trouble, Troubles, run_cluster};

use crate::single::share;

/// Runs all of them on both cores; the first that violates anything is told with what is needed to see it again.
fn explore(scenarios: &[ClusterScenario]) -> Matrix {
    let half = scenarios.len().div_ceil(2).max(1);
    let run_all = |part: &[ClusterScenario]| {
        let mut matrix = Matrix::default();
        for scenario in part {
            let outcome = run_cluster(scenario);
            let told: Vec<String> = outcome.violations.iter().map(ToString::to_string).collect();
            assert!(told.is_empty(), "seed {}, {:?}, {:?}: {told:#?}", scenario.seed, scenario.story, scenario.troubles);
            matrix.add(&outcome.matrix);
        }
        matrix
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = scenarios.chunks(half).map(|part| scope.spawn(move || run_all(part))).collect();
        threads.into_iter().fold(Matrix::default(), |mut matrix, thread| {
            matrix.add(&thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause)));
            matrix
        })
    })
}

#[test]
fn every_story_of_a_cluster_ends_well_when_nothing_goes_wrong() {
    for story in ClusterStory::ALL {
        let outcome = run_cluster(&ClusterScenario::new(1, story, Troubles::None));
        eprintln!("{story:?}: {} calls", outcome.calls);
        for (kind, calls) in &outcome.calls_by_kind {
            eprintln!("    {calls:>6} {kind}");
        }
        assert_eq!(outcome.violations, [], "{story:?}");
    }
}

#[test]
fn every_call_about_a_cluster_may_meet_every_fate() {
    let mut scenarios = Vec::new();
    for story in [ClusterStory::Dns, ClusterStory::Vip] {
        let calls = run_cluster(&ClusterScenario::new(1, story, Troubles::None)).calls;
        let all = (1..=calls).flat_map(|call| Fate::ALL.map(|fate| Troubles::One(Trouble { call, fate })));
        scenarios.extend(all.step_by(share()).map(|troubles| ClusterScenario::new(1, story, troubles)));
    }
    eprintln!("{}", explore(&scenarios));
}

#[test]
fn every_story_of_a_cluster_survives_a_bad_day() {
    let seeds = 0..(800 / u64::try_from(share()).unwrap());
    let scenario = |seed: u64| {
        let story = ClusterStory::ALL[usize::try_from(seed % 5).unwrap()];
        ClusterScenario::new(seed, story, Troubles::Seeded { seed, from: (seed / 5) % 10 * 8, most: 8 })
    };
    eprintln!("{}", explore(&seeds.map(scenario).collect::<Vec<_>>()));
}

#[test]
fn the_same_seed_is_the_same_life_of_a_cluster() {
    let scenario = ClusterScenario::new(7, ClusterStory::Dns, Troubles::Seeded { seed: 7, from: 0, most: 8 });
    assert_eq!(run_cluster(&scenario).digest, run_cluster(&scenario).digest);
}

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
