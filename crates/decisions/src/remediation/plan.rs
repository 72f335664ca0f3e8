//! What can be done about one `MaasRemediation`, step by step.

use api::{Intent, MaasRemediationStatus, SystemId};
use jiff::Timestamp;

pub use crate::LookAgain;

/// What to do about one `MaasRemediation`.
pub type Plan = crate::Plan<Step, MaasRemediationStatus>;

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Writes on the MaasMachine when MAAS was last about to be told something, guarded by the version it was decided on.
    Intend {
        /// The intent.
        intent: Intent,
    },
    /// Writes the attempt down: shows the status, guarded by the version of the object. Only then MAAS is told to take power away.
    Begin,
    /// Looks at the server again.
    Look {
        /// The server.
        server: SystemId,
    },
    /// Asks the server's power controller.
    QueryPower {
        /// The server.
        server: SystemId,
    },
    /// Takes the server's power.
    PowerOff {
        /// The server.
        server: SystemId,
        /// Why, for MAAS's log.
        comment: String,
        /// Not after this.
        not_after: Timestamp,
    },
    /// Switches the server on.
    PowerOn {
        /// The server.
        server: SystemId,
        /// Why, for MAAS's log.
        comment: String,
        /// Not after this.
        not_after: Timestamp,
    },
    /// Leaves the Machine to its owner: its condition `OwnerRemediated` becomes False.
    HandOver {
        /// Why.
        message: String,
    },
}

/// The name of a step, for what failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "as in Step")]
pub enum StepName {
    Intend,
    Begin,
    Look,
    QueryPower,
    PowerOff,
    PowerOn,
    HandOver,
}

impl Step {
    /// Its name.
    pub fn name(&self) -> StepName {
        match self {
            Self::Intend { .. } => StepName::Intend,
            Self::Begin => StepName::Begin,
            Self::Look { .. } => StepName::Look,
            Self::QueryPower { .. } => StepName::QueryPower,
            Self::PowerOff { .. } => StepName::PowerOff,
            Self::PowerOn { .. } => StepName::PowerOn,
            Self::HandOver { .. } => StepName::HandOver,
        }
    }
}
