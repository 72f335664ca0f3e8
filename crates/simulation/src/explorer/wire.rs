//! What every call of the controllers passes on its way to Kubernetes or MAAS: it counts them, lets things go wrong, and shows the witness
//! what is about to happen.

use std::{
    collections::BTreeMap,
    future::pending,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response, StatusCode};
use maas_client::{BoxError, NotSent, Transport};
use maas_emulator::Emulator;
use manager::Jitter;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{
    trouble::{CallKind, Fate, Matrix, Troubles},
    witness::Witness,
};
use crate::ApiServer;

/// The wire of one run; clones are the same wire.
#[derive(Clone)]
pub struct Wire {
    server: ApiServer,
    emulator: Emulator,
    witness: Witness,
    troubles: Troubles,
    jitter: Jitter,
    state: Arc<Mutex<State>>,
    began: Instant,
    /// Whether every call is printed, to look at a seed that found something.
    told: bool,
}

#[derive(Default)]
struct State {
    calls: u64,
    struck: u64,
    by_kind: BTreeMap<CallKind, u64>,
    matrix: Matrix,
}

/// The end of a process: whoever holds it can be killed.
pub type Kill = Arc<Notify>;

enum Passage {
    Open,
    Struck(Fate),
}

impl Wire {
    pub fn new(server: ApiServer, emulator: Emulator, witness: Witness, troubles: Troubles, seed: u64) -> Self {
        Self {
            server,
            emulator,
            witness,
            troubles,
            jitter: Jitter::seeded(seed),
            state: Arc::default(),
            began: Instant::now(),
            told: std::env::var_os("EXPLORER_TELL").is_some(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls were made.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// How many of each kind.
    pub fn calls_by_kind(&self) -> BTreeMap<CallKind, u64> {
        self.state().by_kind.clone()
    }

    /// What went wrong.
    pub fn matrix(&self) -> Matrix {
        self.state().matrix.clone()
    }

    fn passage(&self, process: &str, kind: &CallKind) -> Passage {
        let passage = self.judge(kind);
        if self.told {
            let fate = if let Passage::Struck(fate) = &passage { format!("{fate:?}") } else { String::new() };
            eprintln!("{:>9.3} #{:<4} {process:<10} {kind} {fate}", self.began.elapsed().as_secs_f64(), self.calls());
        }
        passage
    }

    fn judge(&self, kind: &CallKind) -> Passage {
        let mut state = self.state();
        state.calls += 1;
        *state.by_kind.entry(kind.clone()).or_default() += 1;
        let fate = self.troubles.fate(state.calls, kind, state.struck);
        let Some(fate) = fate else { return Passage::Open };
        state.struck += 1;
        state.matrix.count(kind, fate);
        Passage::Struck(fate)
    }

    fn late(&self) -> Duration {
        let longest = u64::try_from(Fate::LATEST.as_millis()).unwrap_or_default();
        Duration::from_millis(1000 + self.jitter.draw("late", self.state().calls) % (longest - 1000))
    }

    /// A client of Kubernetes for a process.
    pub fn kubernetes(&self, process: &str, kill: &Kill) -> kube::Client {
        let (wire, process, kill) = (self.clone(), process.to_owned(), Arc::clone(kill));
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            wire.clone().call_kubernetes(process.clone(), Arc::clone(&kill), request).boxed()
        });
        kube::Client::new(service, "default")
    }

    async fn call_kubernetes(self, process: String, kill: Kill, request: Request<kube::client::Body>) -> Result<Response<Body>, io::Error> {
        let kind = kubernetes_kind(&request);
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(io::Error::other)?;
        let rebuilt = || Request::from_parts(parts.clone(), kube::client::Body::from(body.to_vec()));
        let reset = || io::Error::new(io::ErrorKind::ConnectionReset, "the connection was reset");
        let carry_out = |wire: &Self| {
            wire.witness.before_kubernetes(&parts.method, parts.uri.path(), &body);
            wire.server.clone().answer(process.clone(), rebuilt())
        };
        match self.passage(&process, &kind) {
            Passage::Open => carry_out(&self).await,
            Passage::Struck(Fate::FailedBefore) => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens")),
            Passage::Struck(Fate::FailedAfter) => {
                carry_out(&self).await?;
                let status =
                    r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","message":"it broke","code":500}"#;
                let mut response = Response::new(Body::from(status));
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                Ok(response)
            }
            Passage::Struck(Fate::AnswerLost) => {
                carry_out(&self).await?;
                Err(reset())
            }
            Passage::Struck(Fate::LateCommit) => {
                // The API server does not work behind anybody's back for long.
                let wire = self.clone();
                let late = async move {
                    sleep(Duration::from_secs(2)).await;
                    drop(wire.server.clone().answer(process, Request::from_parts(parts, kube::client::Body::from(body.to_vec()))).await);
                };
                drop(tokio::spawn(late));
                Err(reset())
            }
            Passage::Struck(Fate::KilledBefore) => {
                kill.notify_one();
                pending().await
            }
            Passage::Struck(Fate::KilledAfter) => {
                drop(carry_out(&self).await);
                kill.notify_one();
                pending().await
            }
        }
    }

    /// The way to MAAS for a process.
    pub fn maas(&self, process: &str, kill: &Kill) -> Transport {
        let (wire, process, kill) = (self.clone(), process.to_owned(), Arc::clone(kill));
        Transport::new(tower::service_fn(move |request: Request<Bytes>| {
            wire.clone().call_maas(process.clone(), Arc::clone(&kill), request).boxed()
        }))
    }

    async fn carry_out_in_maas(&self, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
        self.witness.before_maas(&request);
        let answer = self.emulator.answer(request.clone()).await.map_err(BoxError::from)?;
        self.witness.after_maas(&request);
        Ok(answer)
    }

    async fn call_maas(self, process: String, kill: Kill, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
        let kind = maas_kind(&request);
        let passage = self.passage(&process, &kind);
        if !matches!(passage, Passage::Struck(Fate::FailedBefore | Fate::KilledBefore)) {
            // A failure is an answer too: nothing more will come of it.
            self.witness.sent(&request, matches!(passage, Passage::Open | Passage::Struck(Fate::FailedAfter)));
        }
        match passage {
            Passage::Open => self.carry_out_in_maas(request).await,
            Passage::Struck(Fate::FailedBefore) => Err(Box::new(NotSent("nobody listens".to_owned()))),
            Passage::Struck(Fate::FailedAfter) => {
                self.carry_out_in_maas(request).await?;
                let mut response = Response::new(Bytes::from_static(b"it broke"));
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain"));
                Ok(response)
            }
            Passage::Struck(Fate::AnswerLost) => {
                self.carry_out_in_maas(request).await?;
                Err("the connection was reset".into())
            }
            Passage::Struck(Fate::LateCommit) => {
                let (wire, delay) = (self.clone(), self.late());
                self.witness.before_maas(&request);
                let late = async move {
                    sleep(delay).await;
                    // What people took by hand in the meantime is beyond everybody's control.
                    if !wire.witness.was_taken_by_hand(&request) {
                        drop(wire.carry_out_in_maas(request).await);
                    }
                };
                drop(tokio::spawn(late));
                Err("the connection was reset".into())
            }
            Passage::Struck(Fate::KilledBefore) => {
                kill.notify_one();
                pending().await
            }
            Passage::Struck(Fate::KilledAfter) => {
                drop(self.carry_out_in_maas(request).await);
                kill.notify_one();
                pending().await
            }
        }
    }
}

fn kubernetes_kind(request: &Request<kube::client::Body>) -> CallKind {
    let path = request.uri().path();
    let watching = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let skip = if parts.first() == Some(&"api") { 2 } else { 3 };
    let rest = parts.get(skip..).unwrap_or_default();
    let rest = if rest.first() == Some(&"namespaces") && rest.len() > 2 { &rest[2..] } else { rest };
    let resource = rest.first().copied().unwrap_or_default();
    let verb = match request.method().as_str() {
        "GET" if watching => "WATCH",
        "GET" if rest.len() < 2 => "LIST",
        verb => verb,
    };
    let part = rest.get(2).map(|part| format!("/{part}")).unwrap_or_default();
    CallKind(format!("kubernetes {verb} {resource}{part}"))
}

fn maas_kind(request: &Request<Bytes>) -> CallKind {
    let path = request.uri().path().trim_start_matches("/MAAS/api/2.0/").trim_end_matches('/');
    let mut parts: Vec<&str> = path.split('/').collect();
    if parts.len() > 1 {
        parts[1] = "{}";
    }
    let query = request.uri().query().unwrap_or_default();
    let operation =
        form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "op").map(|(_, value)| format!(" {value}")).unwrap_or_default();
    CallKind(format!("maas {} {}{operation}", request.method(), parts.join("/")))
}
