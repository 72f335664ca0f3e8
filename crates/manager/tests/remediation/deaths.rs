//! The process dies, and answers get lost: no attempt takes the power twice.

use std::{sync::Arc, time::Duration};

use decisions::remediation::{Facts, decide};
use maas_emulator::faults::CallHarm;
use manager::remediation::Rules;
use serde_json::json;
use tokio::time::sleep;

use crate::world::World;

/// Kills the process after this time and starts another. How often the power was taken for the one attempt that is allowed.
async fn cycles_when_killed_after(milliseconds: u64, harm: CallHarm, rules: &Rules) -> usize {
    let world = World::with_a_machine().await;
    world.inject("power_off", harm);
    world
        .play_with(rules.clone(), async {
            world.becomes_unhealthy(json!({"timeout": "10m"})).await;
            sleep(Duration::from_millis(milliseconds)).await;
        })
        .await;
    world.play_with(rules.clone(), sleep(Duration::from_mins(15))).await;
    assert_eq!(world.remediation()["status"]["attempts"], 1, "killed after {milliseconds} ms");
    assert!(world.has_power(), "killed after {milliseconds} ms: it was left without power");
    world.power_cycles()
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_killed_at_any_moment_takes_the_power_at_most_once_for_one_attempt() {
    // MAAS takes its time, so that there is a middle of the call to die in, or does it after nobody listens any more.
    for harm in [CallHarm::Slow { seconds: 15.0 }, CallHarm::LateCommit { seconds: 20.0 }] {
        let mut most = 0;
        for milliseconds in [0, 1, 2, 5, 10, 50, 100, 400, 1_500, 5_000, 14_900, 15_200, 21_000, 60_000, 119_000] {
            let cycles = cycles_when_killed_after(milliseconds, harm.clone(), &Rules::default()).await;
            assert!(cycles <= 1, "{harm:?}, killed after {milliseconds} ms: {cycles} times");
            most = most.max(cycles);
        }
        assert_eq!(most, 1, "the power was never taken, so this shows nothing");
    }
}

/// A mistake: an attempt that somebody wrote down is carried out by whoever finds it.
fn carries_out_what_it_finds() -> Rules {
    let decide = |facts: &Facts, now| {
        let reason = |status: &api::MaasRemediationStatus| {
            api::condition::find(&status.conditions, "Remediated").map(|condition| condition.reason.clone()).unwrap_or_default()
        };
        let unclear = |status: &&api::MaasRemediationStatus| ["PowerCycling", "MaasAnswerOutstanding"].contains(&reason(status).as_str());
        match facts.object.status.as_ref().filter(unclear).filter(|_| facts.before_attempt.is_none()) {
            Some(status) => {
                let mut object = facts.object.clone();
                object.status = Some(api::MaasRemediationStatus { attempts: None, last_remediated: None, ..status.clone() });
                decide(&Facts { object, shown: None, ..facts.clone() }, now)
            }
            None => decide(facts, now),
        }
    };
    Rules { decide: Arc::new(decide) }
}

#[tokio::test(start_paused = true)]
async fn planted_an_attempt_that_is_carried_out_by_whoever_finds_it_takes_the_power_twice() {
    assert!(cycles_when_killed_after(10_000, CallHarm::ResetBefore, &carries_out_what_it_finds()).await > 1);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_nobody_answered_is_not_repeated_and_the_machine_gets_its_power_back() {
    for harm in [CallHarm::ResetAfter, CallHarm::LateCommit { seconds: 80.0 }, CallHarm::ResetBefore] {
        let world = World::with_a_machine().await;
        world.inject("power_off", harm.clone());
        world
            .play(async {
                world.becomes_unhealthy(json!({"timeout": "30m"})).await;
                sleep(Duration::from_mins(10)).await;
                assert_eq!(world.remediation()["status"]["attempts"], 1, "{harm:?}");
                assert!(world.power_cycles() <= 1 && world.has_power(), "{harm:?}: {:?}", world.power_calls());
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_maas_did_not_take_costs_no_attempt() {
    let world = World::with_a_machine().await;
    for _ in 0..8 {
        world.inject("power_off", CallHarm::Conflict);
    }
    world
        .play(async {
            world.becomes_unhealthy(json!({"timeout": "30m"})).await;
            world.until("it is on again", |world| world.power_calls().contains(&"power_on".to_owned()) && world.has_power()).await;
            assert_eq!(world.remediation()["status"]["attempts"], 1);
            world.until("its node is waited for", |world| world.state() == "Running/WaitingForNode").await;
        })
        .await;
}
