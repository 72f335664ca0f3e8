//! Interfaces of a fleet's machines, with their links.

use std::collections::BTreeMap;

use super::{FleetError, free};
use crate::fleet::{self, LinkMode};
use crate::world::World;
use crate::world::addressing::NewAddress;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{AddressKind, Interface, InterfaceKind, Vlan};

/// Adds an interface; `macs` knows whose hardware addresses are taken.
pub fn add_interface(
    world: &mut World,
    machine: Id<Machine>,
    index: usize,
    interface: &fleet::Interface,
    macs: &mut BTreeMap<String, String>,
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
                    format!("machines: {hostname}: mac"),
                    format!("\"{}\" is not a MAC address such as 52:54:00:01:00:01", mac.value),
                ));
            }
            if let Some(other) = macs.get(&lower) {
                return Err(FleetError::at(mac, format!("machines: {hostname}: mac"), format!("{lower} is {other}'s too")));
            }
            lower
        }
    };
    macs.insert(mac.clone(), hostname.clone());
    let of_link = interface.links.iter().flatten().find_map(|link| world.subnets.get(Id::new(link.subnet?)).map(|subnet| subnet.vlan));
    let first = world.subnets.values().next().map(|subnet| subnet.vlan);
    let vlan: Option<Id<Vlan>> = interface.vlan.map(Id::new).or(of_link).or(first);
    if let Some(unknown) = vlan.filter(|vlan| world.vlans.get(*vlan).is_none()) {
        return Err(FleetError::new(format!("machines: {hostname}: vlan"), format!("there is no VLAN with id {unknown} under fabrics")));
    }
    free(&world.interfaces, interface.id, &format!("machines: {hostname}: interfaces"))?;
    let speed = interface.speed.unwrap_or(10_000);
    let id = world.interfaces.add(interface.id, |id| Interface {
        id,
        machine,
        name: interface.name.clone().unwrap_or_else(|| format!("eth{index}")),
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
    let on_vlan = vlan.and_then(|vlan| world.subnets.iter().find(|(_, subnet)| subnet.vlan == vlan).map(|(id, _)| id.0));
    let default =
        [fleet::Link { id: None, mode: if on_vlan.is_some() { LinkMode::Auto } else { LinkMode::LinkUp }, subnet: on_vlan, address: None }];
    for link in interface.links.as_deref().unwrap_or(&default) {
        free(&world.addresses, link.id, &format!("machines: {hostname}: links"))?;
        let new = NewAddress {
            ip: link.address,
            kind: AddressKind::of_link(link.mode),
            subnet: link.subnet.map(Id::new),
            user: None,
            interface: Some(id),
        };
        world.add_address_as(link.id, new);
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
