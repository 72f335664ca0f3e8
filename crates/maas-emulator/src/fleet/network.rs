//! Domains, spaces, fabrics, VLANs, subnets and ranges of a fleet.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

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
    pub dhcp: Option<Spanned<Span>>,
    /// Ranges kept away from MAAS's own choice.
    #[serde(default)]
    pub ranges: Vec<Spanned<Range>>,
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
