//! The life of one `MaasRemediation`: a machine whose node is unhealthy is switched off and on, its node is waited for, and if that does not help
//! often enough, the Machine is left to its owner, which replaces it. [`decide`] is the whole of it; the manager calls it after every step.
//!
//! A remediation takes the power of a server at most once an attempt. The attempt is written down first, and only the pass that wrote it down may
//! tell MAAS; whoever finds it written down waits. The server is switched on again when its power controller says that it is off. The MaasMachine's
//! own rules also switch on what has no power: what they told MAAS less than two minutes ago is waited for, since two who switch on would start it
//! twice.

mod cycle;
mod draft;
mod facts;
mod failures;
mod gates;
mod give_up;
mod plan;
mod power;
mod reason;

pub use facts::{Facts, FailedStep, Learned, Ordered};
use jiff::Timestamp;
pub use plan::{LookAgain, Plan, Step, StepName};
pub use reason::ALL as REASONS;

use draft::Draft;

/// How the names of those begin who write intents on behalf of remediations.
pub const WRITER: &str = "remediation ";

/// What to do about a `MaasRemediation`.
pub fn decide(facts: &Facts, now: Timestamp) -> Plan {
    if facts.is_not_ours() {
        return Plan::nothing();
    }
    let mut draft = Draft::new(facts, now);
    let pauses = facts.pauses();
    if !pauses.is_empty() {
        return draft.paused(&pauses);
    }
    draft.not_paused();
    gates::decide(draft)
}
