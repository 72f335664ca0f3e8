//! What is known of one workload cluster. Its follower writes it, controllers read it through [`super::Workload`].

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use decisions::{
    machine::NodeFacts,
    node::{Names, Nodes, SeenNode},
};
use kube::Client;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::watchers::Watchers;
use crate::{controller::Pokes, object_key::ObjectKey};

/// A cause that changes does not change what is shown more often than this.
const SAME_WORDS: Duration = Duration::from_mins(1);

/// Whether the API server of a workload cluster answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiServerState {
    /// There is no way to it yet, or it was not tried for long.
    NotYet,
    /// It answers.
    Answers,
    /// It has not answered for more than a few seconds.
    Silent {
        /// Why. The same cause has the same words.
        words: String,
    },
}

/// One workload cluster.
pub(super) struct Followed {
    pub key: ObjectKey,
    /// Cancelled when it is not to be followed any more.
    pub ended: CancellationToken,
    /// Something changed that may make the next attempt succeed.
    pub hurry: Notify,
    known: Mutex<Known>,
}

struct Known {
    state: ApiServerState,
    said_at: Instant,
    client: Option<Client>,
    nodes: Nodes,
    watchers: Watchers,
}

impl Known {
    fn facts(&self, names: &Names) -> NodeFacts {
        if self.state != ApiServerState::Answers {
            return NodeFacts::Unreachable;
        }
        match self.find(names) {
            Some((name, seen)) => {
                NodeFacts::Present { name: name.to_owned(), provider_id: seen.provider_id.clone(), is_there: names.is_where(seen) }
            }
            None => NodeFacts::Absent,
        }
    }

    fn find(&self, names: &Names) -> Option<(&str, &SeenNode)> {
        names.find(&self.nodes, |node| self.watchers.is_of_another(names, node))
    }

    fn nodes_changed(&self, changed: &BTreeSet<&str>) {
        if !changed.is_empty() {
            self.watchers.hear_of_changes();
            let concerns = |names: &Names| changed.iter().any(|node| names.may_be(node));
            self.watchers.hear_of_nodes(|names| concerns(names).then(|| self.facts(names)));
        }
    }

    fn say(&mut self, state: ApiServerState) {
        self.state = state;
        self.said_at = Instant::now();
        self.watchers.hear_of_api_server();
    }
}

impl Followed {
    pub fn new(key: ObjectKey) -> Self {
        let nothing = Known {
            state: ApiServerState::NotYet,
            said_at: Instant::now(),
            client: None,
            nodes: Nodes::new(),
            watchers: Watchers::default(),
        };
        Self { key, ended: CancellationToken::new(), hurry: Notify::new(), known: Mutex::new(nothing) }
    }

    // What controllers ask

    pub fn state(&self) -> ApiServerState {
        self.lock().state.clone()
    }

    pub fn watch(&self, object: ObjectKey, pokes: &Pokes) {
        self.lock().watchers.add(object, pokes);
    }

    pub fn watch_node(&self, object: ObjectKey, names: Names, pokes: &Pokes) -> NodeFacts {
        let mut known = self.lock();
        let facts = known.facts(&names);
        known.watchers.add_for_node(object, names, facts.clone(), pokes);
        facts
    }

    pub fn unwatch(&self, object: &ObjectKey, pokes: &Pokes) {
        self.lock().watchers.remove(object, pokes);
    }

    pub fn client(&self) -> Option<Client> {
        self.lock().client.clone()
    }

    /// We gave the node its id: the watch will bring no news.
    pub fn named(&self, node: &str, provider_id: &str) {
        let mut known = self.lock();
        if let Some(seen) = known.nodes.get_mut(node) {
            seen.provider_id = Some(provider_id.to_owned());
        }
        known.watchers.named(node, provider_id);
    }

    // What its follower tells

    pub fn connected(&self, client: Option<Client>) {
        self.lock().client = client;
    }

    pub fn not_yet(&self) {
        let mut known = self.lock();
        if known.state != ApiServerState::NotYet {
            known.say(ApiServerState::NotYet);
        }
    }

    pub fn answers(&self) {
        let mut known = self.lock();
        if known.state != ApiServerState::Answers {
            tracing::info!(cluster = %self.key, nodes = known.nodes.len(), "the API server of the workload cluster answers");
            known.say(ApiServerState::Answers);
            known.watchers.hear_of_nodes(|names| Some(known.facts(names)));
        }
    }

    pub fn silent(&self, words: &str) {
        let mut known = self.lock();
        match &known.state {
            ApiServerState::Silent { words: said } if said == words || known.said_at.elapsed() < SAME_WORDS => return,
            ApiServerState::Silent { .. } | ApiServerState::NotYet | ApiServerState::Answers => {}
        }
        tracing::warn!(cluster = %self.key, words, "the API server of the workload cluster does not answer");
        known.say(ApiServerState::Silent { words: words.to_owned() });
    }

    /// All nodes there are.
    pub fn listed(&self, nodes: Nodes) {
        let mut known = self.lock();
        let before = std::mem::replace(&mut known.nodes, nodes);
        let differs = |name: &&String| before.get(*name) != known.nodes.get(*name);
        let changed = before.keys().chain(known.nodes.keys()).filter(differs).map(String::as_str).collect();
        known.nodes_changed(&changed);
    }

    /// A node that is new or changed; nothing if it is gone.
    pub fn changed(&self, node: &str, seen: Option<SeenNode>) {
        let mut known = self.lock();
        if known.nodes.get(node) == seen.as_ref() {
            return;
        }
        match seen {
            Some(seen) => known.nodes.insert(node.to_owned(), seen),
            None => known.nodes.remove(node),
        };
        known.nodes_changed(&BTreeSet::from([node]));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
