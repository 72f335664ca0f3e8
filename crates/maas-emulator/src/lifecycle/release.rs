//! Release: power off, then forget whose it was; erase first when asked to.

use std::time::Duration;

use super::{deploy, power};
use crate::hardware::{Purpose, Work};
use crate::version::Version;
use crate::world::World;
use crate::world::event::Level;
use crate::world::id::Id;
use crate::world::machine::{EraseOptions, Machine, PowerState, ScriptStatus};
use crate::world::people::User;
use crate::world::status::Status;

/// How long Releasing may last.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// Whether a machine in this state can be released at all; Ready and Releasing are done or under way.
pub fn is_releasable(status: Status) -> bool {
    match status {
        Status::Allocated
        | Status::Reserved
        | Status::Broken
        | Status::Deploying
        | Status::Deployed
        | Status::FailedDeployment
        | Status::FailedDiskErasing
        | Status::ReleasingFailed => true,
        Status::New
        | Status::Commissioning
        | Status::FailedCommissioning
        | Status::Missing
        | Status::Ready
        | Status::Retired
        | Status::Releasing
        | Status::DiskErasing
        | Status::RescueMode
        | Status::EnteringRescueMode
        | Status::FailedEnteringRescueMode
        | Status::ExitingRescueMode
        | Status::FailedExitingRescueMode
        | Status::Testing
        | Status::FailedTesting => false,
    }
}

/// Begins a release. A BMC that does not answer leaves the machine in its old state, its image and agent name already forgotten.
pub fn begin(world: &mut World, id: Id<Machine>, user: Option<Id<User>>, comment: Option<&str>) -> Result<(), power::Unswitched> {
    if let Some(user) = user {
        world.log_request(id, "User releasing node", user, comment);
    }
    let Some(machine) = world.machines.get(id) else { return Ok(()) };
    let before = machine.status;
    let is_on = machine.power_is_controllable() && machine.power_state != PowerState::Off;
    let waits = is_on || machine.dynamic;
    world.set_status(id, Status::Releasing);
    world.log(id, Level::Info, "Releasing", "", None);
    forget_image(world, id);
    if !waits {
        finish(world, id);
        return Ok(());
    }
    if let Err(trouble) = power::off(world, id) {
        world.set_status(id, before);
        return Err(trouble);
    }
    let boot = world.machines.get(id).map_or(0, |machine| machine.boot);
    power::limit(world, id, boot, Status::Releasing);
    Ok(())
}

/// What is forgotten at once.
fn forget_image(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get_mut(id) else { return };
    machine.osystem.clear();
    machine.distro_series.clear();
    machine.hwe_kernel = None;
    machine.agent_name.clear();
    machine.netboot = true;
    machine.user_data = None;
    machine.register_as.clear();
    machine.enable_hw_sync = false;
    machine.last_sync = None;
    machine.acquired_storage = false;
    machine.locked = false;
}

/// The power is off: the machine is nobody's, or gone when it was made for one use.
pub fn finish(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get(id) else { return };
    let dynamic = machine.dynamic;
    let wipe = machine.erase_options.is_some();
    // Before 3.1 a machine came back Ready whether or not it had ever been commissioned.
    let known = machine.commissioning.status == ScriptStatus::Passed || world.version < Version::V3_3;
    let next = if known { Status::Ready } else { Status::New };
    power::order(world, id, Work::Forget { wipe });
    if dynamic {
        world.remove_machine(id);
        return;
    }
    clear_quietly(world, id);
    world.set_status(id, next);
    world.log(id, Level::Info, "Released", "", None);
}

/// A broken machine's power is off: it is nobody's and stays broken.
pub fn clear(world: &mut World, id: Id<Machine>) {
    clear_quietly(world, id);
    world.log(id, Level::Info, "Released", "", None);
}

/// Nothing of whoever had it is left.
pub(super) fn forget_everything(world: &mut World, id: Id<Machine>) {
    forget_image(world, id);
    clear_quietly(world, id);
}

fn clear_quietly(world: &mut World, id: Id<Machine>) {
    deploy::free_addresses(world, id);
    let Some(machine) = world.machines.get_mut(id) else { return };
    machine.owner = None;
    machine.annotations.clear();
    machine.agent_name.clear();
    machine.erase_options = None;
    machine.acquired_storage = false;
    let acquired: Vec<_> = machine
        .interfaces
        .clone()
        .into_iter()
        .filter(|interface| world.interfaces.get(*interface).is_some_and(|row| row.acquired))
        .collect();
    for bridge in acquired {
        crate::endpoints::interfaces::dissolve(world, bridge);
    }
}

/// Erases the disks first; release goes on when that is done.
pub fn erase(world: &mut World, id: Id<Machine>, user: Id<User>, comment: Option<&str>, options: EraseOptions) {
    world.log_request(id, "User erasing disk", user, comment);
    if let Some(machine) = world.machines.get_mut(id) {
        machine.erase_options = Some(options);
    }
    world.set_status(id, Status::DiskErasing);
    power::on(world, id, Purpose::Erase);
}

/// A person stops the erasing.
pub fn abort_erasing(world: &mut World, id: Id<Machine>, user: Id<User>, comment: Option<&str>) -> Result<(), power::Unswitched> {
    power::off(world, id)?;
    world.log_request(id, "User aborting disk erasing", user, comment);
    world.set_status(id, Status::FailedDiskErasing);
    if let Some(machine) = world.machines.get_mut(id) {
        machine.erase_options = None;
    }
    Ok(())
}

/// The disks are erased.
pub fn after_erase(world: &mut World, id: Id<Machine>) {
    if let Err(trouble) = begin(world, id, None, None) {
        world.set_status(id, Status::Releasing);
        super::failed(world, id, &trouble.to_string());
    }
}
