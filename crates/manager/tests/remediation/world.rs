//! An API server with a stand-in for Cluster API, an emulated MAAS, and the real controllers of MaasMachines and `MaasRemediation`s between
//! them, under paused time. The test says when a Machine is healthy and when it is not.

use bytes::Bytes;
use futures::future::LocalBoxFuture;
use http::Request;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use maas_client::{BoxError, Client, ExposeSecret, Transport};
use maas_emulator::{Emulator, Fault, Fleet, Options, faults::CallFault, faults::CallHarm, faults::CallPattern};
use manager::{
    Clock, Controllers, Jitter, Listeners, MaasAccess, Settings,
    maas::{Connect, MaasAccounts},
    machine::{self, Related},
    remediation::{self, Rules},
    workload::{UnusableKubeconfig, Workload},
};
use serde_json::{Value, json};
use simulation::{ApiServer, Faults};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

const NAMESPACE: &str = "rack";
const GROUP: &str = "infrastructure.cluster.x-k8s.io";

const FLEET: &str = "
zones: [{name: az1}]
timings: {deploy: [20, 60], power_on: [0.1, 0.3], power_off: [0.1, 0.3]}
machines: [{hostname: only, zone: az1, cpus: 4, memory: 8192}]
";

#[derive(Clone)]
pub struct World {
    pub server: ApiServer,
    pub emulator: Emulator,
    clock: Clock,
    nonces: Arc<AtomicU64>,
}

impl World {
    /// A Machine `one` whose MaasMachine is deployed on the only server, and a while after that.
    pub async fn with_a_machine() -> Self {
        Self::with_a_machine_of(FLEET).await
    }

    pub async fn with_a_machine_of(fleet: &str) -> Self {
        let start: jiff::Timestamp = "2026-11-16T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(start);
        let options = Options { clock: maas_emulator::Clock::running(start), ..Options::default() };
        let emulator = Emulator::new(Fleet::from_yaml(fleet).unwrap(), options).unwrap();
        let world = Self { server: ApiServer::new(clock, Faults::none()), emulator, clock, nonces: Arc::default() };
        let reference = json!({"apiGroup": GROUP, "kind": "MaasMachine", "name": "one"});
        let labels = json!({"cluster.x-k8s.io/cluster-name": "c1"});
        world
            .create("Cluster", json!({"metadata": {"name": "c1"}, "status": {"initialization": {"infrastructureProvisioned": true}}}))
            .await;
        world.create("Machine", json!({"metadata": {"name": "one"}, "spec": {"clusterName": "c1", "infrastructureRef": reference}})).await;
        let spec = json!({"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy"});
        world.create("MaasMachine", json!({"metadata": {"name": "one", "labels": labels, "ownerReferences": owner()}, "spec": spec})).await;
        world
            .play(async {
                world.until("it is deployed", |world| world.maas_machine()["status"]["initialization"]["provisioned"] == true).await;
                sleep(Duration::from_mins(5)).await;
            })
            .await;
        world.emulator.journal(maas_emulator::journal::Journal::clear);
        world
    }

    // What a MachineHealthCheck does

    /// Finds the Machine unhealthy and asks for a remediation with this strategy.
    pub async fn becomes_unhealthy(&self, strategy: Value) {
        let labels = json!({"cluster.x-k8s.io/cluster-name": "c1"});
        let metadata = json!({"name": "one", "labels": labels, "ownerReferences": owner()});
        self.create("MaasRemediation", json!({"metadata": metadata, "spec": {"strategy": strategy}})).await;
        self.says_healthy(false).await;
    }

    pub async fn says_healthy(&self, healthy: bool) {
        let status = if healthy { "True" } else { "False" };
        let condition =
            json!({"type": "HealthCheckSucceeded", "status": status, "reason": "R", "message": "", "lastTransitionTime": self.clock.now()});
        self.patch_status("Machine", "one", json!({"conditions": [condition]})).await;
    }

    // MAAS

    /// Operations on machines that changed their power, in order.
    pub fn power_calls(&self) -> Vec<String> {
        self.operations(|operation| matches!(operation, "power_on" | "power_off"))
    }

    /// Operations of a kind, in order.
    pub fn operations(&self, kind: impl Fn(&str) -> bool) -> Vec<String> {
        self.emulator.journal(|journal| {
            let operations = journal.entries().filter_map(|entry| entry.operation.clone());
            operations.filter(|operation| kind(operation)).collect()
        })
    }

    /// When the server was asked about or told something, for people.
    pub fn told(&self) -> Vec<String> {
        self.emulator.journal(|journal| {
            let about = journal.entries().filter(|entry| entry.operation.as_deref().is_some_and(|operation| operation.contains("power")));
            about.map(|entry| format!("{} {} {}", entry.at, entry.operation.as_deref().unwrap_or_default(), entry.status)).collect()
        })
    }

    /// How often the server's power was taken by order.
    pub fn power_cycles(&self) -> usize {
        self.power_calls().iter().filter(|operation| *operation == "power_off").count()
    }

    pub fn has_power(&self) -> bool {
        self.emulator.world(|world| world.all_machines().find(|machine| machine.hostname == "only").unwrap().powered)
    }

    pub fn inject(&self, operation: &str, harm: CallHarm) {
        let matching = CallPattern { operation: Some(operation.to_owned()), ..CallPattern::default() };
        self.emulator.inject(Fault::Call(CallFault { matching, skip: 0, times: Some(1), harm })).unwrap();
    }

    // The manager

    /// Runs the script beside a manager with the rules as they are.
    pub fn play<'a>(&'a self, script: impl Future<Output = ()> + 'a) -> LocalBoxFuture<'a, ()> {
        self.play_with(Rules::default(), script)
    }

    /// Runs the script beside a manager, which ends with it as a killed process would.
    pub fn play_with<'a>(&'a self, rules: Rules, script: impl Future<Output = ()> + 'a) -> LocalBoxFuture<'a, ()> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = script => {}
                () = self.manage(rules) => panic!("the manager ended"),
            }
        })
    }

    async fn manage(&self, rules: Rules) {
        let client = self.server.client("manager");
        // Another process each time: none writes intents in the name of another.
        let jitter = Jitter::seeded(self.nonces.fetch_add(1, Ordering::Relaxed));
        let settings = Settings { sync_period: Duration::from_mins(10), ..Settings::new(self.clock, jitter) };
        let mut controllers = Controllers::new(client.clone(), settings);
        let related = Related {
            machines: controllers.watch_related(),
            clusters: controllers.watch_related(),
            maas_clusters: controllers.watch_primary(),
            maas_machines: controllers.watch_primary(),
            refused_addresses: Arc::default(),
        };
        let environment = MaasAccess::from_environment(|name| match name {
            "MAAS_ENDPOINT" => Some("http://maas.test:5240/MAAS".to_owned()),
            "MAAS_API_KEY" => Some(Fleet::DEFAULT_KEY.to_owned()),
            _ => None,
        });
        let accounts =
            MaasAccounts::new(client.clone(), environment.unwrap(), self.connect(), self.clock, jitter, controllers.maas_metrics());
        let workload = Workload::new(client, Arc::new(|_| Err(UnusableKubeconfig::Malformed)), jitter);
        machine::add(&mut controllers, &related, &accounts, &workload, machine::Rules::default(), 2.try_into().unwrap());
        remediation::add(&mut controllers, &related, &accounts, rules);
        controllers.add_task("the events of MAAS", move |stop| accounts.follow(stop));
        controllers.run(Listeners::default(), std::future::pending()).await.unwrap();
    }

    fn connect(&self) -> Connect {
        let world = self.clone();
        Arc::new(move |credentials| {
            let (clock, nonces) = (world.clock, Arc::clone(&world.nonces));
            let builder = Client::builder(credentials.endpoint.as_str(), credentials.key.expose_secret())?
                .clock(move || u64::try_from(clock.now().as_second()).unwrap())
                .randomness(move || u128::from(nonces.fetch_add(1, Ordering::Relaxed)));
            let emulator = world.emulator.clone();
            let transport = Transport::new(tower::service_fn(move |request: Request<Bytes>| {
                let emulator = emulator.clone();
                async move { emulator.answer(request).await.map_err(BoxError::from) }
            }));
            Ok((builder, transport))
        })
    }

    // Objects

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version) = if kind.starts_with("Maas") { (GROUP, "v1beta1") } else { ("cluster.x-k8s.io", "v1beta2") };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.server.client("people"), NAMESPACE, &resource)
    }

    async fn create(&self, kind: &str, mut object: Value) {
        let version = if kind.starts_with("Maas") { "infrastructure.cluster.x-k8s.io/v1beta1" } else { "cluster.x-k8s.io/v1beta2" };
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        let status = object["status"].take();
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        self.api(kind).create(&PostParams::default(), &object).await.unwrap();
        if status.is_object() {
            self.patch_status(kind, &object.metadata.name.unwrap(), status).await;
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

    fn object(&self, plural: &str) -> Value {
        self.server.objects(plural).into_iter().find(|object| object["metadata"]["name"] == "one").unwrap_or_default()
    }

    pub fn remediation(&self) -> Value {
        self.object("maasremediations")
    }

    pub fn maas_machine(&self) -> Value {
        self.object("maasmachines")
    }

    pub fn machine(&self) -> Value {
        self.object("machines")
    }

    /// Phase and reason of the remediation, such as `Running/WaitingForNode`.
    pub fn state(&self) -> String {
        let remediation = self.remediation();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{}/{}", word(&remediation["status"]["phase"]), word(&condition(&remediation, "Remediated")["reason"]))
    }

    /// Messages of events with this reason.
    pub fn events(&self, reason: &str) -> Vec<String> {
        let events = self.server.objects("events").into_iter().filter(|event| event["reason"] == reason);
        events.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until it is true, or says what is.
    pub async fn until(&self, what: &str, is_true: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_true(self) {
            let state = || format!("{:#} {:#} {:#?}", self.remediation(), self.maas_machine(), self.told());
            assert!(began.elapsed() < Duration::from_hours(1), "it is not true that {what}: {}", state());
            sleep(Duration::from_millis(100)).await;
        }
    }
}

fn owner() -> Value {
    json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "one", "uid": "u"}])
}

/// A condition of an object.
pub fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}
