//! A pause is noticed by whatever is under way.

use simulation::explorer::{Aim, CallKind, Fate, Story, Troubles};

use crate::explore::{Run, Tale, explore};

/// Nobody answers when the first server is marked, and meanwhile the Cluster is paused: what comes next is not done before it goes on. The
/// seeds are even, since those pause the Cluster and not the object, whose version would change by that.
#[test]
fn a_pass_that_hung_notices_that_its_cluster_was_paused_meanwhile() {
    let mark = CallKind("maas POST machines/{} set_workload_annotations".to_owned());
    let hangs = |nth| Aim { kind: mark.clone(), nth, fate: Fate::HungAfter };
    let runs: Vec<Run> =
        (0..40).step_by(2).map(|seed| Tale::Machines(Story::Paused).run(seed, Troubles::Aimed(vec![hangs(1), hangs(2)]))).collect();
    let tally = explore(&runs);
    assert_eq!(tally.matrix.at(&mark, Fate::HungAfter), 40, "every mark hangs: {}", tally.matrix);
}
