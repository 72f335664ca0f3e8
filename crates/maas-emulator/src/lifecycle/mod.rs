//! The life of a machine between calls: what a call starts, what the hardware reports, what takes too long, what happens from
//! outside. Calls come from [`crate::endpoints`]; everything here works on one machine by its row.

pub mod commission;
pub mod deploy;
pub mod incident;
pub mod power;
pub mod release;
pub mod rescue;

use crate::faults::MachineHarm;
use crate::hardware::{Outcome, Purpose, Report, Work};
use crate::schedule::Due;
use crate::world::World;
use crate::world::event::Level;
use crate::world::id::Id;
use crate::world::machine::{Machine, PowerState};
use crate::world::status::Status;

/// Lets a scheduled thing happen; late calls are the emulator's.
pub fn take_due(world: &mut World, due: Due) {
    match due {
        Due::Report(report) => take_report(world, &report),
        Due::Timeout { machine, boot, status } => time_out(world, machine, boot, status),
        Due::Incident(incident) => incident::happen(world, &incident),
        Due::LateCall(_) => {}
    }
}

/// Sets a machine going that begins in a state which does not last.
pub fn resume(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get_mut(id) else { return };
    let (status, controllable) = (machine.status, machine.power_is_controllable());
    if status.is_of_rescue_mode() || status == Status::Testing {
        machine.previous_status = if machine.osystem.is_empty() { Status::Ready } else { Status::Deployed };
    }
    match status {
        Status::Commissioning => power::on(world, id, Purpose::Commission),
        Status::Testing => power::on(world, id, Purpose::Test),
        Status::DiskErasing => power::on(world, id, Purpose::Erase),
        Status::EnteringRescueMode | Status::ExitingRescueMode => power::on(world, id, Purpose::Rescue),
        Status::Deploying => deploy::boot(world, id),
        Status::Releasing if controllable => {
            let boot = power::order(world, id, Work::PowerOff);
            power::limit(world, id, boot, status);
        }
        _ => {}
    }
}

/// Takes a report of the hardware; one that answers an earlier order is void.
pub fn take_report(world: &mut World, report: &Report) {
    let id = report.machine;
    let Some(machine) = world.machines.get_mut(id) else { return };
    if machine.boot != report.boot {
        return;
    }
    machine.switching = None;
    match &report.outcome {
        Outcome::PoweredOn => {
            machine.powered = true;
            machine.power_state = PowerState::On;
        }
        Outcome::PoweredOff => {
            machine.powered = false;
            machine.power_state = PowerState::Off;
            powered_off(world, id);
        }
        Outcome::Finished => finished(world, id),
        Outcome::Failed(words) => {
            let words = words.clone();
            failed(world, id, &words);
        }
        Outcome::Silent(seen) => {
            let status = machine.status;
            let words = format!("{} {seen}", deploy::timed_out(status, deploy::timeout(world, status)));
            failed(world, id, words.trim_end());
        }
    }
}

/// What ends with the power.
fn powered_off(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get_mut(id) else { return };
    let aborted = std::mem::take(&mut machine.aborting);
    match machine.status {
        Status::Releasing => release::finish(world, id),
        Status::Commissioning if aborted => commission::finish_abort(world, id),
        Status::Deploying if aborted => world.set_status(id, Status::Allocated),
        Status::Broken if machine.owner.is_some() => release::clear(world, id),
        _ => {}
    }
}

/// What ends with the work done.
fn finished(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get(id) else { return };
    match machine.status {
        Status::Deploying => {
            let harm = world.strike(id, |harm| match harm {
                MachineHarm::FailDeploy(words) => Some(Some(words.clone())),
                MachineHarm::HangDeploy => Some(None),
                _ => None,
            });
            match harm {
                Some(Some(words)) => failed(world, id, &words),
                Some(None) => {}
                None => deploy::finish(world, id),
            }
        }
        Status::Commissioning => {
            if world.strike(id, |harm| (*harm == MachineHarm::FailCommission).then_some(())).is_some() {
                commission::fail(world, id);
            } else {
                commission::finish(world, id);
            }
        }
        Status::Testing => {
            let passed = world.strike(id, |harm| (*harm == MachineHarm::FailTest).then_some(())).is_none();
            commission::finish_tests(world, id, passed);
        }
        Status::DiskErasing => {
            if world.strike(id, |harm| (*harm == MachineHarm::FailErase).then_some(())).is_some() {
                failed(world, id, "Failed to erase disks.");
            } else {
                release::after_erase(world, id);
            }
        }
        Status::EnteringRescueMode => rescue::entered(world, id),
        Status::ExitingRescueMode => rescue::exited(world, id),
        _ => {}
    }
}

/// What ends with the work gone wrong: the failed state that belongs to the present one.
pub fn failed(world: &mut World, id: Id<Machine>, words: &str) {
    let Some(machine) = world.machines.get_mut(id) else { return };
    let status = match machine.status {
        Status::Deploying => Status::FailedDeployment,
        Status::Commissioning => Status::FailedCommissioning,
        Status::Testing => Status::FailedTesting,
        Status::DiskErasing => Status::FailedDiskErasing,
        Status::Releasing => Status::ReleasingFailed,
        Status::EnteringRescueMode => Status::FailedEnteringRescueMode,
        Status::ExitingRescueMode => Status::FailedExitingRescueMode,
        _ => return,
    };
    words.clone_into(&mut machine.error_description);
    if machine.status == Status::DiskErasing {
        // A later release without erasing must not empty the disks.
        machine.erase_options = None;
    }
    if status.is_of_rescue_mode() {
        world.set_status_keeping_previous(id, status);
    } else {
        world.set_status(id, status);
    }
    world.log(id, Level::Error, "Marking node failed", words, None);
}

/// A state has lasted too long.
fn time_out(world: &mut World, id: Id<Machine>, boot: u64, status: Status) {
    let Some(machine) = world.machines.get(id) else { return };
    if machine.boot == boot && machine.status == status {
        let words = deploy::timed_out(status, deploy::timeout(world, status));
        failed(world, id, &words);
    }
}
