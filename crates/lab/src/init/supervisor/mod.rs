//! Runs units: the stand-in for systemd. The boot asks it to start targets, `systemctl` reaches it through the control socket.

mod jobs;
mod notify;
pub mod policy;
mod start;
pub mod state;
mod stop;
pub mod transaction;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::cgroup::ControlGroups;
use super::console::Console;
use super::layout::Layout;
use super::output::Sink;
use super::reaper::Reaper;
use super::unit::condition::Facts;
use super::unit::service::ServiceType;
use super::unit::specifier::Machine;
use super::unit::{self, Definition, LoadState, UnitKind, UnitName};
pub use jobs::JobResult;
use state::Unit;

/// Everything that runs on one machine.
#[derive(Debug)]
pub struct Supervisor {
    /// Where things are.
    pub layout: Layout,
    /// What people read.
    pub console: Arc<Console>,
    /// Starts processes.
    pub reaper: Reaper,
    groups: ControlGroups,
    machine: Machine,
    facts: Facts,
    units: Mutex<BTreeMap<UnitName, Arc<Unit>>>,
    shutting_down: AtomicBool,
}

impl Supervisor {
    /// A supervisor that runs nothing yet.
    pub fn new(layout: Layout, console: Arc<Console>, reaper: Reaper, groups: ControlGroups, facts: Facts) -> Arc<Self> {
        Arc::new(Self {
            layout,
            console,
            reaper,
            groups,
            machine: Machine::read(),
            facts,
            units: Mutex::new(BTreeMap::new()),
            shutting_down: AtomicBool::new(false),
        })
    }

    /// The unit of this name, read from its files when nobody asked for it before; a second name leads to the same unit.
    pub fn unit(&self, name: &UnitName) -> Arc<Unit> {
        if let Some(unit) = self.known(name) {
            return unit;
        }
        let definition = Arc::new(unit::read(&self.layout, name, &self.machine));
        let real = definition.name.clone();
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        // A unit that does not exist is looked up again at the next question: it may be written in the meantime.
        if definition.state == LoadState::NotFound {
            return Arc::new(Unit::new(definition));
        }
        let unit = Arc::clone(units.entry(real).or_insert_with(|| Arc::new(Unit::new(definition))));
        units.insert(name.clone(), Arc::clone(&unit));
        unit
    }

    fn known(&self, name: &UnitName) -> Option<Arc<Unit>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All units anybody asked for.
    pub fn loaded(&self) -> Vec<Arc<Unit>> {
        let units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        units.iter().filter(|(name, unit)| **name == unit.name).map(|(_, unit)| Arc::clone(unit)).collect()
    }

    /// What a name means.
    pub fn definition(&self, name: &UnitName) -> Arc<Definition> {
        self.unit(name).definition()
    }

    /// Reads all files again, as `daemon-reload` does; running units keep running.
    pub fn reload(&self) {
        for unit in self.loaded() {
            unit.redefine(Arc::new(unit::read(&self.layout, &unit.name, &self.machine)));
        }
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        units.retain(|name, unit| *name == unit.name || unit::read(&self.layout, name, &self.machine).name == unit.name);
    }

    /// Whether files of a unit changed since they were read.
    pub fn changed_on_disk(&self, unit: &Unit) -> bool {
        let definition = unit.definition();
        let newer = |path: &std::path::PathBuf| {
            path.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH) > unit.read_at()
        };
        definition.fragment.iter().chain(&definition.drop_ins).any(newer)
            || unit::load::load(&self.layout, &unit.name).drop_ins != definition.drop_ins
    }

    /// No unit starts any more, by itself or by request.
    pub fn refuse_starts(&self) {
        self.shutting_down.store(true, Ordering::SeqCst);
    }

    fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::SeqCst)
    }

    /// Says what of a unit has no effect here, once.
    fn name_what_has_no_effect(&self, definition: &Definition) {
        for note in &definition.notes {
            self.console.say_once(&format!("{}: {note}", definition.name));
        }
        if definition.name.kind() == UnitKind::Unsupported {
            self.console.say_once(&format!("{}: units of this kind have no effect here", definition.name));
        }
    }

    /// Where the lines of a unit's process go. Commands that run to an end are what a person waits for; the chatter of daemons is in their log.
    fn sink(&self, definition: &Definition, who: &str, pid: u32) -> Sink {
        let shown = definition.service.to_console || definition.service.kind == ServiceType::Oneshot;
        Sink {
            log: Some(self.layout.unit_log(&definition.name)),
            tag: format!("{who}[{pid}]"),
            console: shown.then(|| Arc::clone(&self.console)),
        }
    }
}
