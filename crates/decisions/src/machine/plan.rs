//! What can be done about one MaasMachine, step by step.

use std::fmt;

use api::{Erase, Image, Intent, MaasMachineStatus, ProviderId, SystemId, cluster_api::IpAddress};
use jiff::Timestamp;

use crate::Marks;

pub use crate::LookAgain;

/// What to do about one MaasMachine.
pub type Plan = crate::Plan<Step, MaasMachineStatus>;

impl Plan {
    /// Whether people have to see the status before the step is taken: the trail of a failed attempt goes with it.
    pub fn is_shown_before_its_step(&self, shown: Option<&MaasMachineStatus>) -> bool {
        let attempts = |status: Option<&MaasMachineStatus>| status.and_then(|status| status.attempt_count).unwrap_or_default();
        matches!(self.step, Some(Step::Forget { .. })) && attempts(self.status.as_ref()) > attempts(shown)
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Writes the intent, and the finalizer unless the object is already going, in one patch. Only then MAAS is told to do anything.
    Intend {
        /// The intent.
        intent: Intent,
        /// Whether the finalizer is added too.
        with_finalizer: bool,
    },
    /// Asks MAAS what could be allocated.
    ListCandidates(Box<Constraints>),
    /// Allocates a server.
    Allocate(Box<Allocation>),
    /// Marks a server as ours.
    Mark {
        /// The server.
        server: SystemId,
        /// The marks.
        marks: Marks,
        /// Not after this.
        not_after: Timestamp,
    },
    /// Writes down which server it is.
    Record {
        /// The server.
        server: SystemId,
        /// The intent from now on.
        intent: Intent,
    },
    /// Looks at a server again.
    Look {
        /// The server.
        server: SystemId,
    },
    /// Prepares a server for its deployment.
    Prepare {
        /// The server.
        server: SystemId,
        /// What to do to it.
        preparation: Preparation,
        /// Not after this.
        not_after: Timestamp,
    },
    /// Deploys a server.
    Deploy(Box<Deployment>),
    /// Hands the server to Cluster API: writes the provider id, which never changes again.
    Provision {
        /// The provider id.
        provider_id: ProviderId,
    },
    /// Releases a server.
    Release {
        /// The server.
        server: SystemId,
        /// Whether and how its disks are erased.
        erase: Erase,
        /// Why, for MAAS's log.
        comment: String,
        /// Not after this.
        not_after: Timestamp,
    },
    /// Forgets a server that is not ours any more.
    Forget {
        /// The server.
        server: SystemId,
        /// The intent from now on.
        intent: Intent,
    },
    /// Asks the server's power controller.
    QueryPower {
        /// The server.
        server: SystemId,
    },
    /// Switches a server on.
    PowerOn {
        /// The server.
        server: SystemId,
        /// Why, for MAAS's log.
        comment: String,
        /// Not after this.
        not_after: Timestamp,
    },
    /// Tells the node which machine it is.
    NameNode {
        /// The node.
        node: String,
        /// The provider id.
        provider_id: String,
    },
    /// Removes the node of a server that goes back and was never handed over: nobody else knows of it.
    RemoveNode {
        /// The node.
        node: String,
        /// What it said its machine is.
        provider_id: Option<String>,
    },
    /// Looks at the claim by which the object asked a pool for its address.
    LookForClaim,
    /// Looks at an address of a pool.
    LookForAddress {
        /// Its name.
        address: String,
    },
    /// Puts our finalizer on an address of a pool, before a server gets it.
    HoldAddress(Box<IpAddress>),
    /// Takes our finalizer off an address of a pool.
    FreeAddress(Box<IpAddress>),
    /// Lets the object go.
    RemoveFinalizer,
}

/// What a server must be like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constraints {
    /// At least so many threads.
    pub cpu: u32,
    /// At least so much memory, in MiB.
    pub memory: u32,
    /// In this zone.
    pub zone: Option<String>,
    /// In this pool.
    pub pool: Option<String>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// With none of these tags.
    pub not_tags: Vec<String>,
    /// Of this architecture.
    pub architecture: Option<String>,
    /// With disks like these, in MAAS's words.
    pub storage: Option<String>,
    /// With interfaces like these, in MAAS's words.
    pub interfaces: Option<String>,
}

/// For people: only what is asked for.
impl fmt::Display for Constraints {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, memory, zone, pool, tags, not_tags, architecture, storage, interfaces } = self;
        let mut parts = vec![format!("{cpu} CPUs"), format!("{memory} MiB of memory")];
        let mut say = |name: &str, value: Option<String>| parts.extend(value.map(|value| format!("{name} {value}")));
        say("zone", zone.clone());
        say("pool", pool.clone());
        say("tags", (!tags.is_empty()).then(|| tags.join(", ")));
        say("none of the tags", (!not_tags.is_empty()).then(|| not_tags.join(", ")));
        say("architecture", architecture.clone());
        say("storage", storage.clone());
        say("interfaces", interfaces.clone());
        formatter.write_str(&parts.join(", "))
    }
}

/// How to allocate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// What the server must be like.
    pub constraints: Constraints,
    /// One of these; any that is no virtual machine if empty. Either way MAAS never composes one by itself.
    pub servers: Vec<SystemId>,
    /// The claim, by which the server is found again should the answer get lost.
    pub agent_name: String,
    /// For whom, for MAAS's log.
    pub comment: String,
    /// Not after this: whoever waits for a late commit counts from the intent.
    pub not_after: Timestamp,
}

/// Something to do to a server before it is deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preparation {
    /// It shall get no swap.
    SwapOff,
    /// Removes a connection of an interface.
    Unlink {
        /// The interface.
        interface: i64,
        /// The connection.
        link: i64,
    },
    /// Connects an interface to a subnet.
    Link {
        /// The interface.
        interface: i64,
        /// The subnet, by range or name.
        subnet: String,
        /// How the address comes about.
        mode: crate::LinkMode,
        /// The address.
        address: Option<std::net::IpAddr>,
    },
}

/// How to deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// The server.
    pub server: SystemId,
    /// What to install.
    pub image: Image,
    /// Whether there is something to run at the first boot.
    pub with_user_data: bool,
    /// Whether it runs in memory.
    pub in_memory: bool,
    /// The kernel.
    pub hwe_kernel: Option<String>,
    /// Whether it reports changes of its hardware.
    pub hardware_sync: bool,
    /// The claim: deploying a server that has become free would acquire it silently.
    pub agent_name: String,
    /// For whom, for MAAS's log.
    pub comment: String,
    /// Not after this.
    pub not_after: Timestamp,
}

/// The name of a step, for what failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "as in Step")]
pub enum StepName {
    Intend,
    ListCandidates,
    Allocate,
    Mark,
    Record,
    Look,
    Prepare,
    Deploy,
    Provision,
    Release,
    Forget,
    QueryPower,
    PowerOn,
    NameNode,
    RemoveNode,
    LookForClaim,
    LookForAddress,
    HoldAddress,
    FreeAddress,
    RemoveFinalizer,
}

impl Step {
    /// Its name.
    pub fn name(&self) -> StepName {
        match self {
            Self::Intend { .. } => StepName::Intend,
            Self::ListCandidates(_) => StepName::ListCandidates,
            Self::Allocate(_) => StepName::Allocate,
            Self::Mark { .. } => StepName::Mark,
            Self::Record { .. } => StepName::Record,
            Self::Look { .. } => StepName::Look,
            Self::Prepare { .. } => StepName::Prepare,
            Self::Deploy(_) => StepName::Deploy,
            Self::Provision { .. } => StepName::Provision,
            Self::Release { .. } => StepName::Release,
            Self::Forget { .. } => StepName::Forget,
            Self::QueryPower { .. } => StepName::QueryPower,
            Self::PowerOn { .. } => StepName::PowerOn,
            Self::NameNode { .. } => StepName::NameNode,
            Self::RemoveNode { .. } => StepName::RemoveNode,
            Self::LookForClaim => StepName::LookForClaim,
            Self::LookForAddress { .. } => StepName::LookForAddress,
            Self::HoldAddress(_) => StepName::HoldAddress,
            Self::FreeAddress(_) => StepName::FreeAddress,
            Self::RemoveFinalizer => StepName::RemoveFinalizer,
        }
    }

    /// Whether it follows from the intent on record, and may be done late if nobody sees the answer.
    pub fn may_be_done_late(&self) -> bool {
        match self {
            Self::Allocate(_)
            | Self::Mark { .. }
            | Self::Prepare { .. }
            | Self::Deploy(_)
            | Self::Release { .. }
            | Self::PowerOn { .. }
            | Self::HoldAddress(_) => true,
            Self::Intend { .. }
            | Self::ListCandidates(_)
            | Self::Record { .. }
            | Self::Look { .. }
            | Self::Provision { .. }
            | Self::Forget { .. }
            | Self::QueryPower { .. }
            | Self::NameNode { .. }
            | Self::RemoveNode { .. }
            | Self::LookForClaim
            | Self::LookForAddress { .. }
            | Self::FreeAddress(_)
            | Self::RemoveFinalizer => false,
        }
    }

    /// Whether several of them follow each other in one pass, on one server or for one object.
    pub fn may_repeat(&self) -> bool {
        let of_servers = matches!(self, Self::Look { .. } | Self::Prepare { .. } | Self::Intend { .. } | Self::Forget { .. });
        of_servers || matches!(self, Self::LookForAddress { .. } | Self::FreeAddress(_))
    }

    /// The server it is about, if it is about one.
    pub fn server(&self) -> Option<&SystemId> {
        match self {
            Self::Mark { server, .. }
            | Self::Record { server, .. }
            | Self::Look { server }
            | Self::Prepare { server, .. }
            | Self::Release { server, .. }
            | Self::Forget { server, .. }
            | Self::QueryPower { server }
            | Self::PowerOn { server, .. } => Some(server),
            Self::Deploy(deployment) => Some(&deployment.server),
            Self::Allocate(allocation) => allocation.servers.first(),
            Self::Intend { .. }
            | Self::ListCandidates(_)
            | Self::Provision { .. }
            | Self::NameNode { .. }
            | Self::RemoveNode { .. }
            | Self::LookForClaim
            | Self::LookForAddress { .. }
            | Self::HoldAddress(_)
            | Self::FreeAddress(_)
            | Self::RemoveFinalizer => None,
        }
    }
}
