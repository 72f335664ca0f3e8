//! Machines of the lab: what a rack holds, made of namespaces over the host's own root.
//!
//! `disk` is what power does not take away, `start` and `enter` are the steps from a fresh process to the first process of a
//! machine, `devices` and `rights` what it may and may not do there, `wiring` its name and network, `root` whether the host's root is fit for it, `rack` is all machines of a lab with their power switches,
//! `power` what the switches do, `install` gives one of them a new beginning.

mod devices;
mod disk;
mod enter;
mod image;
mod install;
mod power;
mod rack;
mod rights;
mod root;
mod start;
mod wiring;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(crate) use self::{
    devices::refused as refused_devices, disk::DiskSpace, image::MachineImage, rack::Rack, rights::BOUNDING_SET, root::check as check_root,
};
pub use self::{
    enter::machine_enter,
    start::{machine_settle, machine_start},
    wiring::{Installation, Wire, Wiring},
};

/// What the steps of a machine's start hand to each other, in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MachineFile {
    /// The control group of the lab.
    pub lab_group: String,
    pub name: String,
    pub hostname: String,
    /// The layer all machines share.
    pub image: PathBuf,
    /// What belongs to this machine.
    pub disk: PathBuf,
    /// Files of the host that are shown inside: from, to.
    pub shown: Vec<(PathBuf, PathBuf)>,
}
