//! `nodes/{}/interfaces/`: interfaces of machines and their links, for administrators.

mod bond;
mod bridge;
mod card;
mod fields;
mod link;

use serde_json::Map;

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

pub use bridge::{bridge_all, bridge_type, dissolve, is_bridge_type};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new(
        "nodes/{}/interfaces/",
        &[
            Operation::get(list),
            Operation::post_op("create_physical", card::create_physical),
            Operation::post_op("create_bridge", bridge::create_bridge),
            Operation::post_op("create_bond", bond::create_bond),
            Operation::post_op("create_vlan", card::create_vlan),
        ],
    ),
    Endpoint::new(
        "nodes/{}/interfaces/{}/",
        &[
            Operation::get(read),
            Operation::put(card::update),
            Operation::delete(delete),
            Operation::post_op("link_subnet", link::link_subnet),
            Operation::post_op("unlink_subnet", link::unlink_subnet),
            Operation::post_op("disconnect", link::disconnect),
            Operation::post_op("set_default_gateway", link::set_default_gateway),
            Operation::post_op("add_tag", add_tag),
            Operation::post_op("remove_tag", remove_tag),
        ],
    ),
];

/// How MAAS ends its words for an object that is not there.
const NO_CHOICE_OF: &str = "is not one of the available choices.";

/// The machine that gets an interface: by an administrator, in a state that allows what MAAS calls `operation`.
fn changed_machine(world: &World, call: &Call, operation: &str) -> Result<Id<Machine>, Refusal> {
    let id = call.administered_machine(world)?;
    refuse_state(world, id, operation, &[])?;
    Ok(id)
}

/// The interface that is changed, likewise.
fn changed_interface(world: &World, call: &Call, operation: &str) -> Result<Id<Interface>, Refusal> {
    let (machine, id) = administered(world, call)?;
    refuse_state(world, machine, operation, &[])?;
    Ok(id)
}

/// Refuses what is not for the state of a machine; MAAS's words leave one of the states out that allow it.
fn refuse_state(world: &World, machine: Id<Machine>, operation: &str, besides: &[Status]) -> Result<(), Refusal> {
    match world.machines.get(machine).map_or(Status::Missing, |machine| machine.status) {
        Status::New | Status::Ready | Status::Allocated | Status::FailedTesting | Status::Broken => Ok(()),
        status if besides.contains(&status) => Ok(()),
        _ => {
            let words = format!("Cannot {operation} interface because the machine is not New, Ready, Allocated, or Broken.");
            Err(Refusal::text(409, words))
        }
    }
}

/// The interface the path names with its machine. MAAS looks for the interface: a machine that is not there has none.
fn find(world: &World, call: &Call) -> Result<(Id<Machine>, Id<Interface>), Refusal> {
    let wanted = call.argument(1);
    let is_wanted = |id: &Id<Interface>| id.to_string() == wanted || world.interfaces.get(*id).is_some_and(|row| row.name == wanted);
    let machine = world.machine_id(call.argument(0)).and_then(|id| world.machines.get(id));
    let found = machine.and_then(|machine| Some((machine.id, machine.interfaces.iter().copied().find(is_wanted)?)));
    found.ok_or_else(|| Refusal::no_match(world, "Interface"))
}

/// The same for an administrator, of a machine that is not locked.
fn administered(world: &World, call: &Call) -> Result<(Id<Machine>, Id<Interface>), Refusal> {
    let (machine, id) = call.administered(world, find)?;
    if world.machines.get(machine).is_some_and(|machine| machine.locked) { Err(Refusal::forbidden()) } else { Ok((machine, id)) }
}

fn answer(world: &World, id: Id<Interface>) -> Reply {
    world
        .interfaces
        .get(id)
        .map(|interface| Answer::json(&render::interface(world, interface)))
        .ok_or_else(|| Refusal::no_match(world, "Interface"))
}

fn list(world: &mut World, call: &Call) -> Reply {
    let machine = call.node(world, World::may_view)?;
    let rows = world.machines.get(machine).map(|machine| machine.interfaces.as_slice()).unwrap_or_default();
    Ok(Answer::json(&rows.iter().filter_map(|id| world.interfaces.get(*id)).map(|row| render::interface(world, row)).collect()))
}

fn read(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let (machine, id) = find(world, call)?;
    if world.machines.get(machine).is_some_and(|machine| world.may_view(user, machine)) {
        answer(world, id)
    } else {
        Err(Refusal::forbidden())
    }
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
    found.map(Some).ok_or_else(|| Refusal::field("vlan", format!("Select a valid choice. That choice {NO_CHOICE_OF}")))
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

fn delete(world: &mut World, call: &Call) -> Reply {
    let id = changed_interface(world, call, "delete interface")?;
    world.remove_interface(id);
    Ok(Answer::deleted())
}

fn add_tag(world: &mut World, call: &Call) -> Reply {
    let (_, id) = administered(world, call)?;
    let tag = call.form.filled("tag").ok_or_else(|| Refusal::text(400, "No provided tag!"))?.to_owned();
    if let Some(row) = world.interfaces.get_mut(id)
        && !row.tags.contains(&tag)
    {
        row.tags.push(tag);
    }
    answer(world, id)
}

fn remove_tag(world: &mut World, call: &Call) -> Reply {
    let (_, id) = administered(world, call)?;
    let tag = call.form.filled("tag").ok_or_else(|| Refusal::text(400, "No provided tag!"))?;
    if let Some(row) = world.interfaces.get_mut(id) {
        row.tags.retain(|other| other != tag);
    }
    answer(world, id)
}
