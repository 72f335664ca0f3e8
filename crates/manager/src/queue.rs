//! The work of one controller: which objects are due for a reconcile, and when.
//!
//! Watches and pokes add keys, the controller takes them. An object is in the queue once, at the earliest time asked for; one that is
//! being reconciled is held until that ends, so it never runs twice at once. Keys leave in the order of their time and then of their
//! arrival: nothing depends on hash order (docs/decisions/0001-determinism.md tells why kube's own queue is not used).
//!
//! Who changed an object in Kubernetes wants an answer now, also if it failed a moment ago. An event of MAAS waits until the object may be
//! tried again: an order that fails makes events of its own, and would be its own reason to be repeated at once.

use crate::object_key::ObjectKey;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// A queue of objects to reconcile; shared by reference, many writers, one reader.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    arrivals: u64,
    by_time: BTreeMap<(Instant, u64), ObjectKey>,
    by_key: BTreeMap<ObjectKey, (Instant, u64)>,
    /// Objects being reconciled.
    running: BTreeMap<ObjectKey, Meanwhile>,
    /// Objects that failed, and when they may be tried again. Each is in the queue, so this ends with its turn.
    held: BTreeMap<ObjectKey, Instant>,
}

/// What was asked for while an object was being reconciled.
#[derive(Debug, Default)]
struct Meanwhile {
    again: Option<Instant>,
    poked: bool,
}

/// What the queue has for its reader at a moment.
enum Due {
    Now(ObjectKey),
    At(Instant),
    Nothing,
}

impl Queue {
    /// Asks for a reconcile as soon as possible.
    pub fn add(&self, key: ObjectKey) {
        self.add_at(key, Instant::now());
    }

    /// Asks for a reconcile at `time`, or earlier if it was asked for earlier.
    pub fn add_at(&self, key: ObjectKey, time: Instant) {
        self.lock().add(key, time);
        self.changed.notify_one();
    }

    /// Asks for a reconcile as soon as possible; of an object that failed, when it may be tried again.
    pub fn poke(&self, key: ObjectKey) {
        self.lock().poke(key, Instant::now());
        self.changed.notify_one();
    }

    /// Asks for a reconcile of an object that failed at `time`, and lets pokes wait until then.
    pub fn hold(&self, key: ObjectKey, time: Instant) {
        let mut state = self.lock();
        state.held.insert(key.clone(), time);
        state.add(key, time);
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for the next object that is due and marks it as running. Dropping the wait loses nothing.
    pub async fn next(&self) -> ObjectKey {
        loop {
            let changed = self.changed.notified();
            let due = self.lock().take(Instant::now());
            match due {
                Due::Now(key) => return key,
                // Elapsed or notified: look again either way.
                Due::At(time) => drop(timeout_at(time, changed).await),
                Due::Nothing => changed.await,
            }
        }
    }

    /// Ends the run of an object that [`Queue::next`] gave out; if it was asked for meanwhile it is queued again.
    pub fn done(&self, key: ObjectKey) {
        let mut state = self.lock();
        let Some(meanwhile) = state.running.remove(&key) else { return };
        if let Some(time) = meanwhile.again {
            state.add(key.clone(), time);
        }
        if meanwhile.poked {
            state.poke(key, Instant::now());
        }
        drop(state);
        self.changed.notify_one();
    }

    /// How many objects are due and wait for their turn, and how many are scheduled for later.
    pub fn depth(&self) -> (usize, usize) {
        let state = self.lock();
        let due = state.by_time.range(..=(Instant::now(), u64::MAX)).count();
        (due, state.by_time.len() - due)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is complete before its lock is released, so a panic elsewhere leaves it sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn poke(&mut self, key: ObjectKey, now: Instant) {
        if let Some(meanwhile) = self.running.get_mut(&key) {
            meanwhile.poked = true;
            return;
        }
        let time = self.held.get(&key).map_or(now, |held| now.max(*held));
        self.add(key, time);
    }

    fn add(&mut self, key: ObjectKey, time: Instant) {
        if let Some(Meanwhile { again, .. }) = self.running.get_mut(&key) {
            *again = Some(again.map_or(time, |earlier| earlier.min(time)));
            return;
        }
        if let Some(slot) = self.by_key.get(&key).copied() {
            if slot.0 <= time {
                return;
            }
            self.by_time.remove(&slot);
        }
        self.arrivals += 1;
        let slot = (time, self.arrivals);
        self.by_time.insert(slot, key.clone());
        self.by_key.insert(key, slot);
    }

    fn take(&mut self, now: Instant) -> Due {
        let Some(entry) = self.by_time.first_entry() else { return Due::Nothing };
        let time = entry.key().0;
        if time > now {
            return Due::At(time);
        }
        let key = entry.remove();
        self.by_key.remove(&key);
        self.held.remove(&key);
        self.running.insert(key.clone(), Meanwhile::default());
        Due::Now(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("default", name)
    }

    #[tokio::test(start_paused = true)]
    async fn keys_leave_by_time_and_then_by_arrival() {
        let queue = Queue::default();
        let now = Instant::now();
        queue.add_at(key("late"), now + Duration::from_secs(5));
        queue.add_at(key("second"), now);
        queue.add_at(key("third"), now);
        queue.add_at(key("first"), now - Duration::from_secs(1));
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(queue.next().await.name);
        }
        assert_eq!(order, ["first", "second", "third", "late"]);
        assert_eq!(now.elapsed(), Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_queued_once_at_the_earliest_time() {
        let queue = Queue::default();
        let now = Instant::now();
        queue.add_at(key("a"), now + Duration::from_mins(1));
        queue.add_at(key("a"), now + Duration::from_secs(10));
        queue.add_at(key("a"), now + Duration::from_secs(30));
        assert_eq!(queue.depth(), (0, 1));
        assert_eq!(queue.next().await, key("a"));
        assert_eq!(now.elapsed(), Duration::from_secs(10));
        assert_eq!(queue.depth(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_asked_for_while_it_runs_comes_again_after_it_is_done() {
        let queue = Queue::default();
        queue.add(key("a"));
        let running = queue.next().await;
        queue.add(key("a"));
        assert!(tokio::time::timeout(Duration::from_mins(1), queue.next()).await.is_err(), "it must not run twice at once");
        queue.done(running);
        assert_eq!(queue.next().await, key("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_poke_waits_until_what_failed_may_be_tried_again_and_a_change_does_not() {
        let queue = Queue::default();
        let begin = Instant::now();
        let fails = async |while_it_runs: bool| {
            let running = queue.next().await;
            if while_it_runs {
                queue.poke(running.clone());
            }
            queue.hold(running.clone(), Instant::now() + Duration::from_secs(10));
            queue.done(running);
        };
        queue.poke(key("a"));
        fails(true).await;
        assert_eq!(begin.elapsed(), Duration::ZERO, "nothing was wrong before");
        queue.poke(key("a"));
        fails(false).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(10));
        queue.add(key("a"));
        let running = queue.next().await;
        assert_eq!(begin.elapsed(), Duration::from_secs(10));
        queue.done(running);
        queue.poke(key("a"));
        assert_eq!(queue.next().await, key("a"));
        assert_eq!(begin.elapsed(), Duration::from_secs(10), "its turn has ended the wait");
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_reader_wakes_when_something_earlier_arrives() {
        let queue = Queue::default();
        let start = Instant::now();
        queue.add_at(key("late"), start + Duration::from_hours(1));
        let adding = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            queue.add(key("early"));
        };
        let (next, ()) = tokio::join!(queue.next(), adding);
        assert_eq!(next, key("early"));
        assert_eq!(start.elapsed(), Duration::from_secs(2));
    }
}
