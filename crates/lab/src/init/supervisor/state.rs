//! The state of one unit while the machine runs.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use rustix::process::Pid;

use crate::init::reaper::{End, Exit};
use crate::init::unit::{Definition, UnitName};

/// The coarse state, as `is-active` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Active {
    /// Not running.
    Inactive,
    /// Being started, or waiting to be started again.
    Activating,
    /// Running, or done and remembered as such.
    Active,
    /// Being stopped.
    Deactivating,
    /// Ended badly.
    Failed,
}

impl Active {
    /// The word systemctl prints.
    pub fn word(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Activating => "activating",
            Self::Active => "active",
            Self::Deactivating => "deactivating",
            Self::Failed => "failed",
        }
    }
}

/// What `status` and `show` tell.
#[derive(Debug, Clone)]
pub struct Status {
    /// The coarse state.
    pub active: Active,
    /// The fine state: running, exited, start-pre, auto-restart, …
    pub sub: &'static str,
    /// Since when.
    pub since: Timestamp,
    /// `success`, `exit-code`, `signal`, `timeout`, `start-limit-hit`, `resources`, `protocol`.
    pub result: &'static str,
    /// Automatic restarts so far.
    pub restarts: u32,
    /// How the main process last ended.
    pub last_exit: Option<Exit>,
    /// The condition that kept it from starting.
    pub unmet_condition: Option<String>,
    /// What it says of itself.
    pub text: String,
}

/// The main process.
#[derive(Debug, Clone)]
pub struct Main {
    /// Its id.
    pub pid: Pid,
    /// Its end.
    pub end: Arc<End>,
}

/// What changes under the lock.
#[derive(Debug)]
pub struct Inner {
    /// For everybody to read.
    pub status: Status,
    /// A stop wants the running start to give up.
    pub cancel: bool,
    /// The main process said it is ready.
    pub ready: bool,
    /// The main process.
    pub main: Option<Main>,
    /// Times of recent starts, for the limit.
    pub starts: VecDeque<Instant>,
    /// Counts up whenever a waiting restart must not happen any more.
    pub restart_generation: u64,
    /// The socket its messages come to.
    pub notify_socket: Option<PathBuf>,
}

/// One unit.
#[derive(Debug)]
pub struct Unit {
    /// Its own name.
    pub name: UnitName,
    definition: Mutex<Arc<Definition>>,
    read_at: Mutex<SystemTime>,
    /// Held by whoever starts or stops it.
    pub job: Mutex<()>,
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// What was waited for is true.
    Done,
    /// A stop came.
    Canceled,
    /// Time is up.
    TimedOut,
}

impl Unit {
    /// A unit that has not run yet.
    pub fn new(definition: Arc<Definition>) -> Self {
        Self {
            name: definition.name.clone(),
            definition: Mutex::new(definition),
            read_at: Mutex::new(SystemTime::now()),
            job: Mutex::new(()),
            inner: Mutex::new(Inner {
                status: Status {
                    active: Active::Inactive,
                    sub: "dead",
                    since: Timestamp::now(),
                    result: "success",
                    restarts: 0,
                    last_exit: None,
                    unmet_condition: None,
                    text: String::new(),
                },
                cancel: false,
                ready: false,
                main: None,
                starts: VecDeque::new(),
                restart_generation: 0,
                notify_socket: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// What its files said when they were read.
    pub fn definition(&self) -> Arc<Definition> {
        Arc::clone(&self.definition.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes what the files say now.
    pub fn redefine(&self, definition: Arc<Definition>) {
        *self.definition.lock().unwrap_or_else(PoisonError::into_inner) = definition;
        *self.read_at.lock().unwrap_or_else(PoisonError::into_inner) = SystemTime::now();
    }

    /// When its files were read.
    pub fn read_at(&self) -> SystemTime {
        *self.read_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The changing part. Nothing that blocks may happen while it is held.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits for a change.
    pub fn poke(&self) {
        let _inner = self.lock();
        self.changed.notify_all();
    }

    /// A copy of the status.
    pub fn status(&self) -> Status {
        self.lock().status.clone()
    }

    /// Sets the state.
    pub fn set(&self, active: Active, sub: &'static str) {
        let mut inner = self.lock();
        if inner.status.active != active {
            inner.status.since = Timestamp::now();
        }
        inner.status.active = active;
        inner.status.sub = sub;
        self.changed.notify_all();
    }

    /// Waits until something is true of it.
    pub fn wait(&self, deadline: Option<Instant>, cancelable: bool, mut condition: impl FnMut(&Inner) -> bool) -> Waited {
        let mut inner = self.lock();
        loop {
            if condition(&inner) {
                return Waited::Done;
            }
            if cancelable && inner.cancel {
                return Waited::Canceled;
            }
            let left = deadline.map_or(Duration::from_mins(1), |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Waited::TimedOut;
            }
            inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
