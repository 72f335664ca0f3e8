//! The fleet file: what a MAAS holds before the first call. People write it by hand for `metalshift emulator --fleet`, tests build
//! it as values, and the replay derives it from recordings, which is why every id may be given and none has to be.
//!
//! ```yaml
//! zones: [{name: az1}, {name: az2}]
//! subnets: [{cidr: 10.20.0.0/24, gateway: 10.20.0.1, dhcp: {start: 10.20.0.100, end: 10.20.0.149}}]
//! machines:
//!   - {hostname: node, count: 12, zone: az1, cpus: 8, memory: 16384}
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use crate::timings::Timings;
use crate::version::Version;
use crate::world::status::Status;

/// Everything a fleet file may say. An empty one is a MAAS with one administrator, one network and no machines.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fleet {
    /// Which MAAS this is.
    pub version: Version,
    /// Who may call. Without any: `admin` with the key of [`Fleet::DEFAULT_KEY`].
    pub users: Vec<User>,
    /// Availability zones besides `default`.
    pub zones: Vec<Place>,
    /// Resource pools besides `default`.
    pub pools: Vec<Place>,
    /// DNS domains; the first is the default one. Without any: `maas`.
    pub domains: Vec<Domain>,
    /// Spaces that group VLANs.
    pub spaces: Vec<Space>,
    /// Fabrics with their VLANs. Without any: `fabric-0` with its untagged VLAN.
    pub fabrics: Vec<Fabric>,
    /// Subnets; each on a VLAN of `fabrics`, the first one unless said otherwise.
    pub subnets: Vec<Subnet>,
    /// Tags machines may carry. Tags that machines name need not be listed.
    pub tags: Vec<Tag>,
    /// Images that can be deployed. Without any: ubuntu/jammy and ubuntu/noble for amd64.
    pub images: Vec<Image>,
    /// The rack controller. Without one: `rack` on the first subnet.
    pub rack: Option<Rack>,
    /// The machines.
    pub machines: Vec<Machine>,
    /// VM hosts that exist from the beginning.
    pub vm_hosts: Vec<VmHost>,
    /// What happened before: `events/` of a young MAAS.
    pub events: Vec<Event>,
    /// How long things take.
    pub timings: Timings,
    /// What goes wrong.
    pub faults: Vec<crate::faults::Fault>,
    /// Global settings by name, such as `default_distro_series`.
    pub settings: BTreeMap<String, serde_json::Value>,
}

impl Fleet {
    /// The key of the administrator of a fleet that names no users; a published constant, for laboratories only.
    pub const DEFAULT_KEY: &'static str = "emulatorconsumer00:emulatortokenkey00:emulatortokensecret0000000000000";

    /// Three zones of eight machines: what an emulator holds when nobody says otherwise.
    pub const THREE_ZONES: &'static str = include_str!("../fleets/three-zones.yaml");
}

/// A MAAS user and its API keys (`consumer:token:secret`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct User {
    /// The user name.
    pub name: String,
    /// Mail address; made from the name when absent.
    pub email: Option<String>,
    /// Administrator or plain user.
    pub superuser: bool,
    /// API keys. Without any, one is made; `metalshift emulator` prints it.
    pub keys: Vec<Key>,
}

/// An API key with the name MAAS shows for it.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Key {
    /// What the user called it.
    pub name: Option<String>,
    /// `consumer:token:secret`.
    pub key: String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A zone or a resource pool.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Place {
    /// Its id, when it matters.
    pub id: Option<u32>,
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub description: String,
}

/// A DNS domain.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Domain {
    /// Its id, when it matters.
    pub id: Option<u32>,
    /// Its name.
    pub name: String,
    /// Time to live of its records, in seconds.
    pub ttl: Option<u32>,
    /// Whether MAAS serves it; yes unless said otherwise.
    pub authoritative: Option<bool>,
}

/// A space.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Space {
    /// Its id, when it matters.
    pub id: Option<u32>,
    /// Its name.
    pub name: String,
}

/// A fabric and its VLANs; a fabric without VLANs gets the untagged one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fabric {
    /// Its id, when it matters.
    pub id: Option<u32>,
    /// Its name; `fabric-<id>` when absent.
    pub name: Option<String>,
    /// Its class, a free word.
    pub class_type: Option<String>,
    /// Its VLANs.
    pub vlans: Vec<Vlan>,
}

/// A VLAN.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Vlan {
    /// Its id (not the tag), when it matters.
    pub id: Option<u32>,
    /// The tag on the wire; 0 is untagged.
    pub vid: u16,
    /// Its name.
    pub name: Option<String>,
    /// Its MTU; 1500 when absent.
    pub mtu: Option<u32>,
    /// Whether the rack serves DHCP there.
    pub dhcp: bool,
    /// The space it belongs to.
    pub space: Option<String>,
}

/// A subnet with its ranges.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subnet {
    /// Its id, when it matters.
    #[serde(default)]
    pub id: Option<u32>,
    /// Its name; the CIDR when absent.
    #[serde(default)]
    pub name: Option<String>,
    /// What it says of itself.
    #[serde(default)]
    pub description: String,
    /// The network.
    pub cidr: IpNet,
    /// Its gateway.
    #[serde(default)]
    pub gateway: Option<IpAddr>,
    /// Its DNS servers.
    #[serde(default)]
    pub dns_servers: Vec<IpAddr>,
    /// The id of its VLAN; the first VLAN when absent.
    #[serde(default)]
    pub vlan: Option<u32>,
    /// Whether MAAS hands out addresses there; yes unless said otherwise.
    #[serde(default)]
    pub managed: Option<bool>,
    /// The range DHCP hands out; turns DHCP on for the VLAN.
    #[serde(default)]
    pub dhcp: Option<Span>,
    /// Ranges kept away from MAAS's own choice.
    #[serde(default)]
    pub ranges: Vec<Range>,
}

/// First and last address.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first address.
    pub start: IpAddr,
    /// The last address.
    pub end: IpAddr,
}

/// A range of addresses.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Its id, when it matters.
    #[serde(default)]
    pub id: Option<u32>,
    /// For DHCP, or reserved.
    #[serde(rename = "type")]
    pub kind: RangeKind,
    /// The first address.
    pub start: IpAddr,
    /// The last address.
    pub end: IpAddr,
    /// A remark.
    #[serde(default)]
    pub comment: String,
    /// Who reserved it.
    #[serde(default)]
    pub user: Option<String>,
}

/// What a range is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RangeKind {
    /// Handed out by DHCP.
    Dynamic,
    /// Left alone by MAAS.
    Reserved,
}

/// A tag.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// A remark.
    pub comment: String,
    /// Kernel options of machines that carry it.
    pub kernel_opts: String,
    /// An XPath over the hardware; kept, not evaluated.
    pub definition: String,
}

/// An image.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Image {
    /// Its id, when it matters.
    pub id: Option<u32>,
    /// `ubuntu/jammy`, or the bare name of an uploaded image.
    pub name: String,
    /// `amd64/ga-22.04`.
    pub architecture: String,
    /// Uploaded by a person instead of synced.
    pub uploaded: bool,
    /// What it says of itself.
    pub title: Option<String>,
    /// What an uploaded image was made from.
    pub base_image: Option<String>,
    /// The kernels it offers, comma separated.
    pub subarches: Option<String>,
}

/// The rack controller: it has an address, so the address is taken.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rack {
    /// Its system id, when it matters.
    pub system_id: Option<String>,
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
    pub count: Option<u32>,
    /// Its system id; made up when absent.
    pub system_id: Option<String>,
    /// Its host name; made up when absent.
    pub hostname: Option<String>,
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
    /// What runs on it, such as `ubuntu/jammy`.
    pub image: Option<String>,
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
    pub vlan: Option<u32>,
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
    pub subnet: Option<u32>,
    /// A static address.
    #[serde(default)]
    pub address: Option<IpAddr>,
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
    /// How far cores may be promised twice.
    pub cpu_over_commit_ratio: f64,
    /// How far memory may be promised twice.
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

/// An event of the past.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Event {
    /// Its id, when it matters.
    pub id: Option<u32>,
    /// The system id of the machine it is about.
    pub node: String,
    /// DEBUG, INFO, WARNING, ERROR, CRITICAL, AUDIT.
    pub level: String,
    /// What kind of thing happened.
    #[serde(rename = "type")]
    pub kind: String,
    /// The words.
    pub description: String,
    /// Who did it.
    pub username: Option<String>,
}
