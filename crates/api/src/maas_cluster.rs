//! `MaasCluster`: what the machines of one cluster share, first of all the address of its API server.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApiEndpoint, ClusterLxdConfig, EndpointMode, EndpointSettings, FailureDomains, condition};

/// What the machines of one cluster share.
//
// Rules about changes stand at the kind and not here, where they would also hold for templates.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "MaasCluster",
    namespaced,
    status = "MaasClusterStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    shortname = "maasc",
    doc = "What the machines of one cluster share in MAAS: the address of its API server, zones, credentials.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".metadata.labels.cluster\\.x-k8s\\.io/cluster-name", description = "The Cluster it belongs to"),
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".spec.controlPlaneEndpoint.host", description = "Where the API server is reached"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status", description = "Whether all is well"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "Why it is ready or not"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Since when it exists"),
    printcolumn(name = "Port", type_ = "integer", json_path = ".spec.controlPlaneEndpoint.port", description = "The port of the API server", priority = 1),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.endpoint.mode", description = "How the address comes to be", priority = 1),
    printcolumn(name = "Domain", type_ = "string", json_path = ".spec.dnsDomain", description = "The DNS domain in MAAS", priority = 1),
    printcolumn(name = "Paused", type_ = "string", json_path = ".status.conditions[?(@.type==\"Paused\")].status", description = "Whether it is left alone", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", description = "What is in the way, and what to do", priority = 1),
    validation = Rule::new("self.spec.dnsDomain == oldSelf.spec.dnsDomain")
        .message("dnsDomain cannot be changed: the names in certificates and kubeconfigs are made of it, so make a new cluster")
        .field_path(".spec.dnsDomain"),
    validation = Rule::new("!has(oldSelf.spec.controlPlaneEndpoint) || !has(oldSelf.spec.controlPlaneEndpoint.host) || oldSelf.spec.controlPlaneEndpoint.host == '' || (has(self.spec.controlPlaneEndpoint) && has(self.spec.controlPlaneEndpoint.host) && self.spec.controlPlaneEndpoint.host == oldSelf.spec.controlPlaneEndpoint.host)")
        .message("controlPlaneEndpoint.host cannot be changed once it is set: certificates and kubeconfigs name it, so make a new cluster")
        .field_path(".spec.controlPlaneEndpoint"),
    validation = Rule::new("!has(oldSelf.spec.controlPlaneEndpoint) || !has(oldSelf.spec.controlPlaneEndpoint.host) || oldSelf.spec.controlPlaneEndpoint.host == '' || (has(self.spec.endpoint) && has(self.spec.endpoint.mode) ? self.spec.endpoint.mode : 'DNS') == (has(oldSelf.spec.endpoint) && has(oldSelf.spec.endpoint.mode) ? oldSelf.spec.endpoint.mode : 'DNS')")
        .message("endpoint.mode cannot be changed once controlPlaneEndpoint.host is set: the host was made by it and would be kept by nobody, so make a new cluster")
        .field_path(".spec.endpoint")
)]
#[serde(rename_all = "camelCase")]
pub struct MaasClusterSpec {
    /// The DNS domain of MAAS in which the API server gets its name. It must exist in MAAS. Cannot be changed later.
    //
    // No stricter than MAAS is with its domains: clusters of the Go provider must stay valid where they are moved to.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?([.][A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*[.]?$')")
        .message("dnsDomain is not a name in DNS: give a domain that MAAS has, for example maas"))]
    pub dns_domain: String,
    /// Where the API server is reached. Written when it is known; giving it beforehand asks for exactly this name. What others have
    /// in a record of that name stays there, and a name of another MaasCluster is refused. With the annotation
    /// `spectrocloud.com/custom-dns-provided` it is somebody else's and MAAS's DNS is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "ApiEndpoint::given")]
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// The zones of MAAS that machines are spread over; all zones with machines if not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub failure_domains: Vec<String>,
    /// How the machines of this cluster become LXD hosts of MAAS, if they should.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lxd_config: Option<ClusterLxdConfig>,
    /// Whose credentials are used with MAAS; those of the namespace or of the whole provider if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<IdentityRef>,
    /// How the address of the API server comes to be; a name in MAAS's DNS if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointSettings>,
}

impl MaasClusterSpec {
    /// Seconds that name servers may keep the record when nothing is said.
    pub const DEFAULT_TIME_TO_LIVE: u32 = 10;

    /// How the address of the API server comes to be.
    pub fn endpoint_mode(&self) -> EndpointMode {
        self.endpoint.as_ref().and_then(|endpoint| endpoint.mode).unwrap_or_default()
    }

    /// Seconds that name servers may keep the record of the endpoint.
    pub fn time_to_live(&self) -> u32 {
        self.endpoint.as_ref().and_then(|endpoint| endpoint.time_to_live).unwrap_or(Self::DEFAULT_TIME_TO_LIVE)
    }

    /// The API server's host, once it is known or given.
    pub fn endpoint_host(&self) -> Option<&str> {
        self.control_plane_endpoint.as_ref()?.host.as_deref()
    }

    /// Whether machines of the cluster become LXD hosts.
    pub fn hosts_virtual_machines(&self) -> bool {
        self.lxd_config.as_ref().and_then(|lxd| lxd.enabled).unwrap_or_default()
    }
}

/// Whose credentials are used with MAAS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityRef {
    /// `Secret`, the only kind there is.
    pub kind: IdentityKind,
    /// Name of a Secret in the same namespace, with the keys `MAAS_ENDPOINT` and `MAAS_API_KEY`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What holds credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IdentityKind {
    /// A Secret of the same namespace.
    Secret,
}

/// What is known of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaasClusterStatus {
    /// Whether machines can be made; read by Cluster API up to 1.10.
    #[serde(default)]
    #[schemars(default)]
    pub ready: bool,
    /// What has been reached once and stays so; read by Cluster API from 1.11.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<ClusterInitialization>,
    /// What the cluster has in MAAS's network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<ClusterNetworkStatus>,
    /// The zones of MAAS machines may be in, as the version of Cluster API wants it: a list of objects with `name`, or a map by name.
    #[serde(default, skip_serializing_if = "FailureDomains::is_empty")]
    pub failure_domains: FailureDomains,
    /// Whether it is well and if not, why and what to do; `Ready` is the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::schema")]
    pub conditions: Vec<Condition>,
}

/// What has been reached once and stays so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterInitialization {
    /// Whether the endpoint is known and machines can be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// What a cluster has in MAAS's network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetworkStatus {
    /// The API server's name in MAAS's DNS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_name: Option<String>,
    /// The address that is reserved in MAAS for the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_address: Option<String>,
    /// The addresses of control-plane machines that the DNS name leads to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub addresses: Vec<String>,
}
