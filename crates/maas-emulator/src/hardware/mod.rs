//! The machines behind the API: orders go in, reports come back, now or later. [`simulated`] draws times from the seed; the lab
//! boots real ones.

pub mod simulated;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::timings::Timings;
use crate::world::id::Id;
use crate::world::machine::Machine;

pub use simulated::Simulated;

/// Something a machine is told to do. `boot` numbers the orders; a report carries the number it answers.
#[derive(Debug, Clone)]
pub struct Order {
    /// The machine's row.
    pub machine: Id<Machine>,
    /// Its system id.
    pub system_id: String,
    /// Its fully qualified host name.
    pub fqdn: String,
    /// The number of the order.
    pub boot: u64,
    /// What to do.
    pub work: Work,
}

/// What a machine is told to do.
#[derive(Debug, Clone)]
pub enum Work {
    /// Switch off.
    PowerOff,
    /// Switch on, or off and on, and do this.
    PowerOn(Purpose),
    /// The machine leaves MAAS's hands: keep or wipe what is on its disks.
    Forget {
        /// Whether the disks are to be blank afterwards.
        wipe: bool,
    },
}

/// Why a machine is switched on.
#[derive(Debug, Clone)]
pub enum Purpose {
    /// Find out what it is.
    Commission,
    /// Test it.
    Test,
    /// Install and boot.
    Deploy(Deployment),
    /// Erase the disks.
    Erase,
    /// Boot for a person to mend it.
    Rescue,
    /// Boot what is there.
    Local,
}

/// What is installed.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// `ubuntu/jammy`.
    pub image: String,
    /// What the first boot reads, decoded.
    pub user_data: Vec<u8>,
    /// Runs from memory: everything is lost with the power.
    pub ephemeral: bool,
    /// Addresses of its interfaces: name, hardware address and addresses with prefix length.
    pub interfaces: Vec<DeployedInterface>,
    /// The gateway of the first interface that has one.
    pub gateway: Option<std::net::IpAddr>,
    /// How long MAAS waits for the first boot's report.
    pub patience: Duration,
}

/// An interface as it is to be configured.
#[derive(Debug, Clone)]
pub struct DeployedInterface {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub mac: String,
    /// Its addresses.
    pub addresses: Vec<ipnet::IpNet>,
}

/// What the hardware has to say.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The machine.
    pub machine: Id<Machine>,
    /// The order it answers.
    pub boot: u64,
    /// What happened.
    pub outcome: Outcome,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It runs.
    PoweredOn,
    /// It stopped.
    PoweredOff,
    /// The work is done; for a deployment the first boot reported in.
    Finished,
    /// The work failed, and why, in the words of the console or the driver.
    Failed(String),
    /// Nothing has come of the work in all the time there was for it; what is seen of the machine.
    Silent(String),
}

/// A set of machines. Reports that are known now are returned with their delay; others go to [`crate::Emulator::report`].
pub trait Hardware: Send + Sync {
    /// Carries out an order.
    fn perform(&self, order: &Order, random: &mut Random, timings: &Timings) -> Vec<(Duration, Outcome)>;
}
