//! What level nodes has beyond the control plane: the lab's network and resolver, machines, and a management cluster that runs
//! pods. Runs in the namespaces of `metalshift lab supervise`.

mod cluster;
mod join;
mod resolver;
mod volumes;
mod watches;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use tokio::time::Instant;

use crate::{
    LabDirectory, LabError, MachineStatus, Options,
    control_plane::ControlPlane,
    images,
    machine::{DiskSpace, MachineImage, Rack},
    names::Names,
    network,
    process::{Component, Processes, tail},
    programs::{Program, Programs},
};

/// The node that runs the management cluster's own pods.
const MANAGEMENT: &str = "management";
/// How long the management node and the cluster's DNS may take.
const READY_WITHIN: Duration = Duration::from_mins(3);

/// Everything of level nodes.
pub(crate) struct Nodes {
    rack: Arc<Rack>,
    names: Arc<Names>,
    join: join::Join,
    resolver: resolver::Resolver,
    resolver_process: Component,
    proxy: Component,
    workers: Vec<String>,
}

impl Nodes {
    /// What needs no API server: network, disks, images; the management machine boots already.
    pub fn prepare(
        options: &Options,
        directory: &LabDirectory,
        programs: &Programs,
        control_plane: &ControlPlane,
        report: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, LabError> {
        let executable = options.program()?;
        watches::allow_enough(report);
        network::build()?;
        let disks = DiskSpace::mount(directory.path().join("disks"))?;
        let images = images::ensure(programs, &mut |_| report("waiting for another lab, which makes the same images"))?;
        disks.copy_shared(&images.path, "containerd")?;
        drop(images);
        let image = MachineImage::write(&disks, programs, &executable, images::PAUSE)?;
        let names = Arc::new(Names::new(directory.path().join("hosts")));
        names.set("gateway.lab", &[network::GATEWAY])?;
        if options.maas.is_some() {
            names.set("maas.lab", &[network::MAAS])?;
        }
        let rack = Arc::new(Rack::new(directory, &executable, image, disks, Arc::clone(&names)));
        resolver::use_here(directory)?;
        let join = join::Join::prepare(control_plane)?;
        let proxy = join.proxy_beside_the_control_plane(programs.path(Program::KubeProxy), &directory.certificates())?;
        let resolver = resolver::Resolver::configure(directory.path().join("Corefile"), names.path(), &options.forward_domains)?;
        let nodes = Self {
            resolver_process: resolver.component(programs.path(Program::CoreDns)),
            resolver,
            proxy,
            names,
            rack,
            join,
            workers: (1..=options.workers).map(|number| format!("worker-{number}")).collect(),
        };
        nodes.boot(MANAGEMENT)?;
        for worker in &nodes.workers {
            nodes.boot(worker)?;
        }
        Ok(nodes)
    }

    /// Boots a machine that joins the management cluster.
    fn boot(&self, name: &str) -> Result<(), LabError> {
        self.rack.add(name, None)?;
        self.rack.power_on(name, Some(self.join.user_data(name)?.as_bytes()))
    }

    /// Starts what needs the API server.
    pub async fn start(&self, processes: &Processes, client: &Client) -> Result<(), LabError> {
        processes.start(&self.resolver_process);
        processes.start(&self.proxy);
        cluster::install(client).await?;
        tokio::spawn(volumes::provision(client.clone()));
        processes.wait_ready(&self.resolver_process).await
    }

    /// Waits until the nodes take pods and the cluster's DNS answers.
    pub async fn wait_ready(&self, processes: &Processes, client: &Client) -> Result<(), LabError> {
        processes.wait_ready(&self.proxy).await?;
        let nodes = Api::<Node>::all(client.clone());
        let deadline = Instant::now() + READY_WITHIN;
        for name in std::iter::once(MANAGEMENT).chain(self.workers.iter().map(String::as_str)) {
            while !nodes
                .get_opt(name)
                .await
                .map_err(LabError::kubernetes(format!("look at node {name}")))?
                .is_some_and(|node| is_ready(&node))
            {
                if Instant::now() > deadline {
                    return Err(LabError::ComponentFailed {
                        component: name.to_owned(),
                        reason: format!("the node is not Ready after {} s", READY_WITHIN.as_secs()),
                        log_tail: tail(&self.rack.console(name), 12),
                    });
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        cluster::wait_for_dns(client, deadline).await
    }

    pub fn statuses(&self) -> Vec<MachineStatus> {
        self.rack.statuses()
    }

    /// The machines and their power.
    pub fn rack(&self) -> &Arc<Rack> {
        &self.rack
    }

    /// The names the lab's resolver knows.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Passes questions of the lab's resolver on.
    pub fn resolver(&self) -> &resolver::Resolver {
        &self.resolver
    }

    /// A user-data that makes a machine a node of the management cluster.
    pub fn join_user_data(&self, machine: &str) -> Result<String, LabError> {
        self.join.user_data(machine)
    }

    pub async fn stop(&self) {
        self.rack.stop().await;
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
