//! Orders to the hardware.

use jiff::SignedDuration;

use crate::clock::later;
use crate::hardware::{DeployedInterface, Deployment, Order, Purpose, Work};
use crate::schedule::Due;
use crate::version::Version;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::{Machine, NodeKind, PowerState, Switching};
use crate::world::status::Status;

/// When MAAS before 3.5 stops waiting for a BMC.
const LONGEST_SWITCHING: SignedDuration = SignedDuration::from_mins(2);

/// Why a machine's power could not be switched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unswitched {
    /// The driver says so.
    #[error("{0}")]
    Driver(String),
    /// No rack controller is there to do it; the one that would.
    #[error("Unable to connect to any rack controller {0}; no connections available.")]
    NoRack(String),
}

/// What is in the way of switching a machine's power, if anything is.
pub fn trouble(world: &mut World, id: Id<Machine>) -> Option<Unswitched> {
    if let Some(rack) = missing_rack(world, id) {
        return Some(Unswitched::NoRack(rack));
    }
    world.bmc_error(id).map(Unswitched::Driver)
}

/// The rack controller that a machine's power depends on, when it does not answer.
pub fn missing_rack(world: &World, id: Id<Machine>) -> Option<String> {
    if !world.faults.no_rack || !world.machines.get(id).is_some_and(Machine::power_is_controllable) {
        return None;
    }
    let rack = world.machines.values().find(|node| node.kind == NodeKind::RackController);
    Some(rack.map_or_else(|| "unknown".to_owned(), |rack| rack.system_id.clone()))
}

/// Why MAAS before 3.5 does not switch a machine now: it is still being switched the other way.
pub fn opposed(world: &World, id: Id<Machine>, on: bool) -> Option<String> {
    let machine = world.machines.get(id).filter(|_| world.version < Version::V3_5)?;
    let other = machine.switching.filter(|switching| switching.on != on)?;
    let state = if on { "on" } else { "off" };
    (world.now.duration_since(other.since) < LONGEST_SWITCHING).then(|| {
        format!(
            "Unable to change power state to '{state}' for node {}: another action is already in progress for that node.",
            machine.hostname
        )
    })
}

/// Sends an order; reports of earlier orders become void.
pub fn order(world: &mut World, id: Id<Machine>, work: Work) -> u64 {
    let boot = world.counters.boot;
    world.counters.boot += 1;
    let since = world.now;
    let Some(machine) = world.machines.get_mut(id) else { return boot };
    machine.boot = boot;
    // A machine that is told to run again is not being stopped any more.
    machine.aborting &= matches!(work, Work::PowerOff);
    machine.switching = match &work {
        Work::PowerOff => Some(Switching { on: false, since }),
        Work::PowerOn(_) => Some(Switching { on: true, since }),
        Work::Forget { .. } => machine.switching,
    };
    let system_id = machine.system_id.clone();
    let fqdn = world.machines.get(id).map(|machine| world.fqdn(machine)).unwrap_or_default();
    world.orders.push(Order { machine: id, system_id, fqdn, boot, work });
    boot
}

/// Switches a machine on for a purpose. A BMC or a rack that does not answer fails the work, and the power stays as it was; a machine whose
/// power nobody controls is switched on by a person, which is taken to happen.
pub fn on(world: &mut World, id: Id<Machine>, purpose: Purpose) {
    if let Some(trouble) = trouble(world, id) {
        super::failed(world, id, &trouble.to_string());
        return;
    }
    let boot = order(world, id, Work::PowerOn(purpose));
    let Some(status) = world.machines.get(id).map(|machine| machine.status) else { return };
    limit(world, id, boot, status);
}

/// Lets a state that waits for the machine end when the machine is silent for too long.
pub fn limit(world: &mut World, id: Id<Machine>, boot: u64, status: Status) {
    if is_limited(status) {
        let at = later(world.now, super::deploy::timeout(world, status));
        world.schedule.add(at, Due::Timeout { machine: id, boot, status });
    }
}

fn is_limited(status: Status) -> bool {
    matches!(
        status,
        Status::Deploying
            | Status::Commissioning
            | Status::Testing
            | Status::Releasing
            | Status::EnteringRescueMode
            | Status::ExitingRescueMode
    )
}

/// Keeps the end of a state that waits for the machine after an order which did not begin it: that it makes the limit of the order
/// before void must not let the state last for ever, nor longer than before.
pub fn keep_limit(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get(id) else { return };
    let (boot, status, since) = (machine.boot, machine.status, machine.since);
    if is_limited(status) {
        let at = later(since, super::deploy::timeout(world, status)).max(world.now);
        world.schedule.add(at, Due::Timeout { machine: id, boot, status });
    }
}

/// A person switches a machine on. One that runs already goes on with what it does; one that was switched off in the middle of something
/// boots from the network into the same thing again.
pub fn on_by_hand(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get(id) else { return };
    let purpose = match machine.status {
        Status::Deploying => Purpose::Deploy(deployment(world, machine)),
        Status::Commissioning => Purpose::Commission,
        Status::Testing => Purpose::Test,
        Status::DiskErasing => Purpose::Erase,
        Status::EnteringRescueMode | Status::RescueMode | Status::ExitingRescueMode => Purpose::Rescue,
        _ => Purpose::Local,
    };
    if machine.powered && !matches!(purpose, Purpose::Local) {
        return;
    }
    order(world, id, Work::PowerOn(purpose));
    keep_limit(world, id);
}

/// Switches a machine off.
pub fn off(world: &mut World, id: Id<Machine>) -> Result<(), Unswitched> {
    if let Some(trouble) = trouble(world, id) {
        return Err(trouble);
    }
    if world.machines.get(id).is_some_and(Machine::power_is_controllable) {
        order(world, id, Work::PowerOff);
    }
    Ok(())
}

/// Switches a machine off because somebody stops what it is doing; whether that ends only when the power is off, which is not so where
/// nobody can switch it.
pub fn off_to_abort(world: &mut World, id: Id<Machine>) -> Result<bool, Unswitched> {
    off(world, id)?;
    let Some(machine) = world.machines.get_mut(id) else { return Ok(false) };
    machine.aborting = machine.power_is_controllable();
    Ok(machine.aborting)
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
    let described = interfaces.map(|interface| DeployedInterface {
        name: interface.name.clone(),
        mac: interface.mac.clone(),
        addresses: addresses(interface),
    });
    let gateway = [true, false].into_iter().find_map(|is_v4| world.way_out(machine, is_v4)).map(|(ip, _)| ip);
    Deployment {
        image: format!("{}/{}", machine.osystem, machine.distro_series),
        user_data: machine.user_data.clone().unwrap_or_default(),
        ephemeral: machine.ephemeral_deploy,
        interfaces: described.collect(),
        gateway,
        patience: super::deploy::timeout(world, Status::Deploying),
    }
}
