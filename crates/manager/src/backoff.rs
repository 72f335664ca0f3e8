//! How long to wait after failures: per object for reconciles, per stream for watches. Both grow by doubling and are spread by the
//! seeded [`Jitter`], so that many objects that failed together do not return together.

use crate::{jitter::Jitter, object_key::ObjectKey};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The first delay: long enough that a conflict has settled, short enough that nobody notices.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// The longest delay of a reconcile: a repaired cause is picked up within minutes without anybody poking.
const LONGEST_RECONCILE_DELAY: Duration = Duration::from_mins(5);
/// The longest delay of a watch: the cache is blind meanwhile, so much shorter.
const LONGEST_WATCH_DELAY: Duration = Duration::from_secs(30);
/// A fifth up or down.
const SPREAD_PERMILLE: u32 = 200;

fn delay(failures: u32, longest: Duration) -> Duration {
    FIRST_DELAY.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(longest)
}

/// Failures in a row of every object of one controller that has any.
#[derive(Debug)]
pub struct Failures {
    kind: &'static str,
    jitter: Jitter,
    in_a_row: Mutex<BTreeMap<ObjectKey, u32>>,
    told: Mutex<BTreeMap<ObjectKey, String>>,
}

impl Failures {
    /// No failures yet; `kind` keeps the jitter of two controllers apart.
    pub fn new(kind: &'static str, jitter: Jitter) -> Self {
        Self { kind, jitter, in_a_row: Mutex::default(), told: Mutex::default() }
    }

    /// How often this object failed since it last succeeded.
    pub fn of(&self, key: &ObjectKey) -> u32 {
        self.lock().get(key).copied().unwrap_or_default()
    }

    /// Counts a failure and says how long to wait before the next attempt.
    pub fn failed(&self, key: &ObjectKey) -> Duration {
        let failures = {
            let mut counts = self.lock();
            let count = counts.entry(key.clone()).or_default();
            *count = count.saturating_add(1);
            *count
        };
        let purpose = format!("reconcile {} {key}", self.kind);
        self.jitter.spread(delay(failures, LONGEST_RECONCILE_DELAY), SPREAD_PERMILLE, &purpose, u64::from(failures))
    }

    /// Whether this is another cause than the last one of the object. The same again is no news, however often it is tried.
    pub fn is_news(&self, key: &ObjectKey, cause: &str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(key.clone(), cause.to_owned()).as_deref() != Some(cause)
    }

    /// Forgets the failures of an object that succeeded or is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
        self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, u32>> {
        self.in_a_row.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The delays of one watch stream.
///
/// Kube's wrapper around a watcher resets on every item, and a watcher announces each new list with one, so a list that always fails
/// would be tried at the shortest delay for ever. Here the watch says itself when it works again.
#[derive(Debug)]
pub struct WatchFailures {
    purpose: String,
    jitter: Jitter,
    in_a_row: u32,
    drawn: u64,
}

impl WatchFailures {
    /// No failures yet of the watch of this name.
    pub fn new(watch: &str, jitter: Jitter) -> Self {
        Self { purpose: format!("watch {watch}"), jitter, in_a_row: 0, drawn: 0 }
    }

    /// Counts a failure and says how long to wait before the next attempt.
    pub fn failed(&mut self) -> Duration {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.drawn += 1;
        self.jitter.spread(delay(self.in_a_row, LONGEST_WATCH_DELAY), SPREAD_PERMILLE, &self.purpose, self.drawn)
    }

    /// The watch works again.
    pub fn forget(&mut self) {
        self.in_a_row = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_news_once_until_it_changes_or_the_object_succeeds() {
        let (failures, key) = (Failures::new("machine", Jitter::seeded(1)), ObjectKey::namespaced("rack", "one"));
        let news = ["a", "a", "a", "b", "b", "a"].map(|cause| failures.is_news(&key, cause));
        assert_eq!(news, [true, false, false, true, false, true]);
        failures.forget(&key);
        assert!(failures.is_news(&key, "a"));
    }

    #[test]
    fn delays_double_up_to_the_longest_and_begin_anew_after_success() {
        let failures = Failures::new("widget", Jitter::seeded(1));
        let key = ObjectKey::namespaced("default", "a");
        let delays: Vec<_> = (0..40).map(|_| failures.failed(&key)).collect();
        assert!(delays[0] >= Duration::from_millis(400) && delays[0] <= Duration::from_millis(600), "{:?}", delays[0]);
        assert!(delays[3] >= Duration::from_millis(3200) && delays[3] <= Duration::from_millis(4800), "{:?}", delays[3]);
        assert!(delays.iter().all(|delay| *delay <= Duration::from_mins(6)));
        assert_eq!(failures.of(&key), 40);
        failures.forget(&key);
        assert!(failures.failed(&key) <= Duration::from_millis(600));
    }

    #[test]
    fn objects_that_fail_together_do_not_return_together() {
        let failures = Failures::new("widget", Jitter::seeded(1));
        let delays: std::collections::BTreeSet<_> =
            (0..50).map(|number| failures.failed(&ObjectKey::namespaced("default", format!("w{number}")))).collect();
        assert!(delays.len() > 30, "only {} different delays", delays.len());
    }
}
