//! Spaces, fabrics, VLANs, subnets and ranges of a fleet.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_saphyr::Spanned;

use super::places::once;
use super::{FleetError, free, unwritten};
use crate::fleet::{self, Fleet, RangeKind, Span};
use crate::world::World;
use crate::world::id::Id;
use crate::world::network::{Fabric, Gateway, Range, Space, Subnet, Vlan};

pub fn networks(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    once(&fleet.spaces, |space| &space.name, "spaces")?;
    for place in &fleet.spaces {
        let space = &place.value;
        free(&world.spaces, space.id, "spaces").map_err(|error| error.within(place))?;
        world.spaces.add(space.id, |id| Space { id, name: space.name.clone(), description: String::new() });
    }
    let default = [unwritten(fleet::Fabric::default())];
    for fabric in if fleet.fabrics.is_empty() { &default[..] } else { &fleet.fabrics } {
        add_fabric(world, &fabric.value).map_err(|error| error.within(fabric))?;
    }
    let first_vlan = world.vlans.iter().map(|(id, _)| id).next();
    let default = [unwritten(default_subnet())];
    for subnet in if fleet.subnets.is_empty() { &default[..] } else { &fleet.subnets } {
        add_subnet(world, &subnet.value, first_vlan).map_err(|error| error.within(subnet))?;
    }
    Ok(())
}

fn add_fabric(world: &mut World, fabric: &fleet::Fabric) -> Result<(), FleetError> {
    free(&world.fabrics, fabric.id, "fabrics")?;
    let fabric_id = world.fabrics.add(fabric.id, |id| Fabric {
        id,
        name: fabric.name.clone().unwrap_or_else(|| format!("fabric-{id}")),
        class_type: fabric.class_type.clone(),
    });
    let untagged = [fleet::Vlan::default()];
    for vlan in if fabric.vlans.is_empty() { &untagged[..] } else { &fabric.vlans } {
        let space = match &vlan.space {
            None => None,
            Some(name) => Some(
                world
                    .spaces
                    .iter()
                    .find(|(_, space)| space.name == *name)
                    .map(|(id, _)| id)
                    .ok_or_else(|| FleetError::new("fabrics: vlans: space", format!("there is no space \"{name}\" under spaces")))?,
            ),
        };
        let name = vlan.name.clone().unwrap_or_else(|| if vlan.vid == 0 { "untagged".into() } else { vlan.vid.to_string() });
        free(&world.vlans, vlan.id, "fabrics: vlans")?;
        world.vlans.add(vlan.id, |id| Vlan {
            id,
            fabric: fabric_id,
            vid: vlan.vid,
            name,
            mtu: vlan.mtu.unwrap_or(1500),
            dhcp_on: vlan.dhcp,
            space,
            primary_rack: None,
        });
    }
    Ok(())
}

/// The network of a fleet that names none.
fn default_subnet() -> fleet::Subnet {
    let ip = |last| IpAddr::from([10, 20, 0, last]);
    fleet::Subnet {
        id: None,
        name: Some("pxe".into()),
        description: String::new(),
        cidr: IpNet::new(ip(0), 24).unwrap_or_default(),
        gateway: Some(ip(1)),
        dns_servers: Vec::new(),
        vlan: None,
        managed: None,
        dhcp: Some(unwritten(fleet::Span { start: ip(100), end: ip(149) })),
        ranges: Vec::new(),
    }
}

fn add_subnet(world: &mut World, subnet: &fleet::Subnet, first_vlan: Option<Id<Vlan>>) -> Result<(), FleetError> {
    let field = format!("subnets: {}", subnet.cidr);
    let vlan = match subnet.vlan {
        Some(number) => Id::new(number),
        None => first_vlan.ok_or_else(|| FleetError::new(&field, "there is no VLAN it could be on"))?,
    };
    if world.vlans.get(vlan).is_none() {
        return Err(FleetError::new(format!("{field}: vlan"), format!("there is no VLAN with id {vlan} under fabrics")));
    }
    free(&world.subnets, subnet.id, &field)?;
    if let Some(other) = world.subnets.values().find(|other| other.cidr.contains(&subnet.cidr) || subnet.cidr.contains(&other.cidr)) {
        return Err(FleetError::new(format!("{field}: cidr"), format!("{} has the same addresses", other.cidr)));
    }
    if let Some(gateway) = subnet.gateway.filter(|gateway| !subnet.cidr.contains(gateway)) {
        return Err(FleetError::new(format!("{field}: gateway"), format!("{gateway} is not inside the subnet")));
    }
    let id = world.subnets.add(subnet.id, |id| Subnet {
        id,
        name: subnet.name.clone().unwrap_or_else(|| subnet.cidr.to_string()),
        description: subnet.description.clone(),
        cidr: subnet.cidr,
        gateway: subnet.gateway.map_or(Gateway::Unset, Gateway::Address),
        dns_servers: subnet.dns_servers.iter().map(ToString::to_string).collect(),
        vlan,
        managed: subnet.managed.unwrap_or(true),
        allow_dns: true,
        allow_proxy: true,
        active_discovery: false,
        rdns_mode: 2,
    });
    let dhcp = subnet.dhcp.iter().map(|span| {
        let Span { start, end } = span.value;
        let range = fleet::Range { id: None, kind: RangeKind::Dynamic, start, end, comment: String::new(), user: None };
        Spanned::new(range, span.referenced, span.defined)
    });
    for range in dhcp.chain(subnet.ranges.iter().cloned()) {
        add_range(world, id, &field, &range.value).map_err(|error| error.within(&range))?;
    }
    Ok(())
}

fn add_range(world: &mut World, subnet: Id<Subnet>, field: &str, range: &fleet::Range) -> Result<(), FleetError> {
    let field = format!("{field}: ranges");
    let wrong = |problem: &str| Err(FleetError::new(&field, format!("{} to {} {problem}", range.start, range.end)));
    let Some((cidr, vlan)) = world.subnets.get(subnet).map(|subnet| (subnet.cidr, subnet.vlan)) else { return Ok(()) };
    if !cidr.contains(&range.start) || !cidr.contains(&range.end) || range.start > range.end {
        return wrong("is not a range inside the subnet");
    }
    if let Some(other) = world.ranges.values().find(|other| other.start <= range.end && range.start <= other.end) {
        return wrong(&format!("shares addresses with {} to {}", other.start, other.end));
    }
    free(&world.ranges, range.id, &field)?;
    let user = match &range.user {
        None => None,
        Some(name) => {
            let user = world.user_named(name).map(|user| user.id);
            Some(user.ok_or_else(|| FleetError::new(format!("{field}: user"), format!("there is no user \"{name}\"")))?)
        }
    };
    if range.kind == RangeKind::Dynamic
        && let Some(vlan) = world.vlans.get_mut(vlan)
    {
        vlan.dhcp_on = true;
    }
    world.ranges.add(range.id, |id| Range {
        id,
        subnet,
        kind: range.kind,
        start: range.start,
        end: range.end,
        user,
        comment: range.comment.clone(),
    });
    Ok(())
}
