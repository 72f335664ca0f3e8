//! One user at one MAAS, as controllers see it: the client, the catalogue, the machines to be told about.

use decisions::machine::AccountFacts;
use maas_client::{BootResource, Client, Error, ResourcePool, SystemId, Tag, Zone};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

use super::{
    catalogue::Catalogue,
    connection::{Connection, Identity},
    failed_deployments::{FailedDeployment, FailedDeployments},
    watched::Watched,
};
use crate::{clock::Clock, controller::Pokes, object_key::ObjectKey};

/// How long after somebody asked for it an account is followed although nobody watches a machine.
const IN_USE: Duration = Duration::from_mins(10);

/// Which objects an account was asked for: their namespace, and the Secret they name.
pub(super) type Source = (String, Option<String>);

/// The access that counts for an object. Ask for it anew in every reconcile; cheap to clone.
#[derive(Clone)]
pub struct Account {
    /// The client, signed with this user's key.
    pub client: Client,
    /// The address of the MAAS.
    pub endpoint: String,
    /// The user's name, as machines show their owner.
    pub user: String,
    /// Whether the user is an administrator.
    pub administrator: bool,
    clock: Clock,
    state: Arc<AccountState>,
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Account");
        shown.field("endpoint", &self.endpoint).field("user", &self.user).field("administrator", &self.administrator);
        shown.finish_non_exhaustive()
    }
}

impl Account {
    /// Who we are to MAAS, as decisions know it.
    pub fn facts(&self) -> AccountFacts {
        AccountFacts { host: host(&self.endpoint), user: self.user.clone(), administrator: self.administrator }
    }

    pub(super) fn new(connection: &Connection, identity: Identity, clock: Clock, state: Arc<AccountState>) -> Self {
        let Identity { user, administrator } = identity;
        Self { client: connection.client.clone(), endpoint: state.endpoint.clone(), user, administrator, clock, state }
    }

    /// From now on events of this machine, and of no other, poke this object, until [`Account::unwatch`] or [`super::MaasAccounts::forget`].
    /// If there was one within the last minutes, it is poked at once.
    pub fn watch(&self, machine: &SystemId, object: ObjectKey, pokes: &Pokes) {
        self.state.watched().watch(machine, object, pokes);
        self.state.wake.notify_one();
    }

    /// This object wants no more pokes, of no machine, and waits for nothing.
    pub fn unwatch(&self, object: &ObjectKey) {
        self.state.watched().unwatch(object);
    }

    /// Whether this object waits for something to happen soon. While any does, the log is read every second.
    pub fn busy(&self, object: &ObjectKey, busy: bool) {
        if self.state.watched().set_busy(object, busy) {
            self.state.wake.notify_one();
        }
    }

    /// Machines whose deployment failed within a day and that were not deployed since, with MAAS's words.
    pub async fn recent_failures(&self) -> Result<BTreeMap<SystemId, FailedDeployment>, Error> {
        self.state.failures.read(&self.client, self.clock, self.state.is_followed()).await
    }

    /// The zones there are; at most a minute old.
    pub async fn zones(&self) -> Result<Arc<Vec<Zone>>, Error> {
        self.state.catalogue.zones(&self.client).await
    }

    /// The zones there are, each with whether it has machines; the latter at most an hour old.
    pub async fn occupied_zones(&self) -> Result<Vec<(String, bool)>, Error> {
        self.state.catalogue.occupied_zones(&self.client).await
    }

    /// The resource pools this user may see; at most a minute old.
    pub async fn pools(&self) -> Result<Arc<Vec<ResourcePool>>, Error> {
        self.state.catalogue.pools(&self.client).await
    }

    /// The tags there are; at most a minute old.
    pub async fn tags(&self) -> Result<Arc<Vec<Tag>>, Error> {
        self.state.catalogue.tags(&self.client).await
    }

    /// The images that can be deployed; at most a minute old.
    pub async fn images(&self) -> Result<Arc<Vec<BootResource>>, Error> {
        self.state.catalogue.images(&self.client).await
    }

    /// Zones, pools, tags and images are read anew when they are asked for next: for when MAAS contradicts them.
    pub fn forget_catalogue(&self) {
        self.state.catalogue.forget();
    }
}

/// What all handles of an account share.
pub(super) struct AccountState {
    pub endpoint: String,
    pub user: String,
    pub failures: FailedDeployments,
    /// Somebody is watched who was not, or something is in flight: the feed looks at its pace again.
    pub wake: Notify,
    catalogue: Catalogue,
    watched: Mutex<Watched>,
    used: Mutex<Used>,
    followed: AtomicBool,
}

struct Used {
    /// What the feed calls with.
    connection: Arc<Connection>,
    /// Who asked, and with which key.
    sources: BTreeMap<Source, Arc<Connection>>,
    asked: Instant,
}

/// The host of an address: what stays the same when MAAS gets another port or TLS.
fn host(endpoint: &str) -> String {
    endpoint.parse::<http::Uri>().ok().and_then(|address| address.host().map(str::to_owned)).unwrap_or_default()
}

impl AccountState {
    pub fn new(user: String, connection: &Arc<Connection>) -> Self {
        let connection = Arc::clone(connection);
        Self {
            endpoint: connection.endpoint.address.clone(),
            user,
            failures: FailedDeployments::default(),
            wake: Notify::new(),
            catalogue: Catalogue::default(),
            watched: Mutex::default(),
            used: Mutex::new(Used { connection, sources: BTreeMap::new(), asked: Instant::now() }),
            followed: AtomicBool::new(false),
        }
    }

    /// Notes who asked with which key. A user may have several; the feed keeps to one until it is refused or nobody else uses it any more.
    pub fn asked(&self, source: Source, connection: &Arc<Connection>) {
        let mut used = self.used();
        let was_idle = used.sources.is_empty() || used.asked.elapsed() >= IN_USE;
        used.asked = Instant::now();
        used.sources.insert(source, Arc::clone(connection));
        let is_used = used.sources.values().any(|other| Arc::ptr_eq(other, &used.connection));
        if !is_used || used.connection.is_refused() && !connection.is_refused() {
            used.connection = Arc::clone(connection);
        }
        if was_idle {
            self.wake.notify_one();
        }
    }

    /// What asked for this account asks for another now. When it was the last, its objects have gone there with it.
    pub fn left(&self, source: &Source) {
        let mut used = self.used();
        if used.sources.remove(source).is_some() && used.sources.is_empty() {
            *self.watched() = Watched::default();
        }
    }

    pub fn connection(&self) -> Arc<Connection> {
        Arc::clone(&self.used().connection)
    }

    pub fn sources(&self) -> Vec<Source> {
        self.used().sources.keys().cloned().collect()
    }

    /// Whether following the log is of use to anybody.
    pub fn is_in_use(&self) -> bool {
        let (asked, wanted) = {
            let used = self.used();
            (used.asked, !used.sources.is_empty())
        };
        wanted && (asked.elapsed() < IN_USE || !self.watched().is_empty())
    }

    pub fn is_followed(&self) -> bool {
        self.followed.load(Ordering::Acquire)
    }

    pub fn set_followed(&self, followed: bool) {
        self.followed.store(followed, Ordering::Release);
    }

    pub fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_without_its_port_and_path() {
        for (endpoint, expected) in [
            ("http://maas.test:5240/MAAS", "maas.test"),
            ("https://10.0.0.1/MAAS", "10.0.0.1"),
            ("http://[fd00::1]:5240/MAAS", "[fd00::1]"),
        ] {
            assert_eq!(host(endpoint), expected);
        }
    }
}
