//! What MAAS tells of an interface.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Id, Subnet, SystemId, Vlan};

/// What kind of interface it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum InterfaceType {
    /// A network card.
    Physical,
    /// Several cards as one.
    Bond,
    /// A bridge.
    Bridge,
    /// A tagged part of another interface.
    Vlan,
    /// A MAC address MAAS knows from a reservation only.
    Unknown,
    /// One this client does not know.
    Other(String),
}

impl From<String> for InterfaceType {
    fn from(text: String) -> Self {
        match text.as_str() {
            "physical" => Self::Physical,
            "bond" => Self::Bond,
            "bridge" => Self::Bridge,
            "vlan" => Self::Vlan,
            "unknown" => Self::Unknown,
            _ => Self::Other(text),
        }
    }
}

impl From<InterfaceType> for String {
    fn from(kind: InterfaceType) -> Self {
        match kind {
            InterfaceType::Physical => "physical".to_owned(),
            InterfaceType::Bond => "bond".to_owned(),
            InterfaceType::Bridge => "bridge".to_owned(),
            InterfaceType::Vlan => "vlan".to_owned(),
            InterfaceType::Unknown => "unknown".to_owned(),
            InterfaceType::Other(text) => text,
        }
    }
}

impl Default for InterfaceType {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

/// Where a link's address comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum LinkMode {
    /// MAAS chooses one while the machine is deployed.
    Auto,
    /// It has one for good.
    Static,
    /// From DHCP.
    Dhcp,
    /// It has none.
    #[default]
    LinkUp,
    /// One this client does not know.
    Other(String),
}

impl From<String> for LinkMode {
    fn from(text: String) -> Self {
        match text.as_str() {
            "auto" => Self::Auto,
            "static" => Self::Static,
            "dhcp" => Self::Dhcp,
            "link_up" => Self::LinkUp,
            _ => Self::Other(text),
        }
    }
}

impl From<LinkMode> for String {
    fn from(mode: LinkMode) -> Self {
        match mode {
            LinkMode::Auto => "auto".to_owned(),
            LinkMode::Static => "static".to_owned(),
            LinkMode::Dhcp => "dhcp".to_owned(),
            LinkMode::LinkUp => "link_up".to_owned(),
            LinkMode::Other(text) => text,
        }
    }
}

/// A link between an interface and a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Link {
    /// Its number.
    pub id: Id<Link>,
    /// Where its address comes from.
    pub mode: LinkMode,
    /// The address, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// The subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<Subnet>,
}

/// An address MAAS saw the interface use, for example while it was commissioned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Discovered {
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// The subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<Subnet>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Interface {
    /// Its number.
    pub id: Id<Interface>,
    /// The machine it is part of; nothing for MAC addresses of reservations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_id: Option<SystemId>,
    /// Its name, such as `eth0`.
    pub name: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: InterfaceType,
    /// Its MAC address.
    pub mac_address: Option<String>,
    /// The VLAN it is connected to; nothing if it is connected to none.
    pub vlan: Option<Vlan>,
    /// Its links with subnets.
    pub links: Vec<Link>,
    /// Addresses it was seen with.
    pub discovered: Option<Vec<Discovered>>,
    /// What it is built on, by name.
    pub parents: Vec<String>,
    /// What is built on it, by name.
    pub children: Vec<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether MAAS configures it.
    pub enabled: bool,
    /// Whether its cable is in.
    pub link_connected: bool,
    /// The speed it has, in Mbit/s.
    pub link_speed: i64,
    /// The speed it could have, in Mbit/s.
    pub interface_speed: i64,
    /// The longest packet.
    pub effective_mtu: u32,
    /// How it is set up: what bridges and bonds were made with.
    pub params: BTreeMap<String, Value>,
    /// How many virtual functions it has.
    pub sriov_max_vf: i64,
    /// The NUMA node it is attached to.
    pub numa_node: Option<i64>,
    /// Who made it.
    pub vendor: Option<String>,
    /// What they call it.
    pub product: Option<String>,
    /// What runs on it.
    pub firmware_version: Option<String>,
    /// Its address in the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_uri: Option<String>,
}
