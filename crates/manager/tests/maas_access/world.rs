//! Emulated MAASes that can be switched off, an API server with Secrets, and accounts between them.

use bytes::Bytes;
use http::{Request, Response};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use maas_client::{BoxError, Client, ExposeSecret, NotSent, Transport};
use maas_emulator::{Emulator, Fleet, Options};
use manager::{
    Clock, Jitter, MaasAccess,
    maas::{Connect, Credentials, DEFAULT_SECRET, MaasAccounts, MaasMetrics},
};
use rustls::{CertificateError, pki_types::UnixTime};
use simulation::{ApiServer, Faults};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

pub const ENDPOINT: &str = "http://maas.test:5240/MAAS";
pub const OTHER_ENDPOINT: &str = "http://other.test:5240/MAAS";
pub const ALICE: &str = "aliceconsumer:alicetoken:alicecanary";
pub const ALICE_NEW: &str = "newconsumer:newtoken:newcanary";
pub const BOB: &str = "bobconsumer:bobtoken:bobcanary";
pub const ADMIN: &str = "adminconsumer:admintoken:admincanary";

/// Where the provider is.
pub const OWN_NAMESPACE: &str = "capmaas-system";

/// A certificate authority that signed the certificate of no MAAS here.
pub const STRANGER: &str = "stranger";

const FLEET: &str = "
zones: [{name: az1}]
users:
  - {name: admin, superuser: true, keys: [{key: 'adminconsumer:admintoken:admincanary'}]}
  - {name: alice, keys: [{key: 'aliceconsumer:alicetoken:alicecanary'}]}
  - {name: bob, keys: [{key: 'bobconsumer:bobtoken:bobcanary'}]}
machines: [{hostname: m, count: 4}]
";

/// How a MAAS behaves towards whoever calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Answers,
    /// Nobody listens.
    Refuses,
    /// Somebody listens and never answers.
    IsSilent,
    /// A proxy says that there is nobody behind it.
    IsBehindAGateway,
    /// Another program answers.
    IsAnotherProgram,
    /// Its certificate is out of date.
    HasExpired,
}

/// One MAAS.
#[derive(Clone)]
pub struct Maas {
    pub emulator: Emulator,
    clock: Clock,
    behaviour: Arc<Mutex<Behaviour>>,
    attempts: Arc<AtomicU64>,
}

impl Maas {
    fn new(start: jiff::Timestamp, clock: Clock) -> Self {
        let options = Options { clock: maas_emulator::Clock::running(start), ..Options::default() };
        let emulator = Emulator::new(Fleet::from_yaml(FLEET).unwrap(), options).unwrap();
        Self { emulator, clock, behaviour: Arc::new(Mutex::new(Behaviour::Answers)), attempts: Arc::default() }
    }

    pub fn behaves(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner) = behaviour;
    }

    /// How many requests went out to it, answered or not.
    pub fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// How many calls of this operation arrived.
    pub fn calls(&self, part: &str) -> usize {
        self.emulator.journal(|journal| journal.entries().filter(|entry| entry.uri.contains(part)).count())
    }

    async fn answer(self, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let behaviour = *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner);
        let page = |status| Response::builder().status(status).header("content-type", "text/html").body(Bytes::from_static(b"<html>"));
        match behaviour {
            Behaviour::Answers => Ok(self.emulator.answer(request).await?),
            Behaviour::Refuses => Err(NotSent("connection refused".to_owned()).into()),
            Behaviour::IsSilent => std::future::pending().await,
            Behaviour::IsBehindAGateway => Ok(page(502)?),
            Behaviour::IsAnotherProgram => Ok(page(200)?),
            Behaviour::HasExpired => Err(NotSent(expired(self.clock.now().as_second())).into()),
        }
    }
}

/// What the wire says of a certificate that expired: at every moment something else.
fn expired(now: i64) -> String {
    let [time, not_after] = [now, now - 1000].map(|at| UnixTime::since_unix_epoch(Duration::from_secs(at.try_into().unwrap())));
    let error = rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after });
    format!("error sending request: client error (Connect): {error}")
}

/// Everything around the accounts under test.
pub struct World {
    pub server: ApiServer,
    pub clock: Clock,
    pub maas: Maas,
    pub other: Maas,
    pub accounts: MaasAccounts,
    /// Numbers the clients made, so that no two use the same nonce.
    clients: Arc<AtomicU64>,
}

impl World {
    pub fn new() -> Self {
        Self::with_environment(None)
    }

    /// `environment`: endpoint and key.
    pub fn with_environment(environment: Option<(&str, &str)>) -> Self {
        Self::started(environment, None)
    }

    /// A provider in a pod, whose environment came from the Secret beside it.
    pub fn in_a_pod(endpoint: &str, key: &str) -> Self {
        Self::started(Some((endpoint, key)), Some(OWN_NAMESPACE.to_owned()))
    }

    fn started(environment: Option<(&str, &str)>, own_namespace: Option<String>) -> Self {
        let start: jiff::Timestamp = "2026-11-16T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(start);
        let (maas, other) = (Maas::new(start, clock), Maas::new(start, clock));
        let server = ApiServer::new(clock, Faults::none());
        let environment = environment.and_then(|(endpoint, key)| {
            let values = BTreeMap::from([("MAAS_ENDPOINT", endpoint), ("MAAS_API_KEY", key)]);
            let access = MaasAccess::from_environment(|name| values.get(name).map(|value| (*value).to_owned())).unwrap();
            access.map(|access| access.renewed_from(own_namespace))
        });
        let clients = Arc::default();
        let connect = connect(clock, &maas, &other, &clients);
        let accounts = MaasAccounts::new(server.client("manager"), environment, connect, clock, Jitter::seeded(1), MaasMetrics::default());
        Self { server, clock, maas, other, accounts, clients }
    }

    /// The accounts of a process that begins now.
    pub fn another_process(&self) -> MaasAccounts {
        MaasAccounts::new(self.server.client("another"), None, self.connect(), self.clock, Jitter::seeded(2), MaasMetrics::default())
    }

    /// Writes a Secret.
    pub async fn secret(&self, namespace: &str, name: &str, data: &[(&str, &str)]) {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()))).collect();
        let mut secret = Secret { data: Some(data), ..Secret::default() };
        secret.metadata.name = Some(name.to_owned());
        let api: Api<Secret> = Api::namespaced(self.server.client("people"), namespace);
        api.patch(name, &PatchParams::apply("people").force(), &Patch::Apply(&secret)).await.unwrap();
    }

    /// Writes the Secret of a namespace, in the spelling of the Go provider.
    pub async fn default_secret(&self, namespace: &str, endpoint: &str, key: &str) {
        self.secret(namespace, DEFAULT_SECRET, &[("MAAS_ENDPOINT", endpoint), ("MAAS_API_KEY", key)]).await;
    }

    /// What the manager asked the API server for.
    pub fn kubernetes_calls(&self) -> Vec<String> {
        let verbs = ["GET ", "POST ", "PUT ", "PATCH ", "DELETE "];
        let entries = self.server.trace().entries().into_iter();
        let calls = entries.filter(|entry| entry.client == "manager" && verbs.iter().any(|verb| entry.what.starts_with(verb)));
        calls.map(|entry| entry.what.trim().to_owned()).collect()
    }

    /// A client of the MAAS for people, who use neither our breaker nor our budget.
    pub fn person(&self, key: &str) -> Client {
        let credentials = Credentials { endpoint: ENDPOINT.parse().unwrap(), key: key.to_owned().into(), certificate_authority: None };
        let (builder, transport) = self.connect()(&credentials).unwrap();
        builder.build_on(transport)
    }

    fn connect(&self) -> Connect {
        connect(self.clock, &self.maas, &self.other, &self.clients)
    }
}

/// Wires onto the emulated MAASes; nonces count up, so that the same test makes the same calls.
fn connect(clock: Clock, maas: &Maas, other: &Maas, clients: &Arc<AtomicU64>) -> Connect {
    let maases = BTreeMap::from([(ENDPOINT, maas.clone()), (OTHER_ENDPOINT, other.clone())]);
    let clients = Arc::clone(clients);
    Arc::new(move |credentials| {
        let maas = maases.get(credentials.endpoint.as_str()).expect("a MAAS at this address").clone();
        let number = AtomicU64::new((clients.fetch_add(1, Ordering::Relaxed) + 1) << 32);
        let builder = Client::builder(credentials.endpoint.as_str(), credentials.key.expose_secret())?
            .clock(move || u64::try_from(clock.now().as_second()).unwrap())
            .randomness(move || u128::from(number.fetch_add(1, Ordering::Relaxed)));
        let distrusts = credentials.certificate_authority.as_deref() == Some(STRANGER.as_bytes());
        let wire = tower::service_fn(move |request| {
            let maas = maas.clone();
            async move {
                if distrusts {
                    Err(NotSent("invalid peer certificate: UnknownIssuer".to_owned()).into())
                } else {
                    maas.answer(request).await
                }
            }
        });
        Ok((builder, Transport::new(wire)))
    })
}
