//! Specifiers of networks as MAAS reads them: `kind:value`, or a value alone, which means different things for subnets and for VLANs.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::world::World;
use crate::world::id::Id;
use crate::world::network::{Fabric, Space, Subnet, Vlan};

impl World {
    /// The subnet a specifier means, where one is asked for.
    pub fn subnet_specified(&self, text: &str) -> Option<Id<Subnet>> {
        self.subnets_specified(text).first().copied()
    }

    /// The subnets a specifier means: `cidr:`, `fabric:`, `id:`, `ip:`, `name:`, `space:`, `vid:`, `vlan:`, an id, a bare CIDR or a name.
    pub fn subnets_specified(&self, text: &str) -> Vec<Id<Subnet>> {
        let all = |wanted: &dyn Fn(&Subnet) -> bool| -> Vec<Id<Subnet>> {
            self.subnets.values().filter(|subnet| wanted(subnet)).map(|subnet| subnet.id).collect()
        };
        let on = |vlans: Vec<Id<Vlan>>| all(&|subnet| vlans.contains(&subnet.vlan));
        let network = |text: &str| network(text).map_or_else(Vec::new, |network| all(&|subnet| subnet.cidr == network));
        match text.split_once(':') {
            Some(("cidr", cidr)) => network(cidr.trim()),
            Some(("id", id)) => all(&|subnet| subnet.id.to_string() == id.trim()),
            Some(("ip", ip)) => ip.trim().parse().map_or_else(|_| Vec::new(), |ip| self.subnets_with(ip)),
            Some(("name", name)) => all(&|subnet| subnet.name == name.trim()),
            Some(("vlan", vlan)) => on(self.vlans_specified(vlan)),
            Some(("fabric" | "space" | "vid", _)) => on(self.vlans_specified(text)),
            _ => match numbered(text, "subnet-") {
                Some(id) => all(&|subnet| subnet.id.0 == id),
                None if self::network(text).is_some() => network(text),
                None => all(&|subnet| subnet.name == text),
            },
        }
    }

    /// The subnets an address lies in, the smallest first.
    fn subnets_with(&self, ip: IpAddr) -> Vec<Id<Subnet>> {
        let mut found: Vec<&Subnet> = self.subnets.values().filter(|subnet| subnet.cidr.contains(&ip)).collect();
        found.sort_by_key(|subnet| std::cmp::Reverse(subnet.cidr.prefix_len()));
        found.into_iter().map(|subnet| subnet.id).collect()
    }

    /// The VLANs a specifier means: `id:`, `name:`, `vid:`, `fabric:`, `space:`, `subnet:`, a tag or a name. A number alone is a tag, not an
    /// id.
    pub fn vlans_specified(&self, text: &str) -> Vec<Id<Vlan>> {
        let all = |wanted: &dyn Fn(&Vlan) -> bool| -> Vec<Id<Vlan>> {
            self.vlans.values().filter(|vlan| wanted(vlan)).map(|vlan| vlan.id).collect()
        };
        let tagged = |tag: u32| all(&|vlan| u32::from(vlan.vid) == tag);
        match text.split_once(':') {
            Some(("id", id)) => all(&|vlan| vlan.id.to_string() == id.trim()),
            Some(("name", name)) => all(&|vlan| vlan.name == name.trim()),
            Some(("vid", tag)) => tag_in(tag).map_or_else(Vec::new, tagged),
            Some(("fabric", fabric)) => all(&|vlan| self.fabrics.get(vlan.fabric).is_some_and(|row| means_fabric(row, fabric.trim()))),
            Some(("space", space)) => all(&|vlan| match vlan.space.and_then(|id| self.spaces.get(id)) {
                Some(row) => means_space(row, space.trim()),
                None => space.trim() == "undefined",
            }),
            Some(("subnet", subnet)) => {
                let subnets = self.subnets_specified(subnet);
                all(&|vlan| self.subnets.values().any(|row| row.vlan == vlan.id && subnets.contains(&row.id)))
            }
            _ => tag_in(text).map_or_else(|| all(&|vlan| vlan.name == text), tagged),
        }
    }
}

/// Whether a specifier means a fabric: its id, or its name.
pub fn means_fabric(fabric: &Fabric, text: &str) -> bool {
    numbered(text, "fabric-").map_or_else(|| fabric.name == text, |id| fabric.id.0 == id)
}

/// Whether a specifier means a space: its id, or its name.
pub fn means_space(space: &Space, text: &str) -> bool {
    numbered(text, "space-").map_or_else(|| space.name == text, |id| space.id.0 == id)
}

/// The tag a text means.
fn tag_in(text: &str) -> Option<u32> {
    if text.trim().eq_ignore_ascii_case("untagged") { Some(0) } else { text.trim().parse().ok() }
}

/// Whether a text means a tag that no VLAN can have.
pub fn is_beyond_tags(text: &str) -> bool {
    const MOST: u32 = 4094;
    text.trim().strip_prefix("vid:").unwrap_or(text).trim().parse::<i64>().is_ok_and(|tag| !(0..=i64::from(MOST)).contains(&tag))
}

/// The id in a number, or in a name MAAS makes of one.
fn numbered(text: &str, prefix: &str) -> Option<u32> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.strip_prefix(prefix)?.parse().ok())
}

/// The network a text means; an address alone is a network of one.
fn network(text: &str) -> Option<IpNet> {
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok();
    network.map(|network: IpNet| network.trunc())
}
