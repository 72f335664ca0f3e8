//! Bridges: one by one, or on every interface of a machine for as long as somebody has it.

use serde_json::{Map, json};

use super::fields::{self, Change};
use super::{NO_CHOICE_OF, New, add, answer, changed_machine, link_up, links, parent_wished, refuse_taken_name, tags, vlan_wished};
use crate::http::answer::{Refusal, Reply};
use crate::http::call::Call;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{Interface, InterfaceKind};

const TYPES: [&str; 2] = ["standard", "ovs"];
/// How many seconds a bridge waits unless somebody says otherwise.
const FORWARD_DELAY: u32 = 15;

/// Whether MAAS makes bridges of this type.
pub fn is_bridge_type(kind: &str) -> bool {
    TYPES.contains(&kind)
}

/// The type of bridge a caller wishes for.
pub fn bridge_type(call: &Call) -> Result<String, Refusal> {
    Ok(fields::choice(call, "bridge_type", &TYPES)?.unwrap_or_else(|| TYPES[0].to_owned()))
}

/// The options a form asks for; those it does not name stay.
pub(super) fn options(call: &Call) -> Result<Vec<Change>, Refusal> {
    let mut changes = fields::options(call)?;
    changes.extend(fields::choice(call, "bridge_type", &TYPES)?.map(|kind| ("bridge_type", Some(json!(kind)))));
    changes.extend(call.flag("bridge_stp")?.map(|stp| ("bridge_stp", Some(json!(stp)))));
    changes.extend(fields::number(call, "bridge_fd", 0, i32::MAX as u32)?.map(|delay| ("bridge_fd", Some(json!(delay)))));
    Ok(changes)
}

pub(super) fn create_bridge(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call, "create bridge")?;
    let text = call.form.filled("parent").ok_or_else(|| Refusal::field("parent", "This field is required."))?;
    let parent = parent_wished(world, machine, text)
        .ok_or_else(|| Refusal::field("parent", format!("Select a valid choice. That choice {NO_CHOICE_OF}")))?;
    let name = call.form.filled("name").ok_or_else(|| Refusal::field("name", "This field is required."))?.to_owned();
    refuse_taken_name(world, machine, &name)?;
    let (mac, vlan) = (fields::mac(call)?, vlan_wished(world, call)?);
    let mut params = bridge_options(TYPES[0], false, FORWARD_DELAY);
    fields::apply(&mut params, options(call)?);
    let id = bridge_on(world, machine, parent, name, params);
    if let Some(row) = world.interfaces.get_mut(id) {
        row.mac = mac.unwrap_or_else(|| row.mac.clone());
        row.vlan = vlan.or(row.vlan);
        row.tags = tags(call);
    }
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
        // So many letters fit into the name of an interface.
        let (connected, name) = (row.link_connected, format!("br-{}", row.name).chars().take(15).collect());
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
