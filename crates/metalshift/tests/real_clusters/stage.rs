//! What every test here stands on: a management cluster, a MAAS whose machines boot in it, and the provider as a process with the rights
//! of its own account and no others.

use std::{
    fs,
    ops::Deref,
    process::{Child, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lab::{Level, Options, programs::recipe};
use serde_json::Value;

pub use crate::management::{CLUSTER_WITHIN, SOON};
use crate::{
    management::{ADMINISTRATOR, ENDPOINT, Management, PROGRAM, expect, manifest},
    waiting::until,
};

pub struct Stage {
    management: Management,
    providers: Vec<Child>,
    /// Where the providers find it.
    maas: String,
}

impl Stage {
    pub async fn up() -> Self {
        let mut stage = Self::bare().await;
        stage.install().await;
        stage.start_provider(None).await;
        stage
    }

    /// Without the provider.
    pub async fn bare() -> Self {
        Self {
            management: Management::up("real_clusters/fleet.yaml", |options| options).await,
            providers: Vec::new(),
            maas: ENDPOINT.to_owned(),
        }
    }

    /// Where machines are only on paper, for what comes before they boot; needs no root.
    pub async fn on_paper(fleet: &str) -> Self {
        let options = |options| Options { controller_manager: true, ..options };
        let management = Management::of_level(Level::Capi, fleet, options).await;
        let maas = management.maas_address().await;
        let mut stage = Self { management, providers: Vec::new(), maas };
        stage.install().await;
        stage.start_provider(None).await;
        stage
    }

    /// Everything that would be installed, but the process, which runs outside of the cluster.
    async fn install(&self) {
        let mut clusterctl = self.clusterctl(&["generate", "yaml", "--from"]).await;
        clusterctl.arg(manifest("infrastructure-components.yaml")).envs(self.access()).env("CAPMAAS_REPLICAS", "0");
        self.apply(&expect(&mut clusterctl)).await;
    }

    /// Runs the provider with the rights of its own account in this management cluster, or in another one whose kubeconfig is given.
    pub async fn start_provider(&mut self, other: Option<&str>) {
        let name = if other.is_some() { "other-provider" } else { "provider" };
        let kubeconfig = self.account(name, other).await;
        let log = fs::File::create(self.lab.directory().logs().join(format!("{name}.log"))).unwrap();
        let mut command = self.lab.control().enter(None).await.unwrap();
        // It ends with the process that entered the lab, which is the one this test knows.
        command.args(["setpriv", "--pdeathsig", "KILL", "--", PROGRAM, "manage", "--leader-elect", "--machine-concurrency=10"]);
        command.args(["--leader-election-namespace=capmaas-system", "--health-addr=0", "--metrics-bind-addr=0", "--kubeconfig"]);
        command.arg(kubeconfig).envs(self.access());
        self.providers.push(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    fn access(&self) -> [(&str, &str); 2] {
        [("MAAS_ENDPOINT", self.maas.as_str()), ("MAAS_API_KEY", ADMINISTRATOR)]
    }

    /// A cluster from one of our templates.
    pub async fn create_cluster(&self, cluster: &Cluster<'_>) {
        self.apply(&self.generated(cluster).await).await;
    }

    /// What `clusterctl` makes of one of our templates.
    pub async fn generated(&self, cluster: &Cluster<'_>) -> String {
        let control_planes = format!("--control-plane-machine-count={}", cluster.control_planes);
        let workers = format!("--worker-machine-count={}", cluster.workers);
        let mut clusterctl = self.clusterctl(&["generate", "cluster", cluster.name, "--target-namespace", "default"]).await;
        clusterctl.args(["--kubernetes-version", cluster.version, &control_planes, &workers, "--from"]).arg(manifest(cluster.template));
        clusterctl.envs(VARIABLES);
        expect(&mut clusterctl)
    }

    /// The kubeconfig of a workload cluster, once there is one.
    pub async fn workload(&self, cluster: &str) -> Option<String> {
        let secret = format!("{cluster}-kubeconfig");
        let encoded = self.try_kubectl(&["get", "secret", &secret, "--output", "jsonpath={.data.value}"]).await?;
        let kubeconfig = String::from_utf8(STANDARD.decode(encoded.trim()).unwrap()).unwrap();
        Some(self.file(&format!("{cluster}.kubeconfig"), &kubeconfig))
    }

    /// kubectl with a workload cluster; nothing if it fails.
    pub async fn in_workload(&self, cluster: &str, arguments: &[&str]) -> Option<String> {
        let kubeconfig = self.workload(cluster).await?;
        self.try_kubectl(&[&["--kubeconfig", &kubeconfig, "--request-timeout=5s"], arguments].concat()).await
    }

    /// Nodes that are Ready, with their providerID.
    pub async fn ready_nodes(&self, cluster: &str) -> Vec<(String, String)> {
        let Some(nodes) = self.in_workload(cluster, &["get", "nodes", "--output", "json"]).await else { return Vec::new() };
        let nodes: Value = serde_json::from_str(&nodes).unwrap();
        let ready = |node: &&Value| {
            node["status"]["conditions"].as_array().unwrap().iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
        };
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let nodes = nodes["items"].as_array().unwrap().iter().filter(ready);
        nodes.map(|node| (word(&node["metadata"]["name"]), word(&node["spec"]["providerID"]))).collect()
    }

    pub async fn until_nodes(&self, cluster: &str, count: usize) {
        until(&format!("{count} nodes of {cluster} are Ready"), CLUSTER_WITHIN, async || self.ready_nodes(cluster).await.len() == count)
            .await;
    }

    /// Waits for the first control plane. Workers wait for it: where machines are on paper for ever, and it depends on how fast all this
    /// is whether they are there yet.
    pub async fn until_the_first_is_deployed(&self) {
        self.until_is("maasmachines --selector=cluster.x-k8s.io/control-plane", ".items[*].status.phase", "Deployed").await;
    }

    /// Lets something go wrong in MAAS.
    pub async fn inject(&self, fault: &Value) {
        self.emulator("faults", &["--data", &fault.to_string()]).await;
    }

    /// Ends everything that goes wrong in MAAS.
    pub async fn heal(&self) {
        self.emulator("faults", &["--request", "DELETE"]).await;
    }

    /// Deletes a cluster and looks whether MAAS has everything back.
    pub async fn delete_cluster(&self, cluster: &str) {
        self.kubectl(&["delete", "cluster", cluster, "--wait=false"]).await;
        until(&format!("{cluster} is gone"), CLUSTER_WITHIN, async || self.try_kubectl(&["get", "cluster", cluster]).await.is_none()).await;
        assert_eq!(self.left_in_maas().await, Vec::<String>::new());
        self.assert_the_provider_minded_its_own();
    }
}

impl Deref for Stage {
    type Target = Management;

    fn deref(&self) -> &Management {
        &self.management
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for name in ["provider.log", "other-provider.log"] {
                let log = fs::read_to_string(self.lab.directory().logs().join(name)).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                eprintln!("the last of {name}:\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
            }
        }
        for provider in &mut self.providers {
            let _ = provider.kill();
            let _ = provider.wait();
        }
    }
}

/// What a cluster shall be.
pub struct Cluster<'a> {
    pub name: &'a str,
    pub template: &'a str,
    pub version: &'a str,
    pub control_planes: u32,
    pub workers: u32,
}

impl Default for Cluster<'_> {
    fn default() -> Self {
        Self { name: "racks", template: "cluster-template.yaml", version: recipe::kubernetes_version(), control_planes: 1, workers: 1 }
    }
}

pub const VARIABLES: [(&str, &str); 7] = [
    ("MAAS_DNS_DOMAIN", "racks.example"),
    ("CONTROL_PLANE_MACHINE_IMAGE", "ubuntu/noble"),
    ("CONTROL_PLANE_MACHINE_RESOURCEPOOL", "metal"),
    ("WORKER_MACHINE_IMAGE", "ubuntu/noble"),
    ("WORKER_MACHINE_RESOURCEPOOL", "metal"),
    ("POD_CIDR", "10.244.0.0/16"),
    ("SERVICE_CIDR", "10.97.0.0/16"),
];
