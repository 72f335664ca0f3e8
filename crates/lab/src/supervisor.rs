//! Brings a lab up in the right order and owns it until it goes down. Runs on one thread that lives as long as the lab: in the
//! process of a test (levels api and capi), or as `metalshift lab supervise`.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use kube::Client;

use crate::{
    LabDirectory, LabError, LabName, LabStatus, Level, Options,
    cluster_api::ClusterApi,
    connect,
    control_plane::{Addresses, ControlPlane},
    maas,
    nodes::Nodes,
    ports::PortBlock,
    private_file::write_private,
    process::Processes,
    programs::Programs,
    provider,
};

/// How often a lab says that it uses its programs; what nobody has used for two weeks may be removed.
const NOTE_USE_EVERY: Duration = Duration::from_hours(24);

/// Ports of a block that are left for API servers added later.
const FIRST_ADDED: u16 = 15;
const ADDED_API_SERVERS: u16 = 5;

/// A lab that is up.
pub(crate) struct Supervisor {
    options: Options,
    directory: LabDirectory,
    processes: Arc<Processes>,
    nodes: Option<Nodes>,
    ready_since: Timestamp,
    programs: Arc<Programs>,
    control_plane: ControlPlane,
    /// Below level nodes; kept so that no other lab takes our ports.
    ports: Option<PortBlock>,
    /// How many API servers were added.
    added: AtomicU16,
}

impl Supervisor {
    /// Starts everything; on failure everything that was started has ended.
    pub async fn start(
        options: &Options,
        directory: &LabDirectory,
        programs: Arc<Programs>,
        outside: Option<u16>,
        report: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, LabError> {
        directory.create()?;
        link_programs(&programs, directory)?;
        tokio::spawn(keep_programs(Arc::clone(&programs), NOTE_USE_EVERY));
        let processes = Arc::new(Processes::new(&directory.path(), &directory.logs()));
        match Self::start_all(options, directory, programs, outside, &processes, report).await {
            Ok(started) => Ok(started),
            Err(error) => {
                let error = processes.blame_full_disk(error);
                processes.stop().await;
                Err(error)
            }
        }
    }

    async fn start_all(
        options: &Options,
        directory: &LabDirectory,
        programs: Arc<Programs>,
        outside: Option<u16>,
        processes: &Arc<Processes>,
        report: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, LabError> {
        let level = options.level;
        let (addresses, ports) = if level == Level::Nodes {
            (Addresses::in_own_network(crate::network::GATEWAY), None)
        } else {
            let ports = PortBlock::take_without(options.port)?;
            let addresses = Addresses::on_loopback(&ports);
            (Addresses { api_server: options.port.unwrap_or(addresses.api_server), ..addresses }, Some(ports))
        };
        let control_plane = ControlPlane::prepare(&directory.path(), &directory.certificates(), addresses)?;

        report("starting etcd and kube-apiserver");
        let (etcd, mut api_server) = (control_plane.etcd(&programs), control_plane.api_server(&programs, level));
        if options.audit {
            api_server.arguments.extend(crate::audit::arguments(directory)?);
        }
        processes.start(&etcd);
        processes.start(&api_server);
        let nodes = if level == Level::Nodes {
            report("making the network, the disks and the images; the first machines boot meanwhile");
            Some(Nodes::prepare(options, directory, &programs, &control_plane, report)?)
        } else {
            None
        };
        let maas = maas::component(options, directory, &options.program()?, ports.as_ref(), outside)?;
        if let Some(maas) = &maas {
            report("starting a MAAS");
            processes.start(maas);
        }
        processes.wait_ready(&etcd).await?;
        processes.wait_ready(&api_server).await?;
        let client = connect(&control_plane.kubeconfig).await?;

        let mut waiting = Vec::new();
        if options.controller_manager || level == Level::Nodes {
            waiting.push(control_plane.controller_manager(&programs, level));
        }
        if level == Level::Nodes {
            waiting.push(control_plane.scheduler(&programs));
        }
        for component in &waiting {
            processes.start(component);
        }
        if let Some(nodes) = &nodes {
            nodes.start(processes, &client).await?;
        }
        if level >= Level::Capi {
            report("installing Cluster API");
            install_cluster_api(&programs, addresses, &control_plane, directory, processes, &client).await?;
        }
        for component in &waiting {
            processes.wait_ready(component).await?;
        }
        if let Some(nodes) = &nodes {
            report("waiting for the management node and the cluster's DNS");
            nodes.wait_ready(processes, &client).await?;
        }
        if let Some(maas) = &maas {
            processes.wait_ready(maas).await?;
        }
        let server = outside.map_or_else(|| addresses.server(), |port| format!("https://127.0.0.1:{port}"));
        write_private(&directory.kubeconfig(), control_plane.administrator_at(&server))?;
        Ok(Self {
            options: options.clone(),
            directory: directory.clone(),
            processes: Arc::clone(processes),
            nodes,
            ready_since: Timestamp::now(),
            programs,
            control_plane,
            ports,
            added: AtomicU16::new(0),
        })
    }

    pub fn status(&self) -> LabStatus {
        LabStatus {
            name: self.options.name.to_string(),
            level: self.options.level,
            ready_since: Some(self.ready_since),
            components: self.processes.statuses(),
            machines: self.nodes.as_ref().map(Nodes::statuses).unwrap_or_default(),
        }
    }

    /// Starts one more API server with objects of its own and waits until it answers; the administrator's kubeconfig for it.
    pub async fn add_api_server(&self, name: &str) -> Result<PathBuf, LabError> {
        let refuse =
            |reason: &str| Err(LabError::Supervisor(format!("lab {} cannot have another API server: {reason}", self.options.name)));
        let Some(ports) = &self.ports else { return refuse("at level nodes every cluster has machines of its own") };
        let name: LabName = name.parse()?;
        let number = self.added.fetch_add(1, Ordering::Relaxed);
        if number >= ADDED_API_SERVERS {
            return refuse(&format!("it has {ADDED_API_SERVERS} more than one already"));
        }
        let port = ports.port(FIRST_ADDED + number);
        let component = format!("kube-apiserver-{name}");
        let component = self.control_plane.another_api_server(&self.programs, self.options.level, &component, port, &format!("/{name}"));
        self.processes.start(&component);
        self.processes.wait_ready(&component).await?;
        let kubeconfig = self.directory.path().join(format!("{name}.kubeconfig"));
        write_private(&kubeconfig, self.control_plane.administrator_at(&component.address))?;
        Ok(kubeconfig)
    }

    /// Starts the provider and waits until it answers.
    pub async fn add_provider(&self, arguments: Vec<String>, environment: BTreeMap<String, String>) -> Result<(), LabError> {
        let component = provider::component(&self.options.program()?, arguments, self.ports.as_ref());
        if self.processes.statuses().iter().any(|status| status.name == component.name) {
            return Err(LabError::Supervisor(format!("lab {} has a provider already", self.options.name)));
        }
        self.processes.start_with(&component, environment);
        self.processes.wait_ready(&component).await
    }

    pub fn nodes(&self) -> Option<&Nodes> {
        self.nodes.as_ref()
    }

    /// Ends everything and waits until it has ended.
    pub async fn stop(&self) {
        if let Some(nodes) = &self.nodes {
            nodes.stop().await;
        }
        self.processes.stop().await;
    }
}

/// Nobody may remove the programs of a lab that is up for long: they are needed when one of them dies.
async fn keep_programs(programs: Arc<Programs>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        programs.note_use();
    }
}

/// Programs people call in a lab, as far as they lie beside those it runs: a host need not have them.
fn link_programs(programs: &Programs, directory: &LabDirectory) -> Result<(), LabError> {
    let place = directory.programs();
    fs::create_dir_all(&place).map_err(LabError::io("create", &place))?;
    for name in ["kubectl", "clusterctl"] {
        let beside = programs.iter().filter_map(|(_, found)| Some(found.path.parent()?.join(name)));
        if let Some(program) = beside.into_iter().find(|path| path.is_file()) {
            let link = place.join(name);
            symlink(&program, &link).map_err(LabError::io("link", &link))?;
        }
    }
    Ok(())
}

async fn install_cluster_api(
    programs: &Programs,
    addresses: Addresses,
    control_plane: &ControlPlane,
    directory: &LabDirectory,
    processes: &Processes,
    client: &Client,
) -> Result<(), LabError> {
    let cluster_api =
        ClusterApi::prepare(programs, addresses, &control_plane.authority, &control_plane.kubeconfig, &directory.certificates())?;
    cluster_api.install_kinds(client).await?;
    for component in cluster_api.components() {
        processes.start(component);
    }
    for component in cluster_api.components() {
        processes.wait_ready(component).await?;
    }
    cluster_api.register_webhooks(client).await
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::MetadataExt as _, time::SystemTime};

    use super::*;
    use crate::{
        programs::{Found, Program, Source},
        waiting::until,
    };

    #[tokio::test]
    async fn programs_of_a_lab_that_is_up_count_as_used_again_and_again() {
        let cache = tempfile::tempdir().unwrap();
        let lock = fs::File::create(cache.path().join("key.lock")).unwrap();
        let found = Found { path: cache.path().join("key/bin/etcd"), source: Source::Cache };
        let keeping = tokio::spawn(keep_programs(Arc::new(Programs::with(Program::Etcd, found)), Duration::from_millis(1)));
        for _ in 0..3 {
            lock.set_modified(SystemTime::UNIX_EPOCH).unwrap();
            until("they were used", Duration::from_secs(30), async || lock.metadata().unwrap().mtime() != 0).await;
        }
        keeping.abort();
    }
}
