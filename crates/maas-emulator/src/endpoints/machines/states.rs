//! Operations that move a machine to another state, or mark it.

use super::answer;
use crate::hardware::Purpose;
use crate::http::answer::{Refusal, Reply};
use crate::http::call::Call;
use crate::lifecycle::{self, commission, rescue};
use crate::world::World;
use crate::world::event::Level;
use crate::world::machine::{Machine, PowerState, ScriptSet, ScriptStatus};
use crate::world::status::Status;

fn status(world: &World, id: crate::world::id::Id<Machine>) -> Status {
    world.machines.get(id).map_or(Status::Missing, |machine| machine.status)
}

/// Stops what the machine is doing; the answer still shows it.
pub fn abort(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.edited_machine(world)?;
    let comment = call.form.get("comment");
    let before = status(world, id);
    match before {
        Status::Deploying | Status::Commissioning | Status::DiskErasing | Status::Testing => {}
        other => {
            let system_id = call.argument(0);
            return Err(Refusal::text(409, format!("Cannot abort in current state: node {system_id} is in state {}.", other.name())));
        }
    }
    // The answer shows the state that is being left.
    let shown = matches!(before, Status::Testing | Status::DiskErasing).then(|| answer(world, id));
    let done = match before {
        Status::Deploying => lifecycle::deploy::abort(world, id, user, comment),
        Status::Commissioning => commission::abort(world, id, user, comment),
        Status::Testing => commission::abort_tests(world, id, user, comment),
        _ => lifecycle::release::abort_erasing(world, id, user, comment),
    };
    done.map_err(Refusal::unswitched)?;
    Ok(shown.unwrap_or_else(|| answer(world, id)))
}

/// Commissions, for administrators.
pub fn commission(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.administered_machine(world)?;
    let tests: Vec<&str> =
        call.form.all("testing_scripts").flat_map(|value| value.split(',')).map(str::trim).filter(|name| !name.is_empty()).collect();
    if let Some(name) = tests.iter().find(|name| !is_test(name)) {
        return Err(Refusal::field("testing_scripts", format!("Select a valid choice. {name} is not one of the available choices.")));
    }
    match status(world, id) {
        Status::New | Status::FailedCommissioning | Status::Ready | Status::Broken | Status::Commissioning => {}
        _ => return Err(Refusal::field("__all__", "Commission is not available because of the current state of the node.")),
    }
    commission::begin(world, id, user, !tests.contains(&"none"));
    let answered = answer(world, id);
    commission::after_commit(world, id);
    Ok(answered)
}

/// The tests MAAS comes with, as far as anybody asks for them by name.
fn is_test(name: &str) -> bool {
    [
        "none",
        "smartctl-validate",
        "smartctl-short",
        "smartctl-long",
        "memtester",
        "stress-ng-cpu-short",
        "stress-ng-cpu-long",
        "stress-ng-memory-short",
        "ntp",
        "7z",
        "fio",
        "badblocks",
        "internet-connectivity",
        "commissioning",
        "testing",
    ]
    .contains(&name)
}

/// Tests, for administrators.
pub fn test(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.administered_machine(world)?;
    let names = call.form.all("testing_scripts").flat_map(|value| value.split(',')).map(str::trim).filter(|name| !name.is_empty());
    if let Some(name) = names.into_iter().find(|name| !is_test(name)) {
        return Err(Refusal::field("testing_scripts", format!("Select a valid choice. {name} is not one of the available choices.")));
    }
    match status(world, id) {
        Status::Deploying
        | Status::Commissioning
        | Status::RescueMode
        | Status::EnteringRescueMode
        | Status::FailedEnteringRescueMode
        | Status::ExitingRescueMode
        | Status::FailedExitingRescueMode
        | Status::Testing
        | Status::Releasing
        | Status::DiskErasing => {
            return Err(Refusal::field("__all__", "Test is not available because of the current state of the node."));
        }
        _ => {}
    }
    commission::begin_tests(world, id, user);
    let answered = answer(world, id);
    lifecycle::power::on(world, id, Purpose::Test);
    Ok(answered)
}

/// Believes in a machine whose tests failed.
pub fn override_failed_testing(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.administered_machine(world)?;
    if status(world, id) != Status::FailedTesting {
        return Err(Refusal::text(409, "Unable to override node status. Node is not in 'Failed testing' status."));
    }
    world.log_request(id, "User overrode 'Failed testing' status", user, call.form.get("comment"));
    let deployed = world.machines.get(id).is_some_and(|machine| !machine.osystem.is_empty());
    if let Some(machine) = world.machines.get_mut(id) {
        machine.error_description.clear();
    }
    world.set_status(id, if deployed { Status::Deployed } else { Status::Ready });
    Ok(answer(world, id))
}

/// Marks as broken; the owner only, or anybody who may use it once it is nobody's and broken.
pub fn mark_broken(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.machine(world, |world, user, machine| {
        let own = machine.owner == Some(user);
        let again = machine.status == Status::Broken && machine.owner.is_none();
        !machine.locked && (own || (again && world.is_admin(user)))
    })?;
    let comment = call.form.get("comment").or(call.form.get("error_description")).unwrap_or("").to_owned();
    world.log_request(id, "User marking node broken", user, Some(&comment));
    let Some(machine) = world.machines.get_mut(id) else { return Err(Refusal::forbidden()) };
    machine.error_description = comment;
    let owned = machine.owner.is_some();
    // A machine that is being deployed may be on its way up while MAAS still believes it off.
    let is_on = machine.power_is_controllable() && (machine.power_state != PowerState::Off || machine.status == Status::Deploying);
    if owned {
        world.log(id, Level::Info, "Releasing", "", None);
    }
    if let Some(machine) = world.machines.get_mut(id) {
        machine.osystem.clear();
        machine.distro_series.clear();
        machine.hwe_kernel = None;
        machine.netboot = true;
        machine.acquired_storage = false;
    }
    world.set_status(id, Status::Broken);
    let answered = answer(world, id);
    if owned && is_on {
        lifecycle::power::off(world, id).map_err(Refusal::unswitched)?;
    } else if owned {
        lifecycle::release::clear(world, id);
    }
    Ok(answered)
}

/// Marks as fixed, for administrators. One that was deployed when it broke is taken for deployed again, although what ran on it is
/// forgotten and it has no owner any more.
pub fn mark_fixed(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.administered_machine(world)?;
    if status(world, id) != Status::Broken {
        return Err(Refusal::text(409, "Can't mark a non-broken node as 'Ready'."));
    }
    world.log_request(id, "User marking node fixed", user, call.form.get("comment"));
    let mut was_deployed = false;
    if let Some(machine) = world.machines.get_mut(id) {
        was_deployed = machine.previous_status == Status::Deployed;
        machine.error_description.clear();
        machine.installation = ScriptSet { id: None, status: ScriptStatus::Unknown };
    }
    world.set_status(id, if was_deployed { Status::Deployed } else { Status::Ready });
    Ok(answer(world, id))
}

/// Locks a machine against changes.
pub fn lock(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.machine(world, World::may_lock)?;
    let Some(machine) = world.machines.get(id) else { return Err(Refusal::forbidden()) };
    if machine.locked {
        return Err(Refusal::text(409, "Machine is already locked"));
    }
    if machine.status != Status::Deployed && machine.status != Status::Deploying {
        return Err(Refusal::text(409, "Can't lock, node is not deployed or deploying"));
    }
    world.log_request(id, "User locking node", user, call.form.get("comment"));
    if let Some(machine) = world.machines.get_mut(id) {
        machine.locked = true;
    }
    Ok(answer(world, id))
}

/// Opens it for changes again.
pub fn unlock(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.machine(world, World::may_lock)?;
    if !world.machines.get(id).is_some_and(|machine| machine.locked) {
        return Err(Refusal::text(409, "Machine is not locked"));
    }
    world.log_request(id, "User unlocking node", user, call.form.get("comment"));
    if let Some(machine) = world.machines.get_mut(id) {
        machine.locked = false;
    }
    Ok(answer(world, id))
}

/// MAAS's words for states that do not follow each other.
fn no_way(before: Status, after: Status) -> Refusal {
    Refusal::text(409, format!("Invalid transition: {} -> {}.", before.name(), after.name()))
}

/// Boots for a person to mend it, for administrators.
pub fn rescue_mode(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.administered_machine(world)?;
    let before = status(world, id);
    let no_rescue = matches!(
        before,
        Status::Commissioning
            | Status::Deploying
            | Status::Testing
            | Status::Releasing
            | Status::ReleasingFailed
            | Status::DiskErasing
            | Status::RescueMode
            | Status::ExitingRescueMode
            | Status::FailedExitingRescueMode
    );
    if no_rescue {
        return Err(no_way(before, Status::EnteringRescueMode));
    }
    rescue::begin(world, id, user);
    let answered = answer(world, id);
    rescue::after_commit(world, id);
    Ok(answered)
}

/// Leaves rescue mode.
pub fn exit_rescue_mode(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.administered_machine(world)?;
    let before = status(world, id);
    if !before.is_of_rescue_mode() {
        return Err(no_way(before, Status::ExitingRescueMode));
    }
    rescue::begin_exit(world, id, user);
    let answered = answer(world, id);
    lifecycle::power::on(world, id, Purpose::Rescue);
    Ok(answered)
}

/// Whether an annotation may have this key.
pub fn is_annotation_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|letter| letter.is_alphanumeric() || "_.-".contains(letter))
}

/// Merges annotations; an empty value takes the key away. They are the owner's: an administrator who has not acquired the machine does not
/// write them either.
pub fn set_workload_annotations(world: &mut World, call: &Call) -> Reply {
    let (id, user) = (call.edited_machine(world)?, call.caller()?);
    let Some(machine) = world.machines.get_mut(id) else { return Err(Refusal::forbidden()) };
    if machine.owner != Some(user) {
        return Err(Refusal::text(409, "Cannot set workload annotation: it hasn't been acquired."));
    }
    if call.form.keys().iter().any(|key| !is_annotation_key(key)) {
        return Err(Refusal::text(500, "Invalid character in key name"));
    }
    // The last of several values counts, so in the order of the form the last one is written last.
    for (key, value) in &call.form.0 {
        if value.is_empty() {
            machine.annotations.remove(key);
        } else {
            machine.annotations.insert(key.clone(), value.clone());
        }
    }
    Ok(answer(world, id))
}
