//! Many things go wrong in one run, as seeds have it, in every story.

use simulation::explorer::{Scenario, Story, Troubles};

use crate::single::{explore, share};

#[test]
fn every_story_survives_a_bad_day() {
    let seeds = 0..(4200 / u64::try_from(share()).unwrap());
    let scenario = |seed: u64| {
        let story = Story::ALL[usize::try_from(seed % 7).unwrap()];
        Scenario::new(seed, story, Troubles::Seeded { seed, from: (seed / 7) % 10 * 14, most: 8 })
    };
    let matrix = explore(seeds.map(scenario));
    eprintln!("{matrix}");
}
