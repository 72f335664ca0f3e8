//! The place of a machine in the lab's rack. It is made when the machine is deployed for the first time, and called like it where that
//! name is free; the lab keeps a tag with it by which an emulator that is started again finds it.

use std::net::IpAddr;

use lab::{Control, Installation, LabDirectory, LabError, MachineState, Wire, Wiring};
use maas_emulator::hardware::Deployment;

use super::console;

/// A machine's place, once it has one.
pub struct Slot {
    directory: LabDirectory,
    control: Control,
    tag: String,
    system_id: String,
    name: Option<String>,
}

impl Slot {
    /// The place of the machine with this system id: one that exists, or none yet.
    pub fn new(directory: &LabDirectory, tag: String, system_id: &str, name: Option<String>) -> Self {
        Slot { directory: directory.clone(), control: Control::of(directory), tag, system_id: system_id.to_owned(), name }
    }

    /// Cuts the power; a machine without a place has none.
    pub async fn power_off(&self) -> Result<(), LabError> {
        match &self.name {
            Some(name) => self.control.power_off(name, false).await,
            None => Ok(()),
        }
    }

    /// Empties the disk.
    pub async fn wipe(&self) -> Result<(), LabError> {
        match &self.name {
            Some(name) => self.control.wipe(name).await,
            None => Ok(()),
        }
    }

    /// Boots what the disk holds; says whether there is a machine.
    pub async fn boot(&self) -> Result<bool, LabError> {
        match &self.name {
            Some(name) => self.control.power_on(name, None).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Boots what MAAS deploys on an empty disk.
    pub async fn install(&mut self, fqdn: &str, deployment: &Deployment) -> Result<(), LabError> {
        let (hostname, domain) = fqdn.split_once('.').unwrap_or((fqdn, ""));
        let name = self.named(hostname).await?;
        let interfaces = deployment.interfaces.iter().map(|interface| Wire {
            name: interface.name.clone(),
            hardware_address: interface.mac.clone(),
            addresses: interface.addresses.clone(),
        });
        let wiring = Wiring {
            hostname: hostname.to_owned(),
            domain: domain.to_owned(),
            interfaces: interfaces.collect(),
            gateway: deployment.gateway,
        };
        let installation = Installation { wiring, user_data: deployment.user_data.clone(), in_memory: deployment.ephemeral };
        self.control.install(&name, &installation).await
    }

    /// The address the lab has given it; none without a place.
    pub async fn address(&self) -> Result<Option<IpAddr>, LabError> {
        let Some(name) = &self.name else { return Ok(None) };
        let machines = self.control.status().await?.machines;
        Ok(machines.into_iter().find(|machine| machine.name == *name).map(|machine| machine.address.into()))
    }

    /// Makes the place, or renames one whose machine was renamed. What it held is about to be emptied anyway.
    async fn named(&mut self, hostname: &str) -> Result<String, LabError> {
        if let Some(name) = self.name.take_if(|name| name != hostname) {
            self.control.remove_machine(&name).await?;
        }
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let taken = self.control.status().await?.machines.iter().any(|machine| machine.name == hostname);
        let mut name = hostname.to_owned();
        // The lab has machines of its own, and takes no name that would break its paths.
        if taken || self.control.add_tagged_machine(&name, &self.tag).await.is_err() {
            name = format!("maas-{}", self.system_id);
            self.control.add_tagged_machine(&name, &self.tag).await?;
        }
        Ok(self.name.insert(name).clone())
    }

    /// Waits while the machine is in this state: the state it is in then, with the words of a failed boot.
    pub async fn after(&self, state: MachineState) -> Result<(MachineState, Option<String>), LabError> {
        let Some(name) = &self.name else { return Ok((MachineState::Off, None)) };
        self.control.wait_while(name, state).await.map(|status| (status.state, status.detail))
    }

    /// Waits until the power is other than it is believed to be.
    pub async fn power_other_than(&self, on: bool) -> Result<(), LabError> {
        let mut state = if on { MachineState::Running } else { MachineState::Off };
        loop {
            state = self.after(state).await?.0;
            if (state != MachineState::Off) != on {
                return Ok(());
            }
        }
    }

    /// Takes the machine out of the lab.
    pub async fn remove(&self) {
        if let Some(name) = &self.name
            && let Err(error) = self.control.remove_machine(name).await
        {
            tracing::warn!(%error, machine = name, "a machine that left MAAS could not be taken out of the lab");
        }
    }

    /// How the console ends, as a sentence about it.
    pub fn last_words(&self) -> String {
        let words = self.name.as_ref().map(|name| console::last_words(&self.directory.logs().join(format!("{name}.log"))));
        match words.filter(|words| !words.is_empty()) {
            Some(words) => format!("its console ends with: {words}"),
            None => "its console is empty".to_owned(),
        }
    }
}
