//! Where the manager reads the time of day: whatever writes a timestamp (lease, conditions, events) asks a [`Clock`].
//!
//! Waiting and measuring never use it; they use `tokio::time`, which tests pause. A virtual clock moves with tokio's, so a simulated
//! day has the same timestamps in every run.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The source of timestamps.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The time of day of this machine.
    System,
    /// A day that begins at `epoch` and advances as tokio's time does.
    Virtual {
        /// The time of day at `origin`.
        epoch: Timestamp,
        /// The moment of tokio's time that counts as `epoch`.
        origin: Instant,
    },
}

impl Clock {
    /// A virtual day that begins now, in tokio's time, at `epoch`.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self::Virtual { epoch, origin: Instant::now() }
    }

    /// The time of day.
    #[expect(clippy::disallowed_methods, reason = "the one place that may ask the machine")]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Virtual { epoch, origin } => {
                let elapsed = SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
                epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_virtual_day_moves_exactly_with_tokio_time() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T00:01:30Z");
    }
}
