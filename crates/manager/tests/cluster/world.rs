//! An API server with people and a stand-in for Cluster API, an emulated MAAS that can be switched off, and the real controller of
//! MaasClusters between them, under paused time. Machines are written by hand, as their own controller would leave them.

use bytes::Bytes;
use futures::future::LocalBoxFuture;
use http::{Request, Response};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use maas_client::{BoxError, Client, ExposeSecret, NotSent, Transport};
use maas_emulator::{Emulator, Fleet, Options};
use manager::{
    Clock, Controllers, Jitter, Listeners, MaasAccess, Provider, Settings,
    cluster::{self, Rules},
    maas::{Connect, MaasAccounts},
    machine::Related,
    workload::{ConnectWorkload, Workload},
};
use serde_json::{Value, json};
use simulation::{ApiServer, Faults};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

pub const NAMESPACE: &str = "rack";
pub const ADMIN: &str = "adminconsumer:admintoken:adminsecret";
pub const PLAIN: &str = "plainconsumer:plaintoken:plainsecret";

const FLEET: &str = "
zones: [{name: az1}, {name: az2}, {name: empty}]
domains: [{name: maas}, {name: k8s.example}]
subnets: [{id: 1, cidr: 10.20.0.0/24, name: racks}]
timings: {deploy: [20, 60]}
users:
  - {name: admin, superuser: true, keys: [{key: 'adminconsumer:admintoken:adminsecret'}]}
  - {name: plain, keys: [{key: 'plainconsumer:plaintoken:plainsecret'}]}
machines:
  - {hostname: free-, count: 2, zone: az1, cpus: 4, memory: 8192}
  - {hostname: m1, zone: az1, status: deployed, owner: admin, interfaces: [{name: eth0, links: [{mode: static, subnet: 1, address: 10.20.0.11}]}, {name: eth1, tags: [api], links: [{mode: static, subnet: 1, address: 10.20.0.111}]}]}
  - {hostname: m2, zone: az2, status: deployed, owner: admin, interfaces: [{name: eth0, links: [{mode: static, subnet: 1, address: 10.20.0.12}]}]}
";

/// How a MAAS behaves towards whoever calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Answers,
    Refuses,
    IsAnotherProgram,
    HasExpired,
}

#[derive(Clone)]
pub struct World {
    pub server: ApiServer,
    pub emulator: Emulator,
    /// The cluster that runs on the machines. It is reached as soon as there is a kubeconfig.
    pub workload: ApiServer,
    clock: Clock,
    key: &'static str,
    behaviour: Arc<Mutex<Behaviour>>,
    attempts: Arc<AtomicU64>,
    nonces: Arc<AtomicU64>,
}

impl World {
    pub fn new() -> Self {
        Self::of_user(ADMIN)
    }

    pub fn of_user(key: &'static str) -> Self {
        Self::with_fleet(key, FLEET)
    }

    /// A MAAS with so many machines that nobody has.
    pub fn with_free_machines(count: usize) -> Self {
        Self::with_fleet(ADMIN, &FLEET.replace("count: 2", &format!("count: {count}")))
    }

    fn with_fleet(key: &'static str, fleet: &str) -> Self {
        let start: jiff::Timestamp = "2026-11-16T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(start);
        let options = Options { clock: maas_emulator::Clock::running(start), ..Options::default() };
        let emulator = Emulator::new(Fleet::from_yaml(fleet).unwrap(), options).unwrap();
        let behaviour = Arc::new(Mutex::new(Behaviour::Answers));
        Self {
            server: ApiServer::new(clock, Faults::none()),
            workload: ApiServer::new(clock, Faults::none()),
            emulator,
            clock,
            key,
            behaviour,
            attempts: Arc::default(),
            nonces: Arc::default(),
        }
    }

    // MAAS

    pub fn maas_behaves(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    /// How many requests went out to MAAS, answered or not.
    pub fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Method and path of every call of these since the journal was cleared, such as `PUT dnsresources/1/`.
    pub fn calls(&self, part: &str) -> Vec<String> {
        self.emulator.journal(|journal| {
            let entries = journal.entries().filter(|entry| entry.uri.contains(part));
            entries.map(|entry| format!("{} {}", entry.method, entry.uri.trim_start_matches("/MAAS/api/2.0/"))).collect()
        })
    }

    /// Calls that change something.
    pub fn writes(&self) -> Vec<String> {
        self.calls("").into_iter().filter(|call| !call.starts_with("GET ")).collect()
    }

    pub fn forget_calls(&self) {
        self.emulator.journal(maas_emulator::journal::Journal::clear);
    }

    /// Every name in DNS with its addresses, by id.
    pub fn names(&self) -> Vec<(String, Vec<String>)> {
        self.emulator.world(|world| {
            let ip = |id| world.addresses.get(id).and_then(|address| address.ip).map(|ip| ip.to_string());
            let name = |name: &maas_emulator::world::dns::DnsResource| {
                let domain = world.domains.get(name.domain).map(|domain| domain.name.clone()).unwrap_or_default();
                let mut addresses: Vec<String> = name.addresses.iter().filter_map(|id| ip(*id)).collect();
                addresses.sort();
                (format!("{}.{domain}", name.name), addresses)
            };
            world.names.values().map(name).collect()
        })
    }

    /// The addresses of the only name.
    pub fn addresses(&self) -> Vec<String> {
        let names = self.names();
        assert_eq!(names.len(), 1, "{names:?}");
        names[0].1.clone()
    }

    /// Addresses that users have reserved.
    pub fn reserved(&self) -> BTreeSet<String> {
        self.emulator.world(|world| {
            let reserved =
                world.addresses.values().filter(|address| address.kind == maas_emulator::world::network::AddressKind::UserReserved);
            reserved.filter_map(|address| address.ip).map(|ip| ip.to_string()).collect()
        })
    }

    /// A client of MAAS for people.
    pub fn person(&self) -> Client {
        self.person_with(ADMIN)
    }

    /// The same for people who have this key.
    pub fn person_with(&self, key: &str) -> Client {
        let emulator = self.emulator.clone();
        let wire = tower::service_fn(move |request: Request<Bytes>| {
            let emulator = emulator.clone();
            async move { emulator.answer(request).await.map_err(BoxError::from) }
        });
        self.builder("http://maas.test:5240/MAAS", key).unwrap().build_on(Transport::new(wire))
    }

    fn builder(&self, endpoint: &str, key: &str) -> Result<maas_client::ClientBuilder, maas_client::SetupError> {
        let (clock, nonces) = (self.clock, Arc::clone(&self.nonces));
        let builder = Client::builder(endpoint, key)?.clock(move || u64::try_from(clock.now().as_second()).unwrap());
        Ok(builder.randomness(move || u128::from(nonces.fetch_add(1, Ordering::Relaxed))))
    }

    async fn answer(self, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let behaviour = *self.behaviour.lock().unwrap();
        match behaviour {
            Behaviour::Answers => Ok(self.emulator.answer(request).await?),
            Behaviour::Refuses => Err(NotSent("connection refused".to_owned()).into()),
            // As the wire says it, the time of the attempt included.
            Behaviour::HasExpired => {
                let now = self.clock.now().as_second();
                Err(NotSent(format!("invalid peer certificate: certificate expired: verification time {now} (UNIX), but")).into())
            }
            Behaviour::IsAnotherProgram => {
                Ok(Response::builder().status(200).header("content-type", "text/html").body(Bytes::from_static(b"<html>"))?)
            }
        }
    }

    // The manager

    /// Runs the script beside a manager.
    pub fn play<'a>(&'a self, script: impl Future<Output = ()> + 'a) -> LocalBoxFuture<'a, ()> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = script => {}
                () = self.manage() => panic!("the manager ended"),
            }
        })
    }

    /// Runs the script beside the whole provider, so that machines are not written by hand.
    pub fn play_with_machines<'a>(&'a self, script: impl Future<Output = ()> + 'a) -> LocalBoxFuture<'a, ()> {
        let settings = Settings { sync_period: Duration::from_mins(10), ..Settings::new(self.clock, Jitter::seeded(1)) };
        let mut controllers = Controllers::new(self.server.client("manager"), settings);
        let provider = Provider {
            environment: self.environment(),
            connect_maas: self.connect(),
            connect_workload: self.connect_workload(),
            sweep_period: Duration::from_mins(10),
            machine_concurrency: 10.try_into().unwrap(),
            machine_rules: manager::machine::Rules::default(),
            cluster_rules: Rules::default(),
        };
        provider.add_to(&mut controllers);
        Box::pin(async move {
            tokio::select! {
                biased;
                () = script => {}
                ended = controllers.run(Listeners::default(), std::future::pending()) => panic!("the manager ended: {ended:?}"),
            }
        })
    }

    fn environment(&self) -> Option<MaasAccess> {
        let environment = MaasAccess::from_environment(|name| match name {
            "MAAS_ENDPOINT" => Some("http://maas.test:5240/MAAS".to_owned()),
            "MAAS_API_KEY" => Some(self.key.to_owned()),
            _ => None,
        });
        environment.unwrap()
    }

    async fn manage(&self) {
        let client = self.server.client("manager");
        let jitter = Jitter::seeded(1);
        let settings = Settings { sync_period: Duration::from_mins(10), ..Settings::new(self.clock, jitter) };
        let mut controllers = Controllers::new(client.clone(), settings);
        let related = Related {
            machines: controllers.watch_related(),
            clusters: controllers.watch_related(),
            maas_clusters: controllers.watch_primary(),
            maas_machines: controllers.watch_primary(),
            refused_addresses: Arc::default(),
        };
        let accounts =
            MaasAccounts::new(client.clone(), self.environment(), self.connect(), self.clock, jitter, controllers.maas_metrics());
        let workload = Workload::new(client, self.connect_workload(), jitter);
        cluster::add(&mut controllers, &related, &accounts, &workload, Rules::default());
        controllers.add_task("the workload clusters", |stop| workload.follow(stop));
        controllers.run(Listeners::default(), std::future::pending()).await.unwrap();
    }

    fn connect(&self) -> Connect {
        let world = self.clone();
        Arc::new(move |credentials| {
            let builder = world.builder(credentials.endpoint.as_str(), credentials.key.expose_secret())?;
            let world = world.clone();
            Ok((builder, Transport::new(tower::service_fn(move |request| world.clone().answer(request)))))
        })
    }

    fn connect_workload(&self) -> ConnectWorkload {
        let workload = self.workload.clone();
        Arc::new(move |_| Ok(workload.client("manager")))
    }

    // People and Cluster API

    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version) = match kind {
            "MaasCluster" | "MaasMachine" => ("infrastructure.cluster.x-k8s.io", "v1beta1"),
            "Cluster" | "Machine" => ("cluster.x-k8s.io", "v1beta2"),
            _ => ("", "v1"),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.server.client("people"), NAMESPACE, &resource)
    }

    pub async fn create(&self, kind: &str, mut object: Value) {
        let api = self.api(kind);
        let version = if matches!(kind, "ConfigMap" | "Secret") {
            "v1"
        } else if kind.starts_with("Maas") {
            "infrastructure.cluster.x-k8s.io/v1beta1"
        } else {
            "cluster.x-k8s.io/v1beta2"
        };
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        let status = object["status"].take();
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let name = object.metadata.name.clone().unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
        if status.is_object() {
            api.patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await.unwrap();
        }
    }

    pub async fn patch(&self, kind: &str, name: &str, change: Value) {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    pub async fn patch_status(&self, kind: &str, name: &str, status: Value) {
        self.api(kind).patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await.unwrap();
    }

    pub async fn delete(&self, kind: &str, name: &str) {
        drop(self.api(kind).delete(name, &DeleteParams::default()).await.unwrap());
    }

    /// A Cluster and its infrastructure; what is given is merged into them.
    pub async fn cluster(&self, cluster_spec: Value, metadata: Value, spec: Value) {
        let mut cluster = json!({"metadata": {"name": "one"},
            "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasCluster", "name": "one"}}});
        merge(&mut cluster["spec"], cluster_spec);
        self.create("Cluster", cluster).await;
        let mut ours = json!({"metadata": {"name": "one", "labels": {"cluster.x-k8s.io/cluster-name": "one"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "one", "uid": "u"}]},
            "spec": {"dnsDomain": "maas"}});
        merge(&mut ours["metadata"], metadata);
        merge(&mut ours["spec"], spec);
        self.create("MaasCluster", ours).await;
    }

    /// Another cluster than `one`, with these annotations and this spec.
    pub async fn another_cluster(&self, name: &str, annotations: &Value, spec: &Value) {
        let reference = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasCluster", "name": name});
        self.create("Cluster", json!({"metadata": {"name": name}, "spec": {"infrastructureRef": reference}})).await;
        let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": "v"}]);
        let labels = json!({"cluster.x-k8s.io/cluster-name": name});
        let metadata = json!({"name": name, "labels": labels, "annotations": annotations, "ownerReferences": owner});
        self.create("MaasCluster", json!({"metadata": metadata, "spec": spec})).await;
    }

    pub async fn plain_cluster(&self) {
        self.cluster(json!({}), json!({}), json!({})).await;
    }

    /// Waits until machines can be made, and has something for them to run.
    pub async fn takes_machines(&self) {
        self.until("the cluster is provisioned", Self::is_provisioned).await;
        self.patch_status("Cluster", "one", json!({"initialization": {"infrastructureProvisioned": true}})).await;
        self.create("Secret", json!({"metadata": {"name": "boot"}, "data": {"value": "I2Nsb3VkLWNvbmZpZwo="}})).await;
    }

    /// A Machine, and its MaasMachine with these labels besides, into whose spec this is merged.
    pub async fn machine(&self, name: &str, mut labels: Value, change: Value) {
        let reference = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasMachine", "name": name});
        let spec = json!({"clusterName": "one", "bootstrap": {"dataSecretName": "boot"}, "infrastructureRef": reference});
        self.create("Machine", json!({"metadata": {"name": name}, "spec": spec})).await;
        let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": "u"}]);
        merge(&mut labels, json!({"cluster.x-k8s.io/cluster-name": "one"}));
        let mut spec = json!({"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy"});
        merge(&mut spec, change);
        self.create("MaasMachine", json!({"metadata": {"name": name, "labels": labels, "ownerReferences": owner}, "spec": spec})).await;
    }

    /// A machine of the control plane that runs and has these addresses.
    pub async fn control_plane(&self, name: &str, addresses: &[&str]) {
        let object = json!({"metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "one", "cluster.x-k8s.io/control-plane": ""}},
            "spec": {"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy", "systemID": name}, "status": running(addresses)});
        self.create("MaasMachine", object).await;
    }

    /// What the kubelet of a machine says to the API server of its cluster, which may answer before Cluster API calls it initialized.
    pub async fn node(&self, name: &str, ready: bool, beat: usize) {
        let nodes: Api<Node> = Api::all(self.workload.client("kubelet"));
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        let node: Node = serde_json::from_value(node).unwrap();
        if nodes.get_opt(name).await.unwrap().is_none() {
            nodes.create(&PostParams::default(), &node).await.unwrap();
        }
        let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }, "reason": format!("beat{beat}")});
        let status = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        nodes.patch_status(name, &PatchParams::default(), &status).await.unwrap();
    }

    /// The infrastructure as it is now.
    pub fn one(&self) -> Value {
        self.seen("maasclusters", "one")
    }

    /// An object as it is now.
    pub fn seen(&self, plural: &str, name: &str) -> Value {
        self.server.objects(plural).into_iter().find(|object| object["metadata"]["name"] == name).unwrap_or_default()
    }

    pub fn is_provisioned(&self) -> bool {
        self.one()["status"]["initialization"]["provisioned"] == Value::Bool(true)
    }

    /// `False/Reason`, or nothing.
    pub fn condition(&self, kind: &str) -> String {
        let found = condition(&self.one(), kind);
        let text = |name: &str| found[name].as_str().map(str::to_owned);
        text("status").zip(text("reason")).map(|(status, reason)| format!("{status}/{reason}")).unwrap_or_default()
    }

    pub fn message(&self, kind: &str) -> String {
        condition(&self.one(), kind)["message"].as_str().unwrap_or_default().to_owned()
    }

    /// What the manager wrote to the API server, in order.
    pub fn kubernetes_writes(&self) -> Vec<String> {
        let entries = self.server.trace().entries().into_iter().filter(|entry| entry.client == "manager");
        let is_write = |what: &str| ["PATCH ", "POST ", "PUT ", "DELETE "].iter().any(|verb| what.starts_with(verb));
        entries.filter(|entry| is_write(&entry.what) && !entry.what.contains("/events")).map(|entry| entry.what).collect()
    }

    /// Waits until it is true, or says what is.
    pub async fn until(&self, what: &str, is_true: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_true(self) {
            assert!(began.elapsed() < Duration::from_mins(15), "it is not true that {what}: {:#} {:?}", self.one(), self.names());
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A condition of an object.
pub fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

/// Long enough for everything to have happened that something just caused.
pub async fn quiet() {
    sleep(Duration::from_secs(30)).await;
}

/// The status of a machine that runs.
pub fn running(addresses: &[&str]) -> Value {
    let addresses: Vec<Value> = addresses.iter().map(|address| json!({"type": "ExternalIP", "address": address})).collect();
    json!({"ready": true, "phase": "Deployed", "machineState": "Deployed", "machinePowered": true, "addresses": addresses,
        "conditions": [{"type": "MachineDeployed", "status": "True", "reason": "MachineDeployed", "message": "", "lastTransitionTime": "2026-11-16T00:00:00Z"}]})
}

/// The status of a machine that does not run, for this reason.
pub fn not_running(addresses: &[&str], reason: &str) -> Value {
    let mut status = running(addresses);
    status["conditions"][0]["status"] = json!("False");
    status["conditions"][0]["reason"] = json!(reason);
    status
}

pub fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, from) => *into = from,
    }
}
