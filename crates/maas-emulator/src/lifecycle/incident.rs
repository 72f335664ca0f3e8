//! What happens to machines from outside: people in a hurry, cleaners, lightning.

use super::{deploy, power, release};
use crate::endpoints::vm_hosts;
use crate::faults::{Happening, Incident};
use crate::hardware::{Purpose, Work};
use crate::world::World;
use crate::world::event::Level;
use crate::world::id::Id;
use crate::world::machine::{Machine, PowerState};
use crate::world::status::Status;

/// Removes the VM hosts on a machine and what they host: MAAS takes no machine from its owner before, so whoever did it has done that.
fn remove_vm_hosts(world: &mut World, id: Id<Machine>) {
    for host in vm_hosts::hosted_by(world, id) {
        vm_hosts::remove(world, host, true);
    }
}

/// Lets it happen; a machine that is gone is left alone.
pub fn happen(world: &mut World, incident: &Incident) {
    let Some(id) = world.machine_id(&incident.machine) else { return };
    match &incident.what {
        Happening::PowerLoss => {
            let Some(machine) = world.machines.get_mut(id) else { return };
            machine.powered = false;
            let status = machine.status;
            let busy = machine.status == Status::Deploying || machine.status == Status::Commissioning;
            let noticed = machine.power_is_controllable() && !busy;
            if noticed {
                machine.power_state = PowerState::Off;
            }
            // A new order number makes what the machine was doing void: it will never report.
            let boot = power::order(world, id, Work::PowerOff);
            power::limit(world, id, boot, status);
            if noticed {
                // What MAAS's power monitor writes when it finds another power than it believed in.
                world.log(id, Level::Debug, "Node powered off", "", None);
            }
        }
        Happening::Released => {
            if let Some(machine) = world.machines.get_mut(id) {
                machine.locked = false;
            }
            if !world.machines.get(id).is_some_and(|machine| release::is_releasable(machine.status)) {
                return;
            }
            remove_vm_hosts(world, id);
            if let Err(trouble) = release::begin(world, id, None, None) {
                tracing::debug!(%trouble, "somebody's release failed");
            }
        }
        Happening::Deleted => {
            remove_vm_hosts(world, id);
            power::order(world, id, Work::Forget { wipe: false });
            world.remove_machine(id);
        }
        Happening::Locked => {
            if let Some(machine) = world.machines.get_mut(id) {
                machine.locked = true;
            }
        }
        Happening::DeployedBy(user) => {
            remove_vm_hosts(world, id);
            let user = world.user_named(user).map(|user| user.id);
            let Some(machine) = world.machines.get_mut(id) else { return };
            machine.owner = user;
            machine.annotations.clear();
            machine.agent_name.clear();
            machine.osystem = "ubuntu".into();
            machine.distro_series = "noble".into();
            machine.acquired_storage = true;
            world.set_status(id, Status::Deployed);
            if let Err(subnet) = deploy::claim_addresses(world, id) {
                tracing::debug!(subnet, "what somebody else deployed has no address");
            }
            if world.machines.get(id).is_some_and(Machine::power_is_controllable) {
                power::order(world, id, Work::PowerOn(Purpose::Local));
            } else if let Some(machine) = world.machines.get_mut(id) {
                machine.powered = true;
            }
        }
    }
}
