//! What goes wrong, decided by the seed and the number of the call alone.

use manager::Jitter;
use std::time::Duration;

/// How often calls fail, in thousandths, and how slow they are.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// The seed of all decisions.
    pub jitter: Jitter,
    /// Calls refused with an internal error before they did anything.
    pub refused_permille: u64,
    /// Calls that are carried out but whose answer is lost.
    pub lost_permille: u64,
    /// Watches that break early.
    pub broken_watch_permille: u64,
    /// The longest time until a call reaches the server.
    pub slowest: Duration,
    /// The longest time until a change reaches a watch.
    pub watch_lag: Duration,
}

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    Refused,
    Lost,
}

impl Faults {
    /// Nothing goes wrong and nothing takes time.
    pub const fn none() -> Self {
        Self {
            jitter: Jitter::seeded(0),
            refused_permille: 0,
            lost_permille: 0,
            broken_watch_permille: 0,
            slowest: Duration::ZERO,
            watch_lag: Duration::ZERO,
        }
    }

    /// A bad day: one call in ten fails, half of those after it was carried out, and watches break.
    pub const fn bad_day(seed: u64) -> Self {
        Self {
            jitter: Jitter::seeded(seed),
            refused_permille: 50,
            lost_permille: 50,
            broken_watch_permille: 300,
            slowest: Duration::from_millis(80),
            watch_lag: Duration::ZERO,
        }
    }

    pub(crate) fn latency(&self, call: u64) -> Duration {
        let slowest = u64::try_from(self.slowest.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.jitter.draw("latency", call) % (slowest.saturating_add(1)))
    }

    pub(crate) fn fate(&self, call: u64) -> Fate {
        match self.jitter.draw("fate", call) % 1000 {
            drawn if drawn < self.refused_permille => Fate::Refused,
            drawn if drawn < self.refused_permille + self.lost_permille => Fate::Lost,
            _ => Fate::Answered,
        }
    }

    /// How long a change is on its way to a watch.
    pub(crate) fn lag(&self, call: u64, revision: u64) -> Duration {
        let longest = u64::try_from(self.watch_lag.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.jitter.draw("lag", call.wrapping_mul(1_000_003).wrapping_add(revision)) % longest.saturating_add(1))
    }

    /// When a watch breaks before its time, if it does.
    pub(crate) fn watch_breaks_after(&self, call: u64) -> Option<Duration> {
        let breaks = self.jitter.draw("watch", call) % 1000 < self.broken_watch_permille;
        breaks.then(|| Duration::from_millis(1 + self.jitter.draw("break", call) % 60_000))
    }
}
