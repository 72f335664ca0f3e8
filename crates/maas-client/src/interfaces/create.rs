//! What interfaces can be made, with every parameter MAAS takes.

use crate::{Id, Interface, Vlan, call::Form};

/// A physical interface to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreatePhysical {
    /// Its name, such as `eth9`.
    pub name: String,
    /// Its MAC address.
    pub mac_address: String,
    /// The VLAN it is connected to.
    pub vlan: Option<Id<Vlan>>,
    /// The longest packet.
    pub mtu: Option<u32>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// A bridge to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateBridge {
    /// Its name, such as `br0`.
    pub name: String,
    /// What it is built on.
    pub parent: Id<Interface>,
    /// Its MAC address; the parent's without.
    pub mac_address: Option<String>,
    /// The VLAN it is connected to; the parent's without.
    pub vlan: Option<Id<Vlan>>,
    /// `standard` or `ovs`.
    pub bridge_type: Option<String>,
    /// Whether it speaks the spanning tree protocol.
    pub bridge_stp: Option<bool>,
    /// Seconds until it forwards.
    pub bridge_fd: Option<u32>,
    /// The longest packet.
    pub mtu: Option<u32>,
    /// Whether it accepts router advertisements.
    pub accept_ra: Option<bool>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// A bond to be made. Its parents must not be in use and must be on one VLAN. Rests on reading MAAS's source, not on recordings, but for
/// refusals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateBond {
    /// Its name, such as `bond0`.
    pub name: String,
    /// What it is made of.
    pub parents: Vec<Id<Interface>>,
    /// Its MAC address; the first parent's without.
    pub mac_address: Option<String>,
    /// The VLAN it is connected to; the parents' without.
    pub vlan: Option<Id<Vlan>>,
    /// Such as `active-backup` or `802.3ad`.
    pub bond_mode: Option<String>,
    /// Milliseconds between looks at the links.
    pub bond_miimon: Option<u32>,
    /// Milliseconds before a link counts as down.
    pub bond_downdelay: Option<u32>,
    /// Milliseconds before a link counts as up.
    pub bond_updelay: Option<u32>,
    /// `fast` or `slow`, for 802.3ad.
    pub bond_lacp_rate: Option<String>,
    /// Such as `layer3+4`.
    pub bond_xmit_hash_policy: Option<String>,
    /// How many neighbour notifications follow a change.
    pub bond_num_grat_arp: Option<u32>,
    /// The longest packet.
    pub mtu: Option<u32>,
    /// Whether it accepts router advertisements.
    pub accept_ra: Option<bool>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// A VLAN interface to be made. The VLAN must be a tagged one on its parent's fabric. Rests on reading MAAS's source, not on recordings,
/// but for refusals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateVlan {
    /// What it is built on.
    pub parent: Id<Interface>,
    /// The VLAN.
    pub vlan: Id<Vlan>,
    /// The longest packet.
    pub mtu: Option<u32>,
    /// Whether it accepts router advertisements.
    pub accept_ra: Option<bool>,
    /// Its tags.
    pub tags: Vec<String>,
}

fn joined(tags: &[String]) -> Option<String> {
    (!tags.is_empty()).then(|| tags.join(","))
}

impl CreatePhysical {
    pub(super) fn form(&self) -> Form {
        Form::new()
            .with("name", &self.name)
            .with("mac_address", &self.mac_address)
            .maybe("vlan", self.vlan)
            .maybe("mtu", self.mtu)
            .maybe("tags", joined(&self.tags))
    }
}

impl CreateBridge {
    pub(super) fn form(&self) -> Form {
        Form::new()
            .with("name", &self.name)
            .with("parent", self.parent)
            .maybe("mac_address", self.mac_address.as_ref())
            .maybe("vlan", self.vlan)
            .maybe("bridge_type", self.bridge_type.as_ref())
            .maybe("bridge_stp", self.bridge_stp)
            .maybe("bridge_fd", self.bridge_fd)
            .maybe("mtu", self.mtu)
            .maybe("accept_ra", self.accept_ra)
            .maybe("tags", joined(&self.tags))
    }
}

impl CreateBond {
    pub(super) fn form(&self) -> Form {
        Form::new()
            .with("name", &self.name)
            .each("parents", &self.parents)
            .maybe("mac_address", self.mac_address.as_ref())
            .maybe("vlan", self.vlan)
            .maybe("bond_mode", self.bond_mode.as_ref())
            .maybe("bond_miimon", self.bond_miimon)
            .maybe("bond_downdelay", self.bond_downdelay)
            .maybe("bond_updelay", self.bond_updelay)
            .maybe("bond_lacp_rate", self.bond_lacp_rate.as_ref())
            .maybe("bond_xmit_hash_policy", self.bond_xmit_hash_policy.as_ref())
            .maybe("bond_num_grat_arp", self.bond_num_grat_arp)
            .maybe("mtu", self.mtu)
            .maybe("accept_ra", self.accept_ra)
            .maybe("tags", joined(&self.tags))
    }
}

impl CreateVlan {
    pub(super) fn form(&self) -> Form {
        Form::new()
            .with("vlan", self.vlan)
            .with("parent", self.parent)
            .maybe("mtu", self.mtu)
            .maybe("accept_ra", self.accept_ra)
            .maybe("tags", joined(&self.tags))
    }
}
