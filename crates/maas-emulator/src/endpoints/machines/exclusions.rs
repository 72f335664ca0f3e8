//! The plain `not_…` filters: machines that any value of any of them describes are left out. Read with the other constraints.

use super::constraints::{Problems, fits, values};
use crate::http::form::Form;
use crate::world::World;
use crate::world::machine::Machine;
use crate::world::status::Status;

/// What a machine must not be like.
#[derive(Debug, Default)]
pub struct Exclusions {
    system_ids: Vec<String>,
    hostnames: Vec<String>,
    macs: Vec<String>,
    domains: Vec<String>,
    agent_names: Vec<String>,
    architectures: Vec<String>,
    statuses: Vec<Status>,
    power_states: Vec<String>,
    owners: Vec<String>,
}

/// Those both the list and an allocation know.
pub const SHARED: [&str; 2] = ["not_system_id", "not_arch"];

/// Those only the list knows.
pub const OF_LIST: [&str; 8] =
    ["not_id", "not_hostname", "not_mac_address", "not_domain", "not_agent_name", "not_status", "not_power_state", "not_owner"];

impl Exclusions {
    /// Reads them; those that were refused as unknown are not there any more.
    pub fn read(world: &World, form: &Form, problems: &mut Problems) -> Self {
        Exclusions {
            system_ids: values(form, "not_id").into_iter().chain(values(form, "not_system_id")).collect(),
            hostnames: values(form, "not_hostname"),
            macs: super::constraints::macs(form, "not_mac_address", problems),
            domains: values(form, "not_domain"),
            agent_names: form.all("not_agent_name").map(str::to_owned).collect(),
            architectures: super::constraints::architectures(world, form, "not_arch", problems),
            statuses: super::constraints::statuses(form, "not_status", problems),
            power_states: super::constraints::power_states(form, "not_power_state", problems),
            owners: super::constraints::owners(world, form, "not_owner", problems),
        }
    }

    /// Whether any of them describes a machine.
    pub fn hit(&self, world: &World, machine: &Machine) -> bool {
        let owner = machine.owner.map(|owner| world.user_name(owner));
        self.system_ids.contains(&machine.system_id)
            || self.hostnames.contains(&machine.hostname)
            || self.agent_names.contains(&machine.agent_name)
            || self.statuses.contains(&machine.status)
            || self.power_states.iter().any(|state| state == machine.power_state.name())
            || owner.is_some_and(|owner| self.owners.iter().any(|name| name == owner))
            || self.architectures.iter().any(|name| fits(name, &machine.architecture))
            || (!self.domains.is_empty() && world.domains.get(machine.domain).is_some_and(|domain| self.domains.contains(&domain.name)))
            || (!self.macs.is_empty()
                && machine.interfaces.iter().filter_map(|id| world.interfaces.get(*id)).any(|row| self.macs.contains(&row.mac)))
    }
}
