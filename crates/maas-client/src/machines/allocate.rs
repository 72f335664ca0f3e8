//! What machine to allocate: every constraint MAAS knows.

use std::fmt::Display;

use crate::{SystemId, call::Form, units::MebiBytes};

/// What machine to allocate. Among those that match MAAS takes the cheapest: threads plus memory in GiB.
///
/// **If nothing matches and no `system_id` is given, MAAS composes a VM** on any VM host the user may use, even for a dry run. Whoever wants
/// metal names the machines, or excludes the VM hosts with [`Allocate::not_pod_type`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocate(Form);

/// How bridges are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BridgeType {
    /// The kernel's own.
    Standard,
    /// Open vSwitch.
    Ovs,
}

impl Display for BridgeType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Standard => "standard",
            Self::Ovs => "ovs",
        })
    }
}

impl Allocate {
    /// Any machine.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn form(&self) -> Form {
        self.0.clone()
    }

    /// A constraint this client has no name for.
    #[must_use]
    pub fn with(self, key: &'static str, value: impl Display) -> Self {
        Self(self.0.with(key, value))
    }

    /// This machine; given several times, any of these.
    #[must_use]
    pub fn system_id(self, id: &SystemId) -> Self {
        self.with("system_id", id)
    }

    /// The machine of this name, with or without its domain.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.with("name", name)
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

    /// In this zone; given several times, in any of these.
    #[must_use]
    pub fn zone(self, zone: &str) -> Self {
        self.with("zone", zone)
    }

    /// Not in this zone.
    #[must_use]
    pub fn not_in_zone(self, zone: &str) -> Self {
        self.with("not_in_zone", zone)
    }

    /// In this pool; given several times, in any of these.
    #[must_use]
    pub fn pool(self, pool: &str) -> Self {
        self.with("pool", pool)
    }

    /// Not in this pool.
    #[must_use]
    pub fn not_in_pool(self, pool: &str) -> Self {
        self.with("not_in_pool", pool)
    }

    /// A VM of this VM host, by name.
    #[must_use]
    pub fn pod(self, host: &str) -> Self {
        self.with("pod", host)
    }

    /// No VM of this VM host.
    #[must_use]
    pub fn not_pod(self, host: &str) -> Self {
        self.with("not_pod", host)
    }

    /// A VM of a host of this type, such as `lxd`.
    #[must_use]
    pub fn pod_type(self, kind: &str) -> Self {
        self.with("pod_type", kind)
    }

    /// No VM of hosts of this type.
    #[must_use]
    pub fn not_pod_type(self, kind: &str) -> Self {
        self.with("not_pod_type", kind)
    }

    /// Connected to this subnet: `cidr:…`, `name:…`, `ip:…`, `space:…`, `vlan:…` or a number; given twice, to both.
    #[must_use]
    pub fn subnet(self, subnet: &str) -> Self {
        self.with("subnets", subnet)
    }

    /// Not connected to this subnet.
    #[must_use]
    pub fn not_subnet(self, subnet: &str) -> Self {
        self.with("not_subnets", subnet)
    }

    /// With disks like these: `label:gigabytes(tag,tag),…`; the first is the one that holds `/`.
    #[must_use]
    pub fn storage(self, constraint: &str) -> Self {
        self.with("storage", constraint)
    }

    /// With interfaces like these: `label:key=value,…;label:…`.
    #[must_use]
    pub fn interfaces(self, constraint: &str) -> Self {
        self.with("interfaces", constraint)
    }

    /// Connected to this fabric.
    #[must_use]
    pub fn fabric(self, fabric: &str) -> Self {
        self.with("fabrics", fabric)
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

    /// With devices like these, such as `vendor_id=10de,product_id=1db6`.
    #[must_use]
    pub fn devices(self, constraint: &str) -> Self {
        self.with("devices", constraint)
    }

    /// A name to find the machine by, should the answer get lost.
    #[must_use]
    pub fn agent_name(self, name: &str) -> Self {
        self.with("agent_name", name)
    }

    /// Why, for the event log.
    #[must_use]
    pub fn comment(self, comment: &str) -> Self {
        self.with("comment", comment)
    }

    /// Makes a bridge over every interface.
    #[must_use]
    pub fn bridge_all(self, bridge: bool) -> Self {
        self.with("bridge_all", bridge)
    }

    /// What bridges those are.
    #[must_use]
    pub fn bridge_type(self, kind: BridgeType) -> Self {
        self.with("bridge_type", kind)
    }

    /// Whether those bridges speak the spanning tree protocol.
    #[must_use]
    pub fn bridge_stp(self, speak: bool) -> Self {
        self.with("bridge_stp", speak)
    }

    /// Seconds until those bridges forward.
    #[must_use]
    pub fn bridge_fd(self, seconds: u32) -> Self {
        self.with("bridge_fd", seconds)
    }

    /// Only says which machine it would be. See the warning above: it may compose a VM all the same.
    #[must_use]
    pub fn dry_run(self) -> Self {
        self.with("dry_run", true)
    }

    /// Also tells which disks and interfaces of other machines matched.
    #[must_use]
    pub fn verbose(self) -> Self {
        self.with("verbose", true)
    }
}
