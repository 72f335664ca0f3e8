//! Without trouble everything goes its way, and the same seed is the same run.

use simulation::explorer::{Scenario, Story, Troubles, run};

#[test]
fn every_story_ends_well_when_nothing_goes_wrong() {
    for story in Story::ALL {
        let outcome = run(&Scenario::new(1, story, Troubles::None));
        eprintln!("{story:?}: {} calls", outcome.calls);
        for (kind, calls) in &outcome.calls_by_kind {
            eprintln!("    {calls:>6} {kind}");
        }
        assert_eq!(outcome.violations, [], "{story:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let scenario = Scenario::new(7, Story::Plain, Troubles::Seeded { seed: 7, from: 0, most: 8 });
    assert_eq!(run(&scenario).digest, run(&scenario).digest);
}
