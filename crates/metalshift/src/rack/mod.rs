//! The machines of a lab as the hardware behind an emulated MAAS: what MAAS deploys boots there, and what boots there is what MAAS hears
//! of. Used by `metalshift emulator --lab`, which `metalshift lab up --fleet` starts.
//!
//! Orders are taken at once and carried out by one task a machine, in their order; reports follow as the machine makes them true. A
//! deployment is a new instance on an empty disk. Commissioning, tests, erasing and rescue mode boot nothing: the machine is without
//! power meanwhile, and their times are those of simulated hardware.

mod console;
mod machine;
pub mod names;
mod slot;
mod takeover;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::bail;
use lab::{Control, LabDirectory, LabError, Level, MachineState};
use maas_emulator::Emulator;
use maas_emulator::hardware::{Hardware, Order, Outcome, Purpose, Simulated, Work};
use maas_emulator::random::Random;
use maas_emulator::timings::Timings;
use maas_emulator::world::id::Id;
use maas_emulator::world::machine::Machine;
use maas_emulator::world::status::Status;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

use machine::{LabMachine, Watch, last_look};
use slot::Slot;
use takeover::{Found, Lost};

/// Fails where no machine could ever boot.
pub async fn check(directory: &LabDirectory) -> anyhow::Result<()> {
    match Control::of(directory).status().await {
        Ok(status) if status.level != Level::Nodes => {
            bail!("lab {} is of level {}, and only level nodes has machines to boot", status.name, status.level)
        }
        // A lab starts its MAAS before it is up itself.
        Ok(_) | Err(LabError::Starting { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// An order and when it was given.
type GivenOrder = (Instant, Order);

/// Hardware that is the machines of a lab.
pub struct LabHardware {
    orders: UnboundedSender<GivenOrder>,
}

/// What carries the orders out.
pub struct Hands {
    orders: UnboundedReceiver<GivenOrder>,
    /// Whose machines these are: several MAAS may use one lab.
    maas: String,
    directory: LabDirectory,
    machines: BTreeMap<Id<Machine>, UnboundedSender<GivenOrder>>,
    tasks: JoinSet<()>,
}

impl LabHardware {
    /// The machines of this lab for the MAAS of this name, and the hands that must run beside the emulator. The name must be the same for
    /// an emulator that goes on from where another one ended.
    pub fn of(directory: &LabDirectory, maas: &str) -> (Self, Hands) {
        let (sender, orders) = unbounded_channel();
        let hands = Hands { orders, maas: maas.to_owned(), directory: directory.clone(), machines: BTreeMap::new(), tasks: JoinSet::new() };
        (LabHardware { orders: sender }, hands)
    }
}

impl Hardware for LabHardware {
    fn perform(&self, order: &Order, random: &mut Random, timings: &Timings) -> Vec<(Duration, Outcome)> {
        // The hands are gone only when the emulator is about to be.
        let _ = self.orders.send((Instant::now(), order.clone()));
        match order.work {
            // Nothing of it boots, and MAAS shows so as soon as it is done: the machine has no power.
            Work::PowerOn(Purpose::Commission | Purpose::Test | Purpose::Erase | Purpose::Rescue) => {
                let mut reports = Simulated.perform(order, random, timings);
                let end = reports.last().map_or(Duration::ZERO, |(delay, _)| *delay);
                reports.push((end, Outcome::PoweredOff));
                reports
            }
            Work::PowerOn(Purpose::Deploy(_) | Purpose::Local) | Work::PowerOff | Work::Forget { .. } => Vec::new(),
        }
    }
}

impl Hands {
    /// Carries orders out until the emulator is gone; first of all takes up what an emulator before this one left in the lab.
    pub async fn run(mut self, emulator: Emulator) {
        for order in self.take_up(&emulator).await {
            self.pass_on(&emulator, order);
        }
        while let Some(order) = self.orders.recv().await {
            self.pass_on(&emulator, order);
        }
    }

    fn pass_on(&mut self, emulator: &Emulator, (at, order): GivenOrder) {
        let machine = order.machine;
        if !self.machines.contains_key(&machine) {
            let slot = Slot::new(&self.directory, self.tag(&order.system_id), &order.system_id, None);
            self.employ(emulator, machine, slot, Watch::Nothing);
        }
        if let Some(task) = self.machines.get(&machine) {
            // A task that has ended saw its machine leave MAAS.
            let _ = task.send((at, order));
        }
    }

    /// What the lab knows a machine by.
    fn tag(&self, system_id: &str) -> String {
        format!("{}/{system_id}", self.maas)
    }

    fn employ(&mut self, emulator: &Emulator, machine: Id<Machine>, slot: Slot, watch: Watch) {
        let (sender, orders) = unbounded_channel();
        self.machines.insert(machine, sender);
        let served = LabMachine::new(emulator.clone(), machine, slot, watch);
        self.tasks.spawn(served.serve(orders));
    }

    /// Machines of the lab that carry our tag: those that MAAS deployed before this process began. The orders that were given meanwhile.
    async fn take_up(&mut self, emulator: &Emulator) -> Vec<GivenOrder> {
        let control = Control::of(&self.directory);
        let Some(status) = takeover::answer(|| control.status(), || self.orders.is_closed()).await else { return Vec::new() };
        let mut given = self.given();
        let mut running = BTreeSet::new();
        for (name, state, tag) in status.machines.into_iter().filter_map(|machine| Some((machine.name, machine.state, machine.tag?))) {
            let Some(system_id) = tag.strip_prefix(&self.tag("")) else { continue };
            let known = emulator.world(|world| {
                let found = world.all_machines().find(|machine| machine.system_id == system_id);
                found.map(|machine| (machine.id, machine.status, machine.boot, machine.powered, machine.owner.is_some()))
            });
            let slot = Slot::new(&self.directory, tag.clone(), system_id, Some(name));
            let Some((machine, status, boot, powered, owned)) = known else {
                slot.remove().await;
                continue;
            };
            if (!owned || status == Status::Releasing)
                && let Err(error) = slot.power_off().await
            {
                tracing::warn!(%error, system_id, "a machine that is nobody's could not be switched off");
            }
            let watch = match status {
                // What the order of this emulator begins is to be looked at, not what was before.
                _ if given.iter().any(|(_, order)| order.machine == machine) => Watch::Nothing,
                Status::Deploying if state == MachineState::Off => Watch::Nothing,
                Status::Deploying => {
                    // Perhaps not saved before the end.
                    emulator.report(machine, boot, Outcome::PoweredOn);
                    let until = emulator.patience_left(machine).map(|left| Instant::now() + last_look(left));
                    Watch::Boot { boot, until }
                }
                Status::Commissioning
                | Status::Testing
                | Status::DiskErasing
                | Status::EnteringRescueMode
                | Status::RescueMode
                | Status::ExitingRescueMode => Watch::Nothing,
                // The emulator of before heard no answer to its last order.
                Status::Releasing => Watch::Power { boot, on: true },
                _ => Watch::Power { boot, on: powered },
            };
            self.employ(emulator, machine, slot, watch);
            running.extend((state != MachineState::Off).then_some(machine));
        }
        given.extend(self.given());
        self.repeat_lost_orders(emulator, &running, &given);
        given
    }

    /// The orders that wait.
    fn given(&mut self) -> Vec<GivenOrder> {
        std::iter::from_fn(|| self.orders.try_recv().ok()).collect()
    }

    /// What the emulator of before was told to do last may have died with it.
    fn repeat_lost_orders(&self, emulator: &Emulator, running: &BTreeSet<Id<Machine>>, given: &[GivenOrder]) {
        let waiting: Vec<(Id<Machine>, Status, u64)> =
            emulator.world(|world| world.all_machines().map(|machine| (machine.id, machine.status, machine.boot)).collect());
        for (machine, status, boot) in waiting {
            let found = Found {
                in_lab: self.machines.contains_key(&machine),
                running: running.contains(&machine),
                ordered: given.iter().any(|(_, order)| order.machine == machine),
            };
            match takeover::lost(status, found) {
                Some(Lost::Boot) => emulator.boot_again(machine),
                Some(Lost::PowerOff) => emulator.report(machine, boot, Outcome::PoweredOff),
                None => {}
            }
        }
    }
}
