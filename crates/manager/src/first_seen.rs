//! When this process first saw something that another one wrote. Clocks of different computers differ, so a time that another one wrote down
//! does not say how long ago that was; how long it has been seen here does, for the least. Used by the controllers of machines and clusters.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::{Clock, ObjectKey};

/// What was seen, by object, and when.
#[derive(Debug)]
pub struct FirstSeen<What> {
    clock: Clock,
    seen: Mutex<BTreeMap<ObjectKey, (What, Instant)>>,
}

impl<What: PartialEq> FirstSeen<What> {
    /// Nothing yet.
    pub fn new(clock: Clock) -> Self {
        Self { clock, seen: Mutex::default() }
    }

    /// When this was first seen of the object, counted back from now: whoever sets the clock meanwhile changes nothing.
    pub fn at(&self, key: &ObjectKey, what: What) -> Timestamp {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match seen.get(key) {
            Some((known, since)) if *known == what => *since,
            _ => {
                seen.insert(key.clone(), (what, now));
                now
            }
        };
        let elapsed = SignedDuration::try_from(now.duration_since(since)).unwrap_or(SignedDuration::MAX);
        self.clock.now().saturating_sub(elapsed).unwrap_or(Timestamp::MIN)
    }

    /// The object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn what_stays_the_same_was_seen_when_it_came_and_what_is_new_is_seen_now() {
        let start = "2026-01-01T00:00:00Z".parse().unwrap();
        let (seen, key) = (FirstSeen::new(Clock::starting_at(start)), ObjectKey::namespaced("rack", "one"));
        assert_eq!(seen.at(&key, "a"), start);
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert_eq!(seen.at(&key, "a"), start);
        assert_eq!(seen.at(&key, "b").duration_since(start), SignedDuration::from_secs(50));
        seen.forget(&key);
        assert_eq!(seen.at(&key, "b").duration_since(start), SignedDuration::from_secs(50));
    }
}
