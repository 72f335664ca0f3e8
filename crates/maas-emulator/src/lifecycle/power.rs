//! Orders to the hardware.

use crate::clock::later;
use crate::hardware::{DeployedInterface, Deployment, Order, Purpose, Work};
use crate::schedule::Due;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::{Machine, PowerState};
use crate::world::status::Status;

/// Sends an order; reports of earlier orders become void.
pub fn order(world: &mut World, id: Id<Machine>, work: Work) -> u64 {
    let boot = world.counters.boot;
    world.counters.boot += 1;
    let Some(machine) = world.machines.get_mut(id) else { return boot };
    machine.boot = boot;
    let system_id = machine.system_id.clone();
    let fqdn = world.machines.get(id).map(|machine| world.fqdn(machine)).unwrap_or_default();
    world.orders.push(Order { machine: id, system_id, fqdn, boot, work });
    boot
}

/// Switches a machine on for a purpose. A BMC that does not answer fails the work, and the power stays as it was; a machine whose
/// power nobody controls is switched on by a person, which is taken to happen.
pub fn on(world: &mut World, id: Id<Machine>, purpose: Purpose) {
    if let Some(words) = world.bmc_error(id) {
        super::failed(world, id, &words);
        return;
    }
    let boot = order(world, id, Work::PowerOn(purpose));
    let Some(status) = world.machines.get(id).map(|machine| machine.status) else { return };
    limit(world, id, boot, status);
}

/// Lets a state that waits for the machine end when the machine is silent for too long.
pub fn limit(world: &mut World, id: Id<Machine>, boot: u64, status: Status) {
    if matches!(
        status,
        Status::Deploying | Status::Commissioning | Status::Testing | Status::EnteringRescueMode | Status::ExitingRescueMode
    ) {
        let at = later(world.now, super::deploy::timeout(world, status));
        world.schedule.add(at, Due::Timeout { machine: id, boot, status });
    }
}

/// Switches a machine off; the driver's words when it cannot be.
pub fn off(world: &mut World, id: Id<Machine>) -> Result<(), String> {
    if let Some(words) = world.bmc_error(id) {
        return Err(words);
    }
    if world.machines.get(id).is_some_and(Machine::power_is_controllable) {
        order(world, id, Work::PowerOff);
    }
    Ok(())
}

/// What the BMC says of the power, as MAAS then records it.
pub fn query(world: &mut World, id: Id<Machine>) -> Result<PowerState, String> {
    let error = world.bmc_error(id);
    let Some(machine) = world.machines.get_mut(id) else { return Ok(PowerState::Unknown) };
    if !machine.power_is_controllable() {
        machine.power_state = PowerState::Unknown;
        return Ok(PowerState::Unknown);
    }
    if let Some(words) = error {
        machine.power_state = PowerState::Unknown;
        return Err(words);
    }
    machine.power_state = if machine.powered { PowerState::On } else { PowerState::Off };
    Ok(machine.power_state)
}

/// What a deployment installs.
pub fn deployment(world: &World, machine: &Machine) -> Deployment {
    let interfaces = machine.interfaces.iter().filter_map(|id| world.interfaces.get(*id));
    let addresses = |interface: &crate::world::network::Interface| -> Vec<ipnet::IpNet> {
        let rows = interface.addresses.iter().filter_map(|id| world.addresses.get(*id));
        rows.filter(|address| address.kind != crate::world::network::AddressKind::Discovered)
            .filter_map(|address| ipnet::IpNet::new(address.ip?, world.subnets.get(address.subnet?)?.cidr.prefix_len()).ok())
            .collect()
    };
    let described = interfaces.clone().map(|interface| DeployedInterface {
        name: interface.name.clone(),
        mac: interface.mac.clone(),
        addresses: addresses(interface),
    });
    let gateway = interfaces
        .flat_map(|interface| &interface.addresses)
        .filter_map(|id| world.addresses.get(*id))
        .find_map(|address| world.subnets.get(address.subnet?)?.gateway.address());
    Deployment {
        image: format!("{}/{}", machine.osystem, machine.distro_series),
        user_data: machine.user_data.clone().unwrap_or_default(),
        ephemeral: machine.ephemeral_deploy,
        interfaces: described.collect(),
        gateway,
        patience: super::deploy::timeout(world, Status::Deploying),
    }
}
