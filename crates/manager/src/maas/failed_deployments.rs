//! Which machines failed to deploy lately, by MAAS's own event log: a memory that outlives our objects and our process. Read once when it
//! is first asked for, then kept up to date by the feed.

use jiff::{SignedDuration, Timestamp};
use maas_client::{Client, Error, Event, EventFilter, EventLevel, EventPlace, MOST_EVENTS, SystemId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

use crate::clock::Clock;

/// What failed longer ago than this says nothing about the next deployment.
const LATELY: SignedDuration = SignedDuration::from_hours(24);
/// How long the log is believed to be as it was when no feed tells what is new.
const LONGEST_AGE: Duration = Duration::from_mins(1);

/// A deployment that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedDeployment {
    /// When, by MAAS's clock.
    pub at: Timestamp,
    /// What MAAS said; empty if it said nothing.
    pub words: String,
}

/// What the log told of machines and deployments.
#[derive(Debug, Clone, Default)]
struct Memory {
    failed: BTreeMap<SystemId, FailedDeployment>,
    /// Machines that are being deployed, or have failed at it: what is said to have failed about them is their deployment.
    deploying: BTreeSet<SystemId>,
}

/// What an event means for the memory.
enum Meaning {
    Begins,
    Fails { words: Option<String> },
    Succeeds,
    Ends,
    Nothing,
}

impl Meaning {
    /// Changes of status are of level DEBUG and only the feed sees them; the log is read from level INFO, to reach further back.
    fn of(event: &Event) -> Self {
        let status = event.description.rsplit_once(" to '").map_or("", |(_, status)| status.split('\'').next().unwrap_or_default());
        match (event.kind.as_str(), status) {
            ("Deploying", _) | ("Node changed status", "Deploying") => Self::Begins,
            ("Deployed", _) | ("Node changed status", "Deployed") => Self::Succeeds,
            ("Node changed status", "Failed deployment") => Self::Fails { words: None },
            ("Marking node failed", _) => Self::Fails { words: Some(event.description.clone()) },
            (
                "Node changed status"
                | "Releasing"
                | "Released"
                | "Ready"
                | "Commissioning"
                | "Testing"
                | "Aborted deployment"
                | "Entering rescue mode",
                _,
            ) => Self::Ends,
            _ => Self::Nothing,
        }
    }
}

impl Memory {
    /// Takes an event; returns whether it meant anything.
    fn take(&mut self, event: &Event, now: Timestamp) -> bool {
        let Some(machine) = &event.node else { return false };
        match Meaning::of(event) {
            Meaning::Begins => drop(self.deploying.insert(machine.clone())),
            Meaning::Succeeds => {
                self.deploying.remove(machine);
                self.failed.remove(machine);
            }
            Meaning::Ends => drop(self.deploying.remove(machine)),
            Meaning::Fails { words: None } => {
                self.deploying.insert(machine.clone());
                self.fail(machine, event.created_at().unwrap_or(now), String::new());
            }
            Meaning::Fails { words: Some(words) } if self.deploying.contains(machine) => {
                self.fail(machine, event.created_at().unwrap_or(now), words);
            }
            Meaning::Fails { .. } | Meaning::Nothing => return false,
        }
        true
    }

    /// The change of status and the words are two events; whichever comes second completes the first.
    fn fail(&mut self, machine: &SystemId, at: Timestamp, words: String) {
        let words = match self.failed.get(machine) {
            Some(known) if words.is_empty() && at.duration_since(known.at).abs() < SignedDuration::from_mins(1) => known.words.clone(),
            _ => words,
        };
        self.failed.insert(machine.clone(), FailedDeployment { at, words });
    }

    fn lately(&self, now: Timestamp) -> BTreeMap<SystemId, FailedDeployment> {
        let recent = self.failed.iter().filter(|(_, failed)| now.duration_since(failed.at) < LATELY);
        recent.map(|(machine, failed)| (machine.clone(), failed.clone())).collect()
    }
}

/// The memory of one account.
#[derive(Debug, Default)]
pub(super) struct FailedDeployments {
    state: Mutex<State>,
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    memory: Memory,
    read_at: Option<Instant>,
    /// Counts what the feed told, so that a reading that it overtook is not kept.
    told: u64,
}

impl FailedDeployments {
    /// Takes what the feed brought.
    pub fn take(&self, events: &[Event], now: Timestamp) {
        let mut state = self.lock();
        for event in events {
            state.told += u64::from(state.memory.take(event, now));
        }
    }

    /// What was learnt may have gaps: the next to ask reads the log anew.
    pub fn forget(&self) {
        let mut state = self.lock();
        let told = state.told + 1;
        *state = State { told, ..State::default() };
    }

    /// The failures of the last day. `followed`: whether the feed tells what is new.
    pub async fn read(&self, client: &Client, clock: Clock, followed: bool) -> Result<BTreeMap<SystemId, FailedDeployment>, Error> {
        let _alone = self.reading.lock().await;
        let told = {
            let state = self.lock();
            if state.read_at.is_some_and(|at| followed || at.elapsed() < LONGEST_AGE) {
                return Ok(state.memory.lately(clock.now()));
            }
            state.told
        };
        let page = client.events().query(&EventFilter::new().level(EventLevel::Info), EventPlace::Newest, Some(MOST_EVENTS)).await?;
        let now = clock.now();
        let mut memory = Memory::default();
        for event in page.events.iter().rev() {
            memory.take(event, now);
        }
        let mut state = self.lock();
        if state.told == told {
            (state.memory, state.read_at) = (memory.clone(), Some(Instant::now()));
        }
        Ok(memory.lately(now))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
