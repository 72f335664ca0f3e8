//! `users/`.

use serde_json::json;

use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::oauth;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::id::Id;
use crate::world::people::User;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("users/", &[Operation::get(list), Operation::get_op("whoami", whoami), Operation::post(create)]),
    Endpoint::new("users/{}/", &[Operation::get(read), Operation::delete(delete)]),
];

fn find(world: &World, call: &Call) -> Result<Id<User>, Refusal> {
    world.user_named(call.argument(0)).map(|user| user.id).ok_or_else(|| Refusal::no_match(world, "User"))
}

fn answer(world: &World, id: Id<User>) -> Reply {
    world.users.get(id).map(|user| Answer::json(&render::user(user))).ok_or_else(|| Refusal::no_match(world, "User"))
}

/// The name of MAAS's own user.
const OWN: &str = "MAAS";

fn own() -> serde_json::Value {
    json!({"username": OWN, "email": "maas@localhost", "is_superuser": false, "is_local": true, "resource_uri": "/MAAS/api/2.0/users/MAAS/"})
}

/// All users by name, MAAS's own one among them.
fn list(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let mut users: Vec<(String, serde_json::Value)> = world.users.values().map(|user| (user.name.clone(), render::user(user))).collect();
    users.push((OWN.into(), own()));
    users.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(Answer::json(&users.into_iter().map(|(_, user)| user).collect()))
}

fn whoami(world: &mut World, call: &Call) -> Reply {
    let id = call.caller()?;
    answer(world, id)
}

fn read(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    if call.argument(0) == OWN {
        return Ok(Answer::json(&own()));
    }
    let id = find(world, call)?;
    answer(world, id)
}

/// A name that exists is a conflict in the database, which MAAS retries in vain.
fn create(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let need = |key: &str| call.form.get(key).map(str::to_owned).ok_or_else(|| Refusal::text(400, format!("No provided {key}!")));
    let (name, email) = (need("username")?, need("email")?);
    need("password")?;
    let superuser = match need("is_superuser")?.as_str() {
        "0" => false,
        "1" => true,
        other => return Err(Refusal::text(500, format!("Not a valid Boolean value (0 or 1): '{other}'"))),
    };
    if name.is_empty() {
        return Err(Refusal::text(500, "The given username must be set"));
    }
    if name == OWN || world.user_named(&name).is_some() {
        return Err(Refusal::conflict(world.version));
    }
    let id = world.users.add(None, |id| User { id, name, email, superuser });
    oauth::token_asked_for(world, id, "MAAS consumer")?;
    answer(world, id)
}

/// Users with machines, addresses or ranges stay unless somebody takes those over; one who is not there is gone already.
fn delete(world: &mut World, call: &Call) -> Reply {
    let caller = call.admin(world)?;
    if world.user_name(caller) == call.argument(0) {
        return Err(Refusal::text(400, "An administrator cannot self-delete."));
    }
    let Ok(id) = find(world, call) else { return Ok(Answer::deleted()) };
    let heir = match call.query.filled("transfer_resources_to") {
        None => None,
        Some(name) => Some(world.user_named(name).map(|user| user.id).ok_or_else(|| Refusal::no_match(world, "User"))?),
    };
    if heir.is_none() {
        refuse_owning(world, id)?;
    }
    for machine in world.machines.values_mut().filter(|machine| machine.owner == Some(id)) {
        machine.owner = heir;
    }
    for address in world.addresses.values_mut().filter(|address| address.user == Some(id)) {
        address.user = heir;
    }
    for range in world.ranges.values_mut().filter(|range| range.user == Some(id)) {
        range.user = heir;
    }
    world.tokens.retain(|token| token.user != id);
    world.users.remove(id);
    Ok(Answer::deleted())
}

fn refuse_owning(world: &World, id: Id<User>) -> Result<(), Refusal> {
    let owned = [
        (world.addresses.values().filter(|address| address.user == Some(id)).count(), "static IP address(es)"),
        (world.ranges.values().filter(|range| range.user == Some(id)).count(), "IP range(s)"),
        (world.machines.values().filter(|machine| machine.owner == Some(id)).count(), "node(s)"),
    ];
    let owned: Vec<String> = owned.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if owned.is_empty() {
        return Ok(());
    }
    Err(Refusal::text(400, format!("User {} cannot be deleted: {} are still allocated", world.user_name(id), owned.join(", "))))
}
