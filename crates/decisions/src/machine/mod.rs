//! The life of one MaasMachine: from the wish for a machine, over a server of MAAS that is claimed, allocated, marked, recorded, deployed
//! and handed to Cluster API, to its release. [`decide`] is the whole of it; the manager calls it after every step.

mod acquire;
mod delete;
mod draft;
mod facts;
mod failures;
mod keep;
mod links;
mod live;
mod lost;
mod order;
mod ours;
mod plan;
mod pooled;
mod prepare;
mod reason;
mod release;
mod retry;
mod surplus;
mod waits;

use std::time::Duration;

pub use facts::{AccountFacts, Bootstrap, Candidate, Facts, FailedStep, ImageCheck, Learned, NodeFacts};
use jiff::Timestamp;
pub use order::{answer_is_due, answer_to_another_is_due};
pub use plan::{Allocation, Constraints, Deployment, LookAgain, Plan, Preparation, Step, StepName};
pub use reason::Reason;
pub(crate) use reason::{calm, trouble, waits_for};

use draft::Draft;

/// Nothing is done to a server on a look that is older than this.
pub const FRESH_FOR: Duration = Duration::from_secs(10);
/// MAAS is told to do something within this time after the intent was written, or not at all.
pub const SEND_WITHIN: Duration = Duration::from_secs(20);
/// How long after the intent MAAS may still do what it was told: it tries for 90 s what was sent within [`SEND_WITHIN`].
pub const LATE_COMMIT: Duration = Duration::from_mins(2);

/// What to do about a MaasMachine.
pub fn decide(facts: &Facts, now: Timestamp) -> Plan {
    let deleting = facts.object.metadata.deletion_timestamp.is_some();
    let annotated = |name| facts.object.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(name));
    if annotated(api::names::MANAGED_BY) || (facts.machine.is_none() && !deleting) {
        return Plan::nothing();
    }
    let mut draft = Draft::new(facts, now);
    let cluster_is_paused = facts.cluster.as_ref().is_some_and(|cluster| cluster.paused);
    if cluster_is_paused || annotated(api::names::PAUSED) {
        return draft.paused(cluster_is_paused, annotated(api::names::PAUSED));
    }
    draft.not_paused();
    if deleting { delete::decide(draft) } else { live::decide(draft) }
}
