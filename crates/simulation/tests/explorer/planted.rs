//! Mistakes made on purpose, each by turning facts or plans around before the real rules see them or after: the witness finds every one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use decisions::{
    Lookup, Server, ServerStatus,
    machine::{Bootstrap, Facts, LookAgain, NodeFacts, Plan, Preparation, Step, answer_is_due, decide},
};
use jiff::Timestamp;
use manager::machine::Rules;
use simulation::explorer::{Aim, CallKind, Fate, Scenario, Story, Troubles, run};

/// Runs the story with these rules until the witness sees something; says what.
fn found(story: Story, decide: impl Fn(&Facts, Timestamp) -> Plan + Send + Sync + 'static) -> String {
    let rules = Rules { decide: Arc::new(decide), ..Rules::default() };
    found_with(story, &rules)
}

fn found_with(story: Story, rules: &Rules) -> String {
    found_in(story, rules, |seed| Troubles::Seeded { seed, from: 0, most: 6 })
}

fn found_in(story: Story, rules: &Rules, troubles: fn(u64) -> Troubles) -> String {
    for seed in 0..40 {
        let scenario = Scenario { rules: rules.clone(), ..Scenario::new(seed, story, troubles(seed)) };
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
    assert!(violation.starts_with("release of server") && violation.contains("somebody's who took it over by hand"), "{violation}");
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

/// The two minutes are counted from the time that is written, which may be that of a clock two minutes behind. Whoever waits for the answer
/// of the first allocation, which is carried out late, dies, and the next one has another clock.
#[test]
fn a_clock_of_another_computer_that_is_believed_is_found() {
    // It is waited on after the intent was written over, too, so what was believed is remembered with what it stands for.
    let believed = Mutex::new(BTreeMap::new());
    let believe_it = move |facts: &Facts, now| {
        let mut facts = facts.clone();
        let of_another = facts.intent().filter(|intent| intent.writer.as_ref() != Some(&facts.writer));
        let mut believed = believed.lock().unwrap();
        if let (Some(until), Some(since)) = (facts.unanswered_until, of_another.and_then(|intent| intent.since)) {
            believed.insert(until, answer_is_due(since));
        }
        facts.unanswered_until = facts.unanswered_until.map(|until| believed.get(&until).copied().unwrap_or(until));
        decide(&facts, now)
    };
    let rules = Rules { decide: Arc::new(believe_it), ..Rules::default() };
    let late_and_dead = |seed| {
        let aim = |kind: &str, nth, fate| Aim { kind: CallKind(kind.to_owned()), nth, fate };
        let late = aim("maas POST machines allocate", 1, Fate::LateCommit);
        Troubles::Aimed(vec![late, aim("maas GET machines", 3 + seed % 4, Fate::KilledBefore)])
    };
    let violation = found_in(Story::Plain, &rules, late_and_dead);
    assert!(violation.contains("a second allocation"), "{violation}");
}

#[test]
fn the_node_of_a_machine_in_use_that_is_removed_is_found() {
    let remove_it_too = |facts: &Facts, now| {
        let mut plan = decide(facts, now);
        if let (Some(Step::Release { .. }), Some(Lookup::Found(server))) = (&plan.step, &facts.recorded)
            && facts.node != NodeFacts::Absent
        {
            plan.step = Some(Step::RemoveNode { node: server.hostname.clone(), provider_id: facts.object.spec.provider_id.clone() });
        }
        plan
    };
    let rules = Rules { decide: Arc::new(remove_it_too), ..Rules::default() };
    let violation = found_in(Story::Joined, &rules, |_| Troubles::None);
    assert!(violation.contains("is removed, which is that of rack/"), "{violation}");
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
    let overwrite = |facts: &Facts, now| {
        let plan = decide(facts, now);
        let guard = plan.guard.clone().filter(|_| !matches!(plan.step, Some(Step::Intend { .. })));
        Plan { guard, ..plan }
    };
    let violation = found(Story::TwoLeaders, overwrite);
    assert!(violation.contains("is overwritten with"), "{violation}");
}

/// The rules, with an eye closed to pauses of some objects.
fn overlooking_pauses(of: fn(&Facts) -> bool) -> Rules {
    let overlook = move |facts: &Facts, now| {
        let mut facts = facts.clone();
        if of(&facts) {
            facts.object.metadata.annotations.iter_mut().for_each(|annotations| drop(annotations.remove("cluster.x-k8s.io/paused")));
            facts.cluster.iter_mut().for_each(|cluster| cluster.paused = false);
            // Nobody reads it for an object that is paused.
            facts.bootstrap = Bootstrap::NotWanted;
        }
        decide(&facts, now)
    };
    Rules { concerns_maas: |_| true, decide: Arc::new(overlook) }
}

#[test]
fn a_release_while_paused_is_found() {
    let violation = found_in(Story::Paused, &overlooking_pauses(deleting), |_| Troubles::None);
    assert!(violation.starts_with("release of server") && violation.contains("while it is paused"), "{violation}");
}

#[test]
fn an_allocation_while_paused_is_found() {
    let violation = found_in(Story::Paused, &overlooking_pauses(|facts| !deleting(facts)), |_| Troubles::None);
    assert!(violation.contains("is allocated for rack/c while it is paused"), "{violation}");
}

#[test]
fn another_server_for_an_object_that_was_handed_over_is_found() {
    let take_another = |facts: &Facts, now| {
        let mut facts = facts.clone();
        let is_lost = match &facts.recorded {
            Some(Lookup::Found(server)) => server.owner.is_none() || server.status == ServerStatus::FailedDeployment,
            Some(Lookup::Missing) => true,
            _ => false,
        };
        if is_lost && !deleting(&facts) {
            facts.object.spec.provider_id = None;
        }
        decide(&facts, now)
    };
    let violation = found(Story::GoneWrong, take_another);
    assert!(violation.contains("was handed over as"), "{violation}");
}

#[test]
fn a_second_release_is_found() {
    let release_until_it_is_gone = |facts: &Facts, now| {
        let mut facts = facts.clone();
        let (deleting, intent) = (deleting(&facts), facts.intent());
        if let (true, Some(intent), Some(Lookup::Found(server))) = (deleting, intent, &mut facts.recorded)
            && (server.owner.is_none() || server.status == ServerStatus::Releasing)
        {
            server.owner = Some("admin".to_owned());
            server.status = ServerStatus::Deployed;
            server.marks.insert("metalshift-claim".to_owned(), intent.claim.to_string());
        }
        decide(&facts, now)
    };
    let violation = found(Story::Plain, release_until_it_is_gone);
    assert!(violation.contains("is released a second time"), "{violation}");
}

#[test]
fn a_storm_of_calls_is_found() {
    let never_rest = |facts: &Facts, now| {
        let mut plan = decide(facts, now);
        if plan.step.is_none() && !deleting(facts) {
            plan.look_again = LookAgain::After(Duration::from_millis(100));
        }
        plan
    };
    let rules = Rules { decide: Arc::new(never_rest), ..Rules::default() };
    let violation = found_in(Story::DeletedEarly, &rules, |_| Troubles::None);
    assert!(violation.starts_with("a storm"), "{violation}");
}

#[test]
fn an_address_that_nobody_claimed_is_found() {
    let take_any = |facts: &Facts, now| {
        let mut facts = facts.clone();
        if let Some(wanted) = facts.object.spec.static_ip.as_mut().filter(|wanted| wanted.ip.is_some()) {
            wanted.ip = Some("10.30.0.240".to_owned());
        }
        for found in facts.pooled.values_mut() {
            if let Lookup::Found(address) = found {
                address.spec.address = "10.30.0.240".to_owned();
            }
        }
        decide(&facts, now)
    };
    let violation = found(Story::Pooled, take_any);
    assert!(violation.contains("gets Some(\"10.30.0.240\"), and its claim was given Some(\"10.30.0.20"), "{violation}");
}

#[test]
fn a_claim_that_goes_before_its_address_is_off_the_server_is_found() {
    let let_go_with_the_address = |facts: &Facts, now| {
        let mut plan = decide(facts, now);
        if deleting(facts) && matches!(plan.step, Some(Step::Prepare { preparation: Preparation::Unlink { .. }, .. })) {
            plan.step = Some(Step::RemoveFinalizer);
        }
        plan
    };
    let rules = Rules { decide: Arc::new(let_go_with_the_address), ..Rules::default() };
    let made = |seed| run(&Scenario { rules: rules.clone(), ..Scenario::new(seed, Story::Pooled, Troubles::None) });
    let seen = made(0).violations;
    assert!(seen.iter().any(|violation| violation.0.contains("addresses are held for nobody")), "{seen:?}");
}

#[test]
fn an_address_of_a_pool_that_is_not_held_is_found() {
    let never_hold = |facts: &Facts, now| {
        let mut facts = facts.clone();
        if let Some(wanted) = facts.object.spec.static_ip.as_mut().filter(|wanted| wanted.ip.is_some()) {
            wanted.pool_ref = None;
        }
        decide(&facts, now)
    };
    let violation = found(Story::Pooled, never_hold);
    assert!(violation.contains("goes back to its pool while"), "{violation}");
}

#[test]
fn an_address_of_a_pool_that_is_let_go_early_is_found() {
    let let_go_before_the_release = |facts: &Facts, now| {
        let mut plan = decide(facts, now);
        let held = facts.pooled.values().filter_map(Lookup::found).find(|address| address.metadata.finalizers.is_some());
        if deleting(facts) && matches!(plan.step, Some(Step::Release { .. })) {
            let name = facts.intent().and_then(|intent| intent.pooled.last().cloned());
            plan.step = match (held, name) {
                (Some(address), _) => Some(Step::FreeAddress(Box::new(address.clone()))),
                (None, Some(address)) if facts.pooled.is_empty() => Some(Step::LookForAddress { address }),
                (None, _) => plan.step,
            };
        }
        plan
    };
    let violation = found(Story::Pooled, let_go_before_the_release);
    assert!(violation.contains("is let go while"), "{violation}");
}
