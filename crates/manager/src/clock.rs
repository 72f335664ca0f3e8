//! Where the manager reads the time of day: whatever writes a timestamp (lease, conditions, events) asks a [`Clock`].
//!
//! Waiting and measuring never use it; they use `tokio::time`, which tests pause. A virtual clock moves with tokio's, so a simulated
//! day has the same timestamps in every run.

use std::time::Duration;

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

    /// The same day by the clock of another computer, which is ahead by this, or behind if that is negative. A computer's own clock stays.
    #[must_use]
    pub fn ahead_by(self, skew: SignedDuration) -> Self {
        match self {
            Self::System => self,
            Self::Virtual { epoch, origin } => Self::Virtual { epoch: epoch.saturating_add(skew).unwrap_or(epoch), origin },
        }
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

    /// The moment of tokio's time at which the day will have come so far; now if it has already.
    pub fn moment(&self, time: Timestamp) -> Instant {
        let now = Instant::now();
        let left = Duration::try_from(time.duration_since(self.now())).unwrap_or_default();
        now.checked_add(left).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_virtual_day_moves_exactly_with_tokio_time() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T00:01:30Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_of_day_is_a_moment_to_wait_for_and_the_past_is_now() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let now = Instant::now();
        assert_eq!(clock.moment("2026-01-01T00:00:20Z".parse().unwrap()), now + Duration::from_secs(20));
        for time in ["2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "-009999-01-02T01:59:59Z"] {
            assert_eq!(clock.moment(time.parse().unwrap()), now, "{time}");
        }
    }
}
