//! Which MAAS the emulator is: the differences between releases that a client can see.

use serde::{Deserialize, Serialize};

/// A release line of MAAS, oldest first so that `since` reads as a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Version {
    /// 3.0: power by RPC, conflicts without `Retry-After`, nameless 404.
    #[serde(rename = "3.0")]
    V3_0,
    /// 3.3: 404 names the model, conflicts say when to retry.
    #[serde(rename = "3.3")]
    V3_3,
    /// 3.5: Temporal, release scripts, the `deployment_target` filter.
    #[serde(rename = "3.5")]
    V3_5,
    /// 3.7: what the recordings were made with.
    #[default]
    #[serde(rename = "3.7")]
    V3_7,
    /// A MAAS after VM hosts were taken out: their endpoints answer 410.
    #[serde(rename = "removed")]
    Removed,
}

impl Version {
    /// What `version/` answers.
    pub fn full(self) -> &'static str {
        match self {
            Version::V3_0 => "3.0.1",
            Version::V3_3 => "3.3.10",
            Version::V3_5 => "3.5.10",
            Version::V3_7 => "3.7.3",
            Version::Removed => "3.8.0",
        }
    }

    /// Which frames its pages may be in. Django says so for it, and 3.0 to 3.2 came with one that still took those of the same origin.
    pub fn frames(self) -> &'static str {
        if self < Version::V3_3 { "SAMEORIGIN" } else { "DENY" }
    }

    /// Whether this MAAS still composes virtual machines.
    pub fn has_vm_hosts(self) -> bool {
        self != Version::Removed
    }
}

impl std::str::FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "3.0" => Ok(Version::V3_0),
            "3.3" => Ok(Version::V3_3),
            "3.5" => Ok(Version::V3_5),
            "3.7" => Ok(Version::V3_7),
            "removed" => Ok(Version::Removed),
            other => Err(UnknownVersion(other.to_owned())),
        }
    }
}

/// A version the emulator does not know.
#[derive(Debug, thiserror::Error)]
#[error("version \"{0}\" is not emulated: take 3.0, 3.3, 3.5, 3.7 or removed")]
pub struct UnknownVersion(String);
