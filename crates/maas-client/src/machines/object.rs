//! What MAAS tells of a machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    status::{MachineStatus, PowerState, ScriptStatus},
    storage::BlockDevice,
};
use crate::{
    Domain, Id, Interface, Link, ResourcePool, SystemId, VmHost, Zone,
    units::{MebiBytes, MegaBytes, TimeToLive},
};

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "as many as MAAS has")]
pub struct Machine {
    /// Its id.
    pub system_id: SystemId,
    /// The first label of its name.
    pub hostname: String,
    /// Its whole name.
    pub fqdn: String,
    /// What it is, for people.
    pub description: String,
    /// The id its firmware has.
    pub hardware_uuid: Option<String>,
    /// The domain its name is in.
    pub domain: Domain,
    /// The user whose it is; nothing if it is nobody's.
    pub owner: Option<String>,
    /// What its owner has noted on it; gone when it is released. Its second name `owner_data` is not read.
    pub workload_annotations: BTreeMap<String, String>,

    /// Where it is in its life.
    pub status: MachineStatus,
    /// The same in MAAS's words.
    pub status_name: String,
    /// What MAAS is doing about it.
    pub status_action: Option<String>,
    /// The latest event of level INFO or above.
    pub status_message: Option<String>,
    /// What went wrong last. It stays when the machine is released.
    pub error_description: String,
    /// Whether it is locked: then nothing but unlocking is permitted.
    pub locked: bool,
    /// Whether its next boot is from the network.
    pub netboot: bool,
    /// Whether it has power.
    pub power_state: PowerState,
    /// How its power is switched, such as `ipmi` or `lxd`.
    pub power_type: String,
    /// What it runs, such as `ubuntu`; empty if nothing.
    pub osystem: String,
    /// Which release of it.
    pub distro_series: String,
    /// The kernel it was deployed with.
    pub hwe_kernel: Option<String>,
    /// The oldest kernel it may be deployed with.
    pub min_hwe_kernel: Option<String>,
    /// Whether it runs, or would next run, in memory.
    pub ephemeral_deploy: bool,
    /// Whether it reports changes of its hardware.
    pub enable_hw_sync: bool,
    /// Whether its kernel's crashes are kept.
    pub enable_kernel_crash_dump: bool,
    /// Whether it is a data processing unit.
    pub is_dpu: bool,
    /// What kind of node; 0 is a machine.
    pub node_type: i64,
    /// The same in words.
    pub node_type_name: String,

    /// Such as `amd64/generic`.
    pub architecture: String,
    /// How many threads.
    pub cpu_count: u32,
    /// In MHz.
    pub cpu_speed: u32,
    /// How much memory.
    pub memory: MebiBytes,
    /// The sum of its disks.
    pub storage: MegaBytes,
    /// How much swap it gets; nothing for MAAS's default.
    pub swap_size: Option<i64>,
    /// Such as `uefi`.
    pub bios_boot_method: Option<String>,
    /// Makers, models and serial numbers, as MAAS sends them.
    pub hardware_info: BTreeMap<String, Value>,
    /// Its NUMA nodes.
    pub numanode_set: Vec<NumaNode>,

    /// Its addresses; of a machine that is not deployed those it was seen with.
    pub ip_addresses: Vec<String>,
    /// Its network interfaces.
    pub interface_set: Vec<Interface>,
    /// The one it boots from.
    pub boot_interface: Option<Interface>,
    /// Its gateways.
    pub default_gateways: DefaultGateways,
    /// How long its addresses may be kept by name servers.
    pub address_ttl: Option<TimeToLive>,
    /// Kept by MAAS for old clients.
    pub disable_ipv4: bool,

    /// Its disks, physical and virtual.
    pub blockdevice_set: Vec<BlockDevice>,
    /// The one it boots from.
    pub boot_disk: Option<BlockDevice>,
    /// Volume groups, as MAAS sends them.
    pub volume_groups: Vec<Value>,
    /// RAIDs, as MAAS sends them.
    pub raids: Vec<Value>,
    /// Cache sets, as MAAS sends them.
    pub cache_sets: Vec<Value>,
    /// Bcaches, as MAAS sends them.
    pub bcaches: Vec<Value>,
    /// File systems without a disk, as MAAS sends them.
    pub special_filesystems: Vec<Value>,

    /// Its physical zone.
    pub zone: Zone,
    /// Its resource pool.
    pub pool: ResourcePool,
    /// The VM host it runs on, if it is a VM.
    pub pod: Option<Host>,
    /// The machine it runs on, if it is a VM.
    pub parent: Option<Parent>,
    /// Its number as a VM.
    pub virtualmachine_id: Option<i64>,
    /// Its tags.
    pub tag_names: Vec<String>,

    /// The scripts it was commissioned with.
    pub current_commissioning_result_id: Option<i64>,
    /// Those it was installed with.
    pub current_installation_result_id: Option<i64>,
    /// Those it was tested with.
    pub current_testing_result_id: Option<i64>,
    /// How commissioning ended.
    pub commissioning_status: ScriptStatus,
    /// The same in words.
    pub commissioning_status_name: String,
    /// How all tests ended.
    pub testing_status: ScriptStatus,
    /// The same in words.
    pub testing_status_name: String,
    /// How tests of the processor ended.
    pub cpu_test_status: ScriptStatus,
    /// The same in words.
    pub cpu_test_status_name: String,
    /// How tests of memory ended.
    pub memory_test_status: ScriptStatus,
    /// The same in words.
    pub memory_test_status_name: String,
    /// How tests of disks ended.
    pub storage_test_status: ScriptStatus,
    /// The same in words.
    pub storage_test_status_name: String,
    /// How tests of the network ended.
    pub network_test_status: ScriptStatus,
    /// The same in words.
    pub network_test_status_name: String,
    /// How tests of interfaces ended.
    pub interface_test_status: ScriptStatus,
    /// The same in words.
    pub interface_test_status_name: String,
    /// How other tests ended.
    pub other_test_status: ScriptStatus,
    /// The same in words.
    pub other_test_status_name: String,

    /// When its hardware was last reported.
    pub last_sync: Option<String>,
    /// When it will be next.
    pub next_sync: Option<String>,
    /// Seconds in between.
    pub sync_interval: Option<i64>,

    /// Which disks and interfaces met the constraints; only in the answer of allocate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints_by_type: Option<ConstraintMatches>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct NumaNode {
    /// Its number within the machine.
    pub index: i64,
    /// Its memory.
    pub memory: MebiBytes,
    /// Its threads, by number.
    pub cores: Vec<i64>,
    /// Its huge pages, as MAAS sends them.
    pub hugepages_set: Vec<Value>,
}

/// A machine's gateways.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DefaultGateways {
    /// That of IPv4.
    pub ipv4: Gateway,
    /// That of IPv6.
    pub ipv6: Gateway,
}

/// A gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Gateway {
    /// Its address; nothing if there is none.
    pub gateway_ip: Option<String>,
    /// The link it was chosen by; nothing if MAAS chose it.
    pub link_id: Option<Id<Link>>,
}

/// The VM host of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Host {
    /// Its number.
    pub id: Id<VmHost>,
    /// Its name.
    pub name: String,
    /// Its address in the API.
    pub resource_uri: String,
}

/// The machine a VM runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Parent {
    /// Its id.
    pub system_id: SystemId,
    /// MAAS's note that this is not all it knows.
    #[serde(rename = "__incomplete__")]
    pub incomplete: bool,
    /// Its address in the API.
    pub resource_uri: String,
}

/// Which disks and interfaces met the constraints of an allocation, by the label they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ConstraintMatches {
    /// Disks by number; partitions as `partition:7`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: BTreeMap<String, Vec<Value>>,
    /// Interfaces by number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interfaces: BTreeMap<String, Vec<Id<Interface>>>,
    /// What other machines would have matched, as MAAS sends it; only if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbose_storage: Option<Value>,
    /// The same for interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbose_interfaces: Option<Value>,
}
