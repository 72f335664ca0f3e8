//! The life of one MaasCluster: the address of its API server, the zones of its machines, and their end. [`decide`] is the whole of it; the
//! manager calls it after every step.

mod addresses;
mod delete;
mod dns;
mod draft;
mod endpoint;
mod facts;
mod failures;
mod live;
mod members;
mod orders;
mod others;
mod plan;
mod reason;
mod vip;
mod zones;

pub use endpoint::{Endpoint, Origin};
pub use facts::{ApiServer, Facts, FailedStep, Learned, Member, OrderState, Record, RecordAddress, Reservation, Zone};
use jiff::Timestamp;
pub use members::{Membership, membership};
pub use others::{HeldByOther, Hold};
pub use plan::{LookAgain, Plan, Step, StepName};
pub use reason::{ALL as REASONS, SHARED as SHARED_REASONS};

use draft::Draft;

/// What to do about a MaasCluster.
pub fn decide(facts: &Facts, now: Timestamp) -> Plan {
    if facts.is_not_ours() {
        return Plan::nothing();
    }
    let mut draft = Draft::new(facts, now);
    let by_cluster = facts.cluster.as_ref().is_some_and(|cluster| cluster.paused);
    let by_annotation = facts.is_annotated(api::names::PAUSED);
    if by_cluster || by_annotation {
        return draft.paused(by_cluster, by_annotation);
    }
    draft.not_paused();
    if facts.is_deleting() { delete::decide(draft) } else { live::decide(draft) }
}
