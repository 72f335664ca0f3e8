//! Workload clusters that can be cut off, a management cluster with their kubeconfigs, and the view under test between them.

use axum::body::Body;
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Node, Secret},
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use manager::{
    Clock, Jitter, ObjectKey,
    workload::{ApiServerState, ConnectWorkload, UnusableKubeconfig, Workload},
};
use serde_json::{Value, json};
use simulation::{ApiServer, Faults};
use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Every kubeconfig has this word in it, and nothing else may.
pub const CANARY: &str = "canary";

/// How a workload cluster behaves towards whoever calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
    Answers,
    /// Nobody listens.
    Refuses,
    /// Somebody listens and never answers.
    Hangs,
    /// Only this token is accepted.
    Wants(String),
    /// Lists are answered, watches end at once.
    EndsWatches,
}

/// The API server of one workload cluster.
#[derive(Clone)]
pub struct WorkloadServer {
    pub server: ApiServer,
    state: Arc<Mutex<State>>,
    open: Arc<AtomicUsize>,
}

struct State {
    behaviour: Behaviour,
    cut: CancellationToken,
    attempts: Vec<(Instant, String)>,
}

/// An answer that is not read to its end yet.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WorkloadServer {
    fn new(clock: Clock) -> Self {
        let state = State { behaviour: Behaviour::Answers, cut: CancellationToken::new(), attempts: Vec::new() };
        Self { server: ApiServer::new(clock, Faults::none()), state: Arc::new(Mutex::new(state)), open: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn behaves(&self, behaviour: Behaviour) {
        self.state().behaviour = behaviour;
    }

    /// Breaks what is open; of one that hangs nothing comes any more, and that is all.
    pub fn cut(&self) {
        std::mem::take(&mut self.state().cut).cancel();
    }

    /// Breaks what is open, and nobody listens any more.
    pub fn dies(&self) {
        self.behaves(Behaviour::Refuses);
        self.cut();
    }

    /// How many answers are being sent: the watches that are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// The calls that went out to it since this moment, answered or not.
    pub fn attempts_since(&self, moment: Instant) -> Vec<String> {
        self.state().attempts.iter().filter(|(at, _)| *at >= moment).map(|(_, what)| what.clone()).collect()
    }

    pub fn client(&self, token: &str) -> Client {
        let (workload, token) = (self.clone(), token.to_owned());
        let inner = self.server.client("manager");
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (workload, token, inner) = (workload.clone(), token.clone(), inner.clone());
            async move { workload.answer(&token, &inner, request).await }
        });
        Client::new(service, "default")
    }

    async fn answer(self, token: &str, inner: &Client, request: Request<kube::client::Body>) -> Result<Response<Body>, io::Error> {
        let (behaviour, cut) = {
            let mut state = self.state();
            state.attempts.push((Instant::now(), format!("{} {}", request.method(), request.uri())));
            (state.behaviour.clone(), state.cut.clone())
        };
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        match behaviour {
            Behaviour::Refuses => return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused")),
            Behaviour::Hangs => std::future::pending().await,
            Behaviour::Wants(wanted) if wanted != token => {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "message": "Unauthorized", "code": 401});
                let mut response = Response::new(Body::from(status.to_string()));
                *response.status_mut() = StatusCode::UNAUTHORIZED;
                return Ok(response);
            }
            Behaviour::EndsWatches if watches => return Ok(Response::new(Body::empty())),
            Behaviour::Answers | Behaviour::Wants(_) | Behaviour::EndsWatches => {}
        }
        let response = inner.send(request).await.map_err(io::Error::other)?;
        if !watches {
            return Ok(response.map(Body::new));
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        let (open, workload, was_cut) = (Open(Arc::clone(&self.open)), self.clone(), cut.clone());
        let end = futures::stream::once(async move {
            let _open = open;
            if workload.state().behaviour == Behaviour::Hangs {
                std::future::pending::<()>().await;
            }
            let reset = || axum::Error::new(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset"));
            was_cut.is_cancelled().then(|| Err(reset()))
        });
        let lines = |body: Body| body.into_data_stream().take_until(cut.clone().cancelled_owned());
        Ok(response.map(|body| Body::from_stream(lines(Body::new(body)).chain(end.filter_map(std::future::ready)))))
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.server.client("people"))
    }

    /// A node, as a kubelet makes it.
    pub async fn node(&self, name: &str, provider_id: Option<&str>) {
        self.node_at(name, provider_id, &[]).await;
    }

    /// The same with the addresses it registers with.
    pub async fn node_at(&self, name: &str, provider_id: Option<&str>, addresses: &[&str]) {
        let address = |address: &&str| json!({"type": "InternalIP", "address": address});
        let addresses: Vec<Value> = addresses.iter().map(address).collect();
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"providerID": provider_id},
            "status": {"addresses": addresses}});
        let node: Node = serde_json::from_value(node).unwrap();
        self.nodes().create(&kube::api::PostParams::default(), &node).await.unwrap();
    }

    /// What its kubelet reports.
    pub async fn reports(&self, name: &str, ready: bool, beat: u32) {
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }, "reason": format!("beat{beat}")}]}});
        self.nodes().patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    pub async fn delete_node(&self, name: &str) {
        self.nodes().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn provider_id(&self, name: &str) -> Option<String> {
        self.nodes().get(name).await.unwrap().spec.unwrap().provider_id
    }

    pub async fn has_label(&self) -> bool {
        let api: Api<Namespace> = Api::all(self.server.client("people"));
        let labels = api.get("kube-system").await.unwrap().metadata.labels.unwrap_or_default();
        labels.get("cluster-api-maas/api-server-ready").is_some_and(|value| value == "true")
    }

    pub async fn make_system_namespace(&self) {
        let system: Namespace = serde_json::from_value(json!({"metadata": {"name": "kube-system"}})).unwrap();
        Api::all(self.server.client("people")).create(&kube::api::PostParams::default(), &system).await.unwrap();
    }
}

/// A management cluster and its workload clusters.
#[derive(Clone)]
pub struct World {
    pub server: ApiServer,
    pub clock: Clock,
    pub clusters: BTreeMap<String, WorkloadServer>,
    pub workload: Workload,
}

impl World {
    /// With these workload clusters, whose kubeconfigs are not written yet.
    pub async fn new(names: &[&str]) -> Self {
        let clock = Clock::starting_at("2026-11-16T00:00:00Z".parse().unwrap());
        let clusters: BTreeMap<_, _> = names.iter().map(|name| ((*name).to_owned(), WorkloadServer::new(clock))).collect();
        for cluster in clusters.values() {
            cluster.make_system_namespace().await;
        }
        let server = ApiServer::new(clock, Faults::none());
        let workload = Workload::new(server.client("manager"), connect(clusters.clone()), Jitter::seeded(1));
        Self { server, clock, clusters, workload }
    }

    pub fn cluster(&self, name: &str) -> &WorkloadServer {
        &self.clusters[name]
    }

    pub fn state(&self, cluster: &str) -> ApiServerState {
        self.workload.api_server(&key(cluster))
    }

    pub fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.server.client("people"), "team")
    }

    /// Writes the kubeconfig of a cluster, with this token.
    pub async fn kubeconfig(&self, cluster: &str, token: &str) {
        self.secret(cluster, "value", &format!("{cluster} {CANARY} {token}")).await;
    }

    pub async fn secret(&self, cluster: &str, entry: &str, text: &str) {
        let name = format!("{cluster}-kubeconfig");
        let data = BTreeMap::from([(entry.to_owned(), ByteString(text.as_bytes().to_vec()))]);
        let mut secret = Secret { data: Some(data), ..Secret::default() };
        secret.metadata.name = Some(name.clone());
        self.secrets().patch(&name, &PatchParams::apply("people").force(), &Patch::Apply(&secret)).await.unwrap();
    }

    /// When the manager read the Secret of a cluster.
    pub fn secret_reads(&self, cluster: &str) -> Vec<Duration> {
        let call = format!("GET /api/v1/namespaces/team/secrets/{cluster}-kubeconfig");
        let entries = self.server.trace().entries().into_iter();
        entries.filter(|entry| entry.client == "manager" && entry.what.trim_end() == call).map(|entry| entry.at).collect()
    }

    /// Runs `script` while the clusters are followed.
    pub async fn while_following(&self, script: impl Future<Output = ()>) {
        let stop = CancellationToken::new();
        let script = async {
            script.await;
            stop.cancel();
        };
        tokio::join!(self.workload.clone().follow(stop.clone()), script);
    }

    /// Waits until the API server of a cluster is in this state, and says how long it took.
    pub async fn until(&self, cluster: &str, wanted: impl Fn(&ApiServerState) -> bool) -> Duration {
        let began = Instant::now();
        while !wanted(&self.state(cluster)) {
            assert!(began.elapsed() < Duration::from_mins(10), "it is {:?}", self.state(cluster));
            sleep(Duration::from_millis(10)).await;
        }
        began.elapsed()
    }

    pub async fn until_it_answers(&self, cluster: &str) -> Duration {
        self.until(cluster, |state| *state == ApiServerState::Answers).await
    }

    pub async fn until_it_is_silent(&self, cluster: &str) -> (Duration, String) {
        let time = self.until(cluster, |state| matches!(state, ApiServerState::Silent { .. })).await;
        let ApiServerState::Silent { words } = self.state(cluster) else { panic!("it answers again") };
        (time, words)
    }
}

/// The key of a Cluster.
pub fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("team", name)
}

/// Kubeconfigs of this world name a cluster, the canary and a token.
fn connect(clusters: BTreeMap<String, WorkloadServer>) -> ConnectWorkload {
    Arc::new(move |bytes| {
        let words: Vec<&str> = str::from_utf8(bytes).map_err(|_| UnusableKubeconfig::Malformed)?.split(' ').collect();
        let [name, CANARY, token] = words.as_slice() else { return Err(UnusableKubeconfig::Malformed) };
        Ok(clusters.get(*name).ok_or(UnusableKubeconfig::Malformed)?.client(token))
    })
}
