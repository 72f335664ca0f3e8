//! A cluster of three control planes and one worker by the real kubeadm, from what the real Cluster API generated.
//!
//! The test is the infrastructure provider in its smallest form: it boots a lab machine with the user-data of each Machine and
//! tells Cluster API where it is. Everything else is genuine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "../../../lab/tests/waiting/mod.rs"]
mod waiting;

use std::{collections::BTreeMap, net::Ipv4Addr, process::Output, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use lab::{Control, Lab, Level, MachineState, Options, programs::Program};
use serde_json::{Value, json};
use waiting::{is_root, until, until_some};

const CLUSTER_WITHIN: Duration = Duration::from_mins(15);
const ENDPOINT: &str = "api.racks.lab";

#[tokio::test]
async fn three_control_planes_and_a_worker_join_and_survive_the_loss_of_one() {
    if !is_root("machines need root") {
        return;
    }
    let lab = Lab::up(Options::new(Level::Nodes).executed_by(env!("CARGO_BIN_EXE_metalshift"))).await.unwrap();
    apply(&lab, include_str!("kinds.yaml")).await;
    until("the kinds are served", Duration::from_mins(1), async || kubectl(&lab, None, &["get", "labmachines"]).await.status.success())
        .await;
    apply(&lab, include_str!("cluster.yaml")).await;
    let client = lab.client().await.unwrap();
    let provider = Provider::new(client.clone(), lab.control());
    provider.provision_cluster().await;

    let workload = lab.directory().path().join("racks.kubeconfig");
    let workload = workload.to_str().unwrap();
    // kubeadm marks a control plane last: its node may be Ready before.
    let nodes = until_some("all four nodes are Ready, three of them control planes", CLUSTER_WITHIN, async || {
        provider.provision_machines().await;
        let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
        let secret = secrets.get_opt("racks-kubeconfig").await.unwrap()?;
        std::fs::write(workload, &secret.data.unwrap()["value"].0).unwrap();
        let is_complete =
            |nodes: &BTreeMap<_, bool>| nodes.len() == 4 && nodes.values().filter(|control_plane| **control_plane).count() == 3;
        Some(ready_nodes(&lab, workload).await).filter(is_complete)
    })
    .await;
    let control_planes: Vec<&String> = nodes.iter().filter(|(_, control_plane)| **control_plane).map(|(name, _)| name).collect();
    let worker = nodes.iter().find(|(_, control_plane)| !**control_plane).unwrap().0;
    let console = std::fs::read_to_string(lab.directory().logs().join(format!("{worker}.log"))).unwrap();
    assert!(console.contains("the Ignition configuration is of version 2"), "{console}");

    let lost = control_planes[0];
    lab.control().power_off(lost, false).await.unwrap();
    until("the API answers through the others", Duration::from_mins(2), async || {
        kubectl(&lab, Some(workload), &["create", "configmap", "written-without-one", "--from-literal=lost=one"]).await.status.success()
    })
    .await;
    let machines = lab.control().status().await.unwrap().machines;
    assert_eq!(machines.iter().find(|machine| machine.name == *lost).unwrap().state, MachineState::Off);
    lab.down().await;
}

/// Nodes that are Ready, and whether each is a control plane.
async fn ready_nodes(lab: &Lab, kubeconfig: &str) -> BTreeMap<String, bool> {
    let Output { status, stdout, .. } = kubectl(lab, Some(kubeconfig), &["get", "nodes", "-o", "json", "--request-timeout=5s"]).await;
    if !status.success() {
        return BTreeMap::new();
    }
    let nodes: Value = serde_json::from_slice(&stdout).unwrap();
    let ready = |node: &&Value| {
        let conditions = node["status"]["conditions"].as_array().unwrap();
        conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    let name = |node: &Value| {
        let control_plane = node["metadata"]["labels"].get("node-role.kubernetes.io/control-plane").is_some();
        (node["metadata"]["name"].as_str().unwrap().to_owned(), control_plane)
    };
    nodes["items"].as_array().unwrap().iter().filter(ready).map(name).collect()
}

/// The least an infrastructure provider does.
struct Provider {
    client: Client,
    control: Control,
}

impl Provider {
    fn new(client: Client, control: Control) -> Self {
        Self { client, control }
    }

    fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        Api::default_namespaced_with(self.client.clone(), &ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)))
    }

    fn infrastructure(&self, kind: &str) -> Api<DynamicObject> {
        self.api("infrastructure.cluster.x-k8s.io", "v1beta1", kind)
    }

    async fn provision_cluster(&self) {
        patch_status(&self.infrastructure("LabCluster"), "racks", &json!({"initialization": {"provisioned": true}})).await;
    }

    async fn provision_machines(&self) {
        let machines = self.api("cluster.x-k8s.io", "v1beta2", "Machine");
        let secrets: Api<Secret> = Api::default_namespaced(self.client.clone());
        let mut endpoint: Vec<Ipv4Addr> = Vec::new();
        for infrastructure in self.infrastructure("LabMachine").list(&ListParams::default()).await.unwrap() {
            let name = infrastructure.metadata.name.clone().unwrap();
            let owners = infrastructure.metadata.owner_references.clone().unwrap_or_default();
            let Some(owner) = owners.iter().find(|owner| owner.kind == "Machine") else { continue };
            let machine = machines.get(&owner.name).await.unwrap();
            let Some(secret) = machine.data["spec"]["bootstrap"]["dataSecretName"].as_str() else { continue };
            if infrastructure.data["spec"]["providerID"].is_null() {
                let user_data = secrets.get(secret).await.unwrap().data.unwrap()["value"].0.clone();
                self.control.add_machine(&name).await.unwrap();
                self.control.power_on(&name, Some(&user_data)).await.unwrap();
                let address = self.address(&name).await;
                let spec = json!({"spec": {"providerID": format!("lab:///{name}")}});
                self.infrastructure("LabMachine").patch(&name, &PatchParams::default(), &Patch::Merge(spec)).await.unwrap();
                let addresses = json!([{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]);
                let status = json!({"initialization": {"provisioned": true}, "addresses": addresses});
                patch_status(&self.infrastructure("LabMachine"), &name, &status).await;
            }
            let labels = machine.metadata.labels.clone().unwrap_or_default();
            let has_node = !machine.data["status"]["nodeRef"].is_null();
            if labels.contains_key("cluster.x-k8s.io/control-plane") && (has_node || endpoint.is_empty()) {
                endpoint.push(self.address(&name).await);
            }
        }
        self.control.set_name(ENDPOINT, &endpoint).await.unwrap();
    }

    async fn address(&self, machine: &str) -> Ipv4Addr {
        let machines = self.control.status().await.unwrap().machines;
        machines.iter().find(|known| known.name == machine).unwrap().address
    }
}

async fn patch_status(api: &Api<DynamicObject>, name: &str, status: &Value) {
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await.unwrap();
}

async fn apply(lab: &Lab, documents: &str) {
    let path = lab.directory().path().join("apply.yaml");
    std::fs::write(&path, documents).unwrap();
    let output = kubectl(lab, None, &["apply", "--server-side", "-f", path.to_str().unwrap()]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// kubectl beside the control plane, where all clusters of the lab are in reach.
async fn kubectl(lab: &Lab, kubeconfig: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = lab.control().enter(None).await.unwrap();
    command.arg(lab.programs().path(Program::Kubectl)).args(arguments);
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    command.output().unwrap()
}
