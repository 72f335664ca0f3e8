//! What MAAS calls a machine. Used wherever a machine of MAAS is meant and not an object of Kubernetes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A machine's name for MAAS: six letters and digits, for as long as MAAS knows the machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SystemId(Box<str>);

impl SystemId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SystemId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for SystemId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for SystemId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
