//! A real kube-apiserver for the tests of this crate, a namespace for each, and a small kind to reconcile.

use k8s_openapi::{api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use manager::{Clock, Jitter, ListenOn, Listeners, Namespaces, RunError, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{fmt, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::OnceCell,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

pub const DEADLINE: Duration = Duration::from_mins(1);

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "manager.example.com", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
pub struct WidgetSpec {
    pub size: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WidgetStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("could not write the status")]
pub struct WidgetError(#[from] kube::Error);

/// The part of the cluster that belongs to one test.
pub struct Cluster {
    pub client: Client,
    pub namespace: String,
}

impl Cluster {
    /// The namespace's name begins with `name`; the lab is started by the first test that asks.
    pub async fn with_namespace(name: &str) -> Self {
        static LAB: OnceCell<lab::Lab> = OnceCell::const_new();
        crate::log::listen();
        let lab = LAB.get_or_init(|| async { lab::Lab::up(lab::Options::new(lab::Level::Api)).await.unwrap() }).await;
        let cluster = Self { client: lab.client().await.unwrap(), namespace: name.to_owned() };
        cluster.install(&Widget::crd()).await;
        cluster.create_namespace(name).await;
        cluster
    }

    pub async fn create_namespace(&self, name: &str) {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    }

    /// Installs a kind and waits until the server serves it.
    pub async fn install(&self, definition: &CustomResourceDefinition) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let name = definition.name_any();
        api.patch(&name, &PatchParams::apply("tests").force(), &Patch::Apply(definition)).await.unwrap();
        let established = await_condition(api, &name, is_crd_established());
        timeout(DEADLINE, established).await.expect("the kind is served in time").unwrap();
    }

    pub fn widgets(&self) -> Api<Widget> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn create_widget(&self, name: &str, size: i64) -> Widget {
        self.widgets().create(&PostParams::default(), &Widget::new(name, WidgetSpec { size })).await.unwrap()
    }

    /// Waits until the status of a widget is as wanted.
    pub async fn widget_with(&self, name: &str, wanted: impl Fn(&WidgetStatus) -> bool + Send) -> Widget {
        let condition = |widget: Option<&Widget>| widget.and_then(|widget| widget.status.as_ref()).is_some_and(&wanted);
        let result = timeout(DEADLINE, await_condition(self.widgets(), name, condition)).await;
        result.unwrap_or_else(|_| panic!("{name} did not get the wanted status in time")).unwrap().unwrap()
    }

    /// Settings that look at this test's namespace only.
    pub fn settings(&self) -> Settings {
        Settings { namespaces: self.namespace.parse::<Namespaces>().unwrap(), ..Settings::new(Clock::System, Jitter::from_system()) }
    }
}

/// Writes the size into the status, as every test's reconcile does in the end.
pub async fn write_status(client: Client, widget: &Widget, by: &str) -> Result<(), WidgetError> {
    let api: Api<Widget> = Api::namespaced(client, &widget.namespace().unwrap_or_default());
    let status = json!({"apiVersion": "manager.example.com/v1", "kind": "Widget", "status": {"observedSize": widget.spec.size, "by": by}});
    api.patch_status(&widget.name_any(), &PatchParams::apply("tests").force(), &Patch::Apply(status)).await?;
    Ok(())
}

/// A manager that runs in the background of a test, with its two servers on free ports of the loopback.
pub struct Running {
    pub health: SocketAddr,
    pub metrics: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    pub async fn start(controllers: manager::Controllers) -> Self {
        let loopback = ListenOn::Address("127.0.0.1:0".to_owned());
        let listeners = Listeners::bind(&loopback, &loopback).await.unwrap();
        let health = listeners.health.as_ref().unwrap().local_addr().unwrap();
        let metrics = listeners.metrics.as_ref().unwrap().local_addr().unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(controllers.run(listeners, stop.clone().cancelled_owned()));
        Self { health, metrics, stop, task }
    }

    pub async fn stop(self) -> Result<(), RunError> {
        self.stop.cancel();
        timeout(DEADLINE, self.task).await.expect("it stops in time").unwrap()
    }

    /// Waits until it ends by itself.
    pub async fn ended(self) -> Result<(), RunError> {
        timeout(DEADLINE, self.task).await.expect("it ends in time").unwrap()
    }

    /// Ends it as a kill would: nothing is released.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

/// Gets a page; the code and the body.
pub async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Looks again and again until the answer is some value.
pub async fn eventually<Value, Looking>(what: impl fmt::Display, look: impl Fn() -> Looking) -> Value
where
    Looking: Future<Output = Option<Value>>,
{
    let began = Instant::now();
    loop {
        if let Some(value) = look().await {
            return value;
        }
        assert!(began.elapsed() < DEADLINE, "{what} did not come true in time");
        sleep(Duration::from_millis(20)).await;
    }
}
