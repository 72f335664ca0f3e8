//! What can be done about one MaasCluster, step by step.

use std::net::IpAddr;

use api::{EndpointIntent, MaasClusterStatus};
use jiff::Timestamp;

pub use crate::LookAgain;

/// What to do about one MaasCluster.
pub type Plan = crate::Plan<Step, MaasClusterStatus>;

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Keeps the object from vanishing.
    AddFinalizer,
    /// Writes down what MAAS is about to be told.
    Intend(EndpointIntent),
    /// Writes down that nothing is outstanding, or what is not ours to free any more.
    Settle(EndpointIntent),
    /// Asks Kubernetes itself for the machines of the cluster: what a watch brought may be old.
    ListMachines,
    /// Asks Kubernetes itself what other clusters have or ask for.
    ListOthers,
    /// Looks for the records of the name.
    ListRecords,
    /// Makes the record, without addresses.
    CreateRecord {
        /// The whole name.
        name: String,
        /// Seconds that name servers may keep it.
        time_to_live: u32,
        /// Not after this.
        not_after: Timestamp,
    },
    /// Gives the record these addresses and no others.
    WriteRecord {
        /// The record.
        id: i64,
        /// Seconds that name servers may keep it; stays as it is if not given.
        time_to_live: Option<u32>,
        /// The addresses.
        addresses: Vec<IpAddr>,
        /// Not after this.
        not_after: Timestamp,
    },
    /// Removes a record.
    RemoveRecord {
        /// The record.
        id: i64,
    },
    /// Asks MAAS what our user has reserved.
    ListReservations,
    /// Asks MAAS what is free in a subnet.
    ListFree {
        /// The subnet, by CIDR or name.
        subnet: String,
    },
    /// Reserves an address.
    ReserveAddress {
        /// The address.
        address: IpAddr,
        /// Not after this.
        not_after: Timestamp,
    },
    /// Frees an address that we reserved.
    FreeAddress {
        /// The address.
        address: IpAddr,
        /// Not after this.
        not_after: Timestamp,
    },
    /// Writes down where the API server is reached. The host never changes again.
    WriteEndpoint {
        /// Name or address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Lets the object go.
    RemoveFinalizer,
}

/// The name of a step, for what failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "as in Step")]
pub enum StepName {
    AddFinalizer,
    Intend,
    Settle,
    ListMachines,
    ListOthers,
    ListRecords,
    CreateRecord,
    WriteRecord,
    RemoveRecord,
    ListReservations,
    ListFree,
    ReserveAddress,
    FreeAddress,
    WriteEndpoint,
    RemoveFinalizer,
}

impl Step {
    /// Its name.
    pub fn name(&self) -> StepName {
        match self {
            Self::AddFinalizer => StepName::AddFinalizer,
            Self::Intend(_) => StepName::Intend,
            Self::Settle(_) => StepName::Settle,
            Self::ListMachines => StepName::ListMachines,
            Self::ListOthers => StepName::ListOthers,
            Self::ListRecords => StepName::ListRecords,
            Self::CreateRecord { .. } => StepName::CreateRecord,
            Self::WriteRecord { .. } => StepName::WriteRecord,
            Self::RemoveRecord { .. } => StepName::RemoveRecord,
            Self::ListReservations => StepName::ListReservations,
            Self::ListFree { .. } => StepName::ListFree,
            Self::ReserveAddress { .. } => StepName::ReserveAddress,
            Self::FreeAddress { .. } => StepName::FreeAddress,
            Self::WriteEndpoint { .. } => StepName::WriteEndpoint,
            Self::RemoveFinalizer => StepName::RemoveFinalizer,
        }
    }

    /// Whether it tells MAAS what was written down as an order before.
    pub fn is_order(&self) -> bool {
        match self {
            Self::CreateRecord { .. } | Self::WriteRecord { .. } | Self::ReserveAddress { .. } | Self::FreeAddress { .. } => true,
            Self::AddFinalizer
            | Self::Intend(_)
            | Self::Settle(_)
            | Self::ListMachines
            | Self::ListOthers
            | Self::ListRecords
            | Self::RemoveRecord { .. }
            | Self::ListReservations
            | Self::ListFree { .. }
            | Self::WriteEndpoint { .. }
            | Self::RemoveFinalizer => false,
        }
    }

    /// Whether it only reads, or only writes down: such a step may come several times in one pass.
    pub fn may_repeat(&self) -> bool {
        matches!(self, Self::Intend(_) | Self::Settle(_) | Self::ListOthers | Self::ListRecords | Self::ListReservations)
    }

    /// What it is about, so that the same step is not taken twice in one pass.
    pub fn subject(&self) -> String {
        match self {
            Self::RemoveRecord { id } => id.to_string(),
            Self::WriteRecord { id, addresses, .. } => format!("{id} {addresses:?}"),
            Self::ReserveAddress { address, .. } | Self::FreeAddress { address, .. } => address.to_string(),
            Self::CreateRecord { name, .. } => name.clone(),
            Self::AddFinalizer
            | Self::Intend(_)
            | Self::Settle(_)
            | Self::ListMachines
            | Self::ListOthers
            | Self::ListRecords
            | Self::ListReservations
            | Self::ListFree { .. }
            | Self::WriteEndpoint { .. }
            | Self::RemoveFinalizer => String::new(),
        }
    }
}
