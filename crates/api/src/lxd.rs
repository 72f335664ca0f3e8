//! What a manifest can say about LXD, in both spellings: the Go provider's (`lxd`) and `lxdConfig`. Used by the specs, which join them.

use std::{borrow::Cow, collections::BTreeMap};

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{LinkMode, definitions::leave_description_to_the_field, number::bounded, text::given};

/// Whether a machine is metal or a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProvisioningMode {
    /// A physical machine.
    #[serde(rename = "bare-metal", alias = "baremetal")]
    BareMetal,
    /// A virtual machine of an LXD host.
    #[serde(rename = "lxd")]
    Lxd,
}

// Written out, since a derive would not offer the second spelling.
impl JsonSchema for ProvisioningMode {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ProvisioningMode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["bare-metal", "baremetal", "lxd"]})
    }
}

/// A virtual machine, in the Go provider's words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lxd {
    /// Whether the machine is a virtual machine on an LXD host of MAAS instead of a physical machine. `provisioningMode: lxd` says the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How the virtual machine is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_config: Option<VmConfig>,
}

/// How a virtual machine is made, in the Go provider's words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct VmConfig {
    /// Size of the disk in GB; 60 if not given. The larger of this and `minDiskSize` counts.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "bounded")]
    pub disk_size: Option<u32>,
    /// The host's storage pool for the disk; the host's default pool if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 253))]
    pub storage_pool: Option<String>,
    /// Subnets of MAAS, by name or CIDR with commas between them: one network interface for each, in this order.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 2048))]
    pub network: Option<String>,
    /// How each interface (`eth0`, `eth1`, …) gets its address: `auto`, `dhcp`, `static` or `link_up`. If not given, `auto` for `eth0` and `dhcp` for
    /// the others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub interface_link_modes: BTreeMap<String, LinkMode>,
    /// Whether the host starts the virtual machine when the host itself starts; true if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_start: Option<bool>,
}

/// How a virtual machine is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LxdConfig {
    /// LXD profile of the virtual machine; it must exist in the project on every host that may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 253))]
    pub profile: Option<String>,
    /// The virtual machine's disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<LxdStorage>,
    /// The virtual machine's network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<LxdNetwork>,
    /// The VM host to use, by its name in MAAS; if not given, the best one is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 253))]
    pub vm_host: Option<String>,
    /// LXD project for the virtual machine; if not given, the one MAAS has for the host.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 253))]
    pub project: Option<String>,
}

/// The disk of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LxdStorage {
    /// Size of the disk: a number of GB, also written `60GB`, `60Gi` or `2TB`. The larger of this and `minDiskSize` counts.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 16), regex(pattern = "^([1-9][0-9]{0,6}(G|GB|Gi|GiB|T|TB|Ti|TiB)?)?$"))]
    pub size: Option<String>,
    /// The host's storage pool for the disk; the host's default pool if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 253))]
    pub pool: Option<String>,
}

/// The network of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LxdNetwork {
    /// The host's bridge the first interface is connected to; the host's own choice if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 63))]
    pub bridge: Option<String>,
    /// Further bridges or devices of the host, one interface for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 63)))]
    pub devices: Vec<String>,
}

/// How the machines of a cluster become LXD hosts of MAAS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterLxdConfig {
    /// Whether the machines of this cluster become LXD hosts in which MAAS can make virtual machines. Needs an administrator's key of MAAS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Resource pool of MAAS for the hosts; the machine's own if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 256))]
    pub resource_pool: Option<String>,
    /// Zone of MAAS for the hosts; the machine's own if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 256))]
    pub zone: Option<String>,
    /// Driver of the hosts' storage pool, such as `zfs`, `dir`, `lvm` or `btrfs`; `zfs` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 32))]
    pub storage_backend: Option<String>,
    /// Size of the hosts' storage pool in GB; `50` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 16))]
    pub storage_size: Option<String>,
    /// How virtual machines are connected to the host's network: `bridge` or `macvlan`; `bridge` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic_type: Option<NicType>,
    /// The host's interface that virtual machines are connected to; the one it boots from if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 63))]
    pub nic_parent: Option<String>,
    /// Name of the bridge on the host; `br0` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 63))]
    pub network_bridge: Option<String>,
    /// Whether an existing network of LXD is left as it is; true if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_network_update: Option<bool>,
}

/// How virtual machines are connected to their host's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = leave_description_to_the_field)]
pub enum NicType {
    /// Through a bridge.
    Bridge,
    /// By an address of their own on the host's interface.
    Macvlan,
}
