//! How a machine is brought up and given back: attempts, deadlines, swap, erasing. Used by the spec of a machine.

use std::time::Duration;

use kube::{KubeSchema, core::Duration as GoDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definitions::leave_description_to_the_field;

/// Whether a machine gets swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = leave_description_to_the_field)]
pub enum Swap {
    /// No swap, where the MAAS user may change that.
    #[default]
    Off,
    /// Whatever MAAS does.
    Keep,
}

/// What happens to the disks of a machine that is given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = leave_description_to_the_field)]
pub enum Erase {
    /// What MAAS's own setting says.
    #[default]
    None,
    /// Only the beginning and the end of each disk.
    Quick,
    /// The disks' own secure erase.
    Secure,
    /// Secure erase where the disk has it, else every block is overwritten.
    Full,
}

/// How hard it is tried to bring up a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provisioning {
    /// How many machines are tried before it is given up; 3 if not given. With 1 a failed machine is kept as it is, for an administrator to look
    /// at.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub attempts: Option<u32>,
    /// How long to wait for a free machine before this counts as failed, such as `30m`. If not given, it waits until there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$"))]
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("the time must be longer than nothing: write for example 45m"))]
    pub allocate_timeout: Option<GoDuration>,
    /// How long a deployment may take before another machine is tried, such as `45m`; one hour if not given. MAAS itself gives up after the time in
    /// its own settings, 30 minutes without a sign of life by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$"))]
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("the time must be longer than nothing: write for example 45m"))]
    pub deploy_timeout: Option<GoDuration>,
    /// How long giving a machine back may take before a condition says that it hangs, such as `1h`. If not given, 30 minutes, with `erase` a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$"))]
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("the time must be longer than nothing: write for example 45m"))]
    pub release_timeout: Option<GoDuration>,
}

/// How long each phase of a machine may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Waiting for a free machine; nothing means for ever.
    pub allocate: Option<Duration>,
    /// From the order to deploy until the machine is deployed.
    pub deploy: Duration,
    /// From the order to release until the machine is free.
    pub release: Duration,
}

impl Provisioning {
    /// How many machines are tried when nothing is said.
    pub const DEFAULT_ATTEMPTS: u32 = 3;

    pub(crate) fn deadlines(&self, erase: Erase) -> Deadlines {
        let release = match erase {
            Erase::None => Duration::from_mins(30),
            // Overwriting a large disk takes most of a day.
            Erase::Quick | Erase::Secure | Erase::Full => Duration::from_hours(24),
        };
        Deadlines {
            allocate: self.allocate_timeout.map(Duration::from),
            deploy: self.deploy_timeout.map_or(Duration::from_hours(1), Duration::from),
            release: self.release_timeout.map_or(release, Duration::from),
        }
    }
}
