//! What machine to allocate: every constraint MAAS knows.

use std::fmt::Display;

use super::constraints::Constraints;
use crate::SystemId;

/// What machine to allocate. Among those that match MAAS takes the cheapest: threads plus memory in GiB.
///
/// **If nothing matches and no `system_id` is given, MAAS composes a VM** on any VM host the user may use, even for a dry run. Whoever
/// wants metal names the machines, or excludes the VM hosts with [`Constraints::not_pod_type`].
pub type Allocate = Constraints<Allocation>;

/// What the constraints of an [`Allocate`] are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocation;

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

impl Constraints<Allocation> {
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
