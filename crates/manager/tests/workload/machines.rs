//! The real controller of `MaasMachine`s on an emulated MAAS and a simulated workload cluster: nodes get to know their machines.

use crate::world::{World, key};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use maas_client::{BoxError, Client, ExposeSecret, Transport};
use maas_emulator::{Clock as MaasClock, Emulator, Fleet, Options};
use manager::{
    Controllers, Jitter, Listeners, MaasAccess, Settings,
    maas::{Connect, MaasAccounts},
    machine::{self, Related, Rules},
};
use serde_json::{Value, json};
use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub const ENDPOINT: &str = "http://maas.test:5240/MAAS";

const FLEET: &str = "
machines: [{hostname: Free-, count: 2, cpus: 4, memory: 8192}]
timings: {deploy: [8, 20]}
";

/// One machine of one cluster.
pub struct Rack {
    pub world: World,
    pub emulator: Emulator,
}

impl Rack {
    pub async fn new() -> Self {
        let world = World::new(&["one"]).await;
        world.kubeconfig("one", "t").await;
        let options = Options { clock: MaasClock::running(world.clock.now()), seed: 1, ..Options::default() };
        let rack = Self { world, emulator: Emulator::new(Fleet::from_yaml(FLEET).unwrap(), options).unwrap() };
        let infrastructure = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasMachine", "name": "a"});
        rack.create("cluster.x-k8s.io", "v1beta2", "Cluster", "one", json!({"spec": {}})).await;
        let status = Patch::Merge(json!({"status": {"initialization": {"infrastructureProvisioned": true}}}));
        rack.api("cluster.x-k8s.io", "v1beta2", "Cluster").patch_status("one", &PatchParams::default(), &status).await.unwrap();
        rack.create("", "v1", "Secret", "boot", json!({"data": {"value": "I2Nsb3VkLWNvbmZpZwo="}})).await;
        let wanted = json!({"spec": {"clusterName": "one", "bootstrap": {"dataSecretName": "boot"}, "infrastructureRef": infrastructure}});
        rack.create("cluster.x-k8s.io", "v1beta2", "Machine", "a", wanted).await;
        let ours = json!({
            "metadata": {
                "labels": {"cluster.x-k8s.io/cluster-name": "one"},
                "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "a", "uid": "u"}],
            },
            "spec": {"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy"},
        });
        rack.create("infrastructure.cluster.x-k8s.io", "v1beta1", "MaasMachine", "a", ours).await;
        rack
    }

    pub fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.world.server.client("people"), "team", &resource)
    }

    pub async fn create(&self, group: &str, version: &str, kind: &str, name: &str, mut body: Value) {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        body["apiVersion"] = json!(api_version);
        body["kind"] = json!(kind);
        body["metadata"]["name"] = json!(name);
        self.api(group, version, kind).create(&PostParams::default(), &serde_json::from_value(body).unwrap()).await.unwrap();
    }

    pub fn object(&self) -> Value {
        self.world.server.objects("maasmachines").pop().unwrap_or_default()
    }

    pub async fn until(&self, what: &str, is_true: impl Fn(&Value) -> bool) -> Duration {
        let began = Instant::now();
        while !is_true(&self.object()) {
            assert!(began.elapsed() < Duration::from_mins(30), "it is not true that {what}: {:#}", self.object());
            sleep(Duration::from_millis(10)).await;
        }
        began.elapsed()
    }

    /// Runs the manager, and `script` once the machine is handed over.
    async fn play(&self, script: impl Future<Output = ()>) {
        self.play_with(environment(), Rules::default(), script).await;
    }

    /// The same with another environment and other rules.
    pub async fn play_with(&self, environment: Option<MaasAccess>, rules: Rules, script: impl Future<Output = ()>) {
        let script = async {
            self.until("it is provisioned", |object| object["status"]["initialization"]["provisioned"] == json!(true)).await;
            script.await;
        };
        self.play_from_the_beginning(environment, rules, script).await;
    }

    /// Runs the manager, and `script` beside it.
    pub async fn play_from_the_beginning(&self, environment: Option<MaasAccess>, rules: Rules, script: impl Future<Output = ()>) {
        let Self { world, .. } = self;
        let settings = Settings { sync_period: Duration::ZERO, ..Settings::new(world.clock, Jitter::seeded(1)) };
        let client = world.server.client("manager");
        let mut controllers = Controllers::new(client.clone(), settings);
        let related = Related {
            machines: controllers.watch_related(),
            clusters: controllers.watch_related(),
            maas_clusters: controllers.watch_related(),
            maas_machines: controllers.watch_primary(),
            refused_addresses: Arc::default(),
        };
        let accounts = MaasAccounts::new(client, environment, self.connect(), world.clock, Jitter::seeded(1), controllers.maas_metrics());
        machine::add(&mut controllers, &related, &accounts, &world.workload, rules, NonZeroUsize::MIN);
        controllers.add_task("the events of MAAS", move |stop| accounts.follow(stop));
        let workload = world.workload.clone();
        controllers.add_task("the workload clusters", |stop| workload.follow(stop));
        let stop = CancellationToken::new();
        let acting = async {
            script.await;
            stop.cancel();
        };
        let running = Box::pin(controllers.run(Listeners::default(), stop.clone().cancelled_owned()));
        let (ended, ()) = tokio::join!(running, Box::pin(acting));
        ended.unwrap();
    }

    fn connect(&self) -> Connect {
        let (clock, emulator, nonces) = (self.world.clock, self.emulator.clone(), Arc::new(AtomicU64::new(0)));
        Arc::new(move |credentials| {
            let (emulator, nonces) = (emulator.clone(), Arc::clone(&nonces));
            let builder = Client::builder(credentials.endpoint.as_str(), credentials.key.expose_secret())?
                .clock(move || u64::try_from(clock.now().as_second()).unwrap())
                .randomness(move || u128::from(nonces.fetch_add(1, Ordering::Relaxed)));
            let wire = tower::service_fn(move |request| {
                let emulator = emulator.clone();
                async move { emulator.answer(request).await.map_err(BoxError::from) }
            });
            Ok((builder, Transport::new(wire)))
        })
    }
}

/// The usual access to MAAS.
pub fn environment() -> Option<MaasAccess> {
    let environment = MaasAccess::from_environment(|name| match name {
        "MAAS_ENDPOINT" => Some(ENDPOINT.to_owned()),
        "MAAS_API_KEY" => Some(Fleet::DEFAULT_KEY.to_owned()),
        _ => None,
    });
    environment.unwrap()
}

fn named(object: &Value) -> Option<(String, String)> {
    let conditions = object["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == "NodeProviderIDSet")?;
    Some((condition["status"].as_str()?.to_owned(), condition["reason"].as_str()?.to_owned()))
}

fn is_named(object: &Value) -> bool {
    named(object).is_some_and(|(status, _)| status == "True")
}

fn node_name(rack: &Rack) -> String {
    rack.object()["status"]["hostname"].as_str().unwrap().to_lowercase()
}

#[tokio::test(start_paused = true)]
async fn row_23_the_node_gets_the_id_of_its_machine_as_soon_as_it_appears_and_once() {
    let rack = Rack::new().await;
    let one = rack.world.cluster("one");
    rack.play(async {
        rack.world.until_it_answers("one").await;
        sleep(Duration::from_mins(2)).await;
        assert_eq!(named(&rack.object()), None);
        let (began, node) = (Instant::now(), node_name(&rack));
        one.node(&node, None).await;
        let time = rack.until("the node is named", is_named).await;
        assert!(time <= Duration::from_secs(1), "{time:?}");
        let id = rack.object()["spec"]["providerID"].as_str().unwrap().to_owned();
        assert_eq!(one.provider_id(&node).await, Some(id));
        let (version, rest) = (rack.object()["metadata"]["resourceVersion"].clone(), Instant::now());
        sleep(Duration::from_mins(30)).await;
        assert_eq!(rack.object()["metadata"]["resourceVersion"], version, "at rest nothing is written");
        let patches = one.attempts_since(began).into_iter().filter(|call| call.starts_with("PATCH")).count();
        assert_eq!(patches, 1);
        assert!(one.attempts_since(rest).iter().all(|call| call.contains("watch=true")), "at rest nothing is asked");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn row_23_a_node_with_the_id_of_another_machine_keeps_it_and_is_told() {
    let rack = Rack::new().await;
    let one = rack.world.cluster("one");
    rack.play(async {
        let node = node_name(&rack);
        one.node(&node, Some("maas:///az9/another")).await;
        rack.until("the mismatch is told", |object| named(object) == Some(("False".to_owned(), "NodeHasOtherProviderID".to_owned()))).await;
        sleep(Duration::from_mins(10)).await;
        assert_eq!(one.provider_id(&node).await.as_deref(), Some("maas:///az9/another"));
        one.delete_node(&node).await;
        one.node(&node, None).await;
        let time = rack.until("the new node is named", is_named).await;
        assert!(time <= Duration::from_secs(5), "{time:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_goes_takes_its_connection_along() {
    let rack = Rack::new().await;
    rack.play(async {
        rack.world.until_it_answers("one").await;
        assert_eq!(rack.world.cluster("one").open(), 1);
        rack.api("infrastructure.cluster.x-k8s.io", "v1beta1", "MaasMachine").delete("a", &DeleteParams::default()).await.unwrap();
        rack.until("it is gone", Value::is_null).await;
        rack.api("cluster.x-k8s.io", "v1beta2", "Cluster").delete("one", &DeleteParams::default()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(rack.world.cluster("one").open(), 0);
        assert!(!format!("{:?}", rack.world.workload).contains(&key("one").to_string()));
    })
    .await;
}
