//! Rescue mode: in, and back to where it was.

use super::power;
use crate::hardware::Purpose;
use crate::world::World;
use crate::world::event::Level;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::people::User;
use crate::world::status::Status;

/// Begins to enter.
pub fn begin(world: &mut World, id: Id<Machine>, user: Id<User>) {
    world.log_request(id, "User starting rescue mode", user, None);
    let Some(machine) = world.machines.get_mut(id) else { return };
    machine.owner = Some(user);
    if machine.status.is_of_rescue_mode() {
        world.set_status_keeping_previous(id, Status::EnteringRescueMode);
    } else {
        world.set_status(id, Status::EnteringRescueMode);
    }
    world.log(id, Level::Info, "Entering rescue mode", "", None);
}

/// The second half, after the commit.
pub fn after_commit(world: &mut World, id: Id<Machine>) {
    power::on(world, id, Purpose::Rescue);
}

/// It is in.
pub fn entered(world: &mut World, id: Id<Machine>) {
    world.set_status_keeping_previous(id, Status::RescueMode);
    world.log(id, Level::Info, "Rescue mode", "", None);
}

/// Begins to leave.
pub fn begin_exit(world: &mut World, id: Id<Machine>, user: Id<User>) {
    world.log_request(id, "User exiting rescue mode", user, None);
    world.set_status_keeping_previous(id, Status::ExitingRescueMode);
}

/// It is out: deployed machines boot what is on their disk, others stay off.
pub fn exited(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get_mut(id) else { return };
    let before = machine.previous_status;
    if before != Status::Deployed {
        machine.owner = None;
    }
    world.set_status(id, before);
    world.log(id, Level::Info, "Exited rescue mode", "", None);
    if before == Status::Deployed {
        power::order(world, id, crate::hardware::Work::PowerOn(Purpose::Local));
    } else if let Err(trouble) = power::off(world, id) {
        tracing::debug!(%trouble, "a machine that left rescue mode stays on");
    }
}
