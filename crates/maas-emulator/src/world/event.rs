//! What happened to machines, as `events/` tells it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::id::Id;
use super::machine::Machine;

/// An event. Node and host name are kept by value: events outlive their machine only as long as MAAS shows them with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Event {
    /// Its id; the order of events.
    pub id: Id<Event>,
    /// The machine it is about.
    pub machine: Id<Machine>,
    /// How important it is.
    pub level: Level,
    /// What kind of thing happened.
    pub kind: String,
    /// The words.
    pub description: String,
    /// Who did it; nobody for what MAAS did.
    pub username: Option<String>,
    /// When.
    pub created: Timestamp,
}

/// How important an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Who changed what; never mixed with the others.
    Audit,
    /// Every change of state.
    Debug,
    /// What a person wants to know.
    Info,
    /// Something is odd.
    Warning,
    /// Something failed.
    Error,
    /// Something is lost.
    Critical,
}

impl Level {
    /// All of them, least first.
    pub const ALL: [Level; 6] = [Level::Audit, Level::Debug, Level::Info, Level::Warning, Level::Error, Level::Critical];

    /// MAAS's word.
    pub fn name(self) -> &'static str {
        match self {
            Level::Audit => "AUDIT",
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
            Level::Critical => "CRITICAL",
        }
    }

    /// The level with this word.
    pub fn named(word: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == word)
    }
}
