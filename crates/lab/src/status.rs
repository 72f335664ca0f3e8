//! What `lab status` shows, as data.

use std::fs;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Level;

/// A whole lab at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LabStatus {
    /// The lab's name.
    pub name: String,
    /// Its level.
    pub level: Level,
    /// Since when everything answered; nothing while it is starting.
    pub ready_since: Option<Timestamp>,
    /// Its processes.
    pub components: Vec<ComponentStatus>,
    /// Its machines (level nodes).
    pub machines: Vec<MachineStatus>,
}

/// A component of the management cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComponentStatus {
    /// Its name, also that of its log.
    pub name: String,
    /// What it does now.
    pub state: ComponentState,
    /// What a person would connect to.
    pub address: String,
    /// Its process inside the lab.
    pub process_id: Option<u32>,
    /// Resident memory.
    pub memory_bytes: Option<u64>,
    /// Since when it runs, or since when it does not.
    pub since: Timestamp,
    /// How often it died and was started again.
    pub restarts: u32,
    /// How it ended the last time.
    pub last_exit: Option<String>,
}

/// What a component does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComponentState {
    /// It was started and has not answered yet.
    Starting,
    /// It answers.
    Running,
    /// It died and will be started again.
    Restarting,
}

/// A machine of the lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MachineStatus {
    /// Its name, also its host name.
    pub name: String,
    /// What somebody else knows it by, such as the system id of a MAAS.
    #[serde(default)]
    pub tag: Option<String>,
    /// Whether it has power, and how far its boot is.
    pub state: MachineState,
    /// Its address in the lab's network.
    pub address: std::net::Ipv4Addr,
    /// The first process of the machine, inside the lab.
    pub process_id: Option<u32>,
    /// Resident memory of everything on it.
    pub memory_bytes: Option<u64>,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// The words of a failed boot, or how a machine without power has died.
    pub detail: Option<String>,
}

/// What a machine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineState {
    /// No power.
    Off,
    /// Power is on; its user-data is being applied.
    Booting,
    /// Power is on and the boot went through.
    Running,
    /// Power is on and the boot failed; the console says why.
    Failed,
}

impl ComponentStatus {
    pub(crate) fn new(name: &str, address: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: ComponentState::Starting,
            address: address.to_owned(),
            process_id: None,
            memory_bytes: None,
            since: Timestamp::now(),
            restarts: 0,
            last_exit: None,
        }
    }

    pub(crate) fn with_memory(mut self) -> Self {
        self.memory_bytes = self.process_id.and_then(resident_memory);
        self
    }
}

fn resident_memory(process_id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
