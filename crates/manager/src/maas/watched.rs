//! Which objects want to know of which machines, and which of them wait for something to happen soon. One per account; reconciles write it,
//! the feed reads it.

use maas_client::SystemId;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;

use crate::{controller::Pokes, jitter::Jitter, object_key::ObjectKey};

/// How long it is remembered that a machine had an event: longer than a reconcile takes from reading a machine to watching it.
const HEARD: Duration = Duration::from_mins(2);
/// The longest time over which the pokes of all objects are spread.
const LONGEST_SPREAD: Duration = Duration::from_secs(30);
/// The time each object adds to it.
const SPREAD_PER_OBJECT: Duration = Duration::from_millis(100);

/// The objects of one account.
#[derive(Debug, Default)]
pub(super) struct Watched {
    by_machine: BTreeMap<SystemId, BTreeSet<ObjectKey>>,
    /// Usually one each; two kinds may have objects of the same name.
    by_object: BTreeMap<ObjectKey, Vec<Watcher>>,
    busy: BTreeSet<ObjectKey>,
    /// Machines that had an event lately, watched or not.
    heard: BTreeMap<SystemId, Instant>,
}

#[derive(Debug)]
struct Watcher {
    machine: SystemId,
    pokes: Pokes,
}

impl Watched {
    /// This machine instead of the one before, which may be anybody's by now. Whoever is new to a machine that had an event lately is poked
    /// at once: the event may have come between its look at the machine and now.
    pub fn watch(&mut self, machine: &SystemId, object: ObjectKey, pokes: &Pokes) {
        let watchers = self.by_object.entry(object.clone()).or_default();
        if watchers.iter().any(|known| known.pokes.is(pokes) && known.machine == *machine) {
            return;
        }
        if self.heard.get(machine).is_some_and(|at| at.elapsed() < HEARD) {
            pokes.poke(object.clone());
        }
        let left = watchers.iter().position(|known| known.pokes.is(pokes)).map(|index| watchers.swap_remove(index).machine);
        watchers.push(Watcher { machine: machine.clone(), pokes: pokes.clone() });
        if let Some(left) = left.filter(|left| watchers.iter().all(|other| other.machine != *left)) {
            self.leave(&left, &object);
        }
        self.by_machine.entry(machine.clone()).or_default().insert(object);
    }

    fn leave(&mut self, machine: &SystemId, object: &ObjectKey) {
        if let Some(objects) = self.by_machine.get_mut(machine) {
            objects.remove(object);
            if objects.is_empty() {
                self.by_machine.remove(machine);
            }
        }
    }

    pub fn unwatch(&mut self, object: &ObjectKey) {
        self.busy.remove(object);
        for watcher in self.by_object.remove(object).unwrap_or_default() {
            self.leave(&watcher.machine, object);
        }
    }

    /// The machines anybody wants to know of.
    pub fn machines(&self) -> impl Iterator<Item = SystemId> {
        self.by_machine.keys().cloned()
    }

    /// Returns whether something is in flight now that was not before.
    pub fn set_busy(&mut self, object: &ObjectKey, busy: bool) -> bool {
        let was_busy = self.is_busy();
        if busy {
            self.busy.insert(object.clone());
        } else {
            self.busy.remove(object);
        }
        !was_busy && self.is_busy()
    }

    pub fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.by_object.is_empty()
    }

    /// Pokes each object that watches one of these machines, once.
    pub fn poke(&mut self, machines: &BTreeSet<&SystemId>) {
        let now = Instant::now();
        self.heard.retain(|_, at| now - *at < HEARD);
        self.heard.extend(machines.iter().map(|machine| ((*machine).clone(), now)));
        let objects: BTreeSet<_> = machines.iter().filter_map(|machine| self.by_machine.get(*machine)).flatten().collect();
        for object in objects {
            for watcher in self.by_object.get(object).into_iter().flatten().filter(|watcher| machines.contains(&watcher.machine)) {
                watcher.pokes.poke(object.clone());
            }
        }
    }

    /// Pokes every object, each at another moment of the time that so many may take.
    pub fn poke_all(&self, jitter: Jitter, occasion: u64) {
        let count = u32::try_from(self.by_object.len()).unwrap_or(u32::MAX);
        let spread = SPREAD_PER_OBJECT.saturating_mul(count).min(LONGEST_SPREAD);
        for (object, watchers) in &self.by_object {
            let share = u32::try_from(jitter.draw(&format!("poke {object}"), occasion) % 1000).unwrap_or_default();
            for Watcher { pokes, .. } in watchers {
                pokes.poke_after(object.clone(), spread * share / 1000);
            }
        }
    }
}
