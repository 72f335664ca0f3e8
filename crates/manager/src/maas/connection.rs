//! One key at one MAAS: the guarded client, and whose key it is. [`super::MaasAccounts`] keeps one per key, whatever Secrets hold it.

use maas_client::{Budget, Client, Error, SetupError, Transport};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

use super::{
    breaker::Breaker,
    connect::Connect,
    credentials::Credentials,
    fresh::Fresh,
    guard::{Guard, KeyRefused},
    metrics::MaasMetrics,
};
use crate::clock::Clock;

/// How long we are believed to have the same name and rights: a promotion to administrator is noticed after this time.
const IDENTITY_AGE: Duration = Duration::from_mins(10);
/// How long MAAS is not asked again about a key it did not know.
const REFUSAL_AGE: Duration = Duration::from_secs(30);

/// What all keys of one MAAS share: how many calls at once, and whether it answers at all.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub address: String,
    pub budget: Budget,
    pub breaker: Arc<Breaker>,
}

/// The endpoints in use.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    budgets: BTreeMap<String, Budget>,
    /// By address and certificate authority: whoever trusts the wrong one reaches nobody, and that is nobody else's concern.
    breakers: BTreeMap<(String, Option<Vec<u8>>), Arc<Breaker>>,
}

impl Endpoints {
    /// The endpoint of these credentials.
    pub fn of(&mut self, credentials: &Credentials, clock: Clock) -> Endpoint {
        let address = credentials.endpoint.as_str().to_owned();
        let budget = self.budgets.entry(address.clone()).or_default().clone();
        let breaker = self.breakers.entry((address.clone(), credentials.certificate_authority.clone()));
        let breaker = Arc::clone(breaker.or_insert_with(|| Arc::new(Breaker::new(address.clone(), clock))));
        Endpoint { address, budget, breaker }
    }
}

/// Who a key makes us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub user: String,
    pub administrator: bool,
}

/// A key in use.
pub(super) struct Connection {
    pub credentials: Credentials,
    pub client: Client,
    pub endpoint: Endpoint,
    refused: KeyRefused,
    identity: Fresh<Identity, Error>,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    identity: Option<Identity>,
    /// When MAAS last said that it does not know the key, asked for nothing else.
    disowned: Option<Instant>,
    asked: Instant,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

impl Connection {
    /// Nothing is sent yet.
    pub fn new(credentials: Credentials, endpoint: Endpoint, connect: &Connect, metrics: MaasMetrics) -> Result<Self, SetupError> {
        let (builder, wire) = connect(&credentials)?;
        let refused = KeyRefused::default();
        let (address, breaker) = (endpoint.address.clone(), Arc::clone(&endpoint.breaker));
        let guard = Guard { wire, endpoint: address, breaker, refused: refused.clone(), metrics };
        let client = builder.budget(endpoint.budget.clone()).build_on(Transport::new(guard));
        let known = Mutex::new(Known { identity: None, disowned: None, asked: Instant::now() });
        Ok(Self { credentials, client, endpoint, refused, identity: Fresh::default(), known })
    }

    /// Whether MAAS's latest answer was that it does not accept the key.
    pub fn is_refused(&self) -> bool {
        self.refused.get()
    }

    /// Whether MAAS was asked about the key and refused it, so lately that asking again is of no use.
    pub fn is_disowned(&self) -> bool {
        self.lock().disowned.is_some_and(|at| at.elapsed() < REFUSAL_AGE)
    }

    /// Whose key it is. Once known it stays so while MAAS does not answer.
    pub async fn identity(&self) -> Result<Identity, Error> {
        self.lock().asked = Instant::now();
        if self.is_refused() {
            self.identity.forget();
        }
        let read = async {
            let user = self.client.whoami().await?;
            Ok(Identity { user: user.username, administrator: user.is_superuser })
        };
        let outcome = self.identity.get(IDENTITY_AGE, read).await;
        let mut known = self.lock();
        match outcome {
            Ok(identity) => {
                known.disowned = None;
                known.identity = Some(identity.clone());
                Ok(identity)
            }
            Err(error @ Error::Unauthenticated { .. }) => {
                known.disowned = Some(Instant::now());
                Err(error)
            }
            Err(error) => known.identity.clone().ok_or(error),
        }
    }

    /// Whether nobody asked for it during this time.
    pub fn is_idle(&self, during: Duration) -> bool {
        self.lock().asked.elapsed() >= during
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
