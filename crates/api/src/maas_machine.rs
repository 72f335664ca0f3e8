//! `MaasMachine`: one machine of MAAS for one Machine of Cluster API. What its two spellings mean is in `machine_wishes`.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{
    Erase, Lxd, LxdConfig, MaasMachineStatus, NetworkInterface, Provisioning, ProvisioningMode, StaticIp, Swap, number::bounded,
    text::given,
};

/// Which machine of MAAS is wanted and what becomes of it.
//
// Rules about changes stand at the kind and not here, where they would also hold for templates: those are compared by changing them in dry
// runs, which only the admission policy can tell from real changes.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "MaasMachine",
    namespaced,
    status = "MaasMachineStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    shortname = "maasm",
    doc = "A machine of MAAS that runs a node of a cluster. Made by Cluster API for every Machine, from a MaasMachineTemplate.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".metadata.labels.cluster\\.x-k8s\\.io/cluster-name", description = "The Cluster it belongs to"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "Where it is in its life"),
    printcolumn(name = "Machine", type_ = "string", json_path = ".status.hostname", description = "The machine's name in MAAS"),
    printcolumn(name = "Zone", type_ = "string", json_path = ".status.failureDomain", description = "The machine's zone in MAAS"),
    printcolumn(name = "Pool", type_ = "string", json_path = ".status.resourcePool", description = "The machine's resource pool in MAAS"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".status.provisioningMode", description = "Metal or a virtual machine"),
    printcolumn(name = "Address", type_ = "string", json_path = ".status.addresses[?(@.type==\"InternalIP\")].address", description = "Its first address"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "Why it is ready or not"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Since when it exists"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image", description = "What is deployed", priority = 1),
    printcolumn(name = "Attempts", type_ = "integer", json_path = ".status.attemptCount", description = "How many machines failed before", priority = 1),
    printcolumn(name = "Expected End", type_ = "string", json_path = ".status.expectedEnd", description = "When its phase ends at the latest", priority = 1),
    printcolumn(name = "Provider ID", type_ = "string", json_path = ".spec.providerID", description = "Its identity for Kubernetes", priority = 1),
    printcolumn(name = "Paused", type_ = "string", json_path = ".status.conditions[?(@.type==\"Paused\")].status", description = "Whether it is left alone", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", description = "What is in the way, and what to do", priority = 1),
    validation = Rule::new("self.spec.image == oldSelf.spec.image")
        .message("image cannot be changed: make a new MaasMachineTemplate, and Cluster API replaces the machines")
        .field_path(".spec.image"),
    validation = Rule::new("(has(self.spec.minCPU) ? self.spec.minCPU : has(self.spec.minCpu) ? self.spec.minCpu : 0) == (has(oldSelf.spec.minCPU) ? oldSelf.spec.minCPU : has(oldSelf.spec.minCpu) ? oldSelf.spec.minCpu : 0)")
        .message("minCPU cannot be changed: make a new MaasMachineTemplate, and Cluster API replaces the machines")
        .field_path(".spec.minCPU"),
    validation = Rule::new("(has(self.spec.minMemory) ? self.spec.minMemory : has(self.spec.minMemoryInMB) ? self.spec.minMemoryInMB : 0) == (has(oldSelf.spec.minMemory) ? oldSelf.spec.minMemory : has(oldSelf.spec.minMemoryInMB) ? oldSelf.spec.minMemoryInMB : 0)")
        .message("minMemory cannot be changed: make a new MaasMachineTemplate, and Cluster API replaces the machines")
        .field_path(".spec.minMemory"),
    validation = Rule::new("!has(oldSelf.spec.providerID) || !oldSelf.spec.providerID.matches('^maas(-lxd)?:///?([^/]*/)?[a-zA-Z0-9]+$') || (has(self.spec.providerID) && self.spec.providerID == oldSelf.spec.providerID)")
        .message("providerID cannot be changed once it is set: delete the Machine to get another one")
        .field_path(".spec.providerID"),
    validation = Rule::new("!has(oldSelf.spec.providerID) || oldSelf.spec.providerID == '' || !has(oldSelf.spec.systemID) || oldSelf.spec.systemID == '' || (has(self.spec.systemID) && self.spec.systemID == oldSelf.spec.systemID)")
        .message("systemID cannot be changed once providerID is set: delete the Machine to get another one")
        .field_path(".spec.systemID"),
    validation = Rule::new("!has(oldSelf.spec.systemID) || oldSelf.spec.systemID == '' || ((has(self.spec.provisioningMode) && self.spec.provisioningMode == 'lxd') || (has(self.spec.lxd) && has(self.spec.lxd.enabled) && self.spec.lxd.enabled)) == ((has(oldSelf.spec.provisioningMode) && oldSelf.spec.provisioningMode == 'lxd') || (has(oldSelf.spec.lxd) && has(oldSelf.spec.lxd.enabled) && oldSelf.spec.lxd.enabled))")
        .message("metal does not become a virtual machine, nor the other way: make a new MaasMachineTemplate, and Cluster API replaces the machines")
        .field_path(".spec.provisioningMode")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.minCPU) || has(self.minCpu)").message("minCPU is missing: give the number of CPU cores the machine has at least"),
    validation = Rule::new("!has(self.minCPU) || !has(self.minCpu) || self.minCPU == self.minCpu")
        .message("minCPU and minCpu are two spellings of one setting and differ: remove minCpu"),
    validation = Rule::new("has(self.minMemory) || has(self.minMemoryInMB)").message("minMemory is missing: give the MiB of memory the machine has at least"),
    validation = Rule::new("!has(self.minMemory) || !has(self.minMemoryInMB) || self.minMemory == self.minMemoryInMB")
        .message("minMemory and minMemoryInMB are two spellings of one setting and differ: remove minMemoryInMB"),
    validation = Rule::new("!has(self.deployInMemory) || !has(self.ephemeral) || self.deployInMemory == self.ephemeral")
        .message("deployInMemory and ephemeral are two spellings of one setting and differ: remove ephemeral"),
    validation = Rule::new("!has(self.provisioningMode) || !has(self.lxd) || !has(self.lxd.enabled) || (self.provisioningMode == 'lxd') == self.lxd.enabled")
        .message("provisioningMode and lxd.enabled contradict each other: remove lxd.enabled, or set provisioningMode to the same"),
    validation = Rule::new("!has(self.lxdConfig) || (has(self.provisioningMode) && self.provisioningMode == 'lxd') || (has(self.lxd) && has(self.lxd.enabled) && self.lxd.enabled)")
        .message("lxdConfig is only used for virtual machines: set provisioningMode to lxd, or remove lxdConfig"),
    validation = Rule::new("!has(self.lxdConfig) || !has(self.lxdConfig.storage) || !has(self.lxdConfig.storage.size) || self.lxdConfig.storage.size == '' || !has(self.lxd) || !has(self.lxd.vmConfig) || !has(self.lxd.vmConfig.diskSize) || (self.lxdConfig.storage.size.matches('^[0-9]+(G|GB)?$') && int(self.lxdConfig.storage.size.find('[0-9]+')) == self.lxd.vmConfig.diskSize)")
        .message("lxdConfig.storage.size and lxd.vmConfig.diskSize are two spellings of one setting and differ: remove one of them"),
    validation = Rule::new("!has(self.lxdConfig) || !has(self.lxdConfig.storage) || !has(self.lxdConfig.storage.pool) || self.lxdConfig.storage.pool == '' || !has(self.lxd) || !has(self.lxd.vmConfig) || !has(self.lxd.vmConfig.storagePool) || self.lxd.vmConfig.storagePool == '' || self.lxdConfig.storage.pool == self.lxd.vmConfig.storagePool")
        .message("lxdConfig.storage.pool and lxd.vmConfig.storagePool are two spellings of one setting and differ: remove one of them"),
    validation = Rule::new("!((has(self.deployInMemory) && self.deployInMemory) || (has(self.ephemeral) && self.ephemeral)) || !((has(self.provisioningMode) && self.provisioningMode == 'lxd') || (has(self.lxd) && has(self.lxd.enabled) && self.lxd.enabled))")
        .message("virtual machines cannot be deployed in memory: remove deployInMemory, or choose metal")
)]
pub struct MaasMachineSpec {
    /// The zone of MAAS to take a machine from. Cluster API's own choice on the Machine wins over it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 256))]
    pub failure_domain: Option<String>,
    /// What MAAS calls the machine. Written when a machine was allocated; giving it beforehand asks for exactly this machine.
    #[serde(rename = "systemID", default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 64))]
    pub system_id: Option<String>,
    /// What MAAS calls the host of a virtual machine.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 64))]
    pub parent: Option<String>,
    /// The machine's identity for Kubernetes, `maas:///<zone>/<system_id>`; the node carries the same. Written once, when the machine is ready.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 512))]
    pub provider_id: Option<String>,
    /// The resource pool of MAAS to take a machine from; any pool the MAAS user may use if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 256))]
    pub resource_pool: Option<String>,
    /// The number of CPU cores the machine has at least; 0 if it does not matter. Cannot be changed later.
    #[serde(rename = "minCPU", default, skip_serializing_if = "Option::is_none", deserialize_with = "bounded")]
    pub min_cpu: Option<u32>,
    /// Another spelling of `minCPU`.
    #[serde(rename = "minCpu", default, skip_serializing_if = "Option::is_none", deserialize_with = "bounded")]
    pub min_cpu_alias: Option<u32>,
    /// The memory the machine has at least, in MiB; 0 if it does not matter. Cannot be changed later.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "bounded")]
    pub min_memory: Option<u32>,
    /// Another spelling of `minMemory`, also in MiB.
    #[serde(rename = "minMemoryInMB", default, skip_serializing_if = "Option::is_none", deserialize_with = "bounded")]
    pub min_memory_in_mb: Option<u32>,
    /// The size of the disk the machine has at least, in GB. On metal it is the disk the image is written to.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "bounded")]
    pub min_disk_size: Option<u32>,
    /// Tags of MAAS; the machine has all of them. For a virtual machine its host has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub tags: Vec<String>,
    /// Tags of MAAS; the machine has none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub not_tags: Vec<String>,
    /// The machine's architecture, such as `amd64/generic` or `arm64`; any if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 63))]
    pub architecture: Option<String>,
    /// What is deployed, `<operating system>/<release>` such as `ubuntu/noble`, or the name of a custom image. It must have been imported or
    /// uploaded to MAAS. Cannot be changed later.
    #[schemars(length(min = 1, max = 253))]
    pub image: String,
    /// Whether the image runs from memory and the disks are left alone; false if not given. Needs MAAS 3.5.10, 3.6.3, 3.7.1 or newer, and at least
    /// 16 GiB of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy_in_memory: Option<bool>,
    /// Another spelling of `deployInMemory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// The kernel to deploy, such as `hwe-24.04` or `ga-24.04`; the image's own if not given. Only Ubuntu has a choice.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 64))]
    pub hwe_kernel: Option<String>,
    /// Whether the machine goes on to tell MAAS of changes of its hardware; false if not given. Needs MAAS 3.2 and an Ubuntu image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_sync: Option<bool>,
    /// A storage constraint in the words of MAAS, such as `root:200(ssd),1000(hdd)`. Passed on as it is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 2048))]
    pub storage: Option<String>,
    /// A constraint on network interfaces in the words of MAAS, such as `eth0:space=rack,fabric=fabric-1`. Passed on as it is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 2048))]
    pub interfaces: Option<String>,
    /// One fixed address for the machine. Needs the right to configure machines in MAAS.
    #[serde(rename = "staticIP", skip_serializing_if = "Option::is_none")]
    pub static_ip: Option<StaticIp>,
    /// How network interfaces are connected, for those that should not stay as MAAS has them. Needs the right to configure machines in MAAS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub network_interfaces: Vec<NetworkInterface>,
    /// Whether the machine gets swap. `Off` if not given: no swap, as kubelet wants it, where the MAAS user has the right to say so. `Keep`: whatever
    /// MAAS does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<Swap>,
    /// What happens to the disks when the machine is given back. `None`: what MAAS's own setting says; the default. `Quick`: beginning and end of
    /// each disk are overwritten. `Secure`: the disks' own secure erase. `Full`: secure erase where a disk has it, else every block is overwritten,
    /// which takes hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase: Option<Erase>,
    /// How hard it is tried to bring up a machine: attempts and deadlines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<Provisioning>,
    /// Whether the machine is metal (`bare-metal`, also `baremetal`) or a virtual machine of an LXD host (`lxd`). If not given, any free machine of
    /// MAAS serves, also a virtual one that is already there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_mode: Option<ProvisioningMode>,
    /// A virtual machine, as older manifests describe it; `provisioningMode` and `lxdConfig` say the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lxd: Option<Lxd>,
    /// How the virtual machine is made, with `provisioningMode: lxd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lxd_config: Option<LxdConfig>,
}
