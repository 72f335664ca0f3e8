//! Commissioning and testing.

use super::{power, release};
use crate::hardware::Purpose;
use crate::world::World;
use crate::world::addressing::NewAddress;
use crate::world::event::Level;
use crate::world::id::Id;
use crate::world::machine::{Machine, ScriptSet, ScriptStatus};
use crate::world::network::AddressKind;
use crate::world::next;
use crate::world::people::User;
use crate::world::status::Status;
use crate::world::storage::Contents;

/// Begins commissioning; with tests afterwards unless the caller wants none.
pub fn begin(world: &mut World, id: Id<Machine>, user: Id<User>, with_tests: bool) {
    world.log_request(id, "User starting commissioning", user, None);
    let commissioning = ScriptSet { id: Some(next(&mut world.counters.script_set)), status: ScriptStatus::Pending };
    // MAAS makes a set for the tests too, whether or not there are any.
    let tests = next(&mut world.counters.script_set);
    if let Some(machine) = world.machines.get_mut(id) {
        machine.commissioning = commissioning;
        if with_tests {
            machine.testing = ScriptSet { id: Some(tests), status: ScriptStatus::Pending };
            machine.storage_tests = ScriptStatus::Pending;
        }
        machine.owner = Some(user);
    }
    world.set_status(id, Status::Commissioning);
    world.log(id, Level::Info, "Commissioning", "", None);
}

/// A machine that tells of itself begins at once; an administrator has to accept it afterwards.
pub fn begin_enlisting(world: &mut World, id: Id<Machine>) {
    let commissioning = ScriptSet { id: Some(next(&mut world.counters.script_set)), status: ScriptStatus::Pending };
    if let Some(machine) = world.machines.get_mut(id) {
        machine.commissioning = commissioning;
        machine.enlisting = true;
    }
    world.set_status(id, Status::Commissioning);
}

/// The second half, after the commit.
pub fn after_commit(world: &mut World, id: Id<Machine>) {
    power::on(world, id, Purpose::Commission);
}

/// Commissioning went well.
pub fn finish(world: &mut World, id: Id<Machine>) {
    configure(world, id);
    if let Some(machine) = world.machines.get_mut(id) {
        machine.commissioning.status = ScriptStatus::Passed;
        if machine.testing.status == ScriptStatus::Pending {
            machine.testing.status = ScriptStatus::Passed;
            machine.storage_tests = ScriptStatus::Passed;
        }
        machine.owner = None;
    }
    if world.machines.get_mut(id).is_some_and(|machine| std::mem::take(&mut machine.enlisting)) {
        return world.set_status(id, Status::New);
    }
    world.set_status(id, Status::Ready);
    world.log(id, Level::Info, "Ready", "", None);
}

/// What commissioning configures where nothing is yet: the flat layout on the first disk, and an AUTO link on the first interface.
pub fn configure(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get(id) else { return };
    let blank = machine.disks.iter().all(|disk| matches!(disk.contents, Contents::Unused));
    let boot = machine.boot_interface;
    let mut disks = machine.disks.clone();
    if let Some(first) = disks.first_mut().filter(|_| blank) {
        first.lay_out_flat(world, &[]);
    }
    if let Some(machine) = world.machines.get_mut(id) {
        machine.disks = disks;
    }
    let unlinked = boot.filter(|boot| world.interfaces.get(*boot).is_some_and(|interface| interface.addresses.is_empty()));
    let vlan = unlinked.and_then(|boot| world.interfaces.get(boot)?.vlan);
    let subnet = vlan.and_then(|vlan| world.subnets.values().find(|subnet| subnet.vlan == vlan)).map(|subnet| subnet.id);
    if let (Some(interface), Some(subnet)) = (unlinked, subnet) {
        world.add_address(NewAddress { ip: None, kind: AddressKind::Auto, subnet: Some(subnet), user: None, interface: Some(interface) });
    }
}

/// Commissioning went wrong.
pub fn fail(world: &mut World, id: Id<Machine>) {
    if let Some(machine) = world.machines.get_mut(id) {
        machine.commissioning.status = ScriptStatus::Failed;
    }
    world.set_status(id, Status::FailedCommissioning);
    world.log(id, Level::Info, "Failed commissioning", "", None);
}

/// A person stops it; the machine is New when the power is off, whatever it was before. When that cannot be switched, nothing has happened.
pub fn abort(world: &mut World, id: Id<Machine>, user: Id<User>, comment: Option<&str>) -> Result<(), power::Unswitched> {
    let ends_later = power::off_to_abort(world, id)?;
    world.log_request(id, "User aborting commissioning", user, comment);
    world.log(id, Level::Info, "Aborted commissioning", "", None);
    if let Some(machine) = world.machines.get_mut(id) {
        machine.owner = None;
    }
    if !ends_later {
        finish_abort(world, id);
    }
    Ok(())
}

/// The power is off after an abort.
pub fn finish_abort(world: &mut World, id: Id<Machine>) {
    if let Some(machine) = world.machines.get_mut(id) {
        machine.commissioning.status = ScriptStatus::Unknown;
    }
    world.set_status(id, Status::New);
}

/// Begins tests.
pub fn begin_tests(world: &mut World, id: Id<Machine>, user: Id<User>) {
    world.log_request(id, "User starting testing", user, None);
    let testing = ScriptSet { id: Some(next(&mut world.counters.script_set)), status: ScriptStatus::Pending };
    if let Some(machine) = world.machines.get_mut(id) {
        machine.testing = testing;
        machine.storage_tests = ScriptStatus::Pending;
        machine.owner.get_or_insert(user);
    }
    world.set_status(id, Status::Testing);
    world.log(id, Level::Info, "Testing", "", None);
}

/// Tests are over: back to the state before, or failed.
pub fn finish_tests(world: &mut World, id: Id<Machine>, passed: bool) {
    let result = if passed { ScriptStatus::Passed } else { ScriptStatus::Failed };
    let Some(machine) = world.machines.get_mut(id) else { return };
    machine.testing.status = result;
    machine.storage_tests = result;
    let before = machine.previous_status;
    let settled = match (passed, before) {
        (false, _) => Status::FailedTesting,
        // Somebody's, or what tests say nothing of.
        (true, Status::Deployed | Status::Allocated | Status::Reserved | Status::New | Status::Missing | Status::Retired) => before,
        // As when a person overrides them: what runs on it is still somebody's.
        (true, Status::FailedTesting) if !machine.osystem.is_empty() => Status::Deployed,
        (true, _) => Status::Ready,
    };
    if settled == Status::Ready || matches!(before, Status::Ready | Status::New | Status::Missing | Status::Retired) {
        machine.owner = None;
    }
    if settled == Status::Ready {
        // Whoever had it when it failed has it no more: nothing of theirs is shown to the next.
        release::forget_everything(world, id);
    }
    world.set_status(id, settled);
    if settled == Status::Deployed {
        // The tests ran in its place; now it boots what is on its disk.
        power::order(world, id, crate::hardware::Work::PowerOn(Purpose::Local));
    }
    if passed && settled == Status::Ready {
        world.log(id, Level::Info, "Ready", "", None);
    } else if !passed {
        world.log(id, Level::Info, "Failed testing", "", None);
    }
}

/// A person stops the tests: back to the state before, and to whoever had it then.
pub fn abort_tests(world: &mut World, id: Id<Machine>, user: Id<User>, comment: Option<&str>) -> Result<(), power::Unswitched> {
    power::off(world, id)?;
    world.log_request(id, "User aborting testing", user, comment);
    world.log(id, Level::Info, "Aborted testing", "", None);
    let Some(machine) = world.machines.get_mut(id) else { return Ok(()) };
    machine.testing.status = ScriptStatus::Aborted;
    let before = machine.previous_status;
    let somebodys = matches!(
        before,
        Status::Allocated
            | Status::Reserved
            | Status::Deployed
            | Status::FailedDeployment
            | Status::ReleasingFailed
            | Status::FailedDiskErasing
    );
    if !somebodys {
        machine.owner = None;
    }
    world.set_status(id, before);
    Ok(())
}
