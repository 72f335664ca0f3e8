//! Without trouble everything goes its way, and the same seed is the same run.

use std::collections::BTreeSet;

use simulation::explorer::{ClusterStory, Story, Troubles};

use crate::{
    explore::{Run, Tale},
    kinds::every_kind,
};

#[test]
fn every_story_ends_well_when_nothing_goes_wrong_and_together_they_make_every_kind_of_call() {
    let mut made = BTreeSet::new();
    for tale in Tale::all() {
        let outcome = tale.run(1, Troubles::None).make();
        eprintln!("{tale:?}: {} calls", outcome.calls);
        for (kind, calls) in &outcome.calls_by_kind {
            eprintln!("    {calls:>6} {kind}");
        }
        assert_eq!(outcome.violations, [], "{tale:?}");
        made.extend(outcome.calls_by_kind.into_keys());
    }
    let told = every_kind();
    let (vanished, unknown): (Vec<_>, Vec<_>) = (told.difference(&made).collect(), made.difference(&told).collect());
    assert!(vanished.is_empty() && unknown.is_empty(), "no story makes {vanished:?} any more, and {unknown:?} are not in the list");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for tale in [Tale::Machines(Story::Plain), Tale::Cluster(ClusterStory::Dns)] {
        let run = tale.run(7, Troubles::Seeded { seed: 7, from: 0, most: 8 });
        assert_eq!(run.make().digest, run.make().digest, "{run}");
    }
}

#[test]
fn a_run_reads_as_it_is_told() {
    let run = Tale::Machines(Story::Scarce).run(3, Troubles::Seeded { seed: 3, from: 14, most: 8 });
    assert_eq!(Run::read(&run.to_string()).map(|read| read.to_string()), Some(run.to_string()));
    assert!(Run::read("Machines(Nothing) 3 nothing").is_none());
}
