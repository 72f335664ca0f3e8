//! Deployment: addresses, power, the first boot's report.

use std::time::Duration;

use super::power;
use crate::hardware::Purpose;
use crate::version::Version;
use crate::world::World;
use crate::world::event::Level;
use crate::world::id::Id;
use crate::world::machine::{Machine, ScriptSet, ScriptStatus};
use crate::world::network::{Address, AddressKind};
use crate::world::next;
use crate::world::people::User;
use crate::world::status::Status;

/// Takes a Ready machine for a user.
pub fn acquire(world: &mut World, id: Id<Machine>, user: Id<User>, agent_name: &str, comment: Option<&str>) {
    world.log_request(id, "User acquiring node", user, comment);
    if let Some(machine) = world.machines.get_mut(id) {
        machine.owner = Some(user);
        agent_name.clone_into(&mut machine.agent_name);
        machine.acquired_storage = true;
    }
    world.set_status(id, Status::Allocated);
}

/// Begins a deployment: from here on it shows as Deploying.
pub fn begin(world: &mut World, id: Id<Machine>, user: Id<User>, comment: Option<&str>) {
    let results = ScriptSet { id: Some(next(&mut world.counters.script_set)), status: ScriptStatus::Pending };
    world.log_request(id, "User starting deployment", user, comment);
    if let Some(machine) = world.machines.get_mut(id) {
        // What runs from memory is not installed.
        if !machine.ephemeral_deploy {
            machine.installation = results;
        }
        machine.netboot = true;
    }
    world.set_status(id, Status::Deploying);
    world.log(id, Level::Info, "Deploying", "", None);
}

/// The second half, after the commit: addresses, then power. Without addresses the machine is Allocated again.
pub fn after_commit(world: &mut World, id: Id<Machine>) -> Result<(), String> {
    if let Err(subnet) = claim_addresses(world, id) {
        world.set_status(id, Status::Allocated);
        let owner =
            world.machines.get(id).and_then(|machine| machine.owner).map(|owner| world.user_name(owner).to_owned()).unwrap_or_default();
        let words = format!(
            "({owner}) - Aborting DEPLOYING and reverting to ALLOCATED. Unable to power control the node. Please check power credentials."
        );
        world.log(id, Level::Warning, "Failed to query node's BMC", &words, None);
        return Err(format!("No more IPs available in subnet: {subnet}."));
    }
    boot(world, id);
    Ok(())
}

/// Switches the machine on to install.
pub fn boot(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get(id) else { return };
    let deployment = power::deployment(world, machine);
    power::on(world, id, Purpose::Deploy(deployment));
}

/// Gives every AUTO link an address; the CIDR of the subnet that has none left.
pub fn claim_addresses(world: &mut World, id: Id<Machine>) -> Result<(), String> {
    let waiting: Vec<Id<Address>> = links(world, id, |address| address.kind == AddressKind::Auto && address.ip.is_none());
    for link in waiting {
        let Some(subnet) = world.addresses.get(link).and_then(|address| address.subnet) else { continue };
        let cidr = world.subnets.get(subnet).map(|subnet| subnet.cidr);
        let exhausted = cidr.is_some_and(|cidr| world.faults.is_exhausted(cidr));
        let free = if exhausted { None } else { world.next_free(subnet) };
        match free {
            Some(ip) => world.set_ip(link, Some(ip)),
            None => return Err(cidr.map(|cidr| cidr.to_string()).unwrap_or_default()),
        }
    }
    Ok(())
}

/// Takes the addresses of AUTO links back.
pub fn free_addresses(world: &mut World, id: Id<Machine>) {
    for link in links(world, id, |address| address.kind == AddressKind::Auto && address.ip.is_some()) {
        world.set_ip(link, None);
    }
}

fn links(world: &World, id: Id<Machine>, wanted: impl Fn(&Address) -> bool) -> Vec<Id<Address>> {
    let Some(machine) = world.machines.get(id) else { return Vec::new() };
    let interfaces = machine.interfaces.iter().filter_map(|interface| world.interfaces.get(*interface));
    interfaces
        .flat_map(|interface| interface.addresses.clone())
        .filter(|address| world.addresses.get(*address).is_some_and(&wanted))
        .collect()
}

/// The first boot reported in.
pub fn finish(world: &mut World, id: Id<Machine>) {
    let Some(machine) = world.machines.get_mut(id) else { return };
    machine.netboot = false;
    machine.last_sync = machine.enable_hw_sync.then_some(world.now);
    machine.installation.status = ScriptStatus::Passed;
    let image = format!("deployed {}/{}/{}", machine.osystem, machine.distro_series, machine.architecture);
    let (os, series, architecture) = (machine.osystem.clone(), machine.distro_series.clone(), machine.architecture.clone());
    let register = std::mem::take(&mut machine.register_as);
    let now = world.now;
    let same_architecture = |name: &str| name.split('/').next() == architecture.split('/').next();
    for image in world.images.values_mut().filter(|image| {
        !image.uploaded && image.os_and_series() == (os.as_str(), series.as_str()) && same_architecture(&image.architecture)
    }) {
        image.last_deployed = Some(now);
    }
    world.log(id, Level::Info, "Image Deployed", &image, None);
    world.set_status(id, Status::Deployed);
    world.log(id, Level::Info, "Deployed", "", None);
    crate::endpoints::vm_hosts::register_deployed(world, id, &register);
}

/// A person stops a deployment; the state follows when the power is off. When that cannot be switched, nothing has happened.
pub fn abort(world: &mut World, id: Id<Machine>, user: Id<User>, comment: Option<&str>) -> Result<(), power::Unswitched> {
    let ends_later = power::off_to_abort(world, id)?;
    world.log_request(id, "User aborting deployment", user, comment);
    world.log(id, Level::Info, "Aborted deployment", "", None);
    if !ends_later {
        world.set_status(id, Status::Allocated);
    }
    Ok(())
}

/// How long a state may last: twice `node_timeout` for deployments since 3.5, once otherwise; or what the fleet says.
pub fn timeout(world: &World, status: Status) -> Duration {
    if let (Status::Deploying, Some(time)) = (status, world.timings.deploy_timeout) {
        return crate::faults::seconds(time);
    }
    if status == Status::Releasing {
        return super::release::PATIENCE;
    }
    let minutes = world.setting("node_timeout").parse().unwrap_or(30_u64);
    let factor = if status == Status::Deploying && world.version >= Version::V3_5 { 2 } else { 1 };
    Duration::from_secs(minutes.saturating_mul(factor * 60))
}

/// What MAAS says of a state that lasted too long.
pub fn timed_out(status: Status, after: Duration) -> String {
    let (number, unit) = if after < Duration::from_mins(1) { (after.as_secs(), "seconds") } else { (after.as_secs() / 60, "minutes") };
    format!("Node operation '{}' timed out after {number} {unit}.", status.name())
}
