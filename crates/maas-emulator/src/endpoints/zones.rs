//! `zones/`, by name.

use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::id::Id;
use crate::world::place::Zone;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("zones/", &[Operation::get(list), Operation::post(create)]),
    Endpoint::new("zones/{}/", &[Operation::get(read), Operation::put(update), Operation::delete(delete)]),
];

/// Names of zones and pools: letters, digits and underscores, after the first also spaces and hyphens.
pub fn is_name(name: &str) -> bool {
    let first = |letter: char| letter.is_alphanumeric() || letter == '_';
    name.chars().count() <= 256 && name.starts_with(first) && name.chars().all(|letter| first(letter) || matches!(letter, ' ' | '-'))
}

fn find(world: &World, call: &Call) -> Option<Id<Zone>> {
    world.zones.values().find(|zone| zone.name == call.argument(0)).map(|zone| zone.id)
}

fn list(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let mut zones: Vec<&Zone> = world.zones.values().collect();
    zones.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Answer::json(&zones.into_iter().map(render::zone).collect()))
}

fn create(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let name = checked_name(world, call.form.filled("name"), None)?.ok_or_else(|| Refusal::field("name", "This field is required."))?;
    let description = call.form.get("description").unwrap_or("").to_owned();
    let id = world.zones.add(None, |id| Zone { id, name, description });
    answer(world, id)
}

fn checked_name(world: &World, name: Option<&str>, own: Option<Id<Zone>>) -> Result<Option<String>, Refusal> {
    let Some(name) = name else { return Ok(None) };
    if !is_name(name) {
        return Err(Refusal::field("name", "Enter a valid value."));
    }
    if world.zones.values().any(|zone| zone.name == name && Some(zone.id) != own) {
        return Err(Refusal::field("name", "Physical zone with this Name already exists."));
    }
    Ok(Some(name.to_owned()))
}

fn answer(world: &World, id: Id<Zone>) -> Reply {
    world.zones.get(id).map(|zone| Answer::json(&render::zone(zone))).ok_or_else(|| Refusal::no_match(world, "Zone"))
}

fn read(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call).ok_or_else(|| Refusal::no_match(world, "Zone"))?;
    answer(world, id)
}

fn update(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let id = find(world, call).ok_or_else(|| Refusal::no_match(world, "Zone"))?;
    let name = checked_name(world, call.form.filled("name"), Some(id))?;
    if let Some(zone) = world.zones.get_mut(id) {
        zone.name = name.unwrap_or_else(|| zone.name.clone());
        zone.description = call.form.get("description").map_or_else(|| zone.description.clone(), str::to_owned);
    }
    answer(world, id)
}

/// Deleting a zone that is not there is done; machines of one that is move to the default zone.
fn delete(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let Some(id) = find(world, call) else { return Ok(Answer::deleted()) };
    let default = Id::new(1);
    if id == default {
        return Err(Refusal::text(400, "This zone is the default zone, it cannot be deleted."));
    }
    world.zones.remove(id);
    for machine in world.machines.values_mut().filter(|machine| machine.zone == id) {
        machine.zone = default;
    }
    for host in world.vm_hosts.values_mut().filter(|host| host.zone == id) {
        host.zone = default;
    }
    Ok(Answer::deleted())
}
