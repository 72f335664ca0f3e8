//! How long calls may take, how often they are tried and how many run at once. Set on the client's builder.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};

/// What kind of call it is, as far as its duration goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Read,
    Write,
    /// MAAS talks to a power controller or a VM host before it answers.
    Slow,
}

/// How long one class of calls may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// One attempt, from sending to the end of the answer.
    pub attempt: Duration,
    /// The whole call with all attempts, the waits between them and the wait for its turn.
    pub total: Duration,
}

/// How long calls may take, by class.
///
/// MAAS tries a transaction again for up to 90 seconds before it answers, so a slow success is normal; writes get 120 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls that change nothing.
    pub read: Limit,
    /// Calls that change something.
    pub write: Limit,
    /// Calls during which MAAS talks to somebody else: asking for power and switching it; creating, updating, refreshing and deleting VM
    /// hosts; deleting VM clusters; composing; importing SSH keys.
    pub slow: Limit,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            read: Limit { attempt: Duration::from_secs(30), total: Duration::from_mins(1) },
            write: Limit { attempt: Duration::from_mins(2), total: Duration::from_secs(150) },
            slow: Limit { attempt: Duration::from_mins(3), total: Duration::from_secs(210) },
        }
    }
}

impl Limits {
    pub(crate) fn of(&self, class: Class) -> Limit {
        match class {
            Class::Read => self.read,
            Class::Write => self.write,
            Class::Slow => self.slow,
        }
    }
}

const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The wait after the given number of attempts: twice as long each time, between half and all of it, so that clients do not march in step.
pub(crate) fn backoff(attempts: u32, random: u128) -> Duration {
    let whole = FIRST_WAIT.saturating_mul(1 << attempts.saturating_sub(1).min(10)).min(LONGEST_WAIT);
    let part = u32::try_from(random % 1000).unwrap_or(0);
    whole / 2 + whole / 2 * part / 1000
}

/// A century: later than anybody waits, and every clock can say it.
const LONGEST: Duration = Duration::from_hours(24 * 365 * 100);

/// The time so much later, or in a century if it is even later, as `Duration::MAX` is.
pub(crate) fn later(now: Instant, duration: Duration) -> Instant {
    now.checked_add(duration.min(LONGEST)).unwrap_or(now)
}

/// How many calls may be under way at once. Clones share it: give one to all clients of the same MAAS, which answers few at a time.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Semaphore>);

impl Budget {
    /// Two for each of the four processes a MAAS region runs by default.
    pub(crate) const USUAL: usize = 8;

    /// A budget of so many calls at once; at least one.
    pub fn new(calls: usize) -> Self {
        Self(Arc::new(Semaphore::new(calls.max(1))))
    }

    /// A turn; nothing only when the semaphore is closed, which nobody does.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.0.acquire().await.ok()
    }
}

impl Default for Budget {
    /// Eight calls at once.
    fn default() -> Self {
        Self::new(Self::USUAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_longest_and_never_leave_their_half() {
        for (attempts, whole) in [(1, 250), (2, 500), (3, 1000), (6, 8000), (7, 10_000), (4_000_000_000, 10_000)] {
            let whole = Duration::from_millis(whole);
            for random in [0, 500, 999, u128::MAX] {
                let wait = backoff(attempts, random);
                assert!(wait >= whole / 2 && wait <= whole, "{attempts} {random}: {wait:?}");
            }
        }
    }
}
