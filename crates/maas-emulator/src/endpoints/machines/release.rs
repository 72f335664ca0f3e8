//! `release`, of one machine and of many.

use serde_json::json;

use super::answer;
use crate::endpoints::vm_hosts;
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::lifecycle;
use crate::version::Version;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::{EraseOptions, Machine};
use crate::world::status::Status;

/// `POST machines/{}/?op=release`.
pub fn release(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = call.edited_machine(world)?;
    let Some(machine) = world.machines.get(id) else { return Err(Refusal::forbidden()) };
    refuse_unknown_scripts(world, call)?;
    if matches!(machine.status, Status::Ready | Status::Releasing) {
        return Ok(answer(world, id));
    }
    refuse_state(machine)?;
    let force = call.loose_flag("force");
    let hosts = vm_hosts::hosted_by(world, id);
    if !hosts.is_empty() && !force {
        return Err(Refusal::text(400, vm_hosts::must_go_first(world, &hosts)));
    }
    for host in hosts {
        vm_hosts::remove(world, host, true);
    }
    // Release scripts run where erasing does, and show as it.
    let erase =
        call.loose_flag("erase") || scripts(world, call).next().is_some() || world.setting("enable_disk_erasing_on_release") == "true";
    let comment = call.form.get("comment");
    if erase {
        let options = EraseOptions { secure: call.loose_flag("secure_erase"), quick: call.loose_flag("quick_erase") };
        lifecycle::release::erase(world, id, user, comment, options);
        return Ok(answer(world, id));
    }
    lifecycle::release::begin(world, id, Some(user), comment).map_err(Refusal::unswitched)?;
    Ok(answer(world, id))
}

fn refuse_state(machine: &Machine) -> Result<(), Refusal> {
    if lifecycle::release::is_releasable(machine.status) {
        return Ok(());
    }
    Err(Refusal::text(409, format!("Machine cannot be released in its current state ('{}').", machine.status.name())))
}

/// The scripts to run, where MAAS knows such.
fn scripts<'a>(world: &World, call: &'a Call) -> impl Iterator<Item = &'a str> {
    let known = world.version >= Version::V3_5;
    call.form
        .all("scripts")
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(move |name| known && !name.is_empty() && *name != "none")
}

/// Release scripts exist since 3.5, and only MAAS's own one is known here.
fn refuse_unknown_scripts(world: &World, call: &Call) -> Result<(), Refusal> {
    match scripts(world, call).find(|name| *name != "wipe-disks") {
        None => Ok(()),
        Some(name) => Err(Refusal::field("scripts", format!("Select a valid choice. {name} is not one of the available choices."))),
    }
}

/// `POST machines/?op=release`: all or none; those that are Ready already are not among the released.
pub fn release_many(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let wanted: Vec<String> = call.form.all("machines").map(str::to_owned).collect();
    let mut unknown: Vec<&str> = wanted.iter().filter(|name| world.machine_id(name).is_none()).map(String::as_str).collect();
    if !unknown.is_empty() {
        unknown.sort_unstable();
        return Err(Refusal::text(400, format!("Unknown machine(s): {}.", unknown.join(", "))));
    }
    let mut ids: Vec<Id<Machine>> = wanted.iter().filter_map(|name| world.machine_id(name)).collect();
    ids.sort_unstable();
    ids.dedup();
    let rows = || ids.iter().filter_map(|id| world.machines.get(*id));
    let refused: Vec<&str> = rows().filter(|machine| !world.may_edit(user, machine)).map(|machine| machine.system_id.as_str()).collect();
    if !refused.is_empty() {
        return Err(Refusal::text(
            403,
            format!("You don't have the required permission to release the following machine(s): {}.", refused.join(", ")),
        ));
    }
    let hosting: Vec<_> = ids.iter().flat_map(|id| vm_hosts::hosted_by(world, *id)).collect();
    if !hosting.is_empty() {
        return Err(Refusal::text(400, vm_hosts::must_go_first(world, &hosting)));
    }
    let bad: Vec<String> = rows()
        .filter(|machine| machine.status != Status::Ready && !lifecycle::release::is_releasable(machine.status))
        .map(|machine| format!("{} ('{}')", machine.system_id, machine.status.name()))
        .collect();
    if !bad.is_empty() {
        return Err(Refusal::text(409, format!("Machine(s) cannot be released in their current state: {}.", bad.join(", "))));
    }
    let mut released = Vec::new();
    for id in ids {
        let Some(machine) = world.machines.get(id).filter(|machine| machine.status != Status::Ready) else { continue };
        released.push(machine.system_id.clone());
        lifecycle::release::begin(world, id, Some(user), call.form.get("comment")).map_err(Refusal::unswitched)?;
    }
    Ok(Answer::json(&json!(released)))
}
