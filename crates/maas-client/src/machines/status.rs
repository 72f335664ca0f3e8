//! The states of a machine and its scripts.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// Where a machine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "i64")]
#[expect(missing_docs, reason = "they are MAAS's own names")]
pub enum MachineStatus {
    New,
    Commissioning,
    FailedCommissioning,
    Missing,
    Ready,
    Reserved,
    Deployed,
    Retired,
    Broken,
    Deploying,
    Allocated,
    FailedDeployment,
    Releasing,
    ReleasingFailed,
    DiskErasing,
    FailedDiskErasing,
    RescueMode,
    EnteringRescueMode,
    FailedEnteringRescueMode,
    ExitingRescueMode,
    FailedExitingRescueMode,
    Testing,
    FailedTesting,
    /// One this client does not know; -1 if the answer had none.
    Other(i64),
}

/// In the order of their numbers, with MAAS's name for people and the one filters take.
const STATUSES: [(MachineStatus, &str, &str); 23] = [
    (MachineStatus::New, "New", "new"),
    (MachineStatus::Commissioning, "Commissioning", "commissioning"),
    (MachineStatus::FailedCommissioning, "Failed commissioning", "failed_commissioning"),
    (MachineStatus::Missing, "Missing", "missing"),
    (MachineStatus::Ready, "Ready", "ready"),
    (MachineStatus::Reserved, "Reserved", "reserved"),
    (MachineStatus::Deployed, "Deployed", "deployed"),
    (MachineStatus::Retired, "Retired", "retired"),
    (MachineStatus::Broken, "Broken", "broken"),
    (MachineStatus::Deploying, "Deploying", "deploying"),
    (MachineStatus::Allocated, "Allocated", "allocated"),
    (MachineStatus::FailedDeployment, "Failed deployment", "failed_deployment"),
    (MachineStatus::Releasing, "Releasing", "releasing"),
    (MachineStatus::ReleasingFailed, "Releasing failed", "releasing_failed"),
    (MachineStatus::DiskErasing, "Disk erasing", "disk_erasing"),
    (MachineStatus::FailedDiskErasing, "Failed disk erasing", "failed_disk_erasing"),
    (MachineStatus::RescueMode, "Rescue mode", "rescue_mode"),
    (MachineStatus::EnteringRescueMode, "Entering rescue mode", "entering_rescue_mode"),
    (MachineStatus::FailedEnteringRescueMode, "Failed to enter rescue mode", "failed_entering_rescue_mode"),
    (MachineStatus::ExitingRescueMode, "Exiting rescue mode", "exiting_rescue_mode"),
    (MachineStatus::FailedExitingRescueMode, "Failed to exit rescue mode", "failed_exiting_rescue_mode"),
    (MachineStatus::Testing, "Testing", "testing"),
    (MachineStatus::FailedTesting, "Failed testing", "failed_testing"),
];

impl MachineStatus {
    /// What the `status` filter calls it; nothing for one this client does not know.
    pub fn filter_name(self) -> Option<&'static str> {
        STATUSES.iter().find(|(status, ..)| *status == self).map(|(_, _, filter)| *filter)
    }
}

impl From<i64> for MachineStatus {
    fn from(number: i64) -> Self {
        usize::try_from(number).ok().and_then(|index| STATUSES.get(index)).map_or(Self::Other(number), |(status, ..)| *status)
    }
}

impl From<MachineStatus> for i64 {
    fn from(status: MachineStatus) -> Self {
        match status {
            MachineStatus::Other(number) => number,
            known => (0..).zip(STATUSES).find(|(_, (status, ..))| *status == known).map_or(-1, |(number, _)| number),
        }
    }
}

impl fmt::Display for MachineStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, STATUSES.iter().find(|(status, ..)| status == self)) {
            (_, Some((_, name, _))) => formatter.write_str(name),
            (status, None) => write!(formatter, "status {}", i64::from(*status)),
        }
    }
}

/// Not 0, which is New.
impl Default for MachineStatus {
    fn default() -> Self {
        Self::Other(-1)
    }
}

impl<'de> Deserialize<'de> for MachineStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map_or_else(Self::default, Self::from))
    }
}

/// Whether a machine has power, as far as MAAS knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum PowerState {
    /// It has.
    On,
    /// It has not.
    Off,
    /// MAAS cannot tell, for example because a person switches it.
    #[default]
    Unknown,
    /// Asking failed.
    Error,
    /// One this client does not know.
    Other(String),
}

impl From<String> for PowerState {
    fn from(text: String) -> Self {
        match text.as_str() {
            "on" => Self::On,
            "off" => Self::Off,
            "unknown" | "" => Self::Unknown,
            "error" => Self::Error,
            _ => Self::Other(text),
        }
    }
}

impl From<PowerState> for String {
    fn from(state: PowerState) -> Self {
        match state {
            PowerState::On => "on".to_owned(),
            PowerState::Off => "off".to_owned(),
            PowerState::Unknown => "unknown".to_owned(),
            PowerState::Error => "error".to_owned(),
            PowerState::Other(text) => text,
        }
    }
}

/// How the scripts of one kind ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "i64")]
#[expect(missing_docs, reason = "they are MAAS's own names")]
pub enum ScriptStatus {
    /// None has run.
    #[default]
    Unknown,
    Pending,
    Running,
    Passed,
    Failed,
    /// One this client does not name, such as timed out or aborted.
    Other(i64),
}

impl From<i64> for ScriptStatus {
    fn from(number: i64) -> Self {
        match number {
            -1 => Self::Unknown,
            0 => Self::Pending,
            1 => Self::Running,
            2 => Self::Passed,
            3 => Self::Failed,
            other => Self::Other(other),
        }
    }
}

impl From<ScriptStatus> for i64 {
    fn from(status: ScriptStatus) -> Self {
        match status {
            ScriptStatus::Unknown => -1,
            ScriptStatus::Pending => 0,
            ScriptStatus::Running => 1,
            ScriptStatus::Passed => 2,
            ScriptStatus::Failed => 3,
            ScriptStatus::Other(number) => number,
        }
    }
}

impl<'de> Deserialize<'de> for ScriptStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map_or_else(Self::default, Self::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_the_status_it_says_and_back() {
        for number in -2..30 {
            assert_eq!(i64::from(MachineStatus::from(number)), number);
            assert_eq!(i64::from(ScriptStatus::from(number)), number);
        }
        assert_eq!(MachineStatus::from(11).to_string(), "Failed deployment");
        assert_eq!(MachineStatus::Deployed.filter_name(), Some("deployed"));
    }
}
