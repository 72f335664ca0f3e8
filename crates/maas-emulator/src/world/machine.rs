//! A machine: what MAAS's database knows of it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::dns::Domain;
use super::id::Id;
use super::network::{Address, Interface};
use super::people::User;
use super::place::{Pool, Tag, Zone};
use super::status::Status;
use super::storage::{Disk, VolumeGroup};
use super::vm_host::VmHost;

/// A node: a machine, or the rack controller that stands in the same table.
#[expect(clippy::struct_excessive_bools, reason = "columns of a row, independent of each other")]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// Its row, seen only in verbose allocations.
    pub id: Id<Machine>,
    /// Machine or rack controller.
    pub kind: NodeKind,
    /// What everybody calls it by.
    pub system_id: String,
    /// Its host name.
    pub hostname: String,
    /// A remark.
    pub description: String,
    /// Its domain.
    pub domain: Id<Domain>,
    /// Its zone.
    pub zone: Id<Zone>,
    /// Its resource pool.
    pub pool: Id<Pool>,
    /// `amd64/generic`.
    pub architecture: String,
    /// Cores.
    pub cpu_count: u32,
    /// Clock of the cores in MHz.
    pub cpu_speed: u32,
    /// Memory in MiB.
    pub memory: u64,
    /// Swap file size in bytes.
    pub swap_size: Option<u64>,
    /// `uefi`, `pxe`; none when MAAS does not know.
    pub bios_boot_method: Option<String>,
    /// Its state.
    pub status: Status,
    /// The state before the present one, for those that return.
    pub previous_status: Status,
    /// Who owns it.
    pub owner: Option<Id<User>>,
    /// The agent name it was acquired with.
    pub agent_name: String,
    /// Its workload annotations.
    pub annotations: BTreeMap<String, String>,
    /// Locked against changes.
    pub locked: bool,
    /// Why it is in a failed state; stays until it is cleared.
    pub error_description: String,
    /// How its power is switched.
    pub power_type: String,
    /// What the driver wants to know.
    pub power_parameters: BTreeMap<String, String>,
    /// The number of its BMC; composed machines have that of their host.
    pub bmc: Option<u32>,
    /// The power MAAS believes in.
    pub power_state: PowerState,
    /// The power there is.
    pub powered: bool,
    /// What runs, or is being installed.
    pub osystem: String,
    /// Which release of it.
    pub distro_series: String,
    /// Which kernel.
    pub hwe_kernel: Option<String>,
    /// The oldest kernel it works with.
    pub min_hwe_kernel: Option<String>,
    /// Whether the next boot is from the network.
    pub netboot: bool,
    /// Deployed to memory.
    pub ephemeral_deploy: bool,
    /// Hardware sync asked for at deployment.
    pub enable_hw_sync: bool,
    /// When it last reported its hardware.
    pub last_sync: Option<Timestamp>,
    /// Kernel crash dumps asked for at deployment.
    pub enable_kernel_crash_dump: bool,
    /// VM hosts to register once deployed.
    pub register_as: Vec<String>,
    /// What it boots with, as the caller sent it.
    pub user_data: Option<Vec<u8>>,
    /// Its interfaces in order.
    pub interfaces: Vec<Id<Interface>>,
    /// The interface it boots from.
    pub boot_interface: Option<Id<Interface>>,
    /// Its disks in order.
    pub disks: Vec<Disk>,
    /// Its volume groups.
    pub volume_groups: Vec<VolumeGroup>,
    /// File systems without a disk.
    pub special_filesystems: Vec<super::storage::Filesystem>,
    /// Whether its file systems were taken over at acquisition; gone when its release begins.
    pub acquired_storage: bool,
    /// What MAAS was doing when the latest event of level INFO or above was written.
    pub status_action: Option<String>,
    /// Its tags, in the order of their ids.
    pub tags: BTreeSet<Id<Tag>>,
    /// What MAAS found out about the hardware.
    pub hardware_info: BTreeMap<String, String>,
    /// The hardware's own UUID.
    pub hardware_uuid: Option<String>,
    /// Devices on its buses.
    pub devices: Vec<BTreeMap<String, String>>,
    /// The NUMA nodes MAAS found; none before commissioning unless composed.
    pub has_numa: bool,
    /// The VM host it was composed on.
    pub vm_host: Option<Id<VmHost>>,
    /// The number of its virtual machine on that host.
    pub virtual_machine: Option<u32>,
    /// Composed by an allocation: deleted when released.
    pub dynamic: bool,
    /// Cores it is pinned to, when composed so.
    pub pinned_cores: Vec<u32>,
    /// Latest set of commissioning results.
    pub commissioning: ScriptSet,
    /// Latest set of testing results.
    pub testing: ScriptSet,
    /// Latest set of installation results.
    pub installation: ScriptSet,
    /// Latest set of release results.
    pub release_scripts: Option<ScriptSet>,
    /// Status of the storage tests on their own.
    pub storage_tests: ScriptStatus,
    /// Latest event of level INFO or above, as `status_message` shows it.
    pub status_message: Option<String>,
    /// The order the hardware works on; reports of earlier ones are stale.
    pub boot: u64,
    /// When the present state began.
    pub since: Timestamp,
    /// It told of itself, and is New when commissioning ends.
    #[serde(default)]
    pub enlisting: bool,
    /// Erase the disks before release ends.
    pub erase_options: Option<EraseOptions>,
    /// What its power is being switched to, until the hardware reports.
    #[serde(default)]
    pub switching: Option<Switching>,
    /// Somebody stopped what it is doing, which ends when its power is off.
    #[serde(default)]
    pub aborting: bool,
    /// The links whose gateways lead out, one a family, where somebody chose them.
    #[serde(default)]
    pub gateway_links: Vec<Id<Address>>,
    /// Time to live of its own DNS names, in seconds.
    pub address_ttl: Option<u32>,
}

/// A machine's power on its way.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Switching {
    /// To on, or to off.
    pub on: bool,
    /// Since when.
    pub since: Timestamp,
}

/// How disks are to be erased.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct EraseOptions {
    /// By the disk's own function.
    pub secure: bool,
    /// Only beginning and end.
    pub quick: bool,
}

/// Machine or rack controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeKind {
    /// A machine.
    Machine,
    /// A rack controller.
    RackController,
}

/// The power MAAS believes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerState {
    /// Running.
    On,
    /// Not running.
    Off,
    /// Cannot be known.
    Unknown,
    /// The BMC answered with an error.
    Error,
}

impl PowerState {
    /// MAAS's word.
    pub fn name(self) -> &'static str {
        match self {
            PowerState::On => "on",
            PowerState::Off => "off",
            PowerState::Unknown => "unknown",
            PowerState::Error => "error",
        }
    }
}

/// A set of script results: an id and how they went together.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ScriptSet {
    /// Its id; none before the first.
    pub id: Option<u32>,
    /// How they went.
    pub status: ScriptStatus,
}

/// How scripts went, numbered as MAAS numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScriptStatus {
    /// Never ran.
    Unknown,
    /// Not started.
    Pending,
    /// At work.
    Running,
    /// Went well.
    Passed,
    /// Went wrong.
    Failed,
    /// Stopped by a person.
    Aborted,
}

impl ScriptStatus {
    /// MAAS's number.
    pub fn number(self) -> i8 {
        match self {
            ScriptStatus::Unknown => -1,
            ScriptStatus::Pending => 0,
            ScriptStatus::Running => 1,
            ScriptStatus::Passed => 2,
            ScriptStatus::Failed => 3,
            ScriptStatus::Aborted => 5,
        }
    }

    /// MAAS's word.
    pub fn name(self) -> &'static str {
        match self {
            ScriptStatus::Unknown => "Unknown",
            ScriptStatus::Pending => "Pending",
            ScriptStatus::Running => "Running",
            ScriptStatus::Passed => "Passed",
            ScriptStatus::Failed => "Failed",
            ScriptStatus::Aborted => "Aborted",
        }
    }
}

impl Machine {
    /// Whether MAAS can switch its power.
    pub fn power_is_controllable(&self) -> bool {
        self.power_type != "manual" && !self.power_type.is_empty()
    }

    /// What an allocation calls cheap: cores plus GiB.
    #[expect(clippy::cast_precision_loss, reason = "memory in MiB is far below 2^53")]
    pub fn cost(&self) -> f64 {
        f64::from(self.cpu_count) + self.memory as f64 / 1024.0
    }
}
