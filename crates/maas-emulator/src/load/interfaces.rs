//! Interfaces of a fleet's machines, with their links.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::spelling::interface_name;
use super::{FleetError, free};
use crate::fleet::{self, LinkMode};
use crate::world::World;
use crate::world::addressing::NewAddress;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{AddressKind, Interface, InterfaceKind, Subnet, Vlan};

/// Hardware addresses and whose they are.
pub type Macs = BTreeMap<String, String>;

/// Adds an interface to what the fleet calls `owner`; `macs` knows whose hardware addresses are taken.
pub fn add_interface(
    world: &mut World,
    machine: Id<Machine>,
    index: usize,
    interface: &fleet::Interface,
    owner: &str,
    macs: &mut Macs,
) -> Result<(), FleetError> {
    let hostname = world.machines.get(machine).map(|machine| machine.hostname.clone()).unwrap_or_default();
    let mac = match &interface.mac {
        None => loop {
            let mac = world.random.mac();
            if !macs.contains_key(&mac) {
                break mac;
            }
        },
        Some(mac) => {
            let lower = mac.value.to_ascii_lowercase();
            if lower.split(':').count() != 6
                || !lower.split(':').all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
            {
                return Err(FleetError::at(
                    mac,
                    format!("{owner}: mac"),
                    format!("\"{}\" is not a MAC address such as 52:54:00:01:00:01", mac.value),
                ));
            }
            if let Some(other) = macs.get(&lower) {
                return Err(FleetError::at(mac, format!("{owner}: mac"), format!("{lower} is {other}'s too")));
            }
            lower
        }
    };
    macs.insert(mac.clone(), hostname.clone());
    let links = interface.links.iter().flatten().map(|link| checked(world, link, owner)).collect::<Result<Vec<_>, _>>()?;
    let of_link = links.iter().find_map(|link| world.subnets.get(link.subnet?).map(|subnet| subnet.vlan));
    let first = world.subnets.values().next().map(|subnet| subnet.vlan);
    if let Some(unknown) = interface.vlan.as_ref().filter(|vlan| world.vlans.get(Id::new(vlan.value)).is_none()) {
        let problem = format!("there is no VLAN with id {} under fabrics", unknown.value);
        return Err(FleetError::at(unknown, format!("{owner}: vlan"), problem));
    }
    let vlan: Option<Id<Vlan>> = interface.vlan.as_ref().map(|vlan| Id::new(vlan.value)).or(of_link).or(first);
    free(&world.interfaces, interface.id, &format!("{owner}: interfaces"))?;
    let speed = interface.speed.unwrap_or(10_000);
    let id = world.interfaces.add(interface.id, |id| Interface {
        id,
        machine,
        name: interface_name(interface, index),
        kind: InterfaceKind::Physical,
        mac,
        vlan,
        addresses: Vec::new(),
        parents: Vec::new(),
        tags: interface.tags.clone(),
        params: serde_json::Map::new(),
        enabled: true,
        link_connected: true,
        link_speed: speed,
        interface_speed: speed,
        vendor: interface.vendor.clone(),
        product: interface.product.clone(),
        firmware_version: interface.firmware_version.clone(),
        numa_node: Some(0),
        acquired: false,
    });
    let links = if interface.links.is_some() { links } else { vec![default_link(world, vlan)] };
    for Link { id: wished, mode, subnet, ip } in links {
        free(&world.addresses, wished, &format!("{owner}: links"))?;
        world.add_address_as(wished, NewAddress { ip, kind: AddressKind::of_link(mode), subnet, user: None, interface: Some(id) });
    }
    if let Some(ip) = interface.discovered {
        world.add_address(NewAddress { ip: Some(ip), kind: AddressKind::Discovered, subnet: None, user: None, interface: Some(id) });
    }
    if let Some(machine) = world.machines.get_mut(machine) {
        machine.interfaces.push(id);
        machine.boot_interface.get_or_insert(id);
    }
    Ok(())
}

/// A link whose subnet is there.
struct Link {
    id: Option<u32>,
    mode: LinkMode,
    subnet: Option<Id<Subnet>>,
    ip: Option<IpAddr>,
}

/// The link an interface has that names none: AUTO on the first subnet of its VLAN.
fn default_link(world: &World, vlan: Option<Id<Vlan>>) -> Link {
    let subnet = world.subnets.iter().find(|(_, subnet)| Some(subnet.vlan) == vlan).map(|(id, _)| id);
    Link { id: None, mode: if subnet.is_some() { LinkMode::Auto } else { LinkMode::LinkUp }, subnet, ip: None }
}

/// Refuses a link to a subnet that is not there, and an address that is outside its subnet or somebody else's.
fn checked(world: &World, link: &fleet::Link, owner: &str) -> Result<Link, FleetError> {
    let field = |key: &str| format!("{owner}: links: {key}");
    let subnet = link.subnet.as_ref().map(|subnet| Id::new(subnet.value));
    let cidr = subnet.and_then(|subnet| world.subnets.get(subnet)).map(|subnet| subnet.cidr);
    if let (Some(unknown), None) = (&link.subnet, cidr) {
        return Err(FleetError::at(unknown, field("subnet"), format!("there is no subnet with id {} under subnets", unknown.value)));
    }
    if let Some(address) = &link.address {
        let ip = address.value;
        if let Some(cidr) = cidr.filter(|cidr| !cidr.contains(&ip)) {
            return Err(FleetError::at(address, field("address"), format!("{ip} is not inside {cidr}")));
        }
        if world.address_in_use(ip).is_some() {
            return Err(FleetError::at(address, field("address"), format!("{ip} is in use already")));
        }
    }
    Ok(Link { id: link.id, mode: link.mode, subnet, ip: link.address.as_ref().map(|address| address.value) })
}
