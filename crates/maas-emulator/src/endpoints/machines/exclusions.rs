//! The plain `not_…` filters: machines that any value of any of them describes are left out. Read with the other constraints. Names nobody
//! has leave nothing out.

use super::constraints::{Problems, is_ephemeral, power_states, statuses, values};
use crate::http::form::Form;
use crate::world::World;
use crate::world::machine::Machine;
use crate::world::status::Status;

/// What a machine must not be like.
#[derive(Debug, Default)]
pub struct Exclusions {
    system_ids: Vec<String>,
    hostnames: Vec<String>,
    domains: Vec<String>,
    agent_names: Vec<String>,
    architectures: Vec<String>,
    statuses: Vec<Status>,
    power_states: Vec<String>,
    owners: Vec<String>,
    ephemeral: Vec<bool>,
}

/// Those both the list and an allocation know.
pub const SHARED: [&str; 4] = ["not_arch", "not_power_state", "not_owner", "not_deployment_target"];

/// Those only the list knows.
pub const OF_LIST: [&str; 6] = ["not_id", "not_hostname", "not_domain", "not_agent_name", "not_status", "not_simple_status"];

impl Exclusions {
    /// Reads them; those that were refused as unknown are not there any more.
    pub fn read(form: &Form, problems: &mut Problems) -> Self {
        let mut excluded = statuses(form, "not_status", Status::filter, problems);
        excluded.extend(statuses(form, "not_simple_status", Status::simple_filter, problems));
        Exclusions {
            system_ids: values(form, "not_id"),
            hostnames: values(form, "not_hostname"),
            domains: values(form, "not_domain"),
            agent_names: values(form, "not_agent_name"),
            architectures: values(form, "not_arch"),
            statuses: excluded,
            power_states: power_states(form, "not_power_state", problems),
            owners: values(form, "not_owner"),
            ephemeral: is_ephemeral(form, "not_deployment_target", problems),
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
            || self.architectures.contains(&machine.architecture)
            || self.ephemeral.contains(&machine.ephemeral_deploy)
            || (!self.domains.is_empty() && world.domains.get(machine.domain).is_some_and(|domain| self.domains.contains(&domain.name)))
    }
}
