//! Fabrics, VLANs, spaces, subnets, ranges and the addresses in them.

use std::net::IpAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::dns::DnsResource;
use super::id::Id;
use super::machine::Machine;
use super::people::User;
use crate::fleet::{LinkMode, RangeKind};

/// A fabric: a set of VLANs that reach each other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fabric {
    /// Its id.
    pub id: Id<Fabric>,
    /// Its name.
    pub name: String,
    /// Its class, a free word.
    pub class_type: Option<String>,
}

/// A VLAN; its id is not its tag.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Vlan {
    /// Its id.
    pub id: Id<Vlan>,
    /// The fabric it is in.
    pub fabric: Id<Fabric>,
    /// The tag on the wire; 0 is untagged.
    pub vid: u16,
    /// Its name.
    pub name: String,
    /// Its MTU.
    pub mtu: u32,
    /// Whether the rack serves DHCP there.
    pub dhcp_on: bool,
    /// The space it belongs to.
    pub space: Option<Id<Space>>,
    /// The rack that serves DHCP.
    pub primary_rack: Option<Id<Machine>>,
}

/// A space: VLANs that may be treated alike.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Space {
    /// Its id.
    pub id: Id<Space>,
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub description: String,
}

/// A subnet.
#[expect(clippy::struct_excessive_bools, reason = "columns of a row, independent of each other")]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Subnet {
    /// Its id.
    pub id: Id<Subnet>,
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// The network.
    pub cidr: IpNet,
    /// Its gateway as written: an empty text is not the same as none.
    pub gateway: Gateway,
    /// Its DNS servers.
    pub dns_servers: Vec<String>,
    /// The VLAN it is on.
    pub vlan: Id<Vlan>,
    /// Whether MAAS hands out addresses there.
    pub managed: bool,
    /// Whether MAAS's DNS may be used from there.
    pub allow_dns: bool,
    /// Whether MAAS's proxy may be used from there.
    pub allow_proxy: bool,
    /// Whether MAAS looks for neighbours.
    pub active_discovery: bool,
    /// How reverse zones are made.
    pub rdns_mode: u8,
}

/// A gateway: MAAS answers `null` for one never set and an empty text for one created without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gateway {
    /// Never set.
    Unset,
    /// Set to nothing.
    Blank,
    /// Set.
    Address(IpAddr),
}

impl Gateway {
    /// The address, if it is one.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Gateway::Address(address) => Some(address),
            Gateway::Unset | Gateway::Blank => None,
        }
    }
}

/// A range of addresses MAAS does not choose from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Range {
    /// Its id.
    pub id: Id<Range>,
    /// The subnet it is in.
    pub subnet: Id<Subnet>,
    /// For DHCP, or reserved.
    pub kind: RangeKind,
    /// The first address.
    pub start: IpAddr,
    /// The last address.
    pub end: IpAddr,
    /// Who reserved it.
    pub user: Option<Id<User>>,
    /// A remark.
    pub comment: String,
}

/// An address, or the wish for one: a link of an interface, a reservation, what DHCP was seen to hand out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Address {
    /// Its id; that of the link when it is one.
    pub id: Id<Address>,
    /// The address; none while an AUTO link waits for a deployment.
    pub ip: Option<IpAddr>,
    /// What kind of address it is.
    pub kind: AddressKind,
    /// The subnet it lies in.
    pub subnet: Option<Id<Subnet>>,
    /// Who reserved it.
    pub user: Option<Id<User>>,
    /// The interfaces that have it.
    pub interfaces: Vec<Id<Interface>>,
    /// The names that point to it.
    pub names: Vec<Id<DnsResource>>,
    /// When it came to be.
    pub created: Timestamp,
    /// An address set aside for one deployment by a temporary expression of MAAS: shown as static, gone with the machine's release.
    pub temporary: bool,
}

/// What kind of address it is, numbered as MAAS numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum AddressKind {
    /// Chosen by MAAS at deployment.
    Auto = 0,
    /// Chosen by a person for an interface.
    Sticky = 1,
    /// Reserved by a user, also by naming it in DNS.
    UserReserved = 4,
    /// By DHCP.
    Dhcp = 5,
    /// Seen on the wire while commissioning.
    Discovered = 6,
}

impl AddressKind {
    /// MAAS's words.
    pub fn name(self) -> &'static str {
        match self {
            AddressKind::Auto => "Automatic",
            AddressKind::Sticky => "Static",
            AddressKind::UserReserved => "User reserved",
            AddressKind::Dhcp => "DHCP",
            AddressKind::Discovered => "Observed",
        }
    }

    /// The kind a link of this mode has.
    pub fn of_link(mode: LinkMode) -> Self {
        match mode {
            LinkMode::Auto => AddressKind::Auto,
            LinkMode::Static | LinkMode::LinkUp => AddressKind::Sticky,
            LinkMode::Dhcp => AddressKind::Dhcp,
        }
    }
}

impl Address {
    /// How a link shows it: a sticky link without an address is one that is only up.
    pub fn mode(&self) -> &'static str {
        match self.kind {
            AddressKind::Auto => "auto",
            AddressKind::Sticky | AddressKind::UserReserved if self.ip.is_some() => "static",
            AddressKind::Sticky | AddressKind::UserReserved => "link_up",
            AddressKind::Dhcp => "dhcp",
            AddressKind::Discovered => "discovered",
        }
    }
}

/// A network interface of a machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Interface {
    /// Its id.
    pub id: Id<Interface>,
    /// The machine it is in.
    pub machine: Id<Machine>,
    /// Its name.
    pub name: String,
    /// What kind it is.
    pub kind: InterfaceKind,
    /// Its hardware address, lower case.
    pub mac: String,
    /// The VLAN it is on.
    pub vlan: Option<Id<Vlan>>,
    /// Its links and discovered addresses, in the order they were made.
    pub addresses: Vec<Id<Address>>,
    /// The interfaces it is made of.
    pub parents: Vec<Id<Interface>>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Options of bridges, bonds and others.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// Whether it is used.
    pub enabled: bool,
    /// Whether a cable is in.
    pub link_connected: bool,
    /// Speed of the link in Mbit/s.
    pub link_speed: u32,
    /// Speed of the interface in Mbit/s.
    pub interface_speed: u32,
    /// Who made it.
    pub vendor: Option<String>,
    /// What it is.
    pub product: Option<String>,
    /// Its firmware.
    pub firmware_version: Option<String>,
    /// The NUMA node; none for interfaces made of others.
    pub numa_node: Option<u32>,
    /// Made by `bridge_all` at allocation, gone with the release.
    pub acquired: bool,
}

/// What kind an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InterfaceKind {
    /// A card.
    Physical,
    /// Several cards as one.
    Bond,
    /// A bridge.
    Bridge,
    /// A tagged VLAN on another interface.
    Vlan,
    /// Known by its hardware address alone.
    Unknown,
}

impl InterfaceKind {
    /// MAAS's word.
    pub fn name(self) -> &'static str {
        match self {
            InterfaceKind::Physical => "physical",
            InterfaceKind::Bond => "bond",
            InterfaceKind::Bridge => "bridge",
            InterfaceKind::Vlan => "vlan",
            InterfaceKind::Unknown => "unknown",
        }
    }
}
