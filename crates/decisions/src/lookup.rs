//! What came of looking for something. "Not there", "not allowed" and "not answered" are facts like any other.

use crate::Failure;

/// The result of a look.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup<T> {
    /// It is there.
    Found(T),
    /// It is not there.
    Missing,
    /// It may be there, but is not for us to see.
    Forbidden,
    /// Nobody knows.
    Failed(Failure),
    /// It was changed since it was last looked at, so what was seen does not count any more.
    Outdated,
}

impl<T> Lookup<T> {
    /// What was found.
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(value) => Some(value),
            Self::Missing | Self::Forbidden | Self::Failed(_) | Self::Outdated => None,
        }
    }
}
