//! A machine as MAAS shows it. It is called a server here, because "machine" is already two kinds of object in Kubernetes.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use api::SystemId;
use jiff::Timestamp;

/// A machine as MAAS showed it at `read_at`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its id.
    pub system_id: SystemId,
    /// The first label of its name.
    pub hostname: String,
    /// Its whole name.
    pub fqdn: String,
    /// Where it is in its life.
    pub status: ServerStatus,
    /// The latest thing MAAS logged about it, for people.
    pub status_message: String,
    /// What went wrong with it last. MAAS keeps it over a release.
    pub error: String,
    /// The MAAS user whose it is.
    pub owner: Option<String>,
    /// What its owner noted on it: the workload annotations.
    pub marks: BTreeMap<String, String>,
    /// Whether it has power, as far as MAAS knows.
    pub power: Power,
    /// Its zone.
    pub zone: String,
    /// Its resource pool.
    pub pool: String,
    /// The VM host it is a virtual machine of.
    pub vm_host: Option<String>,
    /// Whether it is locked: MAAS then permits nothing but unlocking.
    pub locked: bool,
    /// Whether it runs in memory.
    pub in_memory: bool,
    /// Whether it is set up to get no swap.
    pub swap_off: bool,
    /// Such as `amd64/generic`.
    pub architecture: String,
    /// Its addresses, in MAAS's order.
    pub addresses: Vec<IpAddr>,
    /// Its network interfaces.
    pub interfaces: Vec<NetworkInterface>,
    /// When MAAS said all this.
    pub read_at: Timestamp,
}

/// A network interface of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkInterface {
    /// Its id.
    pub id: i64,
    /// Its name, such as `eth0`.
    pub name: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether the server boots from it.
    pub boot: bool,
    /// Interfaces on top of it, such as a bridge.
    pub children: Vec<String>,
    /// How it is connected.
    pub links: Vec<Link>,
}

/// A connection of an interface to a subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its id.
    pub id: i64,
    /// How the address comes about.
    pub mode: LinkMode,
    /// The subnet.
    pub subnet: Option<SubnetName>,
    /// The address, where there is one.
    pub address: Option<IpAddr>,
}

/// A subnet, by all its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetName {
    /// Its range, such as `10.0.0.0/24`.
    pub cidr: String,
    /// Its name.
    pub name: String,
}

impl SubnetName {
    /// Whether this is the subnet that a person calls so.
    pub fn is_called(&self, name: &str) -> bool {
        self.cidr == name || self.name == name
    }
}

/// How the address of a link comes about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkMode {
    /// MAAS chooses one when the server is deployed.
    Auto,
    /// A person chose it.
    Static,
    /// A DHCP server tells it.
    Dhcp,
    /// There is none.
    LinkUp,
    /// One this program does not know.
    Other(String),
}

/// Whether a server has power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// It has.
    On,
    /// It has not.
    Off,
    /// MAAS cannot tell, or asking failed.
    Unclear,
}

/// Where a server is in its life: all 23 states of MAAS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "they are MAAS's own names")]
pub enum ServerStatus {
    New,
    Commissioning,
    FailedCommissioning,
    Missing,
    Ready,
    Reserved,
    Deployed,
    Retired,
    Broken,
    Deploying,
    Allocated,
    FailedDeployment,
    Releasing,
    ReleasingFailed,
    DiskErasing,
    FailedDiskErasing,
    RescueMode,
    EnteringRescueMode,
    FailedEnteringRescueMode,
    ExitingRescueMode,
    FailedExitingRescueMode,
    Testing,
    FailedTesting,
    /// One this program does not know.
    Other(i64),
}

/// What a status means to whoever holds the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is in nobody's hands: it waits to be allocated, or MAAS prepares it.
    Shelved,
    /// It is held and nothing is installed.
    Held,
    /// It is being installed.
    Installing,
    /// It runs.
    Running,
    /// Its installation failed.
    InstallFailed,
    /// Somebody marked it broken.
    Broken,
    /// It is on its way back to the pool.
    Leaving,
    /// It got stuck on its way back to the pool.
    StuckLeaving,
    /// Somebody tests or rescues it.
    UnderRepair,
    /// This program does not know.
    Unclear,
}

/// In the order of MAAS's numbers.
const STATUSES: [(ServerStatus, &str, Stage); 23] = [
    (ServerStatus::New, "New", Stage::Shelved),
    (ServerStatus::Commissioning, "Commissioning", Stage::Shelved),
    (ServerStatus::FailedCommissioning, "Failed commissioning", Stage::Shelved),
    (ServerStatus::Missing, "Missing", Stage::Shelved),
    (ServerStatus::Ready, "Ready", Stage::Shelved),
    (ServerStatus::Reserved, "Reserved", Stage::Broken),
    (ServerStatus::Deployed, "Deployed", Stage::Running),
    (ServerStatus::Retired, "Retired", Stage::Shelved),
    (ServerStatus::Broken, "Broken", Stage::Broken),
    (ServerStatus::Deploying, "Deploying", Stage::Installing),
    (ServerStatus::Allocated, "Allocated", Stage::Held),
    (ServerStatus::FailedDeployment, "Failed deployment", Stage::InstallFailed),
    (ServerStatus::Releasing, "Releasing", Stage::Leaving),
    (ServerStatus::ReleasingFailed, "Releasing failed", Stage::StuckLeaving),
    (ServerStatus::DiskErasing, "Disk erasing", Stage::Leaving),
    (ServerStatus::FailedDiskErasing, "Failed disk erasing", Stage::StuckLeaving),
    (ServerStatus::RescueMode, "Rescue mode", Stage::UnderRepair),
    (ServerStatus::EnteringRescueMode, "Entering rescue mode", Stage::UnderRepair),
    (ServerStatus::FailedEnteringRescueMode, "Failed to enter rescue mode", Stage::UnderRepair),
    (ServerStatus::ExitingRescueMode, "Exiting rescue mode", Stage::UnderRepair),
    (ServerStatus::FailedExitingRescueMode, "Failed to exit rescue mode", Stage::UnderRepair),
    (ServerStatus::Testing, "Testing", Stage::UnderRepair),
    (ServerStatus::FailedTesting, "Failed testing", Stage::UnderRepair),
];

impl ServerStatus {
    /// All that MAAS has.
    pub fn all() -> impl Iterator<Item = Self> {
        STATUSES.into_iter().map(|(status, ..)| status)
    }

    /// What it means to whoever holds the server.
    pub fn stage(self) -> Stage {
        STATUSES.iter().find(|(status, ..)| *status == self).map_or(Stage::Unclear, |(_, _, stage)| *stage)
    }
}

impl From<i64> for ServerStatus {
    fn from(number: i64) -> Self {
        usize::try_from(number).ok().and_then(|index| STATUSES.get(index)).map_or(Self::Other(number), |(status, ..)| *status)
    }
}

impl fmt::Display for ServerStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, STATUSES.iter().find(|(status, ..)| status == self)) {
            (_, Some((_, name, _))) => formatter.write_str(name),
            (Self::Other(number), None) => write!(formatter, "state {number}"),
            (known, None) => write!(formatter, "{known:?}"),
        }
    }
}

impl Server {
    /// How people call it: its name and, since names change, its id.
    pub fn name(&self) -> String {
        format!("{} ({})", self.hostname, self.system_id)
    }

    /// What MAAS says is wrong with it, if it says anything.
    pub fn complaint(&self) -> String {
        [&self.error, &self.status_message]
            .into_iter()
            .find(|text| !text.is_empty())
            .cloned()
            .unwrap_or_else(|| "MAAS gives no reason".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_maas_is_a_state_with_a_name_and_a_stage() {
        for (number, (status, name, stage)) in (0..).zip(STATUSES) {
            assert_eq!(ServerStatus::from(number), status);
            assert_eq!(status.to_string(), name);
            assert_eq!(status.stage(), stage);
        }
        assert_eq!(ServerStatus::from(23), ServerStatus::Other(23));
        assert_eq!(ServerStatus::Other(23).stage(), Stage::Unclear);
    }
}
