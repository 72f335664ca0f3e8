//! What the demo looks at while it waits: the machines of its cluster, and whether one of them waits for a person.

use api::{MaasCluster, MaasMachine, MaasMachineStatus, Phase, names};
use jiff::Timestamp;
use kube::{Api, ResourceExt as _, api::ListParams};

use super::{
    pace::Pace,
    screen::Line,
    stage::Stage,
    tree::{self, Clock, Leaf},
};

/// The name of the demo's cluster.
pub const CLUSTER: &str = "demo";

/// Reasons that no waiting mends: the demo ends with their message at once.
const HOPELESS: [&str; 5] = ["ImageNotFound", "AllocationRefused", "DeploymentRefused", "MaasKeyRefused", "MachineDeployFailed"];

/// The cluster at one moment.
pub struct Picture {
    pub machines: Vec<MaasMachine>,
    endpoint: String,
}

impl Picture {
    /// Looks.
    pub async fn take(stage: &Stage) -> anyhow::Result<Self> {
        let machines: Api<MaasMachine> = Api::namespaced(stage.kubernetes.clone(), "default");
        let clusters: Api<MaasCluster> = Api::namespaced(stage.kubernetes.clone(), "default");
        let of_the_cluster = ListParams::default().labels(&format!("{}={CLUSTER}", names::CLUSTER_NAME));
        let cluster = clusters.get_opt(CLUSTER).await?;
        let endpoint =
            cluster.and_then(|cluster| cluster.spec.control_plane_endpoint).and_then(|endpoint| endpoint.host).unwrap_or_default();
        Ok(Self { machines: machines.list(&of_the_cluster).await?.items, endpoint })
    }

    /// Servers that are deployed.
    pub fn deployed_servers(&self) -> impl Iterator<Item = &str> {
        self.statuses().filter(|status| status.phase == Some(Phase::Deployed)).filter_map(|status| status.hostname.as_deref())
    }

    fn statuses(&self) -> impl Iterator<Item = &MaasMachineStatus> {
        self.machines.iter().filter_map(|machine| machine.status.as_ref())
    }

    /// As a tree.
    pub fn lines(&self, pace: &Pace) -> Vec<Line> {
        let leaves: Vec<Leaf> = self.machines.iter().map(Leaf::of).collect();
        let clock = Clock { now: Timestamp::now(), usual: pace.usual() };
        if leaves.is_empty() { Vec::new() } else { tree::lines(CLUSTER, &self.endpoint, &leaves, clock) }
    }

    /// What only a person could mend, in the words of the condition.
    pub fn hopeless(&self) -> Option<String> {
        let mut ready = self.machines.iter().flat_map(|machine| {
            let conditions = machine.status.iter().flat_map(|status| &status.conditions);
            conditions.filter(|condition| condition.type_ == "Ready").map(|ready| (machine.name_any(), ready))
        });
        let (name, ready) = ready.find(|(_, ready)| HOPELESS.contains(&ready.reason.as_str()))?;
        Some(format!("{name}: {}: {}", ready.reason, ready.message))
    }

    /// What is not ready, in the words of the conditions.
    pub fn complaints(&self) -> String {
        let complaint = |machine: &MaasMachine| {
            let conditions = machine.status.iter().flat_map(|status| &status.conditions);
            let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready" && condition.status != "True")?;
            Some(format!("{}: {}: {}", machine.name_any(), ready.reason, ready.message))
        };
        self.machines.iter().filter_map(complaint).collect::<Vec<_>>().join("; ")
    }
}
