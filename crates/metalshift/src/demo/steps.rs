//! The steps of the demo: what each promises, does and proves, and how it is sabotaged.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use clap::ValueEnum;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use lab::Level;
use maas_client::{Allocate, MachineFilter, MachineStatus};
use serde_json::json;
use tokio::time::Instant;

use super::{
    Demo,
    kept::workload_kubeconfig,
    picture::{CLUSTER, Picture},
    simulated::SimulatedCluster,
    stage::{BAD_SERVER, Stage},
    template,
};

/// A first cluster of five machines, on two cores; or its end.
const CLUSTER_WITHIN: Duration = Duration::from_mins(10);
/// One machine more.
const MACHINE_WITHIN: Duration = Duration::from_mins(4);
const SOON: Duration = Duration::from_mins(1);
/// What was broken on purpose does not come, and does not take as long to be there when it is not.
const SABOTAGED_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// A step of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Step {
    Lab,
    Provider,
    Kill,
    Cluster,
    Answer,
    BadServer,
    Delete,
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Lab => "lab",
            Self::Provider => "provider",
            Self::Cluster => "cluster",
            Self::Answer => "answer",
            Self::BadServer => "bad-server",
            Self::Kill => "kill",
            Self::Delete => "delete",
        })
    }
}

impl Step {
    /// What it is to prove.
    pub fn promise(self) -> &'static str {
        match self {
            Self::Lab => {
                "a data centre on this machine: Kubernetes, Cluster API, and a MAAS with 24 servers in three zones, one of them bad"
            }
            Self::Provider => "the provider runs with the rights it ships with and no others",
            Self::Cluster => "kubeadm makes a cluster of servers that MAAS deployed, its control plane spread over the zones",
            Self::Answer => "a pod behind a Service answers from every node",
            Self::BadServer => "scaling up meets the bad server: it is given back, avoided, and another one serves",
            Self::Kill => "the provider is killed while MAAS allocates a server: after its restart that server is used, and no other",
            Self::Delete => "deleting the cluster gives everything back: no server, no name, no address is left",
        }
    }

    /// Takes it; what was seen.
    pub async fn take(self, demo: &mut Demo) -> anyhow::Result<String> {
        match self {
            Self::Lab => demo.look_at_the_lab().await,
            Self::Provider => demo.run_the_provider().await,
            Self::Kill => demo.kill_the_provider().await,
            Self::Cluster => demo.make_the_cluster().await,
            Self::Answer => demo.ask_the_pod().await,
            Self::BadServer => demo.meet_the_bad_server().await,
            Self::Delete => demo.delete_the_cluster().await,
        }
    }
}

/// Servers that belong to somebody and are no machine's.
async fn unused_servers(stage: &Stage) -> anyhow::Result<Vec<String>> {
    // In this order: what was allocated in between is not missed among the machines.
    let servers = stage.maas.machines().list(&MachineFilter::new()).await?;
    let machines = Picture::take(stage).await?.machines;
    let of_machines: BTreeSet<&str> = machines.iter().filter_map(|machine| machine.spec.system_id.as_deref()).collect();
    let unused = servers.into_iter().filter(|server| server.owner.is_some() && !of_machines.contains(server.system_id.as_str()));
    Ok(unused.map(|server| server.hostname).collect())
}

impl Demo {
    fn sabotaged(&self, step: Step) -> bool {
        self.sabotage == Some(step)
    }

    /// How long what a step waits for may take.
    fn within(&self, step: Step, usual: Duration) -> Duration {
        if self.sabotaged(step) { SABOTAGED_WITHIN } else { usual }
    }

    async fn look_at_the_lab(&mut self) -> anyhow::Result<String> {
        if self.sabotaged(Step::Lab) {
            let machine = self.stage.maas.machines().allocate(&Allocate::new()).await?;
            self.stage.maas.machine(&machine.system_id).mark_broken(None).await?;
        }
        let machines = self.stage.maas.machines().list(&MachineFilter::new()).await?;
        let ready = machines.iter().filter(|machine| machine.status == MachineStatus::Ready).count();
        ensure!(ready == 24, "MAAS has {ready} servers that are ready, and not 24");
        Ok(format!("MAAS has {ready} servers ready; {BAD_SERVER} will fail"))
    }

    async fn run_the_provider(&mut self) -> anyhow::Result<String> {
        self.provider_kubeconfig = self.stage.install().await?;
        if self.sabotaged(Step::Provider) {
            self.stage.kubectl(&["delete", "rolebinding", "capmaas-leader-election", "--namespace", "capmaas-system"]).await?;
        }
        self.stage.start_provider(&self.provider_kubeconfig).await?;
        let leases: Api<Lease> = Api::namespaced(self.stage.kubernetes.clone(), "capmaas-system");
        let led = async |_: &Stage| {
            let lease = leases.get_opt("controller-leader-election-capmaas").await?;
            Ok(lease.and_then(|lease| lease.spec?.holder_identity).is_some_and(|holder| !holder.is_empty()))
        };
        let log = self.stage.provider_log();
        self.until("the provider leads", self.within(Step::Provider, SOON), led)
            .await
            .with_context(|| format!("its log is {}", log.display()))?;
        Ok("it leads, as the account capmaas-manager".to_owned())
    }

    /// Asks for the cluster.
    async fn order_the_cluster(&mut self) -> anyhow::Result<()> {
        if self.stage.level != Level::Nodes {
            let simulated = SimulatedCluster::start(&self.stage).await?;
            self.stage.apply(&simulated.documents(self.control_planes, self.workers)?).await?;
            self.simulated = Some(simulated);
            return Ok(());
        }
        let values: BTreeMap<&str, String> = [
            ("CLUSTER_NAME", CLUSTER),
            ("NAMESPACE", "default"),
            ("KUBERNETES_VERSION", "v1.35.8"),
            ("MAAS_DNS_DOMAIN", "maas"),
            ("CONTROL_PLANE_MACHINE_IMAGE", "ubuntu/noble"),
            ("CONTROL_PLANE_MACHINE_RESOURCEPOOL", "kubernetes"),
            ("CONTROL_PLANE_MACHINE_TAG", "large"),
            ("WORKER_MACHINE_IMAGE", "ubuntu/noble"),
            ("WORKER_MACHINE_RESOURCEPOOL", "kubernetes"),
            ("WORKER_MACHINE_TAG", "small"),
            ("POD_CIDR", "10.244.0.0/16"),
            ("SERVICE_CIDR", "10.97.0.0/16"),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into_iter()
        .chain([("CONTROL_PLANE_MACHINE_COUNT", self.control_planes.to_string()), ("WORKER_MACHINE_COUNT", self.workers.to_string())])
        .collect();
        self.stage.apply(&template::fill(template::CLUSTER, &values)?).await
    }

    async fn make_the_cluster(&mut self) -> anyhow::Result<String> {
        let wanted = self.control_planes + self.workers;
        self.until_nodes(wanted, CLUSTER_WITHIN).await?;
        let picture = Picture::take(&self.stage).await?;
        let zones = picture.machines.iter().filter(|machine| machine.labels().contains_key(api::names::CONTROL_PLANE));
        let zones: BTreeSet<String> = zones.filter_map(|machine| machine.status.as_ref()?.failure_domain.clone()).collect();
        ensure!(zones.len() == self.control_planes, "the control plane is in the zones {zones:?}");
        if self.sabotaged(Step::Cluster) {
            self.stage.maas.machines().allocate(&Allocate::new()).await?;
        }
        let (held, asked) = (self.held_servers().await?, self.stage.calls("allocate").await?);
        ensure!(
            held.len() == wanted && asked == wanted,
            "MAAS was asked {asked} times and holds {} for {wanted} machines",
            held.join(", ")
        );
        Ok(format!(
            "{wanted} nodes are Ready, each server asked for once, the control plane in {}",
            zones.into_iter().collect::<Vec<_>>().join(", ")
        ))
    }

    async fn ask_the_pod(&mut self) -> anyhow::Result<String> {
        let kubeconfig = workload_kubeconfig(&self.stage.kubernetes, &self.stage.directory).await?.display().to_string();
        let mut documents = include_str!("pod.yaml").to_owned();
        if self.sabotaged(Step::Answer) {
            documents = documents.replace("  selector: {app: answers}", "  selector: {app: nobody}");
        }
        self.stage.apply_with(&["--kubeconfig", &kubeconfig], &documents).await?;
        let words = ["--kubeconfig", &kubeconfig, "get", "service", "answers", "--output", "jsonpath={.spec.clusterIP}"];
        let address = format!("http://{}/hostname", self.stage.kubectl(&words).await?.trim());
        let picture = Picture::take(&self.stage).await?;
        let servers: Vec<String> = picture.machines.iter().filter_map(|machine| machine.status.as_ref()?.hostname.clone()).collect();
        let mut answered = String::new();
        for server in &servers {
            let deadline = Instant::now() + self.within(Step::Answer, SOON);
            loop {
                let ask = ["timeout", "3", "busybox", "wget", "-qO-", &address];
                match self.stage.run_on(server, &ask, Duration::from_secs(10)).await {
                    Ok(name) if name.starts_with("answers") => {
                        name.trim().clone_into(&mut answered);
                        break;
                    }
                    _ if Instant::now() > deadline => bail!("{address} does not answer from {server}"),
                    _ => tokio::time::sleep(LOOK_EVERY).await,
                }
            }
        }
        Ok(format!("{answered} answers at {address} from {} nodes", servers.len()))
    }

    async fn meet_the_bad_server(&mut self) -> anyhow::Result<String> {
        if self.sabotaged(Step::BadServer) {
            self.stage.heal().await?;
        }
        // The free servers that come before the bad one would serve; so many workers more reach it.
        let more = 3_usize.saturating_sub(self.workers).max(1);
        self.scale_to(self.workers + more).await?;
        self.until_nodes(self.control_planes + self.workers, MACHINE_WITHIN).await?;
        let picture = Picture::take(&self.stage).await?;
        let attempts = picture.machines.iter().filter_map(|machine| machine.status.as_ref().map(|status| (machine, status)));
        let failed = attempts.flat_map(|(machine, status)| status.attempts.iter().map(move |attempt| (machine, status, attempt)));
        let Some((_, status, attempt)) = failed.into_iter().find(|(_, _, attempt)| attempt.hostname.as_deref() == Some(BAD_SERVER)) else {
            bail!("no machine tells of an attempt with {BAD_SERVER}");
        };
        let bad = self.stage.maas.machines().list(&MachineFilter::new().hostname(BAD_SERVER)).await?;
        ensure!(bad.iter().all(|machine| machine.owner.is_none()), "{BAD_SERVER} was not given back");
        let left = if self.stage.level == Level::Nodes {
            self.every_node_is_a_machines().await?;
            "left no node"
        } else {
            // Who simulates nodes makes none for a server that failed, so that none is left shows nothing.
            "was given back (whether it left a node needs machines that boot)"
        };
        let serves = status.hostname.as_deref().unwrap_or("another");
        Ok(format!("{BAD_SERVER} failed ({}) and {left}; {serves} serves", attempt.cause))
    }

    /// The cluster has the nodes of its Machines and no others: a server that failed may have joined before.
    async fn every_node_is_a_machines(&self) -> anyhow::Result<()> {
        let kubeconfig = workload_kubeconfig(&self.stage.kubernetes, &self.stage.directory).await?.display().to_string();
        let words = ["--kubeconfig", &kubeconfig, "get", "nodes", "--output", "jsonpath={.items[*].metadata.name}"];
        let nodes = self.stage.kubectl(&words).await?;
        let nodes: BTreeSet<&str> = nodes.split_whitespace().collect();
        let machines = self.objects("Machine").list(&ListParams::default()).await?.items;
        let of_machines: BTreeSet<&str> =
            machines.iter().filter_map(|machine| machine.data["status"]["nodeRef"]["name"].as_str()).collect();
        ensure!(nodes == of_machines, "the cluster has the nodes {nodes:?}, and its Machines have {of_machines:?}");
        Ok(())
    }

    async fn kill_the_provider(&mut self) -> anyhow::Result<String> {
        // MAAS hangs up and does the work three seconds later: the answer never comes, whoever waits for it.
        let late = json!({"call": {"matching": {"operation": "allocate"}, "times": 1, "harm": {"late_commit": {"seconds": 3}}}});
        self.stage.inject(&late).await?;
        self.order_the_cluster().await?;
        self.until("MAAS is asked for a server", SOON, async |stage| Ok(stage.calls("allocate").await? > 0)).await?;
        self.stage.kill_provider()?;
        self.screen.say("  killed; MAAS goes on by itself");
        if !self.sabotaged(Step::Kill) {
            self.stage.start_provider(&self.provider_kubeconfig).await?;
        }
        let within = self.within(Step::Kill, MACHINE_WITHIN);
        let deployed = async |stage: &Stage| Ok(Picture::take(stage).await?.deployed_servers().next().is_some());
        self.until("the server is deployed", within, deployed).await?;
        // One that was allocated this moment may not be written down yet; one that the kill lost never will be.
        let mut unused = Vec::new();
        let used = async |stage: &Stage| {
            unused = unused_servers(stage).await?;
            Ok(unused.is_empty())
        };
        let used = self.until("every server that MAAS holds is a machine's", SOON, used).await;
        used.with_context(|| format!("MAAS holds {} for no machine", unused.join(", ")))?;
        let picture = Picture::take(&self.stage).await?;
        let server = picture.deployed_servers().next().context("the server was deployed and is not any more")?;
        Ok(format!("{server} is in use"))
    }

    async fn delete_the_cluster(&mut self) -> anyhow::Result<String> {
        if self.sabotaged(Step::Delete) {
            self.stage.maas.machines().allocate(&Allocate::new().comment("somebody else")).await?;
        }
        self.stage.kubectl(&["delete", "cluster", CLUSTER, "--wait=false"]).await?;
        let clusters: Api<DynamicObject> = self.objects("Cluster");
        self.until("the cluster is gone", CLUSTER_WITHIN, async |_| Ok(clusters.get_opt(CLUSTER).await?.is_none())).await?;
        let held = self.held_servers().await?;
        ensure!(held.is_empty(), "MAAS still holds {}", held.join(", "));
        let names = self.stage.maas.dns_resources().list(&maas_client::DnsFilter::default()).await?;
        ensure!(names.is_empty(), "MAAS still has the name {}", names[0].fqdn);
        let addresses = self.stage.maas.ip_addresses().list(None).await?;
        ensure!(addresses.is_empty(), "MAAS still has the address {}", addresses[0].ip);
        Ok("MAAS shows 0 servers allocated, 0 names, 0 addresses".to_owned())
    }

    /// Servers that belong to somebody.
    async fn held_servers(&self) -> anyhow::Result<Vec<String>> {
        let machines = self.stage.maas.machines().list(&MachineFilter::new()).await?;
        Ok(machines.into_iter().filter(|machine| machine.owner.is_some()).map(|machine| machine.hostname).collect())
    }

    fn objects(&self, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", kind));
        Api::namespaced_with(self.stage.kubernetes.clone(), "default", &resource)
    }

    async fn scale_to(&mut self, workers: usize) -> anyhow::Result<()> {
        let deployments = self.objects("MachineDeployment");
        let replicas = json!({"spec": {"replicas": workers}});
        deployments.patch(&format!("{CLUSTER}-workers"), &PatchParams::default(), &Patch::Merge(replicas)).await?;
        self.workers = workers;
        Ok(())
    }

    /// Waits until so many machines are deployed and have a node that is Ready.
    async fn until_nodes(&mut self, wanted: usize, within: Duration) -> anyhow::Result<()> {
        let machines: Api<DynamicObject> = self.objects("Machine");
        let healthy = |machine: &DynamicObject| {
            let conditions = machine.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| condition["type"] == "NodeReady" && condition["status"] == "True")
        };
        self.until(&format!("{wanted} nodes are Ready"), within, async |_| {
            let found = machines.list(&ListParams::default()).await?.items;
            Ok(found.len() == wanted && found.iter().all(healthy))
        })
        .await
    }

    /// Looks until the condition holds, and shows the tree meanwhile.
    async fn until(
        &mut self,
        what: &str,
        within: Duration,
        mut condition: impl AsyncFnMut(&Stage) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        while !condition(&self.stage).await? {
            if let Some(last_words) = self.stage.revive_provider(&self.provider_kubeconfig).await? {
                self.screen.say(&format!("  the provider ended and was started again: {last_words}"));
            }
            let picture = Picture::take(&self.stage).await;
            if let Ok(picture) = &picture {
                if let Some(simulated) = &self.simulated {
                    simulated.join(picture).await?;
                }
                picture.machines.iter().for_each(|machine| self.pace.see(machine));
                self.screen.show(picture.lines(&self.pace));
                if let Some(complaint) = picture.hopeless() {
                    bail!("{complaint}");
                }
            }
            if Instant::now() > deadline {
                let complaints = picture.map(|picture| picture.complaints()).unwrap_or_default();
                bail!("after {} s still not true: {what}. {complaints}", within.as_secs());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}
