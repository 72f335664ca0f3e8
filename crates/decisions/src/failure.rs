//! What came of a call that did not succeed, as far as rules tell it apart, with the words of whoever refused it.

use std::{fmt, time::Duration};

/// A call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What it means for what comes next.
    pub kind: FailureKind,
    /// What MAAS or Kubernetes said.
    pub words: String,
}

/// A step that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStep<StepName> {
    /// Which.
    pub step: StepName,
    /// Why.
    pub failure: Failure,
}

/// What a failure means for what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No access is configured, or it cannot be read.
    NoAccess,
    /// MAAS does not accept the key.
    Unauthenticated,
    /// MAAS found fault with the request: the same will be refused again.
    Refused,
    /// There is no such object.
    NotFound,
    /// The user may not do this.
    NotPermitted,
    /// The state of things does not allow it.
    Conflict,
    /// It may succeed after this time.
    Later(Duration),
    /// Nobody is there, so nothing was done.
    Unavailable,
    /// MAAS began and failed: part of it may have been done.
    HalfDone,
    /// Nobody knows whether it was done or still will be.
    Unknown,
    /// This MAAS has no such thing any more.
    Gone,
    /// What answered is not a MAAS.
    NotMaas,
    /// The object changed in Kubernetes since it was read: nothing was done.
    Stale,
    /// Kubernetes did not do it.
    Kubernetes,
    /// The step was not begun because the evidence for it had become too old.
    Expired,
}

impl FailureKind {
    /// Whether MAAS itself said no: nothing was done, and as things are the answer will be the same again.
    pub fn is_refusal(self) -> bool {
        match self {
            Self::Refused | Self::NotFound | Self::NotPermitted | Self::Conflict => true,
            Self::NoAccess
            | Self::Unauthenticated
            | Self::Later(_)
            | Self::Unavailable
            | Self::HalfDone
            | Self::Unknown
            | Self::Gone
            | Self::NotMaas
            | Self::Stale
            | Self::Kubernetes
            | Self::Expired => false,
        }
    }

    /// Whether the call may have changed something, now or soon.
    pub fn may_have_changed_something(self) -> bool {
        match self {
            Self::HalfDone | Self::Unknown => true,
            Self::NoAccess
            | Self::Unauthenticated
            | Self::Refused
            | Self::NotFound
            | Self::NotPermitted
            | Self::Conflict
            | Self::Later(_)
            | Self::Unavailable
            | Self::Gone
            | Self::NotMaas
            | Self::Stale
            | Self::Kubernetes
            | Self::Expired => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words)
    }
}
