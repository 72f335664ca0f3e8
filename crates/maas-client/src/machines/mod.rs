//! Machines: finding, allocating and making them. What is done to one of them is in `one.rs`.
//!
//! Nothing here that changes something is ever repeated by the client, not even what MAAS does not mind twice: between two attempts the
//! machine may have become somebody else's. Look, then do it again. Which machines carry a tag is a setting of the tag (`tags.rs`).

mod allocate;
mod commission;
mod constraints;
mod deploy;
mod filter;
mod object;
mod one;
mod release;
mod settings;
mod status;
mod storage;

use std::collections::BTreeMap;

pub use allocate::{Allocate, Allocation, BridgeType};
pub use commission::{Commission, Test};
pub use constraints::Constraints;
pub use deploy::Deploy;
pub use filter::{Listing, MachineFilter};
pub use object::{ConstraintMatches, DefaultGateways, Gateway, Host, Machine, NumaNode, Parent};
pub use one::{OneMachine, PowerOff};
pub use release::Release;
pub use settings::{MachineSettings, NewMachine};
pub use status::{MachineStatus, PowerState, ScriptStatus};
pub use storage::{BlockDevice, Filesystem, Partition};

use crate::{
    Client, Error, SecretParameters, SystemId,
    call::{Call, Form, Path},
};

/// Calls on machines: finding, allocating and making them; see [`Client::machines`]. What changes something is sent once.
#[derive(Clone, Copy, Debug)]
pub struct Machines<'a>(&'a Client);

impl Client {
    /// The machines.
    pub fn machines(&self) -> Machines<'_> {
        Machines(self)
    }

    /// One machine.
    pub fn machine<'a>(&'a self, id: &'a SystemId) -> OneMachine<'a> {
        OneMachine::new(self, id)
    }
}

fn all() -> Path {
    Path::new("machines")
}

impl Machines<'_> {
    /// The machines that match, among those the user may see.
    pub async fn list(self, filter: &MachineFilter) -> Result<Vec<Machine>, Error> {
        self.0.object(Call::get(all()).query(filter.form())).await
    }

    /// The user's machines in state Allocated.
    pub async fn list_allocated(self) -> Result<Vec<Machine>, Error> {
        self.0.object(Call::get(all()).operation("list_allocated")).await
    }

    /// Takes a machine for the user. Without one that matches it is a final conflict.
    ///
    /// After [`Error::OutcomeUnknown`] look for the agent name before allocating again: MAAS may still commit it two minutes later.
    pub async fn allocate(self, constraints: &Allocate) -> Result<Machine, Error> {
        self.0.object(Call::post(all()).operation("allocate").form(constraints.form())).await
    }

    /// Makes a machine known to MAAS. For administrators.
    pub async fn create(self, machine: &NewMachine) -> Result<Machine, Error> {
        let call = Call::post(all()).form(machine.form());
        let call = match &machine.settings.hostname {
            Some(hostname) => call.about("machine", hostname),
            None => call,
        };
        self.0.object(call).await
    }

    /// Releases several machines, or none if one of them cannot be. Answers those that were not released before.
    pub async fn release(self, machines: &[SystemId], comment: Option<&str>) -> Result<Vec<SystemId>, Error> {
        let form = Form::new().each("machines", machines).maybe("comment", comment);
        self.0.json(Call::post(all()).operation("release").form(form)).await
    }

    /// The power parameters of several machines. For administrators.
    pub async fn power_parameters(self, machines: &[SystemId]) -> Result<BTreeMap<SystemId, SecretParameters>, Error> {
        self.0.json(Call::get(all()).operation("power_parameters").query(Form::new().each("id", machines))).await
    }
}
