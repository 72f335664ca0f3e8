//! How long MAAS is told nothing about a cluster after it failed at something. Kept apart from the queue's own backoff, because writing an
//! order down changes the object, and that makes it due at once.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

use crate::ObjectKey;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(5);

/// Orders that failed in a row, by object.
#[derive(Debug, Default)]
pub struct Restraint {
    objects: Mutex<BTreeMap<ObjectKey, (u32, Timestamp)>>,
}

impl Restraint {
    /// Until when nothing is ordered for the object.
    pub fn until(&self, key: &ObjectKey) -> Option<Timestamp> {
        self.lock().get(key).map(|(_, until)| *until)
    }

    /// An order failed.
    pub fn failed(&self, key: &ObjectKey, now: Timestamp) {
        let mut objects = self.lock();
        let (count, until) = objects.entry(key.clone()).or_insert((0, now));
        let delay = FIRST.saturating_mul(1 << (*count).min(20)).min(LONGEST);
        *count = count.saturating_add(1);
        *until = now.saturating_add(delay).unwrap_or(Timestamp::MAX);
    }

    /// An order was carried out, or the object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (u32, Timestamp)>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_every_failure_up_to_five_minutes_and_ends_with_a_success() {
        let (restraint, key, now) = (Restraint::default(), ObjectKey::namespaced("rack", "one"), Timestamp::UNIX_EPOCH);
        let mut seconds = Vec::new();
        for _ in 0..12 {
            restraint.failed(&key, now);
            seconds.push(restraint.until(&key).unwrap().as_second());
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        restraint.forget(&key);
        assert_eq!(restraint.until(&key), None);
    }
}
