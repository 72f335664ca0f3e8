//! To be written.

use crate::http::answer::Refusal;
use crate::http::form::Form;
use crate::http::route::Endpoint;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::people::User;
use crate::world::vm_host::VmHost;
use super::machines::Constraints;

pub const ENDPOINTS: &[Endpoint] = &[];

/// Registers a deployed machine as VM hosts of these kinds.
pub fn register_deployed(_world: &mut World, _machine: Id<Machine>, _kinds: &[String]) {}

/// Composes a machine for an allocation nothing else fits.
pub fn compose_for_allocation(_world: &mut World, _constraints: &Constraints, _form: &Form, _user: Id<User>) -> Result<Option<Id<Machine>>, Refusal> {
    Ok(None)
}

/// The VM hosts that run on a machine.
pub fn hosted_by(_world: &World, _machine: Id<Machine>) -> Vec<Id<VmHost>> {
    Vec::new()
}

/// What MAAS says when a machine that hosts VMs is released or deleted.
pub fn must_go_first(_world: &World, _hosts: &[Id<VmHost>]) -> String {
    String::new()
}

/// Removes a VM host, and its machines.
pub fn remove(_world: &mut World, _host: Id<VmHost>, _decompose: bool) {}
