//! Power: parameters, queries, switches.

use serde_json::{Value, json};

use super::answer;
use super::deploy::decode;
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::lifecycle;
use crate::world::World;
use crate::world::event::Level;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::status::Status;

/// `GET machines/?op=power_parameters`, for administrators.
pub fn all_parameters(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let wanted: Vec<&str> = call.query.all("id").collect();
    let listed = world.all_machines().filter(|machine| wanted.is_empty() || wanted.contains(&machine.system_id.as_str()));
    let object: serde_json::Map<String, Value> =
        listed.map(|machine| (machine.system_id.clone(), json!(machine.power_parameters))).collect();
    Ok(Answer::json(&Value::Object(object)))
}

/// `GET machines/{}/?op=power_parameters`, for administrators, whether the machine is locked or not.
pub fn parameters(world: &mut World, call: &Call) -> Reply {
    let id = call.node(world, |world, user, _| world.is_admin(user))?;
    Ok(Answer::json(&json!(world.machines.get(id).map(|machine| &machine.power_parameters))))
}

/// Refuses when no rack controller can reach the machine.
fn need_rack(world: &World, id: Id<Machine>) -> Result<(), Refusal> {
    lifecycle::power::missing_rack(world, id).map_or(Ok(()), |rack| Err(Refusal::no_rack(&rack)))
}

/// Refuses while the machine is still being switched the other way, as MAAS did before 3.5.
fn need_rest(world: &World, id: Id<Machine>, on: bool) -> Result<(), Refusal> {
    lifecycle::power::opposed(world, id, on).map_or(Ok(()), |words| Err(Refusal::busy(words)))
}

/// Asks the BMC.
pub fn query(world: &mut World, call: &Call) -> Reply {
    let id = call.viewed_machine(world)?;
    need_rack(world, id)?;
    let state = lifecycle::power::query(world, id).map_err(|words| Refusal::text(500, words))?;
    Ok(Answer::json(&json!({"state": state.name()})))
}

/// Switches on; an Allocated machine begins a deployment, an in-memory one begins it anew.
pub fn on(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.edited_machine(world)?;
    let Some(machine) = world.machines.get(id) else { return Err(Refusal::forbidden()) };
    if machine.owner.is_none() {
        return Err(Refusal::text(409, "Can't start node: it hasn't been allocated."));
    }
    need_rack(world, id)?;
    need_rest(world, id, true)?;
    let (status, ephemeral, controllable) = (machine.status, machine.ephemeral_deploy, machine.power_is_controllable());
    let comment = call.form.get("comment");
    if status == Status::Allocated {
        if let Some(text) = call.form.filled("user_data").map(decode)
            && let Some(machine) = world.machines.get_mut(id)
        {
            machine.user_data = Some(text);
        }
        lifecycle::deploy::begin(world, id, user, comment);
        let answered = answer(world, id);
        lifecycle::deploy::after_commit(world, id).map_err(|words| Refusal::text(503, words))?;
        return Ok(answered);
    }
    if let Some(words) = world.bmc_error(id) {
        return Err(Refusal::text(500, words));
    }
    world.log_request(id, "User powering up node", user, comment);
    if status == Status::Deployed && ephemeral {
        world.log(id, Level::Info, "Deploying", "", None);
        let answered = answer(world, id);
        lifecycle::deploy::boot(world, id);
        return Ok(answered);
    }
    let answered = answer(world, id);
    if controllable {
        lifecycle::power::on_by_hand(world, id);
    }
    Ok(answered)
}

/// Switches off, softly or hard; a machine nobody can switch answers with nothing.
pub fn off(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.edited_machine(world)?;
    need_rack(world, id)?;
    if !world.machines.get(id).is_some_and(Machine::power_is_controllable) {
        return Ok(Answer::json(&Value::Null));
    }
    need_rest(world, id, false)?;
    world.log_request(id, "User powering down node", user, call.form.get("comment"));
    let answered = answer(world, id);
    lifecycle::power::off(world, id).map_err(Refusal::unswitched)?;
    lifecycle::power::keep_limit(world, id);
    Ok(answered)
}
