//! A real second kube-apiserver as workload cluster, over a real kubeconfig Secret, through a gate that counts connections and can close.
#![allow(clippy::disallowed_methods, reason = "the gate and the view run in the background in real time")]

use decisions::machine::NodeFacts;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Namespace, Node, Secret},
};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use manager::{
    Action, Clock, Controller, Controllers, Jitter, ObjectKey, Pokes, Settings,
    workload::{ApiServerState, Host, Workload, over_the_network},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_mins(1);

/// Pokes of a controller that does not run: only what is asked counts here.
fn nobodys_pokes(client: &Client) -> Pokes {
    let mut controllers = Controllers::new(client.clone(), Settings::new(Clock::System, Jitter::seeded(1)));
    let objects = controllers.watch_primary::<ConfigMap>();
    Controller::new("nobody", &objects, |_: Arc<ConfigMap>, _| async { Ok::<_, Infallible>(Action::AwaitChange) }).pokes()
}

/// What connections to the API server pass.
#[derive(Clone)]
struct Gate {
    address: SocketAddr,
    open: Arc<AtomicUsize>,
    /// Cancelled while it is closed.
    closed: Arc<Mutex<CancellationToken>>,
}

impl Gate {
    async fn before(server: SocketAddr, stop: CancellationToken) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gate = Self { address: listener.local_addr().unwrap(), open: Arc::default(), closed: Arc::default() };
        let serving = gate.clone();
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            loop {
                let (mut outside, _) = listener.accept().await.unwrap();
                let (closed, open) = (serving.closed.lock().unwrap().clone(), Arc::clone(&serving.open));
                tokio::spawn(closed.run_until_cancelled_owned(async move {
                    let _open = Open::new(open);
                    let mut inside = TcpStream::connect(server).await.unwrap();
                    drop(copy_bidirectional(&mut outside, &mut inside).await);
                }));
            }
        }));
        gate
    }

    fn close(&self) {
        self.closed.lock().unwrap().cancel();
    }

    fn reopen(&self) {
        *self.closed.lock().unwrap() = CancellationToken::new();
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn eventually(what: &str, is_true: impl Fn() -> bool) {
    let waiting = async {
        while !is_true() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("{what} did not come true in time"));
}

async fn write_kubeconfig(management: &Client, text: Vec<u8>) {
    let data = BTreeMap::from([("value".to_owned(), ByteString(text))]);
    let mut secret = Secret { data: Some(data), ..Secret::default() };
    secret.metadata.name = Some("one-kubeconfig".to_owned());
    let secrets: Api<Secret> = Api::namespaced(management.clone(), "team");
    secrets.patch("one-kubeconfig", &PatchParams::apply("people").force(), &Patch::Apply(&secret)).await.unwrap();
}

async fn people(kubeconfig: &Kubeconfig) -> Client {
    let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn s22_row_23_a_real_api_server_is_followed_cut_off_found_again_and_let_go() {
    let lab = lab::Lab::up(lab::Options::new(lab::Level::Api)).await.unwrap();
    let management = lab.client().await.unwrap();
    let team: Namespace = serde_json::from_value(json!({"metadata": {"name": "team"}})).unwrap();
    Api::all(management.clone()).create(&PostParams::default(), &team).await.unwrap();
    let mut kubeconfig = Kubeconfig::read_from(lab.control().add_api_server("workload").await.unwrap()).unwrap();
    let people = people(&kubeconfig).await;
    let stop = CancellationToken::new();
    let server = kubeconfig.clusters[0].cluster.as_mut().unwrap();
    let address = server.server.as_ref().unwrap().trim_start_matches("https://").trim_end_matches('/').parse().unwrap();
    let gate = Gate::before(address, stop.clone()).await;
    server.server = Some(format!("https://{}", gate.address));

    let workload = Workload::new(management.clone(), over_the_network(), Jitter::seeded(1));
    let following = tokio::spawn(workload.clone().follow(stop.clone()));
    let cluster = ObjectKey::namespaced("team", "one");
    let state = || workload.api_server(&cluster);
    let pokes = nobodys_pokes(&management);
    assert_eq!(state(), ApiServerState::NotYet);

    // Somebody without rights.
    let mut stranger = kubeconfig.clone();
    stranger.auth_infos[0].auth_info = Some(serde_json::from_value(json!({"token": "nonsense"})).unwrap());
    write_kubeconfig(&management, serde_json::to_vec(&stranger).unwrap()).await;
    workload.hurry(&cluster);
    let is_refused = || matches!(state(), ApiServerState::Silent { words } if words.contains("does not accept the credentials in the Secret team/one-kubeconfig"));
    eventually("the credentials are refused", is_refused).await;

    // The administrator.
    write_kubeconfig(&management, serde_json::to_vec(&kubeconfig).unwrap()).await;
    workload.hurry(&cluster);
    eventually("it answers", || state() == ApiServerState::Answers).await;
    let namespaces: Api<Namespace> = Api::all(people.clone());
    let labelled = async {
        while !namespaces
            .get("kube-system")
            .await
            .is_ok_and(|found| found.metadata.labels.is_some_and(|labels| labels.contains_key("cluster-api-maas/api-server-ready")))
        {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(DEADLINE, labelled).await.expect("kube-system is labelled in time");

    // A node.
    let nodes: Api<Node> = Api::all(people.clone());
    let ask = |hostname, fqdn| workload.watch_node(&cluster, cluster.clone(), &Host { hostname, fqdn, addresses: &[] }, &pokes);
    assert_eq!(ask("Worker", "Worker.maas"), NodeFacts::Absent);
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "worker.maas"}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let unnamed = NodeFacts::Present { name: "worker.maas".to_owned(), provider_id: None, is_there: false };
    eventually("the node is seen", || ask("Worker", "Worker.maas") == unnamed).await;
    workload.name_node(&cluster, "worker.maas", "maas:///az1/abc").await.unwrap();
    workload.name_node(&cluster, "worker.maas", "maas:///az1/other").await.unwrap_err();
    let id = nodes.get("worker.maas").await.unwrap().spec.unwrap().provider_id;
    assert_eq!(id.as_deref(), Some("maas:///az1/abc"));

    // Cut off, and found again.
    let connections = gate.open();
    assert!((1..=2).contains(&connections), "{connections} connections");
    gate.close();
    let began = Instant::now();
    eventually("it is silent", || matches!(state(), ApiServerState::Silent { .. })).await;
    eprintln!("silent after {:?}: {:?}", began.elapsed(), state());
    gate.reopen();
    let began = Instant::now();
    eventually("it answers again", || state() == ApiServerState::Answers).await;
    eprintln!("answers again after {:?}, {connections} connections", began.elapsed());
    let named = NodeFacts::Present { name: "worker.maas".to_owned(), provider_id: Some("maas:///az1/abc".to_owned()), is_there: false };
    assert_eq!(ask("worker", "worker.maas"), named);

    // Let go.
    assert!(gate.open() >= 1);
    workload.forget(&cluster);
    eventually("all connections are closed", || gate.open() == 0).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(gate.open(), 0, "nobody comes back");
    stop.cancel();
    timeout(DEADLINE, following).await.unwrap().unwrap();
    lab.down().await;
}
