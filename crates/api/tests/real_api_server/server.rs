//! A real kube-apiserver that has our kinds, and a namespace for each test.

use api::{admission, definitions};
use k8s_openapi::{api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{fmt::Debug, time::Duration};
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep, timeout},
};

pub const DEADLINE: Duration = Duration::from_mins(1);

/// The part of the server that belongs to one test.
pub struct Server {
    pub client: Client,
    pub namespace: String,
}

impl Server {
    /// The first test that asks starts the server and installs the kinds.
    pub async fn with_namespace(name: &str) -> Self {
        static LAB: OnceCell<lab::Lab> = OnceCell::const_new();
        static INSTALLED: OnceCell<()> = OnceCell::const_new();
        let lab = LAB.get_or_init(|| async { lab::Lab::up(lab::Options::new(lab::Level::Api)).await.unwrap() }).await;
        let server = Self { client: lab.client().await.unwrap(), namespace: name.to_owned() };
        INSTALLED.get_or_init(|| install(&server)).await;
        server.create_namespace(name).await;
        server
    }

    async fn create_namespace(&self, name: &str) {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    }

    /// Waits until the admission policy is in force: a server reads policies in the background, and has this one when it refuses a first change.
    pub async fn wait_for_policy(&self) {
        let spec = json!({"template": {"spec": {"image": "one", "minCPU": 1, "minMemory": 1}}});
        self.create("MaasMachineTemplate", "probe", &spec, false).await.unwrap();
        let began = Instant::now();
        let change = json!({"spec": {"template": {"spec": {"image": "two"}}}});
        while self.change("MaasMachineTemplate", "probe", &change, true).await.is_ok() {
            assert!(began.elapsed() < DEADLINE, "the policy is not in force");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The objects of one of our kinds, as whatever they are.
    pub fn objects(&self, kind: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(api::names::GROUP, api::names::VERSION, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind)
    }

    /// The objects of one of our kinds, as its type.
    pub fn typed<Kind>(&self) -> Api<Kind>
    where
        Kind: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates an object, or says why not; nothing is kept with `dry_run`.
    pub async fn create(&self, kind: &str, name: &str, spec: &Value, dry_run: bool) -> Result<DynamicObject, String> {
        let object = json!({"apiVersion": api::names::API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec});
        let parameters = PostParams { dry_run, ..PostParams::default() };
        self.objects(kind).create(&parameters, &serde_json::from_value(object).unwrap()).await.map_err(words)
    }

    /// Merges a change into an object, or says why not; nothing is kept with `dry_run`.
    pub async fn change(&self, kind: &str, name: &str, change: &Value, dry_run: bool) -> Result<DynamicObject, String> {
        let parameters = PatchParams { dry_run, ..PatchParams::default() };
        self.objects(kind).patch(name, &parameters, &Patch::Merge(change)).await.map_err(words)
    }

    /// Merges a change into an object's status.
    pub async fn change_status(&self, kind: &str, name: &str, status: &Value) -> Result<DynamicObject, String> {
        let change = json!({"status": status});
        self.objects(kind).patch_status(name, &PatchParams::default(), &Patch::Merge(&change)).await.map_err(words)
    }

    /// The answer to a GET, as JSON. A server that has just got a kind asks for a moment of patience.
    pub async fn get(&self, path: &str, accept: &str) -> Value {
        let began = Instant::now();
        loop {
            let request = http::Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
            match self.client.request_text(request).await {
                Err(kube::Error::Api(status)) if status.code == 429 && began.elapsed() < DEADLINE => sleep(Duration::from_millis(50)).await,
                answer => return serde_json::from_str(&answer.unwrap()).unwrap(),
            }
        }
    }
}

/// What the server said.
fn words(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message,
        error => panic!("the server did not answer: {error}"),
    }
}

async fn install(server: &Server) {
    for definition in definitions() {
        apply(&server.client, &definition).await;
        let kinds: Api<CustomResourceDefinition> = Api::all(server.client.clone());
        let name = definition.name_any();
        let established = await_condition(kinds, &name, is_crd_established());
        timeout(DEADLINE, established).await.expect("the kind is served in time").unwrap();
    }
    let (policy, binding) = admission::template_immutability();
    apply(&server.client, &policy).await;
    apply(&server.client, &binding).await;
}

async fn apply<Object>(client: &Client, object: &Object)
where
    Object: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let api: Api<Object> = Api::all(client.clone());
    api.patch(&object.name_any(), &PatchParams::apply("tests").force(), &Patch::Apply(object)).await.unwrap();
}
