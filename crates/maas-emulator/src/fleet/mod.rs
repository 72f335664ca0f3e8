//! The fleet file: what a MAAS holds before the first call. People write it by hand for `metalshift emulator --fleet`, tests build
//! it as values, and the replay derives it from recordings, which is why every id may be given and none has to be.
//!
//! ```yaml
//! zones: [{name: az1}, {name: az2}]
//! subnets: [{cidr: 10.20.0.0/24, gateway: 10.20.0.1, dhcp: {start: 10.20.0.100, end: 10.20.0.149}}]
//! machines:
//!   - {hostname: node, count: 12, zone: az1, cpus: 8, memory: 16384}
//! ```

mod machine;
mod network;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use crate::timings::Timings;
use crate::version::Version;

pub use machine::{Disk, Interface, Link, LinkMode, Machine, Power, Rack, StoragePool, VmHost};
pub use network::{Domain, Fabric, Range, RangeKind, Space, Span, Subnet, Vlan};

/// Everything a fleet file may say. An empty one is a MAAS with one administrator, one network and no machines. Entries know their line,
/// so that a contradiction can be told with it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fleet {
    /// Which MAAS this is.
    pub version: Version,
    /// Who may call. Without any: `admin` with the key of [`Fleet::DEFAULT_KEY`].
    pub users: Vec<Spanned<User>>,
    /// Availability zones besides `default`.
    pub zones: Vec<Spanned<Place>>,
    /// Resource pools besides `default`.
    pub pools: Vec<Spanned<Place>>,
    /// DNS domains; the first is the default one. Without any: `maas`.
    pub domains: Vec<Spanned<Domain>>,
    /// Spaces that group VLANs.
    pub spaces: Vec<Spanned<Space>>,
    /// Fabrics with their VLANs. Without any: `fabric-0` with its untagged VLAN.
    pub fabrics: Vec<Spanned<Fabric>>,
    /// Subnets; each on a VLAN of `fabrics`, the first one unless said otherwise.
    pub subnets: Vec<Spanned<Subnet>>,
    /// Tags machines may carry. Tags that machines name need not be listed.
    pub tags: Vec<Spanned<Tag>>,
    /// Images that can be deployed. Without any: ubuntu/jammy and ubuntu/noble for amd64.
    pub images: Vec<Spanned<Image>>,
    /// The rack controller. Without one: `rack` on the first subnet.
    pub rack: Option<Rack>,
    /// The machines.
    pub machines: Vec<Spanned<Machine>>,
    /// VM hosts that exist from the beginning.
    pub vm_hosts: Vec<Spanned<VmHost>>,
    /// What happened before: `events/` of a young MAAS.
    pub events: Vec<Spanned<Event>>,
    /// How long things take.
    pub timings: Timings,
    /// Whether VM hosts make disks of any size, room or not, as what stood in for LXD while MAAS was recorded did.
    pub thin_storage: bool,
    /// What goes wrong.
    pub faults: Vec<Spanned<crate::faults::Fault>>,
    /// Global settings by name, such as `default_distro_series`.
    pub settings: BTreeMap<String, Spanned<serde_json::Value>>,
}

impl Fleet {
    /// The key of the administrator of a fleet that names no users; a published constant, for laboratories only.
    pub const DEFAULT_KEY: &'static str = "emulatorconsumer00:emulatortokenkey00:emulatortokensecret0000000000000";

    /// Three zones of eight machines: what an emulator holds when nobody says otherwise.
    pub const THREE_ZONES: &'static str = include_str!("../../fleets/three-zones.yaml");

    /// Whether everybody can read this key, because it comes with the emulator.
    pub fn is_published(key: &str) -> bool {
        key == Self::DEFAULT_KEY || Self::THREE_ZONES.contains(&format!("\"{key}\""))
    }
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
    /// API keys. Without any, one is made, which nobody can guess where machines boot; `metalshift emulator` prints it.
    pub keys: Vec<Spanned<Key>>,
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
    /// An `XPath` over the hardware; kept, not evaluated.
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
