//! Networks, interfaces and addresses.

use serde_json::{Map, Value, json};

use crate::fleet::RangeKind;
use crate::world::World;
use crate::world::id::Id;
use crate::world::network::{Address, AddressKind, Fabric, Gateway, Interface, Range, Space, Subnet, Vlan};

/// The name of a VLAN's space, or MAAS's word for none.
fn space_name<'a>(world: &'a World, vlan: &Vlan) -> &'a str {
    vlan.space.and_then(|space| world.spaces.get(space)).map_or("undefined", |space| space.name.as_str())
}

/// A VLAN.
pub fn vlan(world: &World, vlan: &Vlan) -> Value {
    json!({
        "id": vlan.id,
        "vid": vlan.vid,
        "name": vlan.name,
        "mtu": vlan.mtu,
        "dhcp_on": vlan.dhcp_on,
        "external_dhcp": null,
        "relay_vlan": null,
        "space": space_name(world, vlan),
        "fabric": world.fabrics.get(vlan.fabric).map(|fabric| fabric.name.as_str()),
        "fabric_id": vlan.fabric,
        "primary_rack": vlan.primary_rack.and_then(|rack| world.machines.get(rack)).map(|rack| rack.system_id.as_str()),
        "secondary_rack": null,
        "resource_uri": format!("/MAAS/api/2.0/vlans/{}/", vlan.id),
    })
}

/// A subnet.
pub fn subnet(world: &World, subnet: &Subnet) -> Value {
    let on = world.vlans.get(subnet.vlan);
    let gateway = match subnet.gateway {
        Gateway::Unset => Value::Null,
        Gateway::Blank => json!(""),
        Gateway::Address(address) => json!(address.to_string()),
    };
    json!({
        "id": subnet.id,
        "name": subnet.name,
        "description": subnet.description,
        "vlan": on.map(|on| vlan(world, on)),
        "cidr": subnet.cidr.to_string(),
        "rdns_mode": subnet.rdns_mode,
        "gateway_ip": gateway,
        "dns_servers": subnet.dns_servers,
        "allow_dns": subnet.allow_dns,
        "allow_proxy": subnet.allow_proxy,
        "active_discovery": subnet.active_discovery,
        "managed": subnet.managed,
        "disabled_boot_architectures": [],
        "space": on.map_or("undefined", |on| space_name(world, on)),
        "resource_uri": format!("/MAAS/api/2.0/subnets/{}/", subnet.id),
    })
}

/// The subnet with this id.
fn subnet_by_id(world: &World, id: Option<Id<Subnet>>) -> Option<Value> {
    id.and_then(|id| world.subnets.get(id)).map(|row| subnet(world, row))
}

/// The VLANs of a fabric by name.
pub fn vlans_of(world: &World, fabric: Id<Fabric>) -> Vec<&Vlan> {
    let mut rows: Vec<&Vlan> = world.vlans.values().filter(|row| row.fabric == fabric).collect();
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows
}

/// A fabric with its VLANs.
pub fn fabric(world: &World, fabric: &Fabric) -> Value {
    let vlans: Vec<Value> = vlans_of(world, fabric.id).into_iter().map(|row| vlan(world, row)).collect();
    json!({
        "id": fabric.id,
        "name": fabric.name,
        "class_type": fabric.class_type,
        "vlans": vlans,
        "resource_uri": format!("/MAAS/api/2.0/fabrics/{}/", fabric.id),
    })
}

/// A space with its VLANs and subnets; what belongs to none is shown as a space, too.
pub fn space(world: &World, space: Option<&Space>) -> Value {
    let id = space.map(|space| space.id);
    let vlans: Vec<Value> = world.vlans.values().filter(|row| row.space == id).map(|row| vlan(world, row)).collect();
    let inside = |row: &&Subnet| world.vlans.get(row.vlan).is_some_and(|vlan| vlan.space == id);
    let subnets: Vec<Value> = world.subnets.values().filter(inside).map(|row| subnet(world, row)).collect();
    json!({
        "id": id.map_or(-1, |id| i64::from(id.0)),
        "name": space.map_or("undefined", |space| space.name.as_str()),
        "vlans": vlans,
        "subnets": subnets,
        "resource_uri": format!("/MAAS/api/2.0/spaces/{}/", id.map_or_else(|| "undefined".to_owned(), |id| id.to_string())),
    })
}

/// A range of addresses.
pub fn ip_range(world: &World, range: &Range) -> Value {
    json!({
        "id": range.id,
        "type": match range.kind { RangeKind::Dynamic => "dynamic", RangeKind::Reserved => "reserved" },
        "subnet": subnet_by_id(world, Some(range.subnet)),
        "start_ip": range.start.to_string(),
        "end_ip": range.end.to_string(),
        "user": range.user.and_then(|user| world.users.get(user)).map(super::user),
        "comment": range.comment,
        "resource_uri": format!("/MAAS/api/2.0/ipranges/{}/", range.id),
    })
}

/// A link of an interface.
fn link(world: &World, address: &Address) -> Value {
    let mut object = Map::new();
    object.insert("id".into(), json!(address.id));
    object.insert("mode".into(), json!(address.mode()));
    if let Some(ip) = address.ip.or_else(|| discovered_by_dhcp(world, address)) {
        object.insert("ip_address".into(), json!(ip.to_string()));
    }
    if let Some(subnet) = subnet_by_id(world, address.subnet) {
        object.insert("subnet".into(), subnet);
    }
    Value::Object(object)
}

/// What DHCP was seen to give, for a link that uses it.
fn discovered_by_dhcp(world: &World, address: &Address) -> Option<std::net::IpAddr> {
    let interface = address.interfaces.first().filter(|_| address.kind == AddressKind::Dhcp)?;
    let others = &world.interfaces.get(*interface)?.addresses;
    others
        .iter()
        .filter_map(|id| world.addresses.get(*id))
        .find(|other| other.kind == AddressKind::Discovered && other.subnet == address.subnet)?
        .ip
}

/// An interface of a machine.
pub fn interface(world: &World, interface: &Interface) -> Value {
    let rows = || interface.addresses.iter().filter_map(|id| world.addresses.get(*id));
    let links: Vec<Value> = rows().filter(|address| address.kind != AddressKind::Discovered).map(|address| link(world, address)).collect();
    let seen: Vec<Value> = rows()
        .filter(|address| address.kind == AddressKind::Discovered && address.ip.is_some())
        .map(|address| json!({"ip_address": address.ip.map(|ip| ip.to_string()), "subnet": subnet_by_id(world, address.subnet)}))
        .collect();
    let discovered = if seen.is_empty() { Value::Null } else { Value::Array(seen) };
    let name_of = |id: &Id<Interface>| world.interfaces.get(*id).map(|other| other.name.clone());
    let parents: Vec<String> = interface.parents.iter().filter_map(name_of).collect();
    let siblings = world.machines.get(interface.machine).map(|machine| machine.interfaces.as_slice()).unwrap_or_default();
    let children: Vec<String> = siblings
        .iter()
        .filter_map(|id| world.interfaces.get(*id))
        .filter(|other| other.parents.contains(&interface.id))
        .map(|other| other.name.clone())
        .collect();
    let system_id = world.machines.get(interface.machine).map(|machine| machine.system_id.as_str());
    let on = interface.vlan.and_then(|vlan| world.vlans.get(vlan));
    let mut value = json!({
        "id": interface.id,
        "system_id": system_id,
        "name": interface.name,
        "type": interface.kind.name(),
        "mac_address": interface.mac,
        "vlan": on.map(|on| vlan(world, on)),
        "links": links,
        "discovered": discovered,
        "parents": parents,
        "children": children,
        "tags": interface.tags,
        "params": interface.params,
        "enabled": interface.enabled,
        "link_connected": interface.link_connected,
        "link_speed": interface.link_speed,
        "interface_speed": interface.interface_speed,
        "effective_mtu": interface.params.get("mtu").cloned().unwrap_or_else(|| json!(on.map_or(1500, |on| on.mtu))),
        "vendor": interface.vendor,
        "product": interface.product,
        "firmware_version": interface.firmware_version,
        "numa_node": interface.numa_node,
        "sriov_max_vf": 0,
    });
    match (system_id, value.as_object_mut()) {
        (Some(system_id), Some(object)) => {
            object.insert("resource_uri".into(), json!(format!("/MAAS/api/2.0/nodes/{system_id}/interfaces/{}/", interface.id)));
        }
        // An interface of nobody is shown without what only a machine's has.
        (None, Some(object)) => object.retain(|key, _| !["system_id", "links", "discovered", "effective_mtu"].contains(&key.as_str())),
        (_, None) => {}
    }
    value
}

/// An address as `ipaddresses/` shows it.
pub fn address(world: &World, address: &Address) -> Value {
    let interfaces: Vec<Value> =
        address.interfaces.iter().filter_map(|id| world.interfaces.get(*id)).map(|row| interface(world, row)).collect();
    json!({
        "ip": address.ip.map(|ip| ip.to_string()),
        "alloc_type": address.kind as u8,
        "alloc_type_name": address.kind.name(),
        "created": address.created.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
        "subnet": subnet_by_id(world, address.subnet),
        "owner": address.user.and_then(|user| world.users.get(user)).map(super::user),
        "interface_set": interfaces,
        "resource_uri": "/MAAS/api/2.0/ipaddresses/",
    })
}
