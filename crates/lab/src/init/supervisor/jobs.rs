//! Jobs of several units: start with what is required, stop with what depends, in order and at once where order allows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Supervisor;
use super::start::Run;
use super::state::{Active, Unit};
use super::transaction::{self, Transaction};
use crate::init::process;
use crate::init::unit::{Definition, UnitName};

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobResult {
    /// Well.
    Done,
    /// A condition was not met; that is no failure.
    Skipped(String),
    /// Badly.
    Failed(String),
    /// It took too long.
    TimedOut(String),
    /// Something it requires failed.
    Dependency(UnitName),
    /// A stop came in between.
    Canceled,
    /// No such unit.
    NotFound,
    /// The unit is masked.
    Masked,
}

impl JobResult {
    /// Whether the unit is as wanted.
    pub fn succeeded(&self) -> bool {
        matches!(self, Self::Done | Self::Skipped(_))
    }

    /// In words.
    pub fn reason(&self) -> String {
        match self {
            Self::Done => "done".to_owned(),
            Self::Skipped(why) => format!("skipped: {why}"),
            Self::Failed(why) | Self::TimedOut(why) => why.clone(),
            Self::Dependency(unit) => format!("{unit}, which it requires, did not start"),
            Self::Canceled => "canceled".to_owned(),
            Self::NotFound => "unit not found".to_owned(),
            Self::Masked => "unit is masked".to_owned(),
        }
    }
}

/// Results of a transaction, as they come in.
#[derive(Debug, Default)]
struct Board {
    results: Mutex<BTreeMap<UnitName, JobResult>>,
    changed: Condvar,
}

impl Board {
    fn wait_for(&self, units: &BTreeSet<UnitName>) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        while !units.iter().all(|unit| results.contains_key(unit)) {
            results = self.changed.wait(results).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn get(&self, unit: &UnitName) -> Option<JobResult> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).get(unit).cloned()
    }

    fn put(&self, unit: UnitName, result: JobResult) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).insert(unit, result);
        self.changed.notify_all();
    }
}

/// Does a job for every unit, each when those it waits for are done.
fn in_order(transaction: &Transaction, job: &(dyn Fn(&UnitName, &Board) -> JobResult + Sync)) -> BTreeMap<UnitName, JobResult> {
    let board = Board::default();
    thread::scope(|scope| {
        for name in &transaction.order {
            let board = &board;
            let firsts = transaction.waits_for.get(name).cloned().unwrap_or_default();
            scope.spawn(move || {
                board.wait_for(&firsts);
                let result = job(name, board);
                board.put(name.clone(), result);
            });
        }
    });
    board.results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Supervisor {
    /// Starts units with everything they require and want; the results of all of them.
    pub fn start(self: &Arc<Self>, names: &[UnitName]) -> BTreeMap<UnitName, JobResult> {
        let transaction = transaction::plan(names, &|name| self.definition(name));
        for complaint in &transaction.complaints {
            self.console.say_once(complaint);
        }
        in_order(&transaction, &|name, board| self.start_job(name, board))
    }

    fn start_job(self: &Arc<Self>, name: &UnitName, board: &Board) -> JobResult {
        let unit = self.unit(name);
        let definition = unit.definition();
        self.wait_for_running_starts(&definition);
        for required in definition.requires.iter().map(|required| self.definition(required).name.clone()) {
            let ordered = definition.after.contains(&required);
            let failed = board.get(&required).is_some_and(|result| !result.succeeded());
            if failed && (ordered || board.get(&required) == Some(JobResult::NotFound)) {
                return JobResult::Dependency(required);
            }
        }
        if let Some(missing) = definition.requisite.iter().find(|name| self.unit(name).status().active != Active::Active) {
            return JobResult::Dependency(missing.clone());
        }
        for rival in definition.conflicts.iter().map(|rival| self.unit(rival)).filter(|rival| rival.status().active == Active::Active) {
            self.stop_alone(&rival, None);
        }
        let before = unit.status();
        let result = self.start_alone(&unit);
        self.say_result(&unit, before.active, &result);
        result
    }

    /// A unit ordered behind one that another job is just starting waits for it.
    fn wait_for_running_starts(&self, definition: &Definition) {
        for first in definition.after.iter().map(|first| self.unit(first)) {
            first.wait(Some(Instant::now() + Duration::from_secs(90)), false, |inner| {
                inner.status.active != Active::Activating || inner.status.sub == "auto-restart"
            });
        }
    }

    fn say_result(&self, unit: &Unit, before: Active, result: &JobResult) {
        match result {
            JobResult::Done if before != Active::Active && !unit.definition().service.exec_start.is_empty() => {
                let pid = unit.lock().main.as_ref().map(|main| format!(" (process {})", main.pid.as_raw_nonzero()));
                self.console.say(&format!("started {}{}", unit.name, pid.unwrap_or_default()));
            }
            JobResult::Done | JobResult::Skipped(_) => {}
            _ => self.console.say(&format!("{} did not start: {}", unit.name, result.reason())),
        }
    }

    /// Stops units and whatever depends on them; `latest` shortens their own timeouts. The second value are those that were running.
    pub fn stop(self: &Arc<Self>, names: &[UnitName], latest: Option<Instant>) -> (BTreeMap<UnitName, JobResult>, Vec<UnitName>) {
        let mut all: BTreeMap<UnitName, Arc<Definition>> = BTreeMap::new();
        let mut open: Vec<UnitName> = names.iter().map(|name| self.definition(name).name.clone()).collect();
        while let Some(name) = open.pop() {
            if all.contains_key(&name) {
                continue;
            }
            let dependents = self.loaded().into_iter().filter(|unit| {
                let definition = unit.definition();
                unit.status().active != Active::Inactive && (definition.requires.contains(&name) || definition.part_of.contains(&name))
            });
            open.extend(dependents.map(|unit| unit.name.clone()));
            all.insert(name.clone(), self.definition(&name));
        }
        let running: Vec<UnitName> =
            all.keys().filter(|name| matches!(self.unit(name).status().active, Active::Active | Active::Activating)).cloned().collect();
        let transaction = reversed(transaction::order(&all, &|name| self.definition(name)));
        let results = in_order(&transaction, &|name, _| self.stop_job(name, latest));
        (results, running)
    }

    fn stop_job(self: &Arc<Self>, name: &UnitName, latest: Option<Instant>) -> JobResult {
        let unit = self.unit(name);
        if unit.definition().state == crate::init::unit::LoadState::NotFound {
            return JobResult::NotFound;
        }
        let was_running = unit.lock().main.is_some();
        let result = self.stop_alone(&unit, latest);
        if was_running {
            self.console.say(&format!("stopped {name}"));
        }
        result
    }

    /// Stops and starts units; what depends on them and was running comes back, too.
    pub fn restart(self: &Arc<Self>, names: &[UnitName]) -> BTreeMap<UnitName, JobResult> {
        let (_, running) = self.stop(names, None);
        let mut all = names.to_vec();
        all.extend(running);
        let mut results = self.start(&all);
        results.retain(|name, _| names.iter().any(|asked| self.definition(asked).name == *name));
        results
    }

    /// Asks a running service to read its configuration again.
    pub fn reload_unit(self: &Arc<Self>, name: &UnitName) -> JobResult {
        let unit = self.unit(name);
        let definition = unit.definition();
        if unit.status().active != Active::Active {
            return JobResult::Failed("the unit is not running".to_owned());
        }
        if definition.service.exec_reload.is_empty() {
            return JobResult::Failed("the unit has no ExecReload=".to_owned());
        }
        let _job = unit.job.lock();
        let mut variables = match process::variables(&definition.service) {
            Ok(variables) => variables,
            Err(error) => return JobResult::Failed(error.to_string()),
        };
        let main = unit.lock().main.clone();
        variables.extend(main.map(|main| ("MAINPID".to_owned(), main.pid.as_raw_nonzero().to_string())));
        let limit = definition.service.start_limit();
        let run = Run {
            unit: &unit,
            definition: &definition,
            variables,
            deadline: limit.map(|limit| (Instant::now() + limit, limit)),
            cancelable: false,
        };
        match self.run_all(&run, &definition.service.exec_reload, "ExecReload") {
            Ok(()) => JobResult::Done,
            Err(failure) => JobResult::Failed(failure.to_string()),
        }
    }

    /// Stops everything, those started last first, all within the given time.
    pub fn stop_everything(self: &Arc<Self>, within: Duration) {
        self.refuse_starts();
        let names: Vec<UnitName> = self.loaded().iter().map(|unit| unit.name.clone()).collect();
        self.stop(&names, Some(Instant::now() + within));
    }
}

/// The order of stopping: whoever waited to start is stopped first.
fn reversed(transaction: Transaction) -> Transaction {
    let mut waits_for: BTreeMap<UnitName, BTreeSet<UnitName>> =
        transaction.order.iter().map(|name| (name.clone(), BTreeSet::new())).collect();
    for (waiting, firsts) in &transaction.waits_for {
        for first in firsts {
            waits_for.entry(first.clone()).or_default().insert(waiting.clone());
        }
    }
    Transaction { order: transaction.order.into_iter().rev().collect(), waits_for, complaints: transaction.complaints }
}
