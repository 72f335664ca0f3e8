//! Which objects want to hear of a workload cluster, and whether there is news for them. Part of [`super::followed`].

use std::{collections::BTreeMap, time::Duration};

use decisions::{machine::NodeFacts, node::Names};

use crate::{controller::Pokes, object_key::ObjectKey};

/// Nodes change in swarms while a cluster comes up; whoever wants to hear of all of them hears of a swarm once.
const SWARM: Duration = Duration::from_secs(1);

/// The objects that want to hear of one workload cluster.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    /// Objects of two kinds may have the same name.
    objects: BTreeMap<ObjectKey, Vec<Watcher>>,
}

#[derive(Debug)]
struct Watcher {
    pokes: Pokes,
    interest: Interest,
}

#[derive(Debug)]
enum Interest {
    /// The API server and all nodes.
    Everything,
    /// The node of one machine, and what was last said about it.
    Node { names: Names, told: NodeFacts },
}

impl Watchers {
    pub fn add(&mut self, object: ObjectKey, pokes: &Pokes) {
        self.insert(object, Watcher { pokes: pokes.clone(), interest: Interest::Everything });
    }

    pub fn add_for_node(&mut self, object: ObjectKey, names: Names, told: NodeFacts, pokes: &Pokes) {
        self.insert(object, Watcher { pokes: pokes.clone(), interest: Interest::Node { names, told } });
    }

    fn insert(&mut self, object: ObjectKey, watcher: Watcher) {
        let watchers = self.objects.entry(object).or_default();
        watchers.retain(|known| !known.pokes.is(&watcher.pokes));
        watchers.push(watcher);
    }

    pub fn remove(&mut self, object: &ObjectKey, pokes: &Pokes) {
        if let Some(watchers) = self.objects.get_mut(object) {
            watchers.retain(|known| !known.pokes.is(pokes));
            if watchers.is_empty() {
                self.objects.remove(object);
            }
        }
    }

    /// Whoever was told that this node has no id knows better: it was about to name it.
    pub fn named(&mut self, node: &str, id: &str) {
        for watcher in self.objects.values_mut().flatten() {
            if let Interest::Node { told: NodeFacts::Present { name, provider_id: unnamed @ None, .. }, .. } = &mut watcher.interest
                && name == node
            {
                *unnamed = Some(id.to_owned());
            }
        }
    }

    /// Whether another machine than the one of these names is called so.
    pub fn is_of_another(&self, names: &Names, node: &str) -> bool {
        let is_another =
            |watcher: &Watcher| matches!(&watcher.interest, Interest::Node { names: others, .. } if others != names && others.has(node));
        self.objects.values().flatten().any(is_another)
    }

    /// The API server changed its mind.
    pub fn hear_of_api_server(&self) {
        self.poke_those_of_everything(Pokes::poke);
    }

    /// Some nodes changed.
    pub fn hear_of_changes(&self) {
        self.poke_those_of_everything(|pokes, object| pokes.poke_after(object, SWARM));
    }

    /// `now` says what is true of a machine's node from now on, nothing if it is the same as before.
    pub fn hear_of_nodes(&self, now: impl Fn(&Names) -> Option<NodeFacts>) {
        for (object, watcher) in self.each() {
            if let Interest::Node { names, told } = &watcher.interest
                && now(names).is_some_and(|now| is_news(told, &now))
            {
                watcher.pokes.poke(object.clone());
            }
        }
    }

    fn poke_those_of_everything(&self, poke: impl Fn(&Pokes, ObjectKey)) {
        for (object, watcher) in self.each() {
            if matches!(watcher.interest, Interest::Everything) {
                poke(&watcher.pokes, object.clone());
            }
        }
    }

    fn each(&self) -> impl Iterator<Item = (&ObjectKey, &Watcher)> {
        self.objects.iter().flat_map(|(object, watchers)| watchers.iter().map(move |watcher| (object, watcher)))
    }
}

/// Whether a machine has something to do about its node: there is nothing to do about one that cannot be reached or never was.
fn is_news(told: &NodeFacts, now: &NodeFacts) -> bool {
    match (told, now) {
        (_, NodeFacts::Unreachable) | (NodeFacts::Unreachable | NodeFacts::Absent, NodeFacts::Absent) => false,
        (NodeFacts::Present { .. }, NodeFacts::Absent) => true,
        (told, now @ NodeFacts::Present { .. }) => told != now,
    }
}
