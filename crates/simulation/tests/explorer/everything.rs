//! Every kind of call meets every fate, in every story: one thing at every single call, many things as seeds have it, and aimed at what
//! happens rarely. The matrix is the sum of all.

use std::time::Instant;

use simulation::explorer::{ClusterStory, Fate, Story, Trouble, Troubles};

use crate::{
    aimed::{self, Calls},
    explore::{Run, Tale, Tally, explore, share},
};

/// One thing goes wrong, at every single call of create, keep and delete. Of the calls that only ask what is new, as happens every second,
/// some are enough, but the process of machines ends at each. What only takes long is much like what is late: every third call does. Two
/// clusters at one address do much that one does, and so does every fourth of their calls.
fn one_thing() -> Vec<Run> {
    let mut runs = Vec::new();
    let clusters = [(ClusterStory::Dns, 1), (ClusterStory::Given, 1), (ClusterStory::Vip, 1), (ClusterStory::VipOfTwo, 4)];
    let clusters = clusters.map(|(story, every)| (Tale::Cluster(story), 24, every));
    for (tale, polls, every) in [(Tale::Machines(Story::Plain), 6, 1)].into_iter().chain(clusters) {
        let outcome = tale.run(1, Troubles::None).make();
        let is_poll = |call: u64| outcome.kinds[usize::try_from(call - 1).unwrap()].polls();
        let takes_long = |fate: Fate| matches!(fate, Fate::Slow | Fate::HungBefore | Fate::HungAfter);
        let counts = |call: u64, fate: Fate| {
            let is_one = !is_poll(call) || call.is_multiple_of(polls) || (tale == Tale::Machines(Story::Plain) && fate.kills());
            is_one && call.is_multiple_of(every) && (!takes_long(fate) || call.is_multiple_of(3))
        };
        let all = (1..=outcome.calls).flat_map(|call| Fate::ALL.map(|fate| (call, fate))).filter(|(call, fate)| counts(*call, *fate));
        runs.extend(all.map(|(call, fate)| tale.run(1, Troubles::One(Trouble { call, fate }))));
    }
    runs
}

/// Many things go wrong in one run, as its seed has it.
fn many_things() -> Vec<Run> {
    let machines = (0..1358).map(|seed| {
        let story = Story::ALL[usize::try_from(seed).unwrap() % Story::ALL.len()];
        let from = (seed / 14) % 10 * 14;
        Tale::Machines(story).run(seed, Troubles::Seeded { seed, from, most: 8 })
    });
    let clusters = (0..600).map(|seed| {
        let story = ClusterStory::ALL[usize::try_from(seed).unwrap() % ClusterStory::ALL.len()];
        Tale::Cluster(story).run(seed, Troubles::Seeded { seed, from: (seed / 5) % 10 * 8, most: 8 })
    });
    machines.chain(clusters).collect()
}

fn part(name: &str, tally: &mut Tally, runs: Vec<Run>, every: usize) {
    let runs: Vec<Run> = runs.into_iter().step_by(every).collect();
    let began = Instant::now();
    tally.add(explore(&runs));
    eprintln!("{name}: {} runs in {:.0?}", runs.len(), began.elapsed());
}

#[test]
fn every_kind_of_call_meets_every_fate_and_nothing_is_violated() {
    let mut tally = Tally::default();
    part("one thing at every call", &mut tally, one_thing(), share());
    part("many things", &mut tally, many_things(), share());
    let calls = Calls::of_every_tale();
    // To fill every cell takes many minutes: EXPLORER_FULL=1 does it, in a build with optimisations.
    let full = std::env::var_os("EXPLORER_FULL").is_some();
    let (rounds, every) = match (full, cfg!(debug_assertions)) {
        (true, _) => (20, 1),
        (false, true) => (1, 16 * share()),
        (false, false) => (1, 8),
    };
    for round in 1..=rounds {
        let runs = aimed::runs(&tally.matrix, &calls, round);
        if runs.is_empty() {
            break;
        }
        part("aimed at what is rare", &mut tally, runs, every);
    }
    eprintln!("{}\n{} runs", tally.matrix, tally.runs);
    eprintln!("most calls: {} in {}\nmost calls within 20 s: {} in {}", tally.longest.0, tally.longest.1, tally.busiest.0, tally.busiest.1);
    let lacking = aimed::lacking(&tally.matrix);
    assert!(!full || lacking.is_empty(), "these cells are not full, and lack so much: {lacking:?}");
}

/// Looks at one run that was told, with every call: `EXPLORER_TELL=1 EXPLORER_RUN='...' cargo test -p simulation --test explorer one_run`.
#[test]
fn one_run_that_was_told_violates_nothing() {
    let Ok(text) = std::env::var("EXPLORER_RUN") else { return };
    let run = Run::read(&text).expect("EXPLORER_RUN is a run as the explorer tells it");
    let tally = explore(&[run]);
    eprintln!("{} calls, at most {} within 20 s\n{}", tally.longest.0, tally.busiest.0, tally.matrix);
}
