//! Many things go wrong in one run, as seeds have it, in every story.

use simulation::explorer::{Scenario, Story, Troubles};

use crate::single::{explore, share};

/// What a seed means; `EXPLORER_SEED=n EXPLORER_TELL=1` looks at one run, with every call.
fn scenario(seed: u64) -> Scenario {
    let story = Story::ALL[usize::try_from(seed % 7).unwrap()];
    Scenario::new(seed, story, Troubles::Seeded { seed, from: (seed / 7) % 10 * 14, most: 8 })
}

#[test]
fn every_story_survives_a_bad_day() {
    let one = std::env::var("EXPLORER_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let all = 0..(2800 / u64::try_from(share()).unwrap());
    let seeds: Vec<u64> = one.map_or_else(|| all.collect(), |seed| vec![seed]);
    let matrix = explore(seeds.into_iter().map(scenario));
    eprintln!("{matrix}");
}
