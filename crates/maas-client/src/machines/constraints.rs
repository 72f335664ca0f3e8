//! What machines must be like, for those who list them and those who allocate one: most constraints are the same for both and are here,
//! the others are in `filter.rs` and `allocate.rs`.

use std::{fmt::Display, marker::PhantomData};

use super::status::PowerState;
use crate::{call::Form, units::MebiBytes};

/// What machines must be like: any, unless told otherwise. Constraints of different kinds must all be met. Made as a
/// [`MachineFilter`](crate::MachineFilter) or as an [`Allocate`](crate::Allocate).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraints<Purpose> {
    form: Form,
    purpose: PhantomData<Purpose>,
}

impl<Purpose: Default> Constraints<Purpose> {
    /// Any machine the user may see or use.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<Purpose> Constraints<Purpose> {
    pub(crate) fn form(&self) -> Form {
        self.form.clone()
    }

    /// A constraint this client has no name for.
    #[must_use]
    pub fn with(self, key: &'static str, value: impl Display) -> Self {
        Self { form: self.form.with(key, value), purpose: PhantomData }
    }

    /// In this physical zone; given several times, in any of these. One that MAAS does not know is refused, as are unknown pools and tags.
    #[must_use]
    pub fn zone(self, zone: &str) -> Self {
        self.with("zone", zone)
    }

    /// Not in this zone.
    #[must_use]
    pub fn not_in_zone(self, zone: &str) -> Self {
        self.with("not_in_zone", zone)
    }

    /// In this resource pool; given several times, in any of these.
    #[must_use]
    pub fn pool(self, pool: &str) -> Self {
        self.with("pool", pool)
    }

    /// Not in this pool.
    #[must_use]
    pub fn not_in_pool(self, pool: &str) -> Self {
        self.with("not_in_pool", pool)
    }

    /// With this tag; given twice, with both. A tag MAAS does not know is refused.
    #[must_use]
    pub fn tag(self, tag: &str) -> Self {
        self.with("tags", tag)
    }

    /// Without this tag.
    #[must_use]
    pub fn not_tag(self, tag: &str) -> Self {
        self.with("not_tags", tag)
    }

    /// Of this architecture, such as `amd64` or `amd64/generic`.
    #[must_use]
    pub fn architecture(self, architecture: &str) -> Self {
        self.with("arch", architecture)
    }

    /// With at least so many threads.
    #[must_use]
    pub fn cpu_count(self, count: u32) -> Self {
        self.with("cpu_count", count)
    }

    /// With at least so much memory.
    #[must_use]
    pub fn memory(self, memory: MebiBytes) -> Self {
        self.with("mem", memory)
    }

    /// A VM of this VM host, by name.
    #[must_use]
    pub fn pod(self, host: &str) -> Self {
        self.with("pod", host)
    }

    /// Connected to this subnet: `cidr:…`, `name:…`, `ip:…`, `space:…`, `vlan:…` or a number; given twice, to both.
    #[must_use]
    pub fn subnet(self, subnet: &str) -> Self {
        self.with("subnets", subnet)
    }

    /// With disks like these: `label:gigabytes(tag,tag),…`, such as `root:100(ssd)`; the first is the one that holds `/`.
    #[must_use]
    pub fn storage(self, constraint: &str) -> Self {
        self.with("storage", constraint)
    }

    /// With interfaces like these: `label:key=value,…;label:…`, such as `pxe:subnet_cidr=10.20.0.0/24`.
    #[must_use]
    pub fn interfaces(self, constraint: &str) -> Self {
        self.with("interfaces", constraint)
    }

    /// With devices like these, such as `vendor_id=10de,product_id=1db6`.
    #[must_use]
    pub fn devices(self, constraint: &str) -> Self {
        self.with("devices", constraint)
    }
}

/// What MAAS's source has for both. It rests on reading that, not on recordings.
impl<Purpose> Constraints<Purpose> {
    /// No VM of this VM host. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_pod(self, host: &str) -> Self {
        self.with("not_pod", host)
    }

    /// A VM of a host of this type, such as `lxd`. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn pod_type(self, kind: &str) -> Self {
        self.with("pod_type", kind)
    }

    /// No VM of hosts of this type. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_pod_type(self, kind: &str) -> Self {
        self.with("not_pod_type", kind)
    }

    /// Not connected to this subnet. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_subnet(self, subnet: &str) -> Self {
        self.with("not_subnets", subnet)
    }

    /// Connected to this fabric. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn fabric(self, fabric: &str) -> Self {
        self.with("fabrics", fabric)
    }

    /// Not connected to this fabric. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_fabric(self, fabric: &str) -> Self {
        self.with("not_fabrics", fabric)
    }

    /// Connected to a fabric of this class. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn fabric_class(self, class: &str) -> Self {
        self.with("fabric_classes", class)
    }

    /// Not connected to a fabric of this class. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_fabric_class(self, class: &str) -> Self {
        self.with("not_fabric_classes", class)
    }

    /// At least so fast, in MHz. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn cpu_speed(self, megahertz: u32) -> Self {
        self.with("cpu_speed", megahertz)
    }

    /// Connected to this VLAN. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn vlan(self, vlan: &str) -> Self {
        self.with("vlans", vlan)
    }

    /// Not connected to this VLAN. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_vlan(self, vlan: &str) -> Self {
        self.with("not_vlans", vlan)
    }

    /// With a link of at least this speed, in Mbit/s. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn link_speed(self, megabits: u32) -> Self {
        self.with("link_speed", megabits)
    }

    /// Not of this architecture. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_architecture(self, architecture: &str) -> Self {
        self.with("not_arch", architecture)
    }

    /// With or without power. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn power_state(self, state: PowerState) -> Self {
        self.with("power_state", String::from(state))
    }

    /// Of this user. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn owner(self, owner: &str) -> Self {
        self.with("owner", owner)
    }

    /// Deployed to `disk` or to `memory`. Since MAAS 3.5. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn deployment_target(self, target: &str) -> Self {
        self.with("deployment_target", target)
    }

    /// Not of this user. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_owner(self, owner: &str) -> Self {
        self.with("not_owner", owner)
    }

    /// Not with this power. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_power_state(self, state: PowerState) -> Self {
        self.with("not_power_state", String::from(state))
    }

    /// Not deployed to `disk`, or not to `memory`. Since MAAS 3.5. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn not_deployment_target(self, target: &str) -> Self {
        self.with("not_deployment_target", target)
    }
}
