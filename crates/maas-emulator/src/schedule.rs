//! What will happen later: reports of simulated hardware, timeouts, incidents, transactions that commit late. Entries of one moment
//! happen in the order they were made, so the same seed gives the same history.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::faults::Incident;
use crate::hardware::Report;
use crate::http::call::SavedCall;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::status::Status;

/// Something that will happen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Due {
    /// The hardware reports.
    Report(Report),
    /// A machine has been in a state for too long.
    Timeout {
        /// The machine.
        machine: Id<Machine>,
        /// The order it was about; a later one makes this void.
        boot: u64,
        /// The state that must not last.
        status: Status,
    },
    /// Something from outside happens to a machine.
    Incident(Incident),
    /// A call whose answer nobody waits for takes effect.
    LateCall(Box<SavedCall>),
}

/// All of it, in order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Entry>", into = "Vec<Entry>")]
pub struct Schedule {
    next: u64,
    entries: BTreeMap<(Timestamp, u64), Due>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    at: Timestamp,
    due: Due,
}

impl Schedule {
    /// Lets it happen at this time.
    pub fn add(&mut self, at: Timestamp, due: Due) {
        self.entries.insert((at, self.next), due);
        self.next += 1;
    }

    /// The first thing that is due by now, and its time.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, Due)> {
        let entry = self.entries.first_entry()?;
        if entry.key().0 > now {
            return None;
        }
        let ((at, _), due) = entry.remove_entry();
        Some((at, due))
    }

    /// When a machine will have taken too long for the order of this number.
    pub fn end_of_patience(&self, wanted: Id<Machine>, order: u64) -> Option<Timestamp> {
        let ends = |due: &Due| matches!(due, Due::Timeout { machine, boot, .. } if *machine == wanted && *boot == order);
        self.entries.iter().find(|(_, due)| ends(due)).map(|((at, _), _)| *at)
    }

    /// Nothing happens to machines from outside any more.
    pub fn forget_incidents(&mut self) {
        self.entries.retain(|_, due| !matches!(due, Due::Incident(_)));
    }

    /// When the next thing happens.
    pub fn next_at(&self) -> Option<Timestamp> {
        self.entries.first_key_value().map(|((at, _), _)| *at)
    }

    /// Drops what concerns a machine that is gone.
    pub fn forget_machine(&mut self, machine: Id<Machine>) {
        self.entries.retain(|_, due| match due {
            Due::Report(report) => report.machine != machine,
            Due::Timeout { machine: other, .. } => *other != machine,
            Due::Incident(_) | Due::LateCall(_) => true,
        });
    }
}

impl From<Vec<Entry>> for Schedule {
    fn from(entries: Vec<Entry>) -> Self {
        let mut schedule = Schedule::default();
        for entry in entries {
            schedule.add(entry.at, entry.due);
        }
        schedule
    }
}

impl From<Schedule> for Vec<Entry> {
    fn from(schedule: Schedule) -> Self {
        schedule.entries.into_iter().map(|((at, _), due)| Entry { at, due }).collect()
    }
}
