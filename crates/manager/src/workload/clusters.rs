//! All workload clusters of one process: what controllers ask, and the task that follows them.

use std::{
    collections::BTreeMap,
    fmt, mem,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ::api::cluster_api::Cluster;
use decisions::{
    Failure,
    machine::{Learned, NodeFacts},
    node::Names,
};
use futures::{StreamExt, stream::FuturesUnordered};
use kube::Client;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    connect::ConnectWorkload,
    followed::{ApiServerState, Followed},
    follower::Follower,
    naming, removal,
};
use crate::{
    controller::Pokes,
    jitter::Jitter,
    object_key::ObjectKey,
    watches::{Change, Watch},
};

/// What a server is called in MAAS, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// Its name.
    pub hostname: &'a str,
    /// Its name with the domain.
    pub fqdn: &'a str,
    /// Its addresses.
    pub addresses: &'a [IpAddr],
}

/// All workload clusters; clones are the same.
#[derive(Clone)]
pub struct Workload {
    shared: Arc<Shared>,
}

struct Shared {
    kubernetes: Client,
    connect: ConnectWorkload,
    jitter: Jitter,
    state: Mutex<State>,
    /// Somebody asked for a cluster that was not followed.
    arrived: Notify,
}

#[derive(Default)]
struct State {
    clusters: BTreeMap<ObjectKey, Arc<Followed>>,
    arrivals: Vec<Arc<Followed>>,
}

impl fmt::Debug for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states: BTreeMap<_, _> = self.lock().clusters.iter().map(|(key, cluster)| (key.to_string(), cluster.state())).collect();
        formatter.debug_struct("Workload").field("clusters", &states).finish_non_exhaustive()
    }
}

impl Workload {
    /// Nothing is followed yet. `kubernetes` is the management cluster, which has the Secrets.
    pub fn new(kubernetes: Client, connect: ConnectWorkload, jitter: Jitter) -> Self {
        let (state, arrived) = (Mutex::default(), Notify::new());
        Self { shared: Arc::new(Shared { kubernetes, connect, jitter, state, arrived }) }
    }

    /// What is known of a Cluster's API server. Asking makes the Cluster followed from now on.
    pub fn api_server(&self, cluster: &ObjectKey) -> ApiServerState {
        self.followed(cluster).state()
    }

    /// From now on the object is poked when the API server begins or ceases to answer, and soon after nodes come, go, get a provider id
    /// or change whether they are ready. To miss nothing, watch first and ask then.
    pub fn watch(&self, cluster: &ObjectKey, object: ObjectKey, pokes: &Pokes) {
        self.followed(cluster).watch(object, pokes);
    }

    /// The node of a server, which may be of another domain if it is where the server is. From now on the Cluster is followed, and the object
    /// is poked when that is no longer true and there is something to do about it.
    pub fn watch_node(&self, cluster: &ObjectKey, object: ObjectKey, host: &Host<'_>, pokes: &Pokes) -> NodeFacts {
        self.followed(cluster).watch_node(object, Names::new(host.hostname, host.fqdn, host.addresses), pokes)
    }

    /// The object is not poked any more by these pokes.
    pub fn unwatch(&self, object: &ObjectKey, pokes: &Pokes) {
        let clusters: Vec<_> = self.lock().clusters.values().cloned().collect();
        for cluster in clusters {
            cluster.unwatch(object, pokes);
        }
    }

    /// Tells a node which machine it is, if nobody has told it yet.
    pub async fn name_node(&self, cluster: &ObjectKey, node: &str, provider_id: &str) -> Result<Learned, Failure> {
        let followed = self.followed(cluster);
        naming::name_node(&followed, node, provider_id).await
    }

    /// Removes a node that says this of its machine.
    pub async fn remove_node(&self, cluster: &ObjectKey, node: &str, provider_id: Option<&str>) -> Result<Learned, Failure> {
        let followed = self.followed(cluster);
        removal::remove_node(&followed, node, provider_id).await
    }

    /// The Cluster is gone: its connections are closed and what was known of it is forgotten, with all who watched it.
    pub fn forget(&self, cluster: &ObjectKey) {
        if let Some(followed) = self.lock().clusters.remove(cluster) {
            followed.ended.cancel();
            followed.connected(None);
        }
    }

    /// Looks again at once if the Cluster's API server does not answer; it may now.
    pub fn hurry(&self, cluster: &ObjectKey) {
        let followed = self.lock().clusters.get(cluster).cloned();
        if let Some(followed) = followed.filter(|followed| followed.state() != ApiServerState::Answers) {
            followed.hurry.notify_one();
        }
    }

    /// Hurries with a Cluster that changes and forgets one that goes.
    pub fn hear_of(&self, clusters: &Watch<Cluster>) {
        let workload = self.clone();
        clusters.subscribe(move |change| {
            let key = ObjectKey::of(&**change.object());
            match change {
                Change::Applied(_) => workload.hurry(&key),
                Change::Removed(_) => workload.forget(&key),
            }
        });
    }

    /// Follows every Cluster that was asked for, until `stop`.
    pub async fn follow(self, stop: CancellationToken) {
        let mut followers = FuturesUnordered::new();
        loop {
            let arrivals = mem::take(&mut self.lock().arrivals);
            for cluster in arrivals {
                let Shared { kubernetes, connect, jitter, .. } = &*self.shared;
                followers.push(Follower::new(kubernetes.clone(), Arc::clone(connect), *jitter, cluster).run());
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(()) = followers.next(), if !followers.is_empty() => {}
                () = self.shared.arrived.notified() => {}
            }
        }
    }

    fn followed(&self, cluster: &ObjectKey) -> Arc<Followed> {
        let mut state = self.lock();
        if let Some(known) = state.clusters.get(cluster) {
            return Arc::clone(known);
        }
        let followed = Arc::new(Followed::new(cluster.clone()));
        state.clusters.insert(cluster.clone(), Arc::clone(&followed));
        state.arrivals.push(Arc::clone(&followed));
        self.shared.arrived.notify_one();
        followed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
