//! Which machines to list. Every filter may be given several times; filters of different kinds must all be met.

use std::fmt::Display;

use super::status::{MachineStatus, PowerState};
use crate::{SystemId, call::Form, units::MebiBytes};

/// Which machines to list: all of them, unless told otherwise.
///
/// MAAS refuses names of zones, pools, tags and owners it does not know. Workload annotations cannot be filtered by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFilter(Form);

impl MachineFilter {
    /// All machines the user may see.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn form(&self) -> Form {
        self.0.clone()
    }

    /// A filter this client has no name for.
    #[must_use]
    pub fn with(self, key: &'static str, value: impl Display) -> Self {
        Self(self.0.with(key, value))
    }

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

    /// In this physical zone.
    #[must_use]
    pub fn zone(self, zone: &str) -> Self {
        self.with("zone", zone)
    }

    /// In no such zone.
    #[must_use]
    pub fn not_in_zone(self, zone: &str) -> Self {
        self.with("not_in_zone", zone)
    }

    /// In this resource pool.
    #[must_use]
    pub fn pool(self, pool: &str) -> Self {
        self.with("pool", pool)
    }

    /// In no such pool.
    #[must_use]
    pub fn not_in_pool(self, pool: &str) -> Self {
        self.with("not_in_pool", pool)
    }

    /// Allocated or deployed with this agent name; the first thing a release blanks.
    #[must_use]
    pub fn agent_name(self, name: &str) -> Self {
        self.with("agent_name", name)
    }

    /// With this tag; given twice, with both.
    #[must_use]
    pub fn tag(self, tag: &str) -> Self {
        self.with("tags", tag)
    }

    /// Without this tag.
    #[must_use]
    pub fn not_tag(self, tag: &str) -> Self {
        self.with("not_tags", tag)
    }

    /// Of this architecture, such as `amd64`.
    #[must_use]
    pub fn architecture(self, architecture: &str) -> Self {
        self.with("arch", architecture)
    }

    /// With at least so many threads.
    #[must_use]
    pub fn cpu_count(self, count: u32) -> Self {
        self.with("cpu_count", count)
    }

    /// At least so fast, in MHz.
    #[must_use]
    pub fn cpu_speed(self, megahertz: u32) -> Self {
        self.with("cpu_speed", megahertz)
    }

    /// With at least so much memory.
    #[must_use]
    pub fn memory(self, memory: MebiBytes) -> Self {
        self.with("mem", memory)
    }

    /// In this state. One this client does not know is asked for by number, which MAAS refuses: better than to get all machines.
    #[must_use]
    pub fn status(self, status: MachineStatus) -> Self {
        match status.filter_name() {
            Some(name) => self.with("status", name),
            None => self.with("status", i64::from(status)),
        }
    }

    /// With or without power.
    #[must_use]
    pub fn power_state(self, state: PowerState) -> Self {
        self.with("power_state", String::from(state))
    }

    /// Of this user.
    #[must_use]
    pub fn owner(self, owner: &str) -> Self {
        self.with("owner", owner)
    }

    /// VMs of this VM host, by name.
    #[must_use]
    pub fn pod(self, host: &str) -> Self {
        self.with("pod", host)
    }

    /// No VMs of this VM host.
    #[must_use]
    pub fn not_pod(self, host: &str) -> Self {
        self.with("not_pod", host)
    }

    /// VMs of hosts of this type, such as `lxd`.
    #[must_use]
    pub fn pod_type(self, kind: &str) -> Self {
        self.with("pod_type", kind)
    }

    /// No VMs of hosts of this type.
    #[must_use]
    pub fn not_pod_type(self, kind: &str) -> Self {
        self.with("not_pod_type", kind)
    }

    /// Connected to this subnet: `cidr:…`, `name:…`, `space:…`, `vlan:…` or a number.
    #[must_use]
    pub fn subnet(self, subnet: &str) -> Self {
        self.with("subnets", subnet)
    }

    /// Not connected to this subnet.
    #[must_use]
    pub fn not_subnet(self, subnet: &str) -> Self {
        self.with("not_subnets", subnet)
    }

    /// Connected to this VLAN.
    #[must_use]
    pub fn vlan(self, vlan: &str) -> Self {
        self.with("vlans", vlan)
    }

    /// Connected to this fabric.
    #[must_use]
    pub fn fabric(self, fabric: &str) -> Self {
        self.with("fabrics", fabric)
    }

    /// With a link of at least this speed, in Mbit/s.
    #[must_use]
    pub fn link_speed(self, megabits: u32) -> Self {
        self.with("link_speed", megabits)
    }

    /// With disks like these, such as `root:100(ssd)`.
    #[must_use]
    pub fn storage(self, constraint: &str) -> Self {
        self.with("storage", constraint)
    }

    /// With interfaces like these, such as `pxe:subnet_cidr=10.20.0.0/24`.
    #[must_use]
    pub fn interfaces(self, constraint: &str) -> Self {
        self.with("interfaces", constraint)
    }

    /// With devices like these, such as `vendor_id=10de`.
    #[must_use]
    pub fn devices(self, constraint: &str) -> Self {
        self.with("devices", constraint)
    }

    /// Deployed to `disk` or to `memory`. Since MAAS 3.5.
    #[must_use]
    pub fn deployment_target(self, target: &str) -> Self {
        self.with("deployment_target", target)
    }
}

/// What machines are left out by: as MAAS's source has it, most of it not recorded. Of several values none may hold.
impl MachineFilter {
    /// Not this one.
    #[must_use]
    pub fn not_system_id(self, id: &SystemId) -> Self {
        self.with("not_id", id)
    }

    /// Not of this first label.
    #[must_use]
    pub fn not_hostname(self, hostname: &str) -> Self {
        self.with("not_hostname", hostname)
    }

    /// Without this MAC address.
    #[must_use]
    pub fn not_mac_address(self, address: &str) -> Self {
        self.with("not_mac_address", address)
    }

    /// In no such domain.
    #[must_use]
    pub fn not_domain(self, domain: &str) -> Self {
        self.with("not_domain", domain)
    }

    /// Not allocated with this agent name.
    #[must_use]
    pub fn not_agent_name(self, name: &str) -> Self {
        self.with("not_agent_name", name)
    }

    /// Not of this architecture.
    #[must_use]
    pub fn not_architecture(self, architecture: &str) -> Self {
        self.with("not_arch", architecture)
    }

    /// Not of this user.
    #[must_use]
    pub fn not_owner(self, owner: &str) -> Self {
        self.with("not_owner", owner)
    }

    /// Not with this power.
    #[must_use]
    pub fn not_power_state(self, state: PowerState) -> Self {
        self.with("not_power_state", String::from(state))
    }

    /// Not in this state.
    #[must_use]
    pub fn not_status(self, status: MachineStatus) -> Self {
        match status.filter_name() {
            Some(name) => self.with("not_status", name),
            None => self.with("not_status", i64::from(status)),
        }
    }

    /// Not connected to this VLAN.
    #[must_use]
    pub fn not_vlan(self, vlan: &str) -> Self {
        self.with("not_vlans", vlan)
    }

    /// Not connected to this fabric.
    #[must_use]
    pub fn not_fabric(self, fabric: &str) -> Self {
        self.with("not_fabrics", fabric)
    }

    /// Connected to a fabric of this class.
    #[must_use]
    pub fn fabric_class(self, class: &str) -> Self {
        self.with("fabric_classes", class)
    }

    /// Not connected to a fabric of this class.
    #[must_use]
    pub fn not_fabric_class(self, class: &str) -> Self {
        self.with("not_fabric_classes", class)
    }

    /// Without a link of this speed, in Mbit/s.
    #[must_use]
    pub fn not_link_speed(self, megabits: u32) -> Self {
        self.with("not_link_speed", megabits)
    }
}
