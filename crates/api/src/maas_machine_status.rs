//! What is known of a machine: the status of a `MaasMachine`. Cluster API reads parts of it, people the rest.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ProvisioningMode, condition, definitions::leave_description_to_the_field};

/// How many failed attempts are listed; the count goes on.
pub const MAX_ATTEMPTS_KEPT: usize = 20;

/// What is known of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaasMachineStatus {
    /// Whether the machine is deployed and running; read by Cluster API up to 1.10.
    #[serde(default)]
    #[schemars(default)]
    pub ready: bool,
    /// What has been reached once and stays so; read by Cluster API from 1.11.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<MachineInitialization>,
    /// Where the machine is in its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Since when it is in that phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_since: Option<Time>,
    /// When the phase ends at the latest: what takes longer than `spec.provisioning` allows is given up or told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<Time>,
    /// The machine's state in the words of MAAS, such as `Deploying`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_state: Option<String>,
    /// Whether the machine's power is on; missing while MAAS does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_powered: Option<bool>,
    /// The machine's name in MAAS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Whether the machine is in the DNS record of the cluster's endpoint; only told of control planes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_attached: Option<bool>,
    /// The machine's names and addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// The machine's zone in MAAS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// The machine's resource pool in MAAS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_pool: Option<String>,
    /// Whether the machine is metal (`bare-metal`) or a virtual machine (`lxd`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_mode: Option<ProvisioningMode>,
    /// What is deployed on the machine, in the words of MAAS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The last machines that failed, oldest first; at most 20 are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub attempts: Vec<Attempt>,
    /// How many machines failed before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_count: Option<u32>,
    /// Whether it is well and if not, why and what to do; `Ready` is the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::schema")]
    pub conditions: Vec<Condition>,
    /// The name in MAAS of a virtual machine's host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lxd_host: Option<String>,
    /// The LXD project a virtual machine is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lxd_project: Option<String>,
    /// What a virtual machine takes of its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_resource_usage: Option<VmResourceUsage>,
}

/// What has been reached once and stays so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineInitialization {
    /// Whether the machine has been deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// Where a machine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = leave_description_to_the_field)]
pub enum Phase {
    /// Waits for something else, such as bootstrap data.
    Pending,
    /// A free machine is being looked for.
    Allocating,
    /// A machine is ours and nothing runs on it yet.
    Allocated,
    /// The image is being installed.
    Deploying,
    /// The machine runs.
    Deployed,
    /// It was given up, or taken away.
    Failed,
    /// The machine is being given back.
    Releasing,
    /// The machine was given back.
    Released,
}

/// A name or an address of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineAddress {
    /// What it is: `Hostname`, `ExternalIP`, `InternalIP`, `ExternalDNS` or `InternalDNS`.
    #[serde(rename = "type")]
    pub kind: AddressType,
    /// The name or the address.
    #[schemars(length(min = 1, max = 256))]
    pub address: String,
}

/// What an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum AddressType {
    /// The short name.
    Hostname,
    /// An address that others reach.
    #[serde(rename = "ExternalIP")]
    ExternalIp,
    /// An address that the cluster's machines reach.
    #[serde(rename = "InternalIP")]
    InternalIp,
    /// A name that others resolve.
    #[serde(rename = "ExternalDNS")]
    ExternalDns,
    /// A name that the cluster's machines resolve.
    #[serde(rename = "InternalDNS")]
    InternalDns,
}

/// A machine that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// What MAAS calls the machine.
    #[serde(rename = "systemID")]
    pub system_id: String,
    /// The machine's name in MAAS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Why it failed, in the words of MAAS where it said something.
    pub cause: String,
    /// When it failed.
    pub at: Time,
}

/// What a virtual machine takes of its host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VmResourceUsage {
    /// CPU cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_cores: Option<u32>,
    /// Memory in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_memory: Option<u32>,
    /// Disk in GB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_disk: Option<u32>,
}
