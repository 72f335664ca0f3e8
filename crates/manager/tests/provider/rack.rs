//! A rack of its own for each test: a namespace of the shared cluster, a MAAS, and the provider that looks after both.

use std::{
    fmt::Debug,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::account;
use api::{MaasMachine, definitions, names};
use k8s_openapi::{
    api::core::v1::{Namespace, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use maas_client::{ExposeSecret, Transport};
use maas_emulator::{Clock as MaasClock, Emulator, Fleet, Options};
use manager::{
    Clock, Controllers, Jitter, Listeners, Namespaces, Provider, RunError, Settings,
    maas::{Connect, MaasAccess},
    machine::Rules,
    workload,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::OnceCell,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Longer than the two minutes that a provider waits for what another one, which was killed, may have told MAAS.
pub const DEADLINE: Duration = Duration::from_mins(4);
/// A word of the bootstrap data, which nobody may see anywhere else.
pub const CANARY: &str = "canary-5d41402abc4b2a76";
/// What the machines run at their first boot.
pub const USER_DATA: &str = "#cloud-config\n# canary-5d41402abc4b2a76\nruncmd: [echo, \u{fc}]\n";

/// Quick machines in two zones.
pub const FLEET: &str = "
zones: [{name: az1}, {name: az2}]
pools: [{name: metal}]
machines:
  - {hostname: one-, count: 3, zone: az1, cpus: 4, memory: 8192, tags: [ssd, rack-1]}
  - {hostname: two-, count: 3, zone: az2, pool: metal, cpus: 8, memory: 16384, tags: [ssd]}
timings: {deploy: [0.2, 0.4], power_on: [0, 0.1], power_off: [0, 0.1]}
";

/// A test's own rack.
pub struct Rack {
    /// For people and whoever else is not the provider.
    pub client: Client,
    providers_client: Client,
    pub namespace: String,
    pub emulator: Emulator,
    pub sweep_period: Duration,
    /// Where MAAS listens; without it, calls take no sockets.
    pub maas: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
    health: Option<SocketAddr>,
    stop: CancellationToken,
    provider: Option<JoinHandle<Result<(), RunError>>>,
}

/// The lab all tests of this program share: it is started by the first that asks.
pub async fn lab() -> &'static lab::Lab {
    static LAB: OnceCell<lab::Lab> = OnceCell::const_new();
    LAB.get_or_init(|| async {
        crate::log::listen();
        let lab = lab::Lab::up(lab::Options::new(lab::Level::Capi).with_audit()).await.unwrap();
        let client = lab.client().await.unwrap();
        let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in definitions() {
            let name = definition.name_any();
            kinds.patch(&name, &PatchParams::apply("tests").force(), &Patch::Apply(&definition)).await.unwrap();
            timeout(DEADLINE, await_condition(kinds.clone(), &name, is_crd_established()))
                .await
                .expect("the kind is served in time")
                .unwrap();
            timeout(DEADLINE, until_listed(&client, &definition)).await.expect("the kind is listed in time");
        }
        account::gets_its_rights(&client).await;
        lab
    })
    .await
}

/// The server makes the store of a kind when it is first asked for one, and sends everybody away until it has.
async fn until_listed(client: &Client, definition: &CustomResourceDefinition) {
    let spec = &definition.spec;
    let kind = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk(&spec.group, &spec.versions[0].name, &spec.names.kind),
        &spec.names.plural,
    );
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    while let Err(error) = objects.list(&ListParams::default()).await {
        assert!(matches!(&error, kube::Error::Api(status) if status.code == 429), "{error}");
        sleep(Duration::from_millis(50)).await;
    }
}

impl Rack {
    /// A namespace with a provisioned cluster `c1`, a MAAS with this fleet, and a running provider.
    pub async fn new(name: &str, fleet: &str) -> Self {
        let rack = Self::without_provider(name, fleet).await;
        rack.with_provider()
    }

    pub async fn without_provider(name: &str, fleet: &str) -> Self {
        let lab = lab().await;
        let (client, providers_client) = (lab.client().await.unwrap(), account::client(lab).await);
        let options = Options { clock: MaasClock::running(jiff::Timestamp::now()), ..Options::default() };
        let emulator = Emulator::new(Fleet::from_yaml(fleet).unwrap(), options).unwrap();
        let rack = Self {
            client,
            providers_client,
            namespace: name.to_owned(),
            emulator,
            sweep_period: Duration::from_secs(2),
            maas: None,
            metrics: None,
            health: None,
            stop: CancellationToken::new(),
            provider: None,
        };
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::all(rack.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let secret: Secret =
            serde_json::from_value(json!({"metadata": {"name": "boot"}, "stringData": {"value": USER_DATA, "format": "cloud-config"}}))
                .unwrap();
        Api::namespaced(rack.client.clone(), name).create(&PostParams::default(), &secret).await.unwrap();
        // A custom endpoint, so that nothing here depends on DNS.
        let endpoint = json!({"controlPlaneEndpoint": {"host": "c1.example", "port": 6443}});
        rack.cluster("c1", json!({}), json!({names::CUSTOM_ENDPOINT: ""}), endpoint).await;
        rack
    }

    /// Starts the provider, or starts it again.
    pub fn with_provider(mut self) -> Self {
        self.start(Rules::default());
        self
    }

    pub fn start(&mut self, rules: Rules) {
        let jitter = Jitter::from_system();
        let namespaces = self.namespace.parse::<Namespaces>().unwrap();
        let settings = Settings { namespaces, ..Settings::new(Clock::System, jitter) };
        let mut controllers = Controllers::new(self.providers_client.clone(), settings);
        let host = self.maas.map_or_else(|| "maas.test:5240".to_owned(), |address| address.to_string());
        let environment = MaasAccess::from_environment(|name| match name {
            "MAAS_ENDPOINT" => Some(format!("http://{host}/MAAS")),
            "MAAS_API_KEY" => Some(Fleet::DEFAULT_KEY.to_owned()),
            _ => None,
        });
        let provider = Provider {
            environment: environment.unwrap(),
            connect_maas: if self.maas.is_some() { manager::maas::over_the_network() } else { connect(&self.emulator) },
            connect_workload: workload::over_the_network(),
            sweep_period: self.sweep_period,
            machine_concurrency: 10.try_into().unwrap(),
            machine_rules: rules,
            cluster_rules: manager::cluster::Rules::default(),
        };
        provider.add_to(&mut controllers);
        self.stop = CancellationToken::new();
        let (metrics, health) = (listener(), listener());
        (self.metrics, self.health) = (metrics.local_addr().ok(), health.local_addr().ok());
        let listeners = Listeners { metrics: Some(metrics), health: Some(health) };
        self.provider = Some(tokio::spawn(controllers.run(listeners, self.stop.clone().cancelled_owned())));
    }

    /// What a scrape reads.
    pub async fn metrics(&self) -> String {
        let page = get(self.metrics.unwrap(), "/metrics").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        page
    }

    /// Whether the provider says that it is ready.
    pub async fn is_ready(&self) -> bool {
        get(self.health.unwrap(), "/readyz").await.starts_with("HTTP/1.1 200")
    }

    /// Ends the provider as a kill would.
    pub async fn kill_provider(&mut self) {
        if let Some(provider) = self.provider.take() {
            provider.abort();
            drop(provider.await);
        }
    }

    pub fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    pub fn core(&self, kind: &str) -> Api<DynamicObject> {
        self.api("cluster.x-k8s.io", "v1beta2", kind)
    }

    pub fn maas_machines(&self) -> Api<MaasMachine> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn create(&self, object: Value) {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let types = object.types.clone().unwrap();
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        self.api(group, version, &types.kind).create(&PostParams::default(), &object).await.unwrap();
    }

    /// A Cluster of this spec, and its MaasCluster with these annotations and this spec.
    pub async fn cluster(&self, name: &str, cluster: Value, annotations: Value, spec: Value) {
        let metadata = json!({"name": name, "annotations": annotations});
        let spec = with(json!({"dnsDomain": "maas"}), &spec);
        self.create(json!({"apiVersion": names::API_VERSION, "kind": "MaasCluster", "metadata": metadata, "spec": spec})).await;
        let reference = json!({"infrastructureRef": {"apiGroup": names::GROUP, "kind": "MaasCluster", "name": name}});
        let spec = with(reference, &cluster);
        self.create(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name}, "spec": spec})).await;
    }

    pub fn maas_clusters(&self) -> Api<DynamicObject> {
        self.api(names::GROUP, names::VERSION, "MaasCluster")
    }

    /// Waits until Cluster API has seen that the infrastructure is provisioned.
    pub async fn cluster_provisioned(&self, name: &str) -> Value {
        let provisioned = |object: &Value| object["status"]["initialization"]["infrastructureProvisioned"] == Value::Bool(true);
        self.wait(self.core("Cluster"), name, "its infrastructure is provisioned", provisioned).await
    }

    pub async fn delete_cluster(&self, name: &str) {
        self.delete("Cluster", name).await;
        self.wait(self.core("Cluster"), name, "it is gone", Value::is_null).await;
    }

    /// Every name in MAAS's DNS, and whom it leads to.
    pub fn names(&self) -> Vec<(String, Vec<String>)> {
        self.emulator.world(|world| {
            let address = |id| world.addresses.get(id).and_then(|address| address.ip).map(|ip| ip.to_string());
            world.names.values().map(|name| (name.name.clone(), name.addresses.iter().filter_map(|id| address(*id)).collect())).collect()
        })
    }

    /// A Machine of `c1` and its MaasMachine of this spec.
    pub async fn machine(&self, name: &str, spec: Value) {
        self.machine_with(name, spec, json!({"dataSecretName": "boot"})).await;
    }

    pub async fn machine_with(&self, name: &str, spec: Value, bootstrap: Value) {
        self.machine_of(&json!({names::CLUSTER_NAME: "c1"}), name, spec, bootstrap).await;
    }

    /// A Machine and its MaasMachine with these labels, of which one says the Cluster.
    pub async fn machine_of(&self, labels: &Value, name: &str, spec: Value, bootstrap: Value) {
        self.maas_machine(labels, name, spec).await;
        self.create(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": name, "labels": labels},
            "spec": {"clusterName": labels[names::CLUSTER_NAME], "version": "v1.35.0", "bootstrap": bootstrap,
                "infrastructureRef": {"apiGroup": names::GROUP, "kind": "MaasMachine", "name": name}}}))
            .await;
    }

    pub async fn maas_machine(&self, labels: &Value, name: &str, spec: Value) {
        let spec = with(json!({"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy"}), &spec);
        let metadata = json!({"name": name, "labels": labels});
        self.create(json!({"apiVersion": names::API_VERSION, "kind": "MaasMachine", "metadata": metadata, "spec": spec})).await;
    }

    /// Waits until an object is as wanted, and shows how it is when it is not.
    pub async fn wait<K>(&self, api: Api<K>, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value
    where
        K: Resource + Clone + Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        let began = Instant::now();
        loop {
            let object = api.get_opt(name).await.unwrap().map_or(Value::Null, |object| serde_json::to_value(object).unwrap());
            if wanted(&object) {
                return object;
            }
            assert!(began.elapsed() < DEADLINE, "it did not come true in time that {what}: {object:#}\n{:#?}", self.calls());
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn wait_machine(&self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.wait(self.maas_machines(), name, what, wanted).await
    }

    pub async fn provisioned(&self, name: &str) -> Value {
        self.wait_machine(name, "it is provisioned", |object| object["status"]["initialization"]["provisioned"] == true).await
    }

    pub async fn reason(&self, name: &str, reason: &str) -> Value {
        self.wait_machine(name, &format!("its reason is {reason}"), |object| condition(object, "Ready")["reason"] == reason).await
    }

    pub async fn gone(&self, name: &str) {
        self.wait_machine(name, "it is gone", Value::is_null).await;
    }

    pub async fn delete(&self, kind: &str, name: &str) {
        self.core(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// MAAS, for people.
    pub fn person(&self) -> maas_client::Client {
        let (builder, transport) = wired(&self.emulator, "http://maas.test:5240/MAAS", Fleet::DEFAULT_KEY).unwrap();
        builder.build_on(transport)
    }

    /// Every call that changed something in MAAS: method or operation, and the machine's host name if it was about one.
    pub fn calls(&self) -> Vec<String> {
        let entries: Vec<_> = self.emulator.journal(|journal| journal.entries().cloned().collect());
        let writes = entries.into_iter().filter(|entry| entry.method != "GET");
        let host = |id: &str| {
            self.emulator
                .world(|world| world.all_machines().find(|machine| machine.system_id == id).map(|machine| machine.hostname.clone()))
        };
        writes
            .map(|entry| {
                let path = entry.uri.trim_start_matches("/MAAS/api/2.0/").split('?').next().unwrap_or_default().to_owned();
                let about = path.split('/').find_map(host).unwrap_or(path.clone());
                format!("{} {about} {}", entry.operation.unwrap_or(entry.method), entry.status)
            })
            .collect()
    }

    /// How a machine is in MAAS, by host name: status, owner, marks.
    pub fn in_maas(&self, hostname: &str) -> (String, Option<String>) {
        self.emulator.world(|world| {
            let machine = world.all_machines().find(|machine| machine.hostname == hostname).unwrap();
            (machine.status.name().to_owned(), machine.owner.map(|owner| world.user_name(owner).to_owned()))
        })
    }

    pub fn allocated(&self) -> Vec<String> {
        self.emulator
            .world(|world| world.all_machines().filter(|machine| machine.owner.is_some()).map(|machine| machine.hostname.clone()).collect())
    }

    /// Everything in the namespace, as text, to look for what must not be there.
    pub async fn everything(&self) -> String {
        let mut text = String::new();
        for (group, version, kind) in
            [("infrastructure.cluster.x-k8s.io", "v1beta1", "MaasMachine"), ("cluster.x-k8s.io", "v1beta2", "Machine"), ("", "v1", "Event")]
        {
            let list = self.api(group, version, kind).list(&kube::api::ListParams::default()).await.unwrap();
            text += &serde_json::to_string(&list).unwrap();
        }
        text
    }

    /// The end of a test: what was written to the API server is looked at.
    pub async fn finish(mut self) {
        self.stop.cancel();
        if let Some(provider) = self.provider.take() {
            timeout(DEADLINE, provider).await.expect("the provider stops in time").unwrap().unwrap();
        }
        crate::audit::check(&self.namespace);
    }
}

fn listener() -> TcpListener {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    TcpListener::from_std(listener).unwrap()
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    timeout(DEADLINE, connection.read_to_string(&mut page)).await.expect("the page is there in time").unwrap();
    page
}

/// A spec with these fields besides.
fn with(mut spec: Value, change: &Value) -> Value {
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    spec
}

/// A condition of an object.
pub fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

fn connect(emulator: &Emulator) -> Connect {
    let emulator = emulator.clone();
    Arc::new(move |credentials| wired(&emulator, credentials.endpoint.as_str(), credentials.key.expose_secret()))
}

/// A client with this key, wired to the emulator.
fn wired(emulator: &Emulator, endpoint: &str, key: &str) -> Result<(maas_client::ClientBuilder, Transport), maas_client::SetupError> {
    // No provider that is started again may use a nonce of the one before.
    static NONCES: AtomicU64 = AtomicU64::new(1);
    let builder = maas_client::Client::builder(endpoint, key)?.randomness(move || u128::from(NONCES.fetch_add(1, Ordering::Relaxed)));
    let emulator = emulator.clone();
    let transport = Transport::new(tower::service_fn(move |request| {
        let emulator = emulator.clone();
        async move { emulator.answer(request).await }
    }));
    Ok((builder, transport))
}
