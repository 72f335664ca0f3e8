//! etcd and the Kubernetes control plane of the management cluster, as components to start.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    LabError, Level, kubeconfig,
    pki::{self, Authority, Credentials},
    ports::PortBlock,
    private_file::write_private,
    probe::Probe,
    process::Component,
    programs::{Program, Programs},
};

/// Cluster addresses of services; the first is the API server's own, the tenth the cluster's DNS.
pub(crate) const SERVICES: &str = "10.96.0.0/16";
/// Names and addresses under which the API server is called from inside a cluster.
const SERVER_NAMES: &[&str] = &[
    "localhost",
    "127.0.0.1",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Where the components listen: a block of ports on loopback, or the usual ports in a network of the lab's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    /// The address the API server is reached at.
    pub host: Ipv4Addr,
    /// The address servers bind that others may call.
    pub bind: Ipv4Addr,
    pub etcd: u16,
    pub etcd_peer: u16,
    pub api_server: u16,
    pub controller_manager: u16,
    pub scheduler: u16,
    /// The first of nine: webhook, health and diagnostics of each Cluster API manager.
    pub cluster_api: u16,
}

impl Addresses {
    pub fn on_loopback(ports: &PortBlock) -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST,
            bind: Ipv4Addr::LOCALHOST,
            etcd: ports.port(1),
            etcd_peer: ports.port(2),
            api_server: ports.port(3),
            controller_manager: ports.port(4),
            scheduler: ports.port(5),
            cluster_api: ports.port(6),
        }
    }

    pub fn in_own_network(host: Ipv4Addr) -> Self {
        Self {
            host,
            bind: Ipv4Addr::UNSPECIFIED,
            etcd: 2379,
            etcd_peer: 2380,
            api_server: 6443,
            controller_manager: 10_257,
            scheduler: 10_259,
            cluster_api: 9440,
        }
    }

    pub fn server(&self) -> String {
        format!("https://{}:{}", self.host, self.api_server)
    }
}

/// The files and flags of a control plane.
pub(crate) struct ControlPlane {
    pub authority: Arc<Authority>,
    /// Logs its holder in as administrator, for programs inside the lab.
    pub kubeconfig: PathBuf,
    administrator: Credentials,
    addresses: Addresses,
    certificates: PathBuf,
    data: PathBuf,
    volume_plugins: PathBuf,
}

impl ControlPlane {
    /// Makes keys and certificates below `directory`.
    pub fn prepare(directory: &Path, certificates: &Path, addresses: Addresses) -> Result<Self, LabError> {
        let authority = Arc::new(Authority::new("metalshift-lab")?);
        let host = addresses.host.to_string();
        let names: Vec<&str> = SERVER_NAMES.iter().copied().chain([host.as_str()]).collect();
        let serving = authority.server("kube-apiserver", &names)?;
        let kubelet_client = authority.client("kube-apiserver-kubelet-client", "system:masters")?;
        let administrator = authority.client("lab-administrator", "system:masters")?;
        // An authority of its own: who may talk to the API server may not talk to etcd.
        let etcd_authority = Authority::new("metalshift-lab-etcd")?;
        let etcd = etcd_authority.peer("etcd", "127.0.0.1")?;
        let etcd_client = etcd_authority.client("kube-apiserver-etcd-client", "etcd")?;
        let kubeconfig = certificates.join("administrator.kubeconfig");
        let (signing, verifying) = pki::service_account_keys()?;
        for (name, content) in [
            ("ca.crt", authority.certificate()),
            ("ca.key", authority.key()),
            ("apiserver.crt", serving.certificate),
            ("apiserver.key", serving.key),
            ("kubelet-client.crt", kubelet_client.certificate),
            ("kubelet-client.key", kubelet_client.key),
            ("etcd-ca.crt", etcd_authority.certificate()),
            ("etcd.crt", etcd.certificate),
            ("etcd.key", etcd.key),
            ("etcd-client.crt", etcd_client.certificate),
            ("etcd-client.key", etcd_client.key),
            ("service-accounts.key", signing),
            ("service-accounts.pub", verifying),
        ] {
            write_private(&certificates.join(name), &content)?;
        }
        let (data, volume_plugins) = (directory.join("etcd"), directory.join("volume-plugins"));
        let made = Self { authority, kubeconfig, administrator, addresses, certificates: certificates.to_owned(), data, volume_plugins };
        write_private(&made.kubeconfig, made.administrator_at(&addresses.server()))?;
        Ok(made)
    }

    /// Where programs inside the lab reach the API server.
    pub fn server(&self) -> String {
        self.addresses.server()
    }

    /// The administrator's kubeconfig for somebody who reaches the API server at this address.
    pub fn administrator_at(&self, server: &str) -> String {
        kubeconfig::render("lab", server, &self.authority.certificate(), "lab-administrator", &self.administrator)
    }

    pub fn etcd(&self, programs: &Programs) -> Component {
        let Addresses { etcd, etcd_peer, .. } = self.addresses;
        let client = format!("https://127.0.0.1:{etcd}");
        let peer = format!("https://127.0.0.1:{etcd_peer}");
        let file = |name: &str| self.certificates.join(name).display().to_string();
        Component {
            name: "etcd".to_owned(),
            program: programs.path(Program::Etcd).to_owned(),
            arguments: vec![
                "--data-dir".into(),
                self.data.display().to_string(),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster=default={peer}"),
                // Everybody on this machine reaches the port, and etcd holds every Secret.
                "--client-cert-auth".into(),
                format!("--trusted-ca-file={}", file("etcd-ca.crt")),
                format!("--cert-file={}", file("etcd.crt")),
                format!("--key-file={}", file("etcd.key")),
                "--peer-client-cert-auth".into(),
                format!("--peer-trusted-ca-file={}", file("etcd-ca.crt")),
                format!("--peer-cert-file={}", file("etcd.crt")),
                format!("--peer-key-file={}", file("etcd.key")),
                // A lab's data is thrown away with it: nothing to save from a power cut.
                "--unsafe-no-fsync".into(),
            ],
            address: client,
            probe: Probe::HttpsAs {
                address: local(etcd),
                path: "/health",
                certificate: self.certificates.join("etcd-client.crt"),
                key: self.certificates.join("etcd-client.key"),
            },
        }
    }

    pub fn api_server(&self, programs: &Programs, level: Level) -> Component {
        self.another_api_server(programs, level, "kube-apiserver", self.addresses.api_server, "/registry")
    }

    /// An API server with objects of its own in the same etcd: a second cluster for the price of one process.
    pub fn another_api_server(&self, programs: &Programs, level: Level, name: &str, port: u16, prefix: &str) -> Component {
        let Addresses { host, bind, etcd, .. } = self.addresses;
        let file = |name: &str| self.certificates.join(name).display().to_string();
        let mut arguments = vec![
            format!("--etcd-servers=https://127.0.0.1:{etcd}"),
            format!("--etcd-cafile={}", file("etcd-ca.crt")),
            format!("--etcd-certfile={}", file("etcd-client.crt")),
            format!("--etcd-keyfile={}", file("etcd-client.key")),
            format!("--etcd-prefix={prefix}"),
            format!("--bind-address={bind}"),
            format!("--advertise-address={host}"),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", file("apiserver.crt")),
            format!("--tls-private-key-file={}", file("apiserver.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--kubelet-client-certificate={}", file("kubelet-client.crt")),
            format!("--kubelet-client-key={}", file("kubelet-client.key")),
            format!("--service-cluster-ip-range={SERVICES}"),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
            format!("--service-account-key-file={}", file("service-accounts.pub")),
            format!("--service-account-signing-key-file={}", file("service-accounts.key")),
            "--allow-privileged=true".into(),
            "--profiling=false".into(),
        ];
        if level == Level::Nodes {
            arguments.push("--authorization-mode=Node,RBAC".into());
            arguments.push("--enable-admission-plugins=NodeRestriction".into());
        } else {
            arguments.push("--authorization-mode=RBAC".into());
            // Without kube-controller-manager nobody makes the accounts this plugin waits for.
            arguments.push("--disable-admission-plugins=ServiceAccount".into());
        }
        Component {
            name: name.to_owned(),
            program: programs.path(Program::KubeApiserver).to_owned(),
            arguments,
            address: format!("https://{host}:{port}"),
            probe: Probe::Https { address: local(port), path: "/readyz" },
        }
    }

    /// With every controller at level nodes; below it only those that do not need nodes.
    pub fn controller_manager(&self, programs: &Programs, level: Level) -> Component {
        let port = self.addresses.controller_manager;
        let file = |name: &str| self.certificates.join(name).display().to_string();
        let mut arguments = self.arguments_beside_the_api_server(port);
        if level == Level::Nodes {
            arguments.extend([
                format!("--root-ca-file={}", file("ca.crt")),
                format!("--service-account-private-key-file={}", file("service-accounts.key")),
                format!("--cluster-signing-cert-file={}", file("ca.crt")),
                format!("--cluster-signing-key-file={}", file("ca.key")),
                "--use-service-account-credentials=true".into(),
                // It makes this directory, by default one of the host's.
                format!("--flex-volume-plugin-dir={}", self.volume_plugins.display()),
                // A machine without power is noticed in seconds, as a lab's people wait for it.
                "--node-monitor-period=2s".into(),
                "--node-monitor-grace-period=16s".into(),
            ]);
        } else {
            arguments.push("--controllers=garbage-collector-controller,namespace-controller".into());
        }
        Component {
            name: "kube-controller-manager".to_owned(),
            program: programs.path(Program::KubeControllerManager).to_owned(),
            arguments,
            address: format!("https://127.0.0.1:{port}"),
            probe: Probe::Https { address: local(port), path: "/healthz" },
        }
    }

    /// What controller manager and scheduler have in common: one of each, that nobody but the lab asks.
    fn arguments_beside_the_api_server(&self, port: u16) -> Vec<String> {
        let kubeconfig = self.kubeconfig.display();
        vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--authorization-always-allow-paths=/healthz".into(),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={port}"),
            "--leader-elect=false".into(),
            "--profiling=false".into(),
        ]
    }

    pub fn scheduler(&self, programs: &Programs) -> Component {
        let port = self.addresses.scheduler;
        Component {
            name: "kube-scheduler".to_owned(),
            program: programs.path(Program::KubeScheduler).to_owned(),
            arguments: self.arguments_beside_the_api_server(port),
            address: format!("https://127.0.0.1:{port}"),
            probe: Probe::Https { address: local(port), path: "/healthz" },
        }
    }
}

/// Probes run beside the components, so loopback reaches all of them.
pub(crate) fn local(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}
