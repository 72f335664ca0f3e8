//! What somebody wants of a lab.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use serde::{Deserialize, Serialize};

use crate::{LabDirectory, LabError, LabName, Level, Maas, machine, programs::Program};

/// How a lab shall be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// What it is called; labs of different names do not meet.
    pub name: LabName,
    /// How much of a data centre it holds.
    pub level: Level,
    /// A directory with programs that come before all others.
    pub programs: Option<PathBuf>,
    /// Below level nodes: also run kube-controller-manager, for garbage collection and namespaces that really go.
    pub controller_manager: bool,
    /// Keep a record of every call to the API server, with bodies where they are about infrastructure: [`crate::LabDirectory::audit_log`].
    #[serde(default)]
    pub audit: bool,
    /// Level nodes: how many machines join the management cluster beside its own node.
    pub workers: u16,
    /// The port on 127.0.0.1 where people reach the API server; a free one if not given.
    pub port: Option<u16>,
    /// A MAAS whose machines are the lab's; below level nodes they exist only in it.
    #[serde(default)]
    pub maas: Option<Maas>,
    /// The `metalshift` program, which is the supervisor of level nodes and the first process of its machines.
    pub executable: Option<PathBuf>,
    /// Level nodes: domains, also reverse ones, with the server in the lab that the lab's resolver asks about each.
    #[serde(default)]
    pub forward_domains: BTreeMap<String, SocketAddr>,
}

impl Options {
    /// A lab of this level with a name of its own, as tests want it: it ends with the process that started it.
    pub fn new(level: Level) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        Self {
            name: name.parse().unwrap_or_default(),
            level,
            programs: None,
            controller_manager: false,
            audit: false,
            workers: 0,
            port: None,
            maas: None,
            executable: None,
            forward_domains: BTreeMap::new(),
        }
    }

    /// Also run kube-controller-manager.
    #[must_use]
    pub fn with_controller_manager(mut self) -> Self {
        self.controller_manager = true;
        self
    }

    /// Also keep a record of every call to the API server.
    #[must_use]
    pub fn with_audit(mut self) -> Self {
        self.audit = true;
        self
    }

    /// The `metalshift` program to run level nodes with.
    #[must_use]
    pub fn executed_by(mut self, program: impl Into<PathBuf>) -> Self {
        self.executable = Some(program.into());
        self
    }

    /// Also run a MAAS that holds this fleet, or the usual one.
    #[must_use]
    pub fn with_maas(mut self, fleet: Option<PathBuf>) -> Self {
        self.maas = Some(Maas { fleet });
        self
    }

    /// The program that is the supervisor and the machines' init: the one given, or the running one.
    pub(crate) fn program(&self) -> Result<PathBuf, LabError> {
        self.executable.clone().map_or_else(|| std::env::current_exe().map_err(LabError::io("find", "the running program")), Ok)
    }

    /// Whether this process may start such a lab.
    pub fn check(&self) -> Result<(), LabError> {
        if self.level != Level::Nodes {
            return Ok(());
        }
        Level::check_rights()?;
        machine::check_root(&LabDirectory::of(&self.name).path())
    }

    /// The real programs this lab runs, and those that people work with in it.
    pub fn wanted_programs(&self) -> Vec<Program> {
        let mut wanted = vec![Program::Etcd, Program::KubeApiserver];
        if self.controller_manager || self.level == Level::Nodes {
            wanted.push(Program::KubeControllerManager);
        }
        if self.level >= Level::Capi {
            // The last one is not run by the lab but by people in it, where the host has none.
            wanted.extend([Program::ClusterApi, Program::KubeadmBootstrap, Program::KubeadmControlPlane, Program::Clusterctl]);
        }
        if self.level == Level::Nodes {
            wanted.extend([
                Program::KubeScheduler,
                Program::Kubelet,
                Program::KubeProxy,
                Program::Kubeadm,
                Program::Kubectl,
                Program::CoreDns,
                Program::Pause,
            ]);
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_cluster_api_runs_people_have_the_programs_to_work_with_it() {
        let wanted = |level| Options::new(level).wanted_programs();
        assert!(!wanted(Level::Api).contains(&Program::Clusterctl));
        assert!(wanted(Level::Capi).contains(&Program::Clusterctl));
        assert!([Program::Clusterctl, Program::Kubectl].iter().all(|program| wanted(Level::Nodes).contains(program)));
    }
}
