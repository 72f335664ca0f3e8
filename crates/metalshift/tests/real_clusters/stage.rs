//! What every test here stands on: a lab with nodes, a MAAS whose machines boot in it, and the provider as a process with the rights of
//! its own account and no others.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lab::{
    Lab, Level, Options,
    programs::{Program, Search, find_or_build},
};
use maas_client::{Client as Maas, MachineStatus};
use serde_json::Value;

use crate::waiting::until;

pub const SOON: Duration = Duration::from_mins(2);
/// Several machines one after the other, on two busy cores.
pub const CLUSTER_WITHIN: Duration = Duration::from_mins(12);
const PROGRAM: &str = env!("CARGO_BIN_EXE_metalshift");
const ADMINISTRATOR: &str = "c:t:s";

pub struct Stage {
    pub lab: Lab,
    provider: Option<Child>,
}

impl Stage {
    pub async fn up() -> Self {
        let fleet = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_clusters/fleet.yaml");
        let lab = Lab::up(Options::new(Level::Nodes).executed_by(PROGRAM).with_maas(Some(fleet))).await.unwrap();
        let mut stage = Self { lab, provider: None };
        stage.install().await;
        stage.start_provider().await;
        stage
    }

    /// Everything that would be installed, but the process, which runs outside of the cluster.
    async fn install(&self) {
        let mut clusterctl = self.clusterctl().await;
        clusterctl.args(["generate", "yaml", "--from"]).arg(manifest("infrastructure-components.yaml")).env("CAPMAAS_REPLICAS", "0");
        self.apply(&expect(&mut clusterctl)).await;
    }

    /// The kubeconfig of the provider's own account.
    async fn account(&self) -> PathBuf {
        let token = self.kubectl(&["create", "token", "capmaas-manager", "--namespace", "capmaas-system", "--duration", "3h"]).await;
        let kubeconfig = self.lab.directory().path().join("provider.kubeconfig");
        let inside = self.kubectl(&["config", "view", "--raw"]).await;
        fs::write(&kubeconfig, inside).unwrap();
        let config = |arguments: &[&str]| {
            let mut command = Command::new(self.lab.programs().path(Program::Kubectl));
            expect(command.arg("--kubeconfig").arg(&kubeconfig).arg("config").args(arguments));
        };
        config(&["set-credentials", "provider", "--token", token.trim()]);
        config(&["set-context", "--current", "--user", "provider"]);
        kubeconfig
    }

    pub async fn start_provider(&mut self) {
        let kubeconfig = self.account().await;
        let log = fs::File::create(self.lab.directory().logs().join("provider.log")).unwrap();
        let mut command = self.lab.control().enter(None).await.unwrap();
        // It ends with the process that entered the lab, which is the one this test knows.
        command.args(["setpriv", "--pdeathsig", "KILL", "--", PROGRAM, "manage", "--leader-elect", "--machine-concurrency=10"]);
        command.args(["--leader-election-namespace=capmaas-system", "--health-addr=0", "--metrics-bind-addr=0", "--kubeconfig"]);
        command.arg(kubeconfig).envs([("MAAS_ENDPOINT", "http://maas.lab:5240/MAAS"), ("MAAS_API_KEY", ADMINISTRATOR)]);
        self.provider = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    pub fn kill_provider(&mut self) {
        if let Some(mut provider) = self.provider.take() {
            provider.kill().unwrap();
            provider.wait().unwrap();
        }
    }

    /// A command where all clusters of the lab are in reach.
    async fn inside(&self, program: &Path) -> Command {
        let mut command = self.lab.control().enter(None).await.unwrap();
        command.arg(program);
        command
    }

    pub async fn clusterctl(&self) -> Command {
        let programs = find_or_build(&Search::from_environment(None), &[Program::Clusterctl], &mut |_| {}).unwrap();
        let mut command = self.inside(programs.path(Program::Clusterctl)).await;
        // It would ask the world for a newer release and remember the answer in the person's configuration.
        command.envs([("CLUSTERCTL_DISABLE_VERSIONCHECK", "true"), ("GOPROXY", "off")]).env("XDG_CONFIG_HOME", self.lab.directory().path());
        command
    }

    pub async fn kubectl(&self, arguments: &[&str]) -> String {
        expect(self.inside(self.lab.programs().path(Program::Kubectl)).await.args(arguments))
    }

    /// What kubectl says, or nothing if it fails.
    pub async fn try_kubectl(&self, arguments: &[&str]) -> Option<String> {
        let output = self.inside(self.lab.programs().path(Program::Kubectl)).await.args(arguments).output().unwrap();
        output.status.success().then(|| text(&output))
    }

    pub async fn apply(&self, documents: &str) {
        let file = self.lab.directory().path().join("apply.yaml");
        fs::write(&file, documents).unwrap();
        self.kubectl(&["apply", "--server-side", "--filename", file.to_str().unwrap()]).await;
    }

    /// A cluster from one of our templates.
    pub async fn create_cluster(&self, cluster: &Cluster<'_>) {
        self.apply(&self.generated(cluster).await).await;
    }

    /// What `clusterctl` makes of one of our templates.
    pub async fn generated(&self, cluster: &Cluster<'_>) -> String {
        let mut clusterctl = self.clusterctl().await;
        clusterctl.args(["generate", "cluster", cluster.name, "--target-namespace", "default", "--kubernetes-version", cluster.version]);
        clusterctl.arg(format!("--control-plane-machine-count={}", cluster.control_planes));
        clusterctl.arg(format!("--worker-machine-count={}", cluster.workers)).arg("--from").arg(manifest(cluster.template));
        clusterctl.envs(VARIABLES);
        expect(&mut clusterctl)
    }

    /// The kubeconfig of a workload cluster, once there is one.
    pub async fn workload(&self, cluster: &str) -> Option<String> {
        let secret = format!("{cluster}-kubeconfig");
        let encoded = self.try_kubectl(&["get", "secret", &secret, "--output", "jsonpath={.data.value}"]).await?;
        let file = self.lab.directory().path().join(format!("{cluster}.kubeconfig"));
        fs::write(&file, STANDARD.decode(encoded.trim()).unwrap()).unwrap();
        Some(file.to_str().unwrap().to_owned())
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

    /// Waits until a `JSONPath` of an object is this.
    pub async fn until_is(&self, object: &str, path: &str, wanted: &str) {
        let output = format!("jsonpath={{{path}}}");
        until(&format!("{path} of {object} is {wanted}"), CLUSTER_WITHIN, async || {
            self.try_kubectl(&["get", object, "--output", &output]).await.is_some_and(|found| found.trim() == wanted)
        })
        .await;
    }

    /// The MAAS, as its administrator sees it.
    pub async fn maas(&self) -> Maas {
        let components = self.lab.control().status().await.unwrap().components;
        let address = &components.iter().find(|component| component.name == lab::MAAS).unwrap().address;
        Maas::builder(address, ADMINISTRATOR).unwrap().build().unwrap()
    }

    /// Lets something go wrong in MAAS.
    pub async fn inject(&self, fault: &Value) {
        self.emulator(&["--data", &fault.to_string()]).await;
    }

    /// Ends everything that goes wrong in MAAS.
    pub async fn heal(&self) {
        self.emulator(&["--request", "DELETE"]).await;
    }

    async fn emulator(&self, arguments: &[&str]) {
        let components = self.lab.control().status().await.unwrap().components;
        let address = &components.iter().find(|component| component.name == lab::MAAS).unwrap().address;
        let faults = address.replace("/MAAS", "/emulator/faults");
        expect(Command::new("curl").args(["--silent", "--show-error", "--fail", "--noproxy", "*"]).args(arguments).arg(faults));
    }

    /// Deletes a cluster and looks whether MAAS has everything back.
    pub async fn delete_cluster(&self, cluster: &str) {
        self.kubectl(&["delete", "cluster", cluster, "--wait=false"]).await;
        until(&format!("{cluster} is gone"), CLUSTER_WITHIN, async || self.try_kubectl(&["get", "cluster", cluster]).await.is_none()).await;
        assert_eq!(self.left_in_maas().await, Vec::<String>::new());
    }

    /// Machines that are not Ready or belong to somebody, names, and addresses somebody reserved.
    pub async fn left_in_maas(&self) -> Vec<String> {
        let maas = self.maas().await;
        let machines = maas.machines().list(&maas_client::MachineFilter::new()).await.unwrap();
        let held = |machine: &&maas_client::Machine| machine.owner.is_some() || machine.status != MachineStatus::Ready;
        let mut left: Vec<String> = machines.iter().filter(held).map(|machine| format!("machine {}", machine.hostname)).collect();
        left.extend(
            maas.dns_resources()
                .list(&maas_client::DnsFilter::default())
                .await
                .unwrap()
                .into_iter()
                .map(|resource| format!("name {}", resource.fqdn)),
        );
        left.extend(maas.ip_addresses().list_all().await.unwrap().into_iter().map(|address| format!("address {:?}", address.ip)));
        left
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.lab.directory().logs().join("provider.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the last of the provider's log:\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
        }
        self.kill_provider();
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
        Self { name: "racks", template: "cluster-template.yaml", version: "v1.35.8", control_planes: 1, workers: 1 }
    }
}

const VARIABLES: [(&str, &str); 7] = [
    ("MAAS_DNS_DOMAIN", "racks.example"),
    ("CONTROL_PLANE_MACHINE_IMAGE", "ubuntu/noble"),
    ("CONTROL_PLANE_MACHINE_RESOURCEPOOL", "metal"),
    ("WORKER_MACHINE_IMAGE", "ubuntu/noble"),
    ("WORKER_MACHINE_RESOURCEPOOL", "metal"),
    ("POD_CIDR", "10.244.0.0/16"),
    ("SERVICE_CIDR", "10.97.0.0/16"),
];

fn manifest(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/infrastructure-maas").join(name)
}

/// What a program says; it must succeed.
fn expect(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    text(&output)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
