//! How a machine becomes a node of the management cluster: a user-data with the kubelet's and kube-proxy's credentials, made for
//! that machine.

use std::path::Path;

use serde_json::json;

use crate::{
    LabError,
    control_plane::{ControlPlane, local},
    kubeconfig,
    network::GATEWAY,
    pki::Credentials,
    private_file::write_private,
    probe::Probe,
    process::Component,
};

/// The address of the cluster's DNS.
pub(super) const CLUSTER_DNS: &str = "10.96.0.10";
const PROXY_USER: &str = "system:kube-proxy";
const PROXY_HEALTH: u16 = 10_256;

const PROXY_UNIT: &str = "[Unit]
Description=kube-proxy
After=network-online.target

[Service]
ExecStart=/usr/lib/metalshift/kube-proxy --config=/etc/kubernetes/kube-proxy.yaml
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
";

/// What all nodes need to know of the cluster.
pub(super) struct Join {
    server: String,
    authority: String,
    issue: Issuer,
    proxy: Credentials,
}

/// Signs a node's certificate; shared with the control plane that made it.
type Issuer = std::sync::Arc<crate::pki::Authority>;

impl Join {
    pub fn prepare(control_plane: &ControlPlane) -> Result<Self, LabError> {
        let issue = std::sync::Arc::clone(&control_plane.authority);
        let proxy = issue.client(PROXY_USER, "system:node-proxiers")?;
        Ok(Self { server: control_plane.server(), authority: issue.certificate(), issue, proxy })
    }

    /// Applied by cloud-init on the machine's first boot.
    pub fn user_data(&self, machine: &str) -> Result<String, LabError> {
        let node = format!("system:node:{machine}");
        let credentials = self.issue.client(&node, "system:nodes")?;
        let file =
            |path: &str, content: &str, mode: &str| json!({"path": path, "content": content, "permissions": mode, "owner": "root:root"});
        let document = json!({
            "write_files": [
                file("/etc/kubernetes/pki/ca.crt", &self.authority, "0644"),
                file("/etc/kubernetes/kubelet.conf", &kubeconfig::render("lab", &self.server, &self.authority, &node, &credentials), "0600"),
                file("/var/lib/kubelet/config.yaml", &kubelet_configuration(), "0644"),
                file("/etc/kubernetes/kube-proxy.conf", &self.proxy_kubeconfig(), "0600"),
                file("/etc/kubernetes/kube-proxy.yaml", &proxy_configuration("/etc/kubernetes/kube-proxy.conf", machine), "0644"),
                file("/etc/systemd/system/kube-proxy.service", PROXY_UNIT, "0644"),
            ],
            "runcmd": [
                ["systemctl", "daemon-reload"],
                ["systemctl", "enable", "--now", "kube-proxy.service"],
                ["systemctl", "restart", "kubelet.service"],
            ],
        });
        Ok(format!("#cloud-config\n{document:#}\n"))
    }

    /// Processes beside the control plane reach services too: the API server calls webhooks by their cluster addresses. No kubelet
    /// runs there, and kube-proxy wants the name of a node: it takes the management node's.
    pub fn proxy_beside_the_control_plane(&self, program: &Path, certificates: &Path) -> Result<Component, LabError> {
        let (kubeconfig, configuration) = (certificates.join("kube-proxy.kubeconfig"), certificates.join("kube-proxy.yaml"));
        write_private(&kubeconfig, self.proxy_kubeconfig())?;
        write_private(&configuration, proxy_configuration(&kubeconfig.display().to_string(), super::MANAGEMENT))?;
        Ok(Component {
            name: "kube-proxy".to_owned(),
            program: program.to_owned(),
            arguments: vec![format!("--config={}", configuration.display())],
            address: format!("http://{GATEWAY}:{PROXY_HEALTH}"),
            probe: Probe::Http { address: local(PROXY_HEALTH), path: "/livez" },
        })
    }

    fn proxy_kubeconfig(&self) -> String {
        kubeconfig::render("lab", &self.server, &self.authority, PROXY_USER, &self.proxy)
    }
}

fn kubelet_configuration() -> String {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false}, "webhook": {"enabled": true}, "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDNS": [CLUSTER_DNS],
        "clusterDomain": "cluster.local",
        "rotateCertificates": false,
        // People of a lab wait for a node to be noticed.
        "nodeStatusUpdateFrequency": "2s",
    })
    .to_string()
}

fn proxy_configuration(kubeconfig: &str, node: &str) -> String {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": node,
        "clientConnection": {"kubeconfig": kubeconfig},
        "clusterCIDR": "10.244.0.0/14",
        // A network namespace may read the host's limits but not set them.
        "conntrack": {"maxPerCore": 0},
    })
    .to_string()
}
