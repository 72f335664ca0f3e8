//! What every call of the controllers passes on its way to Kubernetes or MAAS: it counts them, lets things go wrong, and shows the witness
//! what is about to happen.

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request, Response, StatusCode, request::Parts};
use maas_client::{BoxError, NotSent, Transport};
use maas_emulator::Emulator;
use manager::Jitter;
use serde_json::json;
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::{
    call_kind,
    matrix::Matrix,
    trouble::{CallKind, Fate, Passing, Troubles},
    witness::Witness,
};
use crate::ApiServer;

/// How long calls are counted together, to see a storm.
pub const WINDOW: Duration = Duration::from_secs(20);
/// The API server ends a call of its own accord after this time.
const API_SERVER_PATIENCE: Duration = Duration::from_mins(1);
/// It may carry out a write so much later than its caller was cut off: far less than MAAS, which tries again by itself.
const LATEST_IN_KUBERNETES: Duration = Duration::from_secs(30);
/// How long a slow call takes, from and to.
const SLOW: (Duration, Duration) = (Duration::from_secs(30), Duration::from_mins(1));
/// The same for a read of MAAS, for which its client waits 30 seconds.
const SLOW_READ: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(28));

/// The wire of one run; clones are the same wire.
#[derive(Clone)]
pub struct Wire {
    server: ApiServer,
    workload: ApiServer,
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
    kinds: Vec<CallKind>,
    matrix: Matrix,
    recent: VecDeque<Instant>,
    busiest: usize,
}

/// The end of a process: whoever holds it can be killed.
pub type Kill = Arc<Notify>;

impl Wire {
    pub fn new(workload: ApiServer, witness: Witness, troubles: Troubles, seed: u64) -> Self {
        Self {
            server: witness.server.clone(),
            workload,
            emulator: witness.emulator.clone(),
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

    /// What each of them was, in order.
    pub fn kinds(&self) -> Vec<CallKind> {
        self.state().kinds.clone()
    }

    /// How many within [`WINDOW`], when there were most.
    pub fn busiest(&self) -> usize {
        self.state().busiest
    }

    /// What went wrong.
    pub fn matrix(&self) -> Matrix {
        self.state().matrix.clone()
    }

    /// What becomes of a call; nothing if it passes.
    fn passage(&self, process: &str, kind: &CallKind) -> Option<Fate> {
        let fate = self.judge(kind);
        if self.told {
            let fate = fate.map(|fate| format!("{fate:?}")).unwrap_or_default();
            eprintln!("{:>9.3} #{:<4} {process:<10} {kind} {fate}", self.began.elapsed().as_secs_f64(), self.calls());
        }
        fate
    }

    fn judge(&self, kind: &CallKind) -> Option<Fate> {
        let mut state = self.state();
        let now = Instant::now();
        state.recent.push_back(now);
        while state.recent.front().is_some_and(|first| now - *first > WINDOW) {
            state.recent.pop_front();
        }
        state.busiest = state.busiest.max(state.recent.len());
        state.calls += 1;
        state.kinds.push(kind.clone());
        let nth = state.by_kind.entry(kind.clone()).or_default();
        *nth += 1;
        let nth = *nth;
        let fate = self.troubles.fate(Passing { call: state.calls, kind, nth, struck: state.struck })?;
        state.struck += 1;
        state.matrix.count(kind, fate);
        Some(fate)
    }

    /// A time between the two, for the call that was just judged.
    fn between(&self, purpose: &str, (from, to): (Duration, Duration)) -> Duration {
        let span = u64::try_from(to.saturating_sub(from).as_millis()).unwrap_or_default().max(1);
        from + Duration::from_millis(self.jitter.draw(purpose, self.calls()) % span)
    }

    /// A client of Kubernetes for a process.
    pub fn kubernetes(&self, process: &str, kill: &Kill) -> kube::Client {
        self.client(Place::Management, process, kill)
    }

    /// A client of the workload cluster for a process.
    pub fn workload(&self, process: &str, kill: &Kill) -> kube::Client {
        self.client(Place::Workload, process, kill)
    }

    fn client(&self, place: Place, process: &str, kill: &Kill) -> kube::Client {
        let (wire, process, kill) = (self.clone(), process.to_owned(), Arc::clone(kill));
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            wire.clone().call_kubernetes(place, process.clone(), Arc::clone(&kill), request).boxed()
        });
        kube::Client::new(service, "default")
    }

    async fn carry_out_in_kubernetes(&self, letter: &Letter) -> Result<Response<Body>, io::Error> {
        let Letter { place, process, parts, body } = letter;
        let request = Request::from_parts(parts.clone(), kube::client::Body::from(body.to_vec()));
        match place {
            Place::Workload => {
                self.witness.before_workload(&parts.method, parts.uri.path());
                self.workload.clone().answer(process.clone(), request).await
            }
            Place::Management => {
                self.witness.before_kubernetes(&parts.method, parts.uri.path(), body);
                let answer = self.server.clone().answer(process.clone(), request).await;
                self.witness.after_kubernetes(&parts.method, parts.uri.path());
                answer
            }
        }
    }

    /// Carries it out after a while, whatever becomes of whoever asked for it.
    fn later_in_kubernetes(&self, delay: Duration, letter: &Letter) -> Carried<Body, io::Error> {
        let (wire, letter) = (self.clone(), letter.clone());
        tokio::spawn(async move {
            sleep(delay).await;
            wire.carry_out_in_kubernetes(&letter).await
        })
    }

    async fn call_kubernetes(
        self,
        place: Place,
        process: String,
        kill: Kill,
        request: Request<kube::client::Body>,
    ) -> Result<Response<Body>, io::Error> {
        let kind = call_kind::of_kubernetes(place.name(), &request);
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(io::Error::other)?;
        let letter = Letter { place, process, parts, body };
        let reset = || io::Error::new(io::ErrorKind::ConnectionReset, "the connection was reset");
        let Some(fate) = self.passage(&letter.process, &kind) else {
            return self.carry_out_in_kubernetes(&letter).await;
        };
        let late = self.between("late", (Duration::from_secs(1), LATEST_IN_KUBERNETES));
        match fate {
            Fate::FailedBefore => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens")),
            Fate::FailedAfter => {
                self.carry_out_in_kubernetes(&letter).await?;
                Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"))
            }
            Fate::AnswerLost => {
                self.carry_out_in_kubernetes(&letter).await?;
                Err(reset())
            }
            Fate::LateCommit => {
                drop(self.later_in_kubernetes(late, &letter));
                Err(reset())
            }
            Fate::KilledBefore => {
                kill.notify_one();
                pending().await
            }
            Fate::KilledAfter => {
                drop(self.carry_out_in_kubernetes(&letter).await);
                kill.notify_one();
                pending().await
            }
            Fate::Slow => {
                let whole = self.between("slow", SLOW);
                let answer = self.later_in_kubernetes(whole / 3, &letter).await;
                sleep(whole * 2 / 3).await;
                answer.map_err(io::Error::other)?
            }
            Fate::HungBefore | Fate::HungAfter => {
                if fate == Fate::HungAfter {
                    drop(self.later_in_kubernetes(late, &letter));
                }
                sleep(API_SERVER_PATIENCE).await;
                Ok(refusal(StatusCode::GATEWAY_TIMEOUT, "Timeout"))
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

    /// Carries it out after a while, whatever becomes of whoever asked for it.
    fn later_in_maas(&self, delay: Duration, request: Request<Bytes>) -> Carried<Bytes, BoxError> {
        let wire = self.clone();
        wire.witness.before_maas(&request);
        let known = wire.witness.was_taken_by_hand(&request);
        tokio::spawn(async move {
            sleep(delay).await;
            // What people took or released by hand in the meantime is beyond everybody's control.
            if !known && wire.witness.was_taken_by_hand(&request) {
                return Err("somebody was faster".into());
            }
            wire.carry_out_in_maas(request).await
        })
    }

    async fn call_maas(self, process: String, kill: Kill, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
        let kind = call_kind::of_maas(&request);
        let fate = self.passage(&process, &kind);
        if !matches!(fate, Some(Fate::FailedBefore | Fate::KilledBefore)) {
            // A failure is an answer too: nothing more will come of it.
            self.witness.sent(&request, matches!(fate, None | Some(Fate::FailedAfter)));
        }
        let Some(fate) = fate else { return self.carry_out_in_maas(request).await };
        let late = self.between("late", (Duration::from_secs(1), Fate::LATEST));
        match fate {
            Fate::FailedBefore => Err(Box::new(NotSent("nobody listens".to_owned()))),
            Fate::FailedAfter => {
                self.carry_out_in_maas(request).await?;
                Ok(breakdown(self.jitter.draw("whose words", self.calls()).is_multiple_of(2)))
            }
            Fate::AnswerLost => {
                self.carry_out_in_maas(request).await?;
                Err("the connection was reset".into())
            }
            Fate::LateCommit => {
                drop(self.later_in_maas(late, request));
                Err("the connection was reset".into())
            }
            Fate::KilledBefore => {
                kill.notify_one();
                pending().await
            }
            Fate::KilledAfter => {
                drop(self.carry_out_in_maas(request).await);
                kill.notify_one();
                pending().await
            }
            Fate::Slow => {
                let whole = self.between("slow", if *request.method() == Method::GET { SLOW_READ } else { SLOW });
                let answer = self.later_in_maas(whole / 3, request.clone()).await;
                sleep(whole * 2 / 3).await;
                self.witness.answered(&request);
                answer?
            }
            // The client gives up by itself.
            Fate::HungBefore => pending().await,
            Fate::HungAfter => {
                drop(self.later_in_maas(late, request));
                pending().await
            }
        }
    }
}

/// Which Kubernetes a call goes to.
#[derive(Debug, Clone, Copy)]
enum Place {
    Management,
    Workload,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Management => "kubernetes",
            Self::Workload => "workload",
        }
    }
}

/// A call to Kubernetes.
#[derive(Clone)]
struct Letter {
    place: Place,
    process: String,
    parts: Parts,
    body: Bytes,
}

/// A call that is carried out later.
type Carried<B, E> = JoinHandle<Result<Response<B>, E>>;

/// A failure half way: MAAS's own, which ends the call, or that of something before it, after which nobody knows.
fn breakdown(of_maas: bool) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"it broke"));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    if of_maas {
        headers.insert(http::header::X_FRAME_OPTIONS, http::HeaderValue::from_static("DENY"));
    }
    response
}

/// What the API server says when it could not do something.
fn refusal(code: StatusCode, reason: &str) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": "it broke", "code": code.as_u16(),
    });
    let mut response = Response::new(Body::from(status.to_string()));
    *response.status_mut() = code;
    response
}
