//! What `lab status` shows, as data.

use std::fs;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Level;

/// How many looks in a row must fail before a component counts as unhealthy: on a busy machine one answer may be late.
const UNHEALTHY_AFTER: u32 = 3;

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
    /// What the latest looks at a component saw that runs or was started again, if it did not answer as it should.
    #[serde(default)]
    pub trouble: Option<Trouble>,
}

/// A component runs and does not answer as it should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// When this was seen first.
    pub since: Timestamp,
    /// How often in a row since then.
    pub failed_looks: u32,
    /// What was seen the last time.
    pub words: String,
}

/// What a component does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComponentState {
    /// It was started and has not answered yet.
    Starting,
    /// It answers.
    Running,
    /// It runs, and did not answer as it should several times in a row.
    Unhealthy,
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
    /// Since when it has power, or since when it has none.
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
            trouble: None,
        }
    }

    /// What a look at a component saw. One that starts takes its time, and is unhealthy only when it has answered before.
    pub(crate) fn note_look(&mut self, seen: Result<(), String>, now: Timestamp) {
        let Err(words) = seen else {
            (self.state, self.trouble) = (ComponentState::Running, None);
            return;
        };
        let before = self.trouble.take();
        let (since, failed_before) = before.map_or((now, 0), |trouble| (trouble.since, trouble.failed_looks));
        let failed_looks = failed_before.saturating_add(1);
        if failed_looks >= UNHEALTHY_AFTER && self.state != ComponentState::Starting {
            self.state = ComponentState::Unhealthy;
        }
        self.trouble = Some(Trouble { since, failed_looks, words });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_unhealthy_after_three_failed_looks_in_a_row_and_well_after_one_answer() {
        let mut status = ComponentStatus { state: ComponentState::Running, ..ComponentStatus::new("etcd", "") };
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let fails = || Err("no answer".to_owned());
        for (second, seen, state) in [
            (1, fails(), ComponentState::Running),
            (2, fails(), ComponentState::Running),
            (3, Ok(()), ComponentState::Running),
            (4, fails(), ComponentState::Running),
            (5, fails(), ComponentState::Running),
            (6, fails(), ComponentState::Unhealthy),
            (7, fails(), ComponentState::Unhealthy),
        ] {
            status.note_look(seen, at(second));
            assert_eq!(status.state, state, "at second {second}");
        }
        let trouble = Trouble { since: at(4), failed_looks: 4, words: "no answer".to_owned() };
        assert_eq!(status.trouble, Some(trouble));
        status.note_look(Ok(()), at(8));
        assert_eq!((status.state, status.trouble), (ComponentState::Running, None));
    }
}
