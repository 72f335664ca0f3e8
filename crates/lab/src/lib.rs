//! A data centre on one machine: real Kubernetes, real Cluster API, and machines in namespaces that boot from user-data.
//!
//! Nothing here imitates Kubernetes: etcd, the control plane, kubelets, containerd, kubeadm and the Cluster API managers are the
//! genuine programs. A [`Lab`] lives as long as the value that holds it; `metalshift lab up` keeps one in the background.
//!
//! ```no_run
//! # async fn example() -> Result<(), lab::LabError> {
//! let lab = lab::Lab::up(lab::Options::new(lab::Level::Api)).await?;
//! let client = lab.client().await?;
//! # let _ = client; Ok(())
//! # }
//! ```

mod audit;
pub mod background;
mod cluster_api;
mod command;
mod control;
mod control_groups;
mod control_plane;
mod directory;
mod error;
mod images;
pub mod init;
mod inventory;
mod janitor;
mod kept;
mod kubeconfig;
mod lab;
mod leftovers;
mod level;
mod lock;
mod maas;
mod machine;
mod names;
mod network;
mod nodes;
mod objects;
mod options;
mod orphans;
mod own_process;
pub mod packages;
mod pki;
mod place;
mod ports;
mod private;
mod private_file;
mod probe;
mod process;
pub mod programs;
mod provider;
mod sealed;
mod status;
mod supervise;
mod supervisor;
#[cfg(test)]
#[path = "../tests/waiting/mod.rs"]
#[allow(clippy::print_stderr, reason = "a test says why it is left out")]
mod waiting;

pub use jiff::Timestamp;

pub(crate) use crate::lab::connect;
pub use crate::{
    control::Control,
    directory::{LabDirectory, LabName},
    error::LabError,
    lab::Lab,
    level::Level,
    maas::{Maas, NAME as MAAS},
    machine::{Installation, Wire, Wiring, machine_enter, machine_settle, machine_start},
    network::conflict,
    options::Options,
    private_file::write_private,
    provider::NAME as PROVIDER,
    status::{ComponentState, ComponentStatus, LabStatus, MachineState, MachineStatus, Trouble},
    supervise::{interrupted, supervise},
};
