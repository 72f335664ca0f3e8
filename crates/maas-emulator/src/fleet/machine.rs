//! Machines of a fleet, their parts, the rack controller and the VM hosts.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use crate::world::status::Status;

/// The rack controller: it has an address, so the address is taken.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rack {
    /// Its system id, when it matters.
    pub system_id: Option<Spanned<String>>,
    /// Its host name.
    pub hostname: Option<String>,
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
}

/// A machine, or `count` machines of one kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    /// How many; more than one appends two or more digits to `hostname` and forbids what must be unique.
    pub count: Option<Spanned<u32>>,
    /// Its system id; made up when absent.
    pub system_id: Option<Spanned<String>>,
    /// Its host name; made up when absent.
    pub hostname: Option<Spanned<String>>,
    /// A remark.
    pub description: String,
    /// Its zone.
    pub zone: Option<Spanned<String>>,
    /// Its resource pool.
    pub pool: Option<Spanned<String>>,
    /// Its domain.
    pub domain: Option<Spanned<String>>,
    /// `amd64/generic` unless said otherwise.
    pub architecture: String,
    /// Cores.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory: u64,
    /// Tags.
    pub tags: Vec<String>,
    /// How its power is switched.
    pub power: Power,
    /// Its state; Ready unless said otherwise. All 23 states may be given.
    pub status: Status,
    /// Why, for states that have a reason.
    pub error_description: String,
    /// Who owns it.
    pub owner: Option<Spanned<String>>,
    /// The agent name it was acquired with.
    pub agent_name: String,
    /// Its workload annotations.
    pub annotations: BTreeMap<String, String>,
    /// Locked against changes.
    pub locked: bool,
    /// What runs on it, one of `images`: `ubuntu/jammy`, or `custom/name` if it was uploaded.
    pub image: Option<Spanned<String>>,
    /// Deployed to memory.
    pub ephemeral: bool,
    /// Its network interfaces; one with an AUTO link on the first subnet when absent.
    pub interfaces: Vec<Interface>,
    /// Its disks; one of 120 GB when absent.
    pub disks: Vec<Disk>,
    /// What MAAS found out about the hardware.
    pub hardware_info: BTreeMap<String, String>,
    /// Devices on its buses, for the `devices` constraint.
    pub devices: Vec<BTreeMap<String, String>>,
    /// Whether commissioning passed; released machines become New again when it did not.
    pub commissioned: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Machine {
            count: None,
            system_id: None,
            hostname: None,
            description: String::new(),
            zone: None,
            pool: None,
            domain: None,
            architecture: "amd64/generic".into(),
            cpus: 4,
            memory: 8192,
            tags: Vec::new(),
            power: Power::default(),
            status: Status::Ready,
            error_description: String::new(),
            owner: None,
            agent_name: String::new(),
            annotations: BTreeMap::new(),
            locked: false,
            image: None,
            ephemeral: false,
            interfaces: Vec::new(),
            disks: Vec::new(),
            hardware_info: BTreeMap::new(),
            devices: Vec::new(),
            commissioned: true,
        }
    }
}

/// A machine's power control.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Power {
    /// `ipmi`, `redfish`, `lxd`, `virsh`, `manual`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// `power_address` and what else the driver wants.
    pub parameters: BTreeMap<String, String>,
}

impl Default for Power {
    fn default() -> Self {
        Power { kind: "ipmi".into(), parameters: BTreeMap::new() }
    }
}

/// A network interface.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interface {
    /// Its id, when it matters.
    pub id: Option<u32>,
    /// Its name; `eth<n>` when absent.
    pub name: Option<String>,
    /// Its hardware address; made up when absent.
    pub mac: Option<Spanned<String>>,
    /// The id of its VLAN; that of the first link, or the first VLAN, when absent.
    pub vlan: Option<Spanned<u32>>,
    /// Its links; one AUTO link on the first subnet of its VLAN when absent, none when empty.
    pub links: Option<Vec<Link>>,
    /// The address DHCP gave it while commissioning.
    pub discovered: Option<IpAddr>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Speed in Mbit/s; 10000 when absent.
    pub speed: Option<u32>,
    /// Who made it.
    pub vendor: Option<String>,
    /// What it is.
    pub product: Option<String>,
    /// Its firmware.
    pub firmware_version: Option<String>,
}

/// A link of an interface to a subnet.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its id, when it matters.
    #[serde(default)]
    pub id: Option<u32>,
    /// How it gets its address.
    pub mode: LinkMode,
    /// The id of the subnet.
    #[serde(default)]
    pub subnet: Option<Spanned<u32>>,
    /// A static address.
    #[serde(default)]
    pub address: Option<Spanned<IpAddr>>,
}

/// How a link gets its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkMode {
    /// MAAS chooses at deployment.
    Auto,
    /// Chosen by a person.
    Static,
    /// By DHCP.
    Dhcp,
    /// No address, the link is up.
    LinkUp,
}

/// A disk. The first one carries the root file system of the flat layout unless `partitions` says otherwise.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disk {
    /// Its id, when it matters.
    pub id: Option<u32>,
    /// Its name; `sd<letter>` when absent.
    pub name: Option<String>,
    /// Its size in bytes; 120 GB when absent.
    pub size: Option<u64>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its model.
    pub model: String,
    /// Its serial number.
    pub serial: String,
    /// Ids of the two partitions of the flat layout, when they matter.
    pub partition_ids: Vec<u32>,
}

/// A VM host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VmHost {
    /// Its id, when it matters.
    pub id: Option<u32>,
    /// Its name.
    pub name: String,
    /// `lxd` or `virsh`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The host name of the deployed machine it runs on.
    pub machine: Option<Spanned<String>>,
    /// Its zone.
    pub zone: Option<Spanned<String>>,
    /// Its pool.
    pub pool: Option<Spanned<String>>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Cores it has.
    pub cores: u32,
    /// Memory it has, in MiB.
    pub memory: u64,
    /// Storage pools it has.
    pub storage_pools: Vec<StoragePool>,
    /// How far cores may be promised twice, 0 to 10.
    pub cpu_over_commit_ratio: f64,
    /// How far memory may be promised twice, 0 to 10.
    pub memory_over_commit_ratio: f64,
    /// Power parameters: `power_address`, `project`, …
    pub parameters: BTreeMap<String, String>,
}

impl Default for VmHost {
    fn default() -> Self {
        VmHost {
            id: None,
            name: String::new(),
            kind: "lxd".into(),
            machine: None,
            zone: None,
            pool: None,
            tags: Vec::new(),
            cores: 16,
            memory: 65_536,
            storage_pools: Vec::new(),
            cpu_over_commit_ratio: 1.0,
            memory_over_commit_ratio: 1.0,
            parameters: BTreeMap::new(),
        }
    }
}

/// A storage pool of a VM host.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoragePool {
    /// Its name.
    pub name: String,
    /// `dir`, `zfs`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is on the host.
    pub path: String,
    /// Its size in bytes.
    pub total: u64,
    /// Taken when nothing else is asked for.
    pub default: bool,
}
