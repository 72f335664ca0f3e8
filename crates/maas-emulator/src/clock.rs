//! The emulator's clock: tokio's, so that a paused test is in charge, or one that only a caller moves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Where the emulator reads the time.
#[derive(Debug, Clone)]
pub enum Clock {
    /// Runs with tokio's clock from a moment on; paused when that is.
    Running {
        /// The time shown at the beginning.
        started: Timestamp,
        /// Tokio's moment of the beginning.
        from: tokio::time::Instant,
    },
    /// Stands until it is moved.
    Manual(Arc<Mutex<Timestamp>>),
}

impl Clock {
    /// A clock that runs from this time on.
    pub fn running(started: Timestamp) -> Self {
        Clock::Running { started, from: tokio::time::Instant::now() }
    }

    /// A clock that stands at this time.
    pub fn manual(at: Timestamp) -> Self {
        Clock::Manual(Arc::new(Mutex::new(at)))
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::Running { started, from } => later(*started, from.elapsed()),
            Clock::Manual(at) => *at.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Moves a standing clock on; a running one is moved by its runtime.
    pub fn advance(&self, by: Duration) {
        if let Clock::Manual(at) = self {
            let mut at = at.lock().unwrap_or_else(PoisonError::into_inner);
            *at = later(*at, by);
        }
    }
}

/// The time `by` after `from`; the end of time when there is none.
pub fn later(from: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| from.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}
