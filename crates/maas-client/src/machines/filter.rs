//! Which machines to list. Every filter may be given several times; filters of different kinds must all be met.

use super::{constraints::Constraints, status::MachineStatus};
use crate::SystemId;

/// Which machines to list: all of them, unless told otherwise.
///
/// MAAS refuses names of zones, pools, tags and owners it does not know. Workload annotations cannot be filtered by.
pub type MachineFilter = Constraints<Listing>;

/// What the constraints of a [`MachineFilter`] are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing;

impl Constraints<Listing> {
    /// Any of these ids. Ids that MAAS does not know match nothing.
    #[must_use]
    pub fn system_id(self, id: &SystemId) -> Self {
        self.with("id", id)
    }

    /// Of this first label; a whole name matches nothing.
    #[must_use]
    pub fn hostname(self, hostname: &str) -> Self {
        self.with("hostname", hostname)
    }

    /// With this MAC address.
    #[must_use]
    pub fn mac_address(self, address: &str) -> Self {
        self.with("mac_address", address)
    }

    /// In this domain.
    #[must_use]
    pub fn domain(self, domain: &str) -> Self {
        self.with("domain", domain)
    }

    /// Allocated or deployed with this agent name; the first thing a release blanks.
    #[must_use]
    pub fn agent_name(self, name: &str) -> Self {
        self.with("agent_name", name)
    }

    /// In this state. One this client does not know is asked for by number, which MAAS refuses: better than to get all machines.
    #[must_use]
    pub fn status(self, status: MachineStatus) -> Self {
        match status.filter_name() {
            Some(name) => self.with("status", name),
            None => self.with("status", i64::from(status)),
        }
    }
}

/// What machines are left out by; of several values none may hold. It rests on reading MAAS's source, not on recordings.
impl Constraints<Listing> {
    /// Not this one. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_system_id(self, id: &SystemId) -> Self {
        self.with("not_id", id)
    }

    /// Not of this first label. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_hostname(self, hostname: &str) -> Self {
        self.with("not_hostname", hostname)
    }

    /// In no such domain. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_domain(self, domain: &str) -> Self {
        self.with("not_domain", domain)
    }

    /// Not allocated with this agent name. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_agent_name(self, name: &str) -> Self {
        self.with("not_agent_name", name)
    }

    /// Not in this state. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_status(self, status: MachineStatus) -> Self {
        match status.filter_name() {
            Some(name) => self.with("not_status", name),
            None => self.with("not_status", i64::from(status)),
        }
    }
}
