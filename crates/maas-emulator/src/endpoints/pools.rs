//! Resource pools: `resourcepools/` for all, `resourcepool/{id}/` for one.

use super::zones::is_name;
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::id::Id;
use crate::world::place::Pool;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("resourcepools/", &[Operation::get(list), Operation::post(create)]),
    Endpoint::new("resourcepool/{}/", &[Operation::get(read), Operation::put(update), Operation::delete(delete)]),
];

fn find(world: &World, call: &Call) -> Result<Id<Pool>, Refusal> {
    world
        .pools
        .values()
        .map(|pool| pool.id)
        .find(|id| id.to_string() == call.argument(0))
        .ok_or_else(|| Refusal::no_match(world, "ResourcePool"))
}

fn list(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let mut pools: Vec<&Pool> = world.pools.values().collect();
    pools.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Answer::json(&pools.into_iter().map(render::pool).collect()))
}

fn checked_name(world: &World, name: Option<&str>, own: Option<Id<Pool>>) -> Result<Option<String>, Refusal> {
    let Some(name) = name else { return Ok(None) };
    if !is_name(name) {
        return Err(Refusal::field("name", "Enter a valid value."));
    }
    if world.pools.values().any(|pool| pool.name == name && Some(pool.id) != own) {
        return Err(Refusal::field("name", "Resource pool with this Name already exists."));
    }
    Ok(Some(name.to_owned()))
}

fn answer(world: &World, id: Id<Pool>) -> Reply {
    world.pools.get(id).map(|pool| Answer::json(&render::pool(pool))).ok_or_else(|| Refusal::no_match(world, "ResourcePool"))
}

fn create(world: &mut World, call: &Call) -> Reply {
    call.administered(world, |_, _| Ok(()))?;
    let name = checked_name(world, call.form.filled("name"), None)?.ok_or_else(|| Refusal::field("name", "This field is required."))?;
    let description = call.form.get("description").unwrap_or("").to_owned();
    let id = world.pools.add(None, |id| Pool { id, name, description });
    answer(world, id)
}

fn read(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    answer(world, id)
}

fn update(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, find)?;
    let name = checked_name(world, call.form.filled("name"), Some(id))?;
    if let Some(pool) = world.pools.get_mut(id) {
        pool.name = name.unwrap_or_else(|| pool.name.clone());
        pool.description = call.form.get("description").map_or_else(|| pool.description.clone(), str::to_owned);
    }
    answer(world, id)
}

fn delete(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, find)?;
    if id == Id::new(0) {
        return Err(Refusal::text(400, "This is the default pool, it cannot be deleted."));
    }
    if world.machines.values().any(|machine| machine.pool == id) {
        return Err(Refusal::text(400, "Pool has machines in it, it cannot be deleted."));
    }
    if world.vm_hosts.values().any(|host| host.pool == id) {
        return Err(Refusal::text(400, "Pool has VM hosts in it, it cannot be deleted."));
    }
    world.pools.remove(id);
    Ok(Answer::deleted())
}
