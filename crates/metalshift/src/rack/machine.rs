//! One machine: carries out what MAAS orders, and tells MAAS what becomes of it.

use std::time::Duration;

use lab::{LabError, MachineState};
use maas_emulator::Emulator;
use maas_emulator::hardware::{Order, Outcome, Purpose, Work};
use maas_emulator::world::id::Id;
use maas_emulator::world::machine::Machine;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::GivenOrder;
use super::slot::Slot;

/// How much earlier than MAAS's own patience ends the machine is looked at for the last time, so that MAAS can say what was seen.
const BEFORE_THE_END: Duration = Duration::from_secs(1);
/// How long a machine that reboots may be without power.
const REBOOT: Duration = Duration::from_secs(2);
/// The pause before a lab that did not answer is asked again.
const REST: Duration = Duration::from_secs(1);

/// What is looked out for between orders.
#[derive(Clone, Copy, Debug)]
pub enum Watch {
    /// Nothing: the machine is not MAAS's yet, or its work is simulated.
    Nothing,
    /// A first boot. MAAS waits for it until this time; unknown to an emulator that did not begin it, and MAAS's own timeout acts.
    Boot { boot: u64, until: Option<Instant> },
    /// The power of a machine that does whatever it does.
    Power { boot: u64, on: bool },
}

/// One machine and its task.
pub struct LabMachine {
    emulator: Emulator,
    machine: Id<Machine>,
    slot: Slot,
    watch: Watch,
}

impl LabMachine {
    /// The machine with this row in MAAS and this slot in the lab.
    pub fn new(emulator: Emulator, machine: Id<Machine>, slot: Slot, watch: Watch) -> Self {
        LabMachine { emulator, machine, slot, watch }
    }

    /// Carries orders out, one after another, until the machine leaves MAAS.
    pub async fn serve(mut self, mut orders: UnboundedReceiver<GivenOrder>) {
        loop {
            let (at, order) = tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(order) => order,
                    None => return,
                },
                () = look_out(&self.emulator, self.machine, &self.slot, &mut self.watch) => continue,
            };
            if let Err(error) = self.carry_out(at, &order).await {
                tracing::warn!(%error, system_id = order.system_id, "an order could not be carried out");
                // Whatever its power is then, MAAS hears of it.
                self.watch = Watch::Power { boot: order.boot, on: true };
                self.report(order.boot, Outcome::Failed(error.to_string()));
            }
            if matches!(order.work, Work::Forget { .. }) && self.emulator.world(|world| world.machines.get(self.machine).is_none()) {
                self.slot.remove().await;
                return;
            }
        }
    }

    async fn carry_out(&mut self, at: Instant, order: &Order) -> Result<(), LabError> {
        let boot = order.boot;
        let before = std::mem::replace(&mut self.watch, Watch::Nothing);
        self.slot.power_off().await?;
        match &order.work {
            Work::PowerOff => {
                self.watch = Watch::Power { boot, on: false };
                self.report(boot, Outcome::PoweredOff);
                // Whoever may stop a deployment has done so with the power; if MAAS still waits, somebody else has cut it.
                if matches!(before, Watch::Boot { .. }) {
                    self.report(boot, Outcome::Failed(lost_power(&self.slot, None)));
                }
            }
            Work::Forget { wipe } => {
                if *wipe {
                    self.slot.wipe().await?;
                }
                self.watch = Watch::Power { boot, on: false };
            }
            Work::PowerOn(Purpose::Deploy(deployment)) => {
                self.slot.install(&order.fqdn, deployment).await?;
                if deployment.interfaces.iter().all(|interface| interface.addresses.is_empty())
                    && let Some(address) = self.slot.address().await?
                {
                    self.emulator.observe_address(self.machine, address);
                }
                self.watch = Watch::Boot { boot, until: Some(at + last_look(deployment.patience)) };
                self.report(boot, Outcome::PoweredOn);
            }
            Work::PowerOn(Purpose::Local) => {
                let exists = self.slot.boot().await?;
                self.watch = if exists { Watch::Power { boot, on: true } } else { Watch::Nothing };
                self.report(boot, Outcome::PoweredOn);
            }
            // Erased disks are emptied when MAAS forgets the machine: an erasing that fails has emptied nothing.
            Work::PowerOn(Purpose::Commission | Purpose::Test | Purpose::Rescue | Purpose::Erase) => {}
        }
        Ok(())
    }

    fn report(&self, boot: u64, outcome: Outcome) {
        self.emulator.report(self.machine, boot, outcome);
    }
}

/// When a machine that MAAS waits for so long is looked at for the last time.
pub fn last_look(patience: Duration) -> Duration {
    patience.saturating_sub(BEFORE_THE_END.min(patience / 10))
}

/// Looks at the machine until something is to be looked at differently. May be dropped at any time.
async fn look_out(emulator: &Emulator, machine: Id<Machine>, slot: &Slot, watch: &mut Watch) {
    let report = |boot, outcome| emulator.report(machine, boot, outcome);
    match *watch {
        Watch::Nothing => std::future::pending().await,
        Watch::Boot { boot, until } => {
            let seen = tokio::select! {
                seen = slot.after(MachineState::Booting) => seen,
                () = end_of(until) => {
                    *watch = Watch::Power { boot, on: true };
                    return report(boot, Outcome::Silent(format!("It is still booting; {}", slot.last_words())));
                }
            };
            match seen {
                Err(error) => rest(&error).await,
                Ok((MachineState::Booting, _)) => {}
                Ok((MachineState::Running, _)) => {
                    *watch = Watch::Power { boot, on: true };
                    report(boot, Outcome::Finished);
                }
                Ok((MachineState::Failed, words)) => {
                    *watch = Watch::Power { boot, on: true };
                    report(boot, Outcome::Failed(words.unwrap_or_else(|| slot.last_words())));
                }
                Ok((MachineState::Off, death)) => {
                    if tokio::time::timeout(REBOOT, slot.after(MachineState::Off)).await.is_ok() {
                        return;
                    }
                    *watch = Watch::Power { boot, on: false };
                    report(boot, Outcome::PoweredOff);
                    report(boot, Outcome::Failed(lost_power(slot, death.as_deref())));
                }
            }
        }
        Watch::Power { boot, on } => {
            if let Err(error) = slot.power_other_than(on).await {
                return rest(&error).await;
            }
            *watch = Watch::Power { boot, on: !on };
            report(boot, if on { Outcome::PoweredOff } else { Outcome::PoweredOn });
        }
    }
}

/// What is known of a machine that went out in the middle of its first boot.
fn lost_power(slot: &Slot, death: Option<&str>) -> String {
    let death = death.map_or_else(String::new, |words| format!(" ({words})"));
    format!("The machine lost its power during its first boot{death}; {}", slot.last_words())
}

async fn end_of(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

async fn rest(error: &LabError) {
    tracing::debug!(%error, "the lab does not answer");
    tokio::time::sleep(REST).await;
}
