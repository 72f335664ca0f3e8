//! A new beginning for a machine, and what comes after its power has gone. Asked for through [`crate::Control`].

use std::{path::Path, sync::Arc, time::Duration};

use super::{
    Installation,
    power::{Next, Power},
    rack::Rack,
};
use crate::{LabError, MachineState, MachineStatus};

/// How often a boot is looked at; the end of the power is heard of at once.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Rack {
    /// Cuts the power, empties the disk, wires the machine as asked and boots it.
    pub async fn install(self: &Arc<Self>, name: &str, installation: Installation) -> Result<(), LabError> {
        self.power_off(name, false).await?;
        self.disks.wipe(name)?;
        let (place, _) = self.known(name)?;
        let wiring = installation.wiring.clone().completed(place);
        self.name(name, &wiring.addresses())?;
        let user_data = installation.user_data.clone();
        if let Some(slot) = self.lock().get_mut(name) {
            slot.wiring = wiring;
            slot.in_memory = installation.in_memory.then_some(installation);
        }
        self.power_on(name, Some(&user_data))
    }

    /// What was in memory is gone with the power; a machine that only reboots begins anew then, or goes on with its disk.
    pub(super) fn after_power(self: &Arc<Self>, name: &str, file: &Path, next: Next) -> Result<(), LabError> {
        let in_memory = self.lock().get(name).and_then(|slot| slot.in_memory.clone());
        if in_memory.is_some() {
            self.disks.wipe(name)?;
        }
        match (next, in_memory) {
            (Next::StayOff, _) => Ok(()),
            (Next::Reboot, None) => self.boot(name, file),
            (Next::Reboot, Some(_)) => self.power_on(name, None),
        }
    }

    /// Waits while a machine is in this state; what it is in then.
    pub async fn wait_while(&self, name: &str, state: MachineState) -> Result<MachineStatus, LabError> {
        loop {
            self.known(name)?;
            let off = {
                let machines = self.lock();
                let Some(slot) = machines.get(name) else { continue };
                if self.state(name, slot).0 != state {
                    return Ok(self.status(name, slot));
                }
                if let Power::On { off, .. } = &slot.power { Some(off.clone()) } else { None }
            };
            let look = tokio::time::sleep(LOOK_EVERY);
            match off {
                Some(mut off) => tokio::select! {
                    () = look => {}
                    _ = off.wait_for(|off| *off) => {}
                },
                None => look.await,
            }
        }
    }
}
