//! `nodes/{}/interfaces/`: interfaces of machines and their links, for administrators.

use std::net::IpAddr;

use serde_json::{Map, json};

use super::ip_addresses;
use super::machines::is_mac;
use crate::fleet::{LinkMode, RangeKind};
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::addressing::NewAddress;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{Address, AddressKind, Interface, InterfaceKind, Subnet, Vlan};
use crate::world::status::Status;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new(
        "nodes/{}/interfaces/",
        &[
            Operation::get(list),
            Operation::post_op("create_physical", create_physical),
            Operation::post_op("create_bridge", create_bridge),
            Operation::post_op("create_bond", create_bond),
            Operation::post_op("create_vlan", create_vlan),
        ],
    ),
    Endpoint::new(
        "nodes/{}/interfaces/{}/",
        &[
            Operation::get(read),
            Operation::put(update),
            Operation::delete(delete),
            Operation::post_op("link_subnet", link_subnet),
            Operation::post_op("unlink_subnet", unlink_subnet),
            Operation::post_op("disconnect", disconnect),
            Operation::post_op("set_default_gateway", set_default_gateway),
            Operation::post_op("add_tag", add_tag),
            Operation::post_op("remove_tag", remove_tag),
        ],
    ),
];

/// The machine whose interfaces are changed: by an administrator, in a state that allows it.
fn changed_machine(world: &World, call: &Call) -> Result<Id<Machine>, Refusal> {
    let id = call.administered_machine(world)?;
    let status = world.machines.get(id).map_or(Status::Missing, |machine| machine.status);
    match status {
        Status::New | Status::Ready | Status::Allocated | Status::FailedTesting | Status::Broken => Ok(id),
        _ => Err(Refusal::text(409, "Cannot modify interface: machine is not New, Ready, Allocated, Failed Testing or Broken.")),
    }
}

fn find(world: &World, call: &Call, machine: Id<Machine>) -> Result<Id<Interface>, Refusal> {
    let wanted = call.argument(1);
    let rows = world.machines.get(machine).map(|machine| machine.interfaces.as_slice()).unwrap_or_default();
    let found = rows.iter().copied().find(|id| id.to_string() == wanted || world.interfaces.get(*id).is_some_and(|row| row.name == wanted));
    found.ok_or_else(|| Refusal::no_match(world, "Interface"))
}

fn answer(world: &World, id: Id<Interface>) -> Reply {
    world
        .interfaces
        .get(id)
        .map(|interface| Answer::json(&render::interface(world, interface)))
        .ok_or_else(|| Refusal::no_match(world, "Interface"))
}

fn list(world: &mut World, call: &Call) -> Reply {
    let machine = call.viewed_machine(world)?;
    let rows = world.machines.get(machine).map(|machine| machine.interfaces.as_slice()).unwrap_or_default();
    Ok(Answer::json(&rows.iter().filter_map(|id| world.interfaces.get(*id)).map(|row| render::interface(world, row)).collect()))
}

fn read(world: &mut World, call: &Call) -> Reply {
    let machine = call.viewed_machine(world)?;
    let id = find(world, call, machine)?;
    answer(world, id)
}

/// What a new interface is made of.
struct New {
    name: String,
    kind: InterfaceKind,
    mac: String,
    vlan: Option<Id<Vlan>>,
    parents: Vec<Id<Interface>>,
    params: Map<String, serde_json::Value>,
    tags: Vec<String>,
}

/// Adds an interface that is up and has no address.
fn add(world: &mut World, machine: Id<Machine>, new: New) -> Id<Interface> {
    let id = world.interfaces.add(None, |id| Interface {
        id,
        machine,
        name: new.name,
        numa_node: (new.kind == InterfaceKind::Physical).then_some(0),
        kind: new.kind,
        mac: new.mac,
        vlan: new.vlan,
        addresses: Vec::new(),
        parents: new.parents,
        tags: new.tags,
        params: new.params,
        enabled: true,
        link_connected: false,
        link_speed: 0,
        interface_speed: 0,
        vendor: None,
        product: None,
        firmware_version: None,
        acquired: false,
    });
    if let Some(machine) = world.machines.get_mut(machine) {
        machine.interfaces.push(id);
    }
    id
}

fn link_up(world: &mut World, id: Id<Interface>, subnet: Option<Id<Subnet>>) {
    world.add_address(NewAddress { ip: None, kind: AddressKind::Sticky, subnet, user: None, interface: Some(id) });
}

/// Links of an interface, without what was discovered.
fn links(world: &World, id: Id<Interface>) -> Vec<Id<Address>> {
    let rows = world.interfaces.get(id).map(|interface| interface.addresses.as_slice()).unwrap_or_default();
    rows.iter().copied().filter(|address| world.addresses.get(*address).is_some_and(|row| row.kind != AddressKind::Discovered)).collect()
}

fn vlan_wished(world: &World, call: &Call) -> Result<Option<Id<Vlan>>, Refusal> {
    let Some(text) = call.form.filled("vlan") else { return Ok(None) };
    let found = world.vlans.values().map(|vlan| vlan.id).find(|id| id.to_string() == text);
    found.map(Some).ok_or_else(|| Refusal::field("vlan", "Select a valid choice. That choice is not one of the available choices."))
}

fn refuse_taken_name(world: &World, machine: Id<Machine>, name: &str) -> Result<(), Refusal> {
    let rows = world.machines.get(machine).map(|machine| machine.interfaces.as_slice()).unwrap_or_default();
    if rows.iter().filter_map(|id| world.interfaces.get(*id)).any(|row| row.name == name) {
        return Err(Refusal::late_field("__all__", "Interface with this Node config and Name already exists."));
    }
    Ok(())
}

fn parent_wished(world: &World, machine: Id<Machine>, text: &str) -> Option<Id<Interface>> {
    let rows = world.machines.get(machine).map(|machine| machine.interfaces.as_slice()).unwrap_or_default();
    rows.iter().copied().find(|id| id.to_string() == text || world.interfaces.get(*id).is_some_and(|row| row.name == text))
}

fn tags(call: &Call) -> Vec<String> {
    call.form.all("tags").flat_map(|text| text.split(',')).map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

fn create_physical(world: &mut World, call: &Call) -> Reply {
    let machine = call.administered_machine(world)?;
    let mac = call.form.filled("mac_address").ok_or_else(|| Refusal::field("mac_address", "This field is required."))?.to_ascii_lowercase();
    if !is_mac(&mac) {
        return Err(Refusal::field("mac_address", format!("'{mac}' is not a valid MAC address.")));
    }
    if world.interfaces.values().any(|row| row.kind == InterfaceKind::Physical && row.mac == mac) {
        return Err(Refusal::field("mac_address", format!("This MAC address is already in use by {mac}.")));
    }
    let count = world.machines.get(machine).map_or(0, |machine| machine.interfaces.len());
    let name = call.form.filled("name").map_or_else(|| format!("eth{count}"), str::to_owned);
    refuse_taken_name(world, machine, &name)?;
    let vlan = vlan_wished(world, call)?;
    let id = add(
        world,
        machine,
        New { name, kind: InterfaceKind::Physical, mac, vlan, parents: Vec::new(), params: Map::new(), tags: tags(call) },
    );
    link_up(world, id, None);
    answer(world, id)
}

fn create_bridge(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call)?;
    let text = call.form.filled("parent").ok_or_else(|| Refusal::field("parent", "This field is required."))?;
    let parent = parent_wished(world, machine, text)
        .ok_or_else(|| Refusal::field("parent", "Select a valid choice. That choice is not one of the available choices."))?;
    let name = call.form.filled("name").ok_or_else(|| Refusal::field("name", "This field is required."))?.to_owned();
    refuse_taken_name(world, machine, &name)?;
    let stp = call.flag("bridge_stp")?.unwrap_or(false);
    let delay = call.form.filled("bridge_fd").and_then(|text| text.parse().ok()).unwrap_or(15);
    let kind = call.form.filled("bridge_type").unwrap_or("standard").to_owned();
    let id = bridge_on(world, machine, parent, name, bridge_options(&kind, stp, delay));
    // Nothing moves to the bridge: the parent's links go, and the bridge is only up.
    for link in links(world, parent) {
        world.remove_address(link);
    }
    let discovered = world.interfaces.get(parent).map(|row| row.addresses.clone()).unwrap_or_default();
    for address in discovered {
        world.remove_address(address);
    }
    link_up(world, id, None);
    answer(world, id)
}

fn bridge_options(kind: &str, stp: bool, delay: u32) -> Map<String, serde_json::Value> {
    Map::from_iter([("bridge_fd".to_owned(), json!(delay)), ("bridge_stp".to_owned(), json!(stp)), ("bridge_type".to_owned(), json!(kind))])
}

fn bridge_on(
    world: &mut World,
    machine: Id<Machine>,
    parent: Id<Interface>,
    name: String,
    params: Map<String, serde_json::Value>,
) -> Id<Interface> {
    let (mac, vlan) = world.interfaces.get(parent).map(|row| (row.mac.clone(), row.vlan)).unwrap_or_default();
    add(world, machine, New { name, kind: InterfaceKind::Bridge, mac, vlan, parents: vec![parent], params, tags: Vec::new() })
}

/// Puts a bridge on every interface with links and moves these over, until the machine is released.
pub fn bridge_all(world: &mut World, machine: Id<Machine>, kind: &str, stp: bool, forward_delay: u32) {
    let parents = world.machines.get(machine).map(|machine| machine.interfaces.clone()).unwrap_or_default();
    for parent in parents {
        let configured = links(world, parent).into_iter().any(|link| world.addresses.get(link).is_some_and(|row| row.subnet.is_some()));
        let Some(row) = world.interfaces.get(parent) else { continue };
        if !configured || row.kind == InterfaceKind::Bridge {
            continue;
        }
        let (connected, mut name) = (row.link_connected, format!("br-{}", row.name));
        name.truncate(15);
        let bridge = bridge_on(world, machine, parent, name, bridge_options(kind, stp, forward_delay));
        if let Some(row) = world.interfaces.get_mut(bridge) {
            row.acquired = true;
            row.link_connected = connected;
        }
        move_links(world, parent, bridge);
    }
}

fn move_links(world: &mut World, from: Id<Interface>, to: Id<Interface>) {
    for link in links(world, from) {
        if let Some(row) = world.interfaces.get_mut(from) {
            row.addresses.retain(|other| *other != link);
        }
        if let Some(row) = world.interfaces.get_mut(to) {
            row.addresses.push(link);
        }
        if let Some(row) = world.addresses.get_mut(link) {
            row.interfaces = vec![to];
        }
    }
}

/// Takes a bridge made by [`bridge_all`] away and gives its links back.
pub fn dissolve(world: &mut World, bridge: Id<Interface>) {
    let parent = world.interfaces.get(bridge).and_then(|row| row.parents.first().copied());
    if let Some(parent) = parent {
        move_links(world, bridge, parent);
    }
    world.remove_interface(bridge);
}

fn create_bond(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call)?;
    let parents: Vec<Id<Interface>> = call.form.all("parents").filter_map(|text| parent_wished(world, machine, text)).collect();
    if parents.is_empty() {
        return Err(Refusal::field("parents", "A bond interface must have one or more parents."));
    }
    let name = call.form.filled("name").ok_or_else(|| Refusal::field("name", "This field is required."))?.to_owned();
    let rows: Vec<&Interface> = parents.iter().filter_map(|id| world.interfaces.get(*id)).collect();
    let used: Vec<&str> = rows
        .iter()
        .filter(|row| world.interfaces.values().any(|other| other.parents.contains(&row.id)))
        .map(|row| row.name.as_str())
        .collect();
    let mut problems = Vec::new();
    if !used.is_empty() {
        problems.push(format!("Interfaces already in-use: {}.", used.join(", ")));
    }
    let vlan = rows.first().and_then(|row| row.vlan);
    if rows.iter().any(|row| row.vlan != vlan) {
        problems.push("All parents must belong to the same VLAN.".to_owned());
    }
    if !problems.is_empty() {
        return Err(Refusal::fields([("parents".to_owned(), problems)]));
    }
    refuse_taken_name(world, machine, &name)?;
    let mac = call
        .form
        .filled("mac_address")
        .map(str::to_ascii_lowercase)
        .or_else(|| rows.first().map(|row| row.mac.clone()))
        .unwrap_or_default();
    let text = |key: &str, default: &str| call.form.filled(key).unwrap_or(default).to_owned();
    let number = |key: &str, default: u32| call.form.filled(key).and_then(|text| text.parse().ok()).unwrap_or(default);
    let params = Map::from_iter([
        ("bond_mode".to_owned(), json!(text("bond_mode", "active-backup"))),
        ("bond_miimon".to_owned(), json!(number("bond_miimon", 100))),
        ("bond_downdelay".to_owned(), json!(number("bond_downdelay", 0))),
        ("bond_updelay".to_owned(), json!(number("bond_updelay", 0))),
        ("bond_lacp_rate".to_owned(), json!(text("bond_lacp_rate", "fast"))),
        ("bond_xmit_hash_policy".to_owned(), json!(text("bond_xmit_hash_policy", "layer2"))),
        ("bond_num_grat_arp".to_owned(), json!(number("bond_num_grat_arp", 1))),
    ]);
    for parent in &parents {
        for link in links(world, *parent) {
            world.remove_address(link);
        }
    }
    let id = add(world, machine, New { name, kind: InterfaceKind::Bond, mac, vlan, parents, params, tags: tags(call) });
    link_up(world, id, None);
    answer(world, id)
}

fn create_vlan(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call)?;
    let text = call.form.filled("parent").ok_or_else(|| Refusal::field("parent", "This field is required."))?;
    let parent = parent_wished(world, machine, text)
        .ok_or_else(|| Refusal::field("parent", "Select a valid choice. That choice is not one of the available choices."))?;
    let vlan = vlan_wished(world, call)?.ok_or_else(|| Refusal::field("vlan", "This field is required."))?;
    let fabric_of = |vlan: Option<Id<Vlan>>| vlan.and_then(|vlan| world.vlans.get(vlan)).map(|vlan| vlan.fabric);
    let parent_row = world.interfaces.get(parent);
    let same_fabric = fabric_of(parent_row.and_then(|row| row.vlan)) == fabric_of(Some(vlan));
    let vid = world.vlans.get(vlan).map_or(0, |vlan| vlan.vid);
    if vid == 0 || !same_fabric {
        return Err(Refusal::field(
            "vlan",
            "A VLAN interface can only belong to a tagged VLAN on the same fabric as its parent interface.",
        ));
    }
    let (name, mac) = parent_row.map(|row| (format!("{}.{vid}", row.name), row.mac.clone())).unwrap_or_default();
    refuse_taken_name(world, machine, &name)?;
    let id = add(
        world,
        machine,
        New { name, kind: InterfaceKind::Vlan, mac, vlan: Some(vlan), parents: vec![parent], params: Map::new(), tags: tags(call) },
    );
    link_up(world, id, None);
    answer(world, id)
}

fn update(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call)?;
    let id = find(world, call, machine)?;
    let vlan = vlan_wished(world, call)?;
    if let Some(name) = call.form.filled("name")
        && world.interfaces.get(id).is_some_and(|row| row.name != name)
    {
        refuse_taken_name(world, machine, name)?;
    }
    let mtu: Option<u32> =
        call.form.filled("mtu").map(|text| text.parse().map_err(|_| Refusal::field("mtu", "Enter a whole number."))).transpose()?;
    if let Some(row) = world.interfaces.get_mut(id) {
        if let Some(name) = call.form.filled("name") {
            name.clone_into(&mut row.name);
        }
        row.vlan = vlan.or(row.vlan);
        if let Some(mtu) = mtu {
            row.params.insert("mtu".into(), json!(mtu));
        }
        if call.form.has("tags") {
            row.tags = tags(call);
        }
    }
    answer(world, id)
}

fn delete(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call)?;
    let id = find(world, call, machine)?;
    world.remove_interface(id);
    Ok(Answer::deleted())
}

fn link_subnet(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call)?;
    let id = find(world, call, machine)?;
    let mode = call.form.filled("mode").ok_or_else(|| Refusal::field("mode", "This field is required."))?.to_ascii_lowercase();
    let mode = match mode.as_str() {
        "auto" => LinkMode::Auto,
        "dhcp" => LinkMode::Dhcp,
        "static" => LinkMode::Static,
        "link_up" => LinkMode::LinkUp,
        other => {
            return Err(Refusal::field(
                "mode",
                format!("'{other}' is not a valid mode.  It should be one of: 'auto', 'dhcp', 'static', 'link_up'."),
            ));
        }
    };
    let on_vlan = world.interfaces.get(id).and_then(|row| row.vlan);
    let subnet = match call.form.filled("subnet") {
        None => None,
        Some(text) => {
            let found = world.subnet_specified(text).filter(|subnet| world.subnets.get(*subnet).map(|subnet| subnet.vlan) == on_vlan);
            Some(found.ok_or_else(|| Refusal::field("subnet", format!("None found with id={text}.")))?)
        }
    };
    if subnet.is_none() && matches!(mode, LinkMode::Auto | LinkMode::Static) {
        return Err(Refusal::field("subnet", "This field is required."));
    }
    let ip = match (mode, subnet) {
        (LinkMode::Static, Some(subnet)) => Some(static_address(world, call, subnet)?),
        _ => None,
    };
    if call.flag("force")?.unwrap_or(false) {
        for link in links(world, id) {
            world.remove_address(link);
        }
    }
    // A link that is only up makes room for one that says more.
    for link in links(world, id) {
        if world.addresses.get(link).is_some_and(|row| row.mode() == "link_up") {
            world.remove_address(link);
        }
    }
    world.add_address(NewAddress { ip, kind: AddressKind::of_link(mode), subnet, user: None, interface: Some(id) });
    answer(world, id)
}

fn static_address(world: &World, call: &Call, id: Id<Subnet>) -> Result<IpAddr, Refusal> {
    let Some(text) = call.form.filled("ip_address") else { return ip_addresses::next_free(world, id) };
    let ip: IpAddr = text.parse().map_err(|_| Refusal::field("ip_address", "Enter a valid IPv4 or IPv6 address."))?;
    let Some(subnet) = world.subnets.get(id) else { return Err(Refusal::no_match(world, "Subnet")) };
    if !subnet.cidr.contains(&ip) {
        let vid = world.vlans.get(subnet.vlan).map_or(0, |vlan| vlan.vid);
        return Err(Refusal::field(
            "ip_address",
            format!("IP address is not in the given subnet '{}:{}(vid={vid})'.", subnet.name, subnet.cidr),
        ));
    }
    let dynamic =
        world.ranges.values().find(|range| range.subnet == id && range.kind == RangeKind::Dynamic && range.start <= ip && ip <= range.end);
    if let Some(range) = dynamic {
        return Err(Refusal::field("ip_address", format!("IP address is inside a dynamic range {} to {}.", range.start, range.end)));
    }
    if world.address_in_use(ip).is_some() {
        return Err(Refusal::text(404, "IP address is already in use."));
    }
    Ok(ip)
}

fn unlink_subnet(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call)?;
    let id = find(world, call, machine)?;
    let text = call.form.filled("id").ok_or_else(|| Refusal::field("id", "This field is required."))?;
    let known = links(world, id);
    let link = known.iter().copied().find(|link| link.to_string() == text);
    let link = link.ok_or_else(|| Refusal::field("id", "Select a valid choice. That choice is not one of the available choices."))?;
    let subnet = world.remove_address(link).and_then(|address| address.subnet);
    if known.len() == 1 {
        link_up(world, id, subnet);
    }
    answer(world, id)
}

/// Takes all links, what was discovered and the VLAN away.
fn disconnect(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call)?;
    let id = find(world, call, machine)?;
    let addresses = world.interfaces.get(id).map(|row| row.addresses.clone()).unwrap_or_default();
    for address in addresses {
        world.remove_address(address);
    }
    if let Some(row) = world.interfaces.get_mut(id) {
        row.vlan = None;
    }
    answer(world, id)
}

fn set_default_gateway(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call)?;
    let id = find(world, call, machine)?;
    answer(world, id)
}

fn add_tag(world: &mut World, call: &Call) -> Reply {
    let machine = call.administered_machine(world)?;
    let id = find(world, call, machine)?;
    let tag = call.form.filled("tag").ok_or_else(|| Refusal::text(400, "No provided tag!"))?.to_owned();
    if let Some(row) = world.interfaces.get_mut(id)
        && !row.tags.contains(&tag)
    {
        row.tags.push(tag);
    }
    answer(world, id)
}

fn remove_tag(world: &mut World, call: &Call) -> Reply {
    let machine = call.administered_machine(world)?;
    let id = find(world, call, machine)?;
    let tag = call.form.filled("tag").ok_or_else(|| Refusal::text(400, "No provided tag!"))?;
    if let Some(row) = world.interfaces.get_mut(id) {
        row.tags.retain(|other| other != tag);
    }
    answer(world, id)
}
