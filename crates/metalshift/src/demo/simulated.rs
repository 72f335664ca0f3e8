//! The demo without root: servers deploy only on paper, and the demo writes the nodes that would have joined. Everything else is as it is with
//! root: Cluster API, the provider and the MAAS do not know the difference.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    config::Kubeconfig,
};
use serde_json::json;

use super::{
    picture::{CLUSTER, Picture},
    stage::Stage,
    template,
};

const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// The cluster whose nodes are only written.
pub struct SimulatedCluster {
    client: Client,
    address: String,
}

impl SimulatedCluster {
    /// Starts its API server and lets Cluster API and the provider find it.
    pub async fn start(stage: &Stage) -> anyhow::Result<Self> {
        let file = stage.control.add_api_server("workload").await?;
        let kubeconfig = Kubeconfig::read_from(&file).context("could not read the kubeconfig of the simulated cluster")?;
        let address = kubeconfig.clusters.first().and_then(|cluster| cluster.cluster.as_ref()?.server.clone());
        let secret: Secret = serde_json::from_value(json!({
            "metadata": {"name": format!("{CLUSTER}-kubeconfig"), "labels": {api::names::CLUSTER_NAME: CLUSTER}},
            "type": "cluster.x-k8s.io/secret",
            "stringData": {"value": std::fs::read_to_string(&file).context("could not read the kubeconfig of the simulated cluster")?},
        }))?;
        let secrets: Api<Secret> = Api::namespaced(stage.kubernetes.clone(), "default");
        secrets.create(&PostParams::default(), &secret).await.context("could not write the kubeconfig of the simulated cluster")?;
        Ok(Self { client: manager::connect(Some(&file)).await?, address: address.context("the simulated cluster has no address")? })
    }

    /// What is to be applied for this many machines.
    pub fn documents(&self, control_planes: usize, workers: usize) -> anyhow::Result<String> {
        let (host, port) = self.address.trim_start_matches("https://").rsplit_once(':').context("the simulated cluster has no port")?;
        let values = [("HOST", host.to_owned()), ("PORT", port.to_owned()), ("WORKERS", workers.to_string())];
        let mut documents = template::fill(include_str!("simulated-cluster.yaml"), &values.into())?;
        for zone in &ZONES[..control_planes.min(ZONES.len())] {
            documents += &template::fill(include_str!("simulated-machine.yaml"), &[("ZONE", (*zone).to_owned())].into())?;
        }
        Ok(documents)
    }

    /// Lets every server that was deployed have its node. Which machine a node is, the provider tells it, as ever.
    pub async fn join(&self, picture: &Picture) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        for server in picture.deployed_servers() {
            let found = nodes.get_opt(server).await?;
            let conditions = |node: &Node| node.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
            if found.as_ref().is_some_and(|node| conditions(node).iter().any(|condition| condition.type_ == "Ready")) {
                continue;
            }
            // One that is there without a word was made by a pass that did not get further.
            if found.is_none() {
                let node: Node = serde_json::from_value(json!({"metadata": {"name": server}}))?;
                nodes.create(&PostParams::default(), &node).await?;
            }
            let now = jiff::Timestamp::now();
            let ready = json!({"type": "Ready", "status": "True", "reason": "Simulated", "message": "", "lastHeartbeatTime": now, "lastTransitionTime": now});
            let status = json!({"status": {"conditions": [ready], "nodeInfo": node_info()}});
            nodes.patch_status(server, &PatchParams::default(), &Patch::Merge(status)).await?;
        }
        Ok(())
    }
}

/// What a node says of itself; all of it must be there.
fn node_info() -> serde_json::Value {
    json!({
        "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
        "kubeletVersion": "v1.35.8", "machineID": "", "operatingSystem": "linux", "osImage": "simulated", "systemUUID": "",
    })
}
