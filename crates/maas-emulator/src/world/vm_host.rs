//! VM hosts that compose machines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::Id;
use super::machine::Machine;
use super::place::{Pool, Zone};

/// A VM host ("pod").
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VmHost {
    /// Its id; BMCs and VM hosts count together, so ids begin after those of the machines' BMCs.
    pub id: Id<VmHost>,
    /// Its name; need not be unique.
    pub name: String,
    /// `lxd` or `virsh`.
    pub kind: String,
    /// Its tags in order.
    pub tags: Vec<String>,
    /// Its zone.
    pub zone: Id<Zone>,
    /// Its pool.
    pub pool: Id<Pool>,
    /// Architectures it composes; none when it could not be reached.
    pub architectures: Vec<String>,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// Cores it has.
    pub cores: u32,
    /// Clock of the cores in MHz.
    pub cpu_speed: u32,
    /// Memory it has, in MiB.
    pub memory: u64,
    /// Storage it says it has, in bytes.
    pub local_storage: u64,
    /// Its storage pools.
    pub storage_pools: Vec<StoragePool>,
    /// How far cores may be promised twice.
    pub cpu_over_commit_ratio: f64,
    /// How far memory may be promised twice.
    pub memory_over_commit_ratio: f64,
    /// How composed machines reach the network without a bridge.
    pub default_macvlan_mode: Option<String>,
    /// The machine it runs on.
    pub host: Option<Id<Machine>>,
    /// `power_address`, `project`, certificate and key.
    pub parameters: BTreeMap<String, String>,
    /// The version of its software.
    pub version: String,
    /// Whether it answers.
    pub reachable: bool,
}

/// A storage pool of a VM host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoragePool {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `dir`, `zfs`, …
    pub kind: String,
    /// Where it is on the host.
    pub path: String,
    /// Its size in bytes.
    pub total: u64,
    /// Taken when nothing else is asked for.
    pub default: bool,
}
