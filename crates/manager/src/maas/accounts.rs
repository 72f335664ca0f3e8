//! Whose access counts for an object, and what is shared between all who use the same MAAS.

use futures::{StreamExt, stream::FuturesUnordered};
use maas_client::{Error, NetworkError, SetupError};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    account::{Account, AccountState},
    account_error::{AccountError, CredentialsPlace},
    connect::Connect,
    connection::{Connection, Endpoints},
    credentials::{Credentials, DEFAULT_SECRET},
    environment::MaasAccess,
    feed::Feed,
    metrics::MaasMetrics,
    secrets::Secrets,
};
use crate::{clock::Clock, jitter::Jitter, object_key::ObjectKey};

/// A key that nobody asked for during this time is let go with its connections.
const IDLE: Duration = Duration::from_hours(1);

/// All access to MAAS of one process; clones are the same.
#[derive(Clone)]
pub struct MaasAccounts {
    shared: Arc<Shared>,
}

struct Shared {
    secrets: Secrets,
    environment: Option<MaasAccess>,
    connect: Connect,
    clock: Clock,
    jitter: Jitter,
    metrics: MaasMetrics,
    state: Mutex<State>,
    /// There is an account that was not there before.
    arrived: Notify,
    sweep_period: OnceLock<Duration>,
}

/// How often all our machines are listed, for what no event tells.
const SWEEP_PERIOD: Duration = Duration::from_mins(10);

#[derive(Default)]
struct State {
    endpoints: Endpoints,
    connections: Vec<Arc<Connection>>,
    /// By address and user.
    accounts: BTreeMap<(String, String), Arc<AccountState>>,
}

impl fmt::Debug for MaasAccounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accounts: Vec<_> = self.lock().accounts.keys().cloned().collect();
        formatter.debug_struct("MaasAccounts").field("accounts", &accounts).finish_non_exhaustive()
    }
}

impl MaasAccounts {
    /// No accounts yet. `environment` counts where no Secret does; metrics come from [`crate::Controllers::maas_metrics`].
    pub fn new(
        kubernetes: kube::Client,
        environment: Option<MaasAccess>,
        connect: Connect,
        clock: Clock,
        jitter: Jitter,
        metrics: MaasMetrics,
    ) -> Self {
        let secrets = Secrets::new(kubernetes);
        let (state, arrived) = (Mutex::default(), Notify::new());
        Self {
            shared: Arc::new(Shared {
                secrets,
                environment,
                connect,
                clock,
                jitter,
                metrics,
                state,
                arrived,
                sweep_period: OnceLock::new(),
            }),
        }
    }

    /// The account that counts for objects of this namespace: the Secret that `identity` names, else the Secret [`DEFAULT_SECRET`] of the
    /// namespace, else the environment, with the newest key that the provider's own namespace has for it. A Secret that exists and cannot be
    /// used is an error: falling back could mean another MAAS.
    pub async fn of(&self, namespace: &str, identity: Option<&str>) -> Result<Account, AccountError> {
        let (mut place, credentials) = self.credentials(namespace, identity).await?;
        let mut connection = self.connection(&place, credentials)?;
        if connection.is_refused() {
            self.shared.secrets.forget(namespace, identity.unwrap_or(DEFAULT_SECRET));
            if let Some(own_namespace) = self.shared.environment.as_ref().and_then(MaasAccess::own_namespace) {
                self.shared.secrets.forget(own_namespace, DEFAULT_SECRET);
            }
            let (read_from, credentials) = self.credentials(namespace, identity).await?;
            (place, connection) = (read_from.clone(), self.connection(&read_from, credentials)?);
            if connection.is_refused() && connection.is_disowned() {
                return Err(AccountError::KeyRefused { place, endpoint: connection.endpoint.address.clone() });
            }
        }
        let who = connection.identity().await.map_err(|error| not_known(place, &connection, error))?;
        let source = (namespace.to_owned(), identity.map(str::to_owned));
        let state = self.state_of(&connection, &who.user);
        self.lock().accounts.values().filter(|other| !Arc::ptr_eq(other, &state)).for_each(|other| other.left(&source));
        state.asked(source, &connection);
        Ok(Account::new(&connection, who, self.shared.clock, state))
    }

    /// Lists all our machines so often instead of every ten minutes, to find what no event tells. To be said before anything is followed.
    pub fn sweep_every(&self, period: Duration) {
        let _ = self.shared.sweep_period.set(period);
    }

    pub(super) fn sweep_period(&self) -> Duration {
        *self.shared.sweep_period.get_or_init(|| SWEEP_PERIOD)
    }

    /// Follows the events of every account in use and pokes the objects whose machines they name, until `stop`.
    pub async fn follow(self, stop: CancellationToken) {
        let mut followed = BTreeSet::new();
        let mut feeds = FuturesUnordered::new();
        loop {
            let accounts = self.lock().accounts.clone();
            for (key, state) in accounts {
                if followed.insert(key) {
                    feeds.push(Feed::new(self.clone(), state).run());
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(never) = feeds.next(), if !feeds.is_empty() => match never {},
                () = self.shared.arrived.notified() => {}
            }
        }
    }

    /// This object is gone: no account pokes it any more.
    pub fn forget(&self, object: &ObjectKey) {
        for state in self.lock().accounts.values() {
            state.watched().unwatch(object);
        }
    }

    pub(super) fn clock(&self) -> Clock {
        self.shared.clock
    }

    pub(super) fn jitter(&self) -> Jitter {
        self.shared.jitter
    }

    pub(super) fn metrics(&self) -> &MaasMetrics {
        &self.shared.metrics
    }

    async fn credentials(&self, namespace: &str, identity: Option<&str>) -> Result<(CredentialsPlace, Credentials), AccountError> {
        let name = identity.unwrap_or(DEFAULT_SECRET);
        let place = CredentialsPlace::Secret { namespace: namespace.to_owned(), name: name.to_owned() };
        match (self.shared.secrets.read(namespace, name).await?, identity, &self.shared.environment) {
            (Some(found), _, _) => Ok((place, found?)),
            (None, Some(_), _) => Err(AccountError::SecretMissing { place }),
            (None, None, Some(access)) => self.of_the_provider(access).await,
            (None, None, None) => Err(AccountError::NoCredentials { namespace: namespace.to_owned() }),
        }
    }

    /// The environment is as old as the process, and the Secret it came from may have another key by now. Whatever else is in that Secret,
    /// such as the address of another MAAS, needs a start: objects do not change their MAAS while they are looked at.
    async fn of_the_provider(&self, access: &MaasAccess) -> Result<(CredentialsPlace, Credentials), AccountError> {
        let started_with = Credentials::from_environment(access)?;
        if let Some(namespace) = access.own_namespace()
            && let Ok(Some(Ok(found))) = self.shared.secrets.read(namespace, DEFAULT_SECRET).await
            && found.endpoint == started_with.endpoint
        {
            let place = CredentialsPlace::Secret { namespace: namespace.to_owned(), name: DEFAULT_SECRET.to_owned() };
            return Ok((place, found));
        }
        Ok((CredentialsPlace::Environment, started_with))
    }

    /// The connection with these credentials, whoever holds them.
    fn connection(&self, place: &CredentialsPlace, credentials: Credentials) -> Result<Arc<Connection>, AccountError> {
        let Shared { clock, connect, metrics, .. } = &*self.shared;
        let mut state = self.lock();
        if let Some(known) = state.connections.iter().find(|known| known.credentials == credentials) {
            return Ok(Arc::clone(known));
        }
        let endpoint = state.endpoints.of(&credentials, *clock);
        let connection = Connection::new(credentials, endpoint, connect, metrics.clone()).map_err(|error| unusable(place, &error))?;
        let connection = Arc::new(connection);
        state.connections.retain(|known| !known.is_idle(IDLE));
        state.connections.push(Arc::clone(&connection));
        Ok(connection)
    }

    fn state_of(&self, connection: &Arc<Connection>, user: &str) -> Arc<AccountState> {
        let mut state = self.lock();
        let key = (connection.endpoint.address.clone(), user.to_owned());
        if let Some(known) = state.accounts.get(&key) {
            return Arc::clone(known);
        }
        let account = Arc::new(AccountState::new(user.to_owned(), connection));
        state.accounts.insert(key, Arc::clone(&account));
        self.shared.metrics.accounts(state.accounts.len());
        self.shared.arrived.notify_one();
        account
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unusable(place: &CredentialsPlace, error: &SetupError) -> AccountError {
    let hint = match error {
        SetupError::Network(NetworkError::CertificateAuthority(_)) => {
            "; put the PEM text of the certificate that signed MAAS's own under the key ca.crt"
        }
        _ => "",
    };
    AccountError::Unusable { place: place.clone(), reason: format!("{error}{hint}") }
}

/// Why nobody knows whose key it is.
fn not_known(place: CredentialsPlace, connection: &Connection, source: Error) -> AccountError {
    let endpoint = connection.endpoint.address.clone();
    match source {
        Error::Unauthenticated { .. } => AccountError::KeyRefused { place, endpoint },
        Error::Unavailable { .. } | Error::Conflict { .. } | Error::Failed { .. } => {
            AccountError::Unavailable { place, endpoint, source: Box::new(source) }
        }
        _ => AccountError::NotUsable { place, endpoint, source: Box::new(source) },
    }
}
