//! Stopping one unit, and what happens when its main process ends by itself.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::jobs::JobResult;
use super::policy::{self, Ending};
use super::start::Run;
use super::state::{Active, Main, Unit, Waited};
use super::{Supervisor, notify};
use crate::init::output;
use crate::init::process;
use crate::init::reaper::{End, Exit};
use crate::init::unit::service::{KillMode, ServiceType};
use crate::init::unit::{Definition, UnitKind};

/// How often processes that are no children of ours are looked for; nobody tells when they end.
const GLANCE: Duration = Duration::from_millis(20);
/// How long killed processes may take to vanish.
const VANISH: Duration = Duration::from_secs(2);
/// Lines of a unit's log that are shown when it failed.
const LAST_WORDS: usize = 5;

impl Supervisor {
    /// Stops one unit; `latest` shortens its own timeout.
    pub(super) fn stop_alone(self: &Arc<Self>, unit: &Arc<Unit>, latest: Option<Instant>) -> JobResult {
        {
            let mut inner = unit.lock();
            inner.cancel = true;
            inner.restart_generation += 1;
        }
        unit.poke();
        let _job = unit.job.lock();
        let definition = unit.definition();
        let (status, main) = { (unit.status(), unit.lock().main.clone()) };
        let waiting = status.active == Active::Activating;
        let running = status.active == Active::Active || main.is_some();
        if !running {
            if waiting {
                unit.set(Active::Inactive, "dead");
            }
            return JobResult::Done;
        }
        if unit.name.kind() != UnitKind::Service {
            unit.set(Active::Inactive, "dead");
            return JobResult::Done;
        }
        unit.set(Active::Deactivating, "stop");
        let timely = self.stop_service(unit, &definition, main.as_ref(), latest);
        let exit = unit.lock().main.take().and_then(|main| main.end.get());
        self.run_stop_post(unit, &definition);
        self.forget_run(unit);
        let ending = match (timely, exit) {
            (false, _) => Ending::Timeout,
            (true, Some(exit)) if exit != Exit::Signal(definition.service.kill_signal.as_raw()) => {
                policy::ending(&definition.service, exit)
            }
            (true, _) => Ending::Clean,
        };
        Self::settle(unit, ending, exit);
        JobResult::Done
    }

    /// Asks politely, then kills; false when it had to be killed.
    fn stop_service(
        self: &Arc<Self>,
        unit: &Arc<Unit>,
        definition: &Arc<Definition>,
        main: Option<&Main>,
        latest: Option<Instant>,
    ) -> bool {
        let own = definition.service.stop_timeout.limit().map(|limit| Instant::now() + limit);
        let deadline = [own, latest].into_iter().flatten().min();
        if let Some(run) = Self::stopping_run(unit, definition, main, deadline) {
            // A failing ExecStop= does not keep the rest from being stopped.
            let _ = self.run_all(&run, &definition.service.exec_stop, "ExecStop");
        }
        unit.set(Active::Deactivating, "stop-sigterm");
        let service = &definition.service;
        let main_pid = main.filter(|main| main.end.get().is_none()).map(|main| main.pid);
        if service.kill_mode == KillMode::None {
            return true;
        }
        if let Some(pid) = main_pid {
            self.signal_main(pid, service.kill_signal);
        }
        if service.kill_mode == KillMode::ControlGroup {
            self.groups.signal(&unit.name, service.kill_signal, main_pid);
        }
        let timely = self.wait_until_gone(unit, main, service.kill_mode == KillMode::ControlGroup, deadline);
        if !timely || service.kill_mode == KillMode::Mixed {
            self.end_processes(unit, definition, main);
        }
        timely
    }

    fn stopping_run<'a>(
        unit: &'a Arc<Unit>,
        definition: &'a Definition,
        main: Option<&Main>,
        deadline: Option<Instant>,
    ) -> Option<Run<'a>> {
        let mut variables = process::variables(&definition.service).ok()?;
        variables.extend(main.map(|main| ("MAINPID".to_owned(), main.pid.as_raw_nonzero().to_string())));
        let deadline = deadline.map(|deadline| (deadline, deadline.saturating_duration_since(Instant::now())));
        Some(Run { unit, definition, variables, deadline, cancelable: false })
    }

    fn run_stop_post(self: &Arc<Self>, unit: &Arc<Unit>, definition: &Definition) {
        let deadline = definition.service.stop_timeout.limit().map(|limit| Instant::now() + limit);
        if let Some(run) = Self::stopping_run(unit, definition, None, deadline) {
            let _ = self.run_all(&run, &definition.service.exec_stop_post, "ExecStopPost");
        }
    }

    fn signal_main(&self, pid: Pid, signal: Signal) {
        let _ = kill_process(pid, signal);
        if !self.groups.available() {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }

    fn wait_until_gone(&self, unit: &Arc<Unit>, main: Option<&Main>, whole_group: bool, deadline: Option<Instant>) -> bool {
        let main_gone = unit.wait(deadline, false, |_| main.is_none_or(|main| main.end.get().is_some())) == Waited::Done;
        while whole_group && main_gone && !self.groups.processes(&unit.name).is_empty() {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            thread::sleep(GLANCE);
        }
        main_gone
    }

    /// Kills what is left of a unit, as far as its kill mode allows, and waits until it has vanished.
    pub(super) fn end_processes(&self, unit: &Arc<Unit>, definition: &Definition, main: Option<&Main>) {
        let service = &definition.service;
        if !service.send_sigkill || service.kill_mode == KillMode::None {
            return;
        }
        let whole_group = service.kill_mode != KillMode::Process;
        if let Some(main) = main.filter(|main| main.end.get().is_none()) {
            self.signal_main(main.pid, Signal::KILL);
        }
        if whole_group {
            self.groups.signal(&unit.name, Signal::KILL, None);
        }
        self.wait_until_gone(unit, main, whole_group, Some(Instant::now() + VANISH));
    }

    /// The main process ended without being asked to.
    pub(super) fn main_ended(self: &Arc<Self>, unit: &Arc<Unit>, end: &Arc<End>, exit: Exit) {
        let _job = unit.job.lock();
        let mine = unit.lock().main.as_ref().is_some_and(|main| Arc::ptr_eq(&main.end, end));
        if !mine {
            return;
        }
        let definition = unit.definition();
        let main = unit.lock().main.take();
        let ending = policy::ending(&definition.service, exit);
        if ending == Ending::Clean && definition.service.remain_after_exit && definition.service.kind != ServiceType::Oneshot {
            unit.lock().status.last_exit = Some(exit);
            unit.set(Active::Active, "exited");
            return;
        }
        unit.set(Active::Deactivating, "stop");
        let deadline = definition.service.stop_timeout.limit().map(|limit| Instant::now() + limit);
        if let Some(run) = Self::stopping_run(unit, &definition, main.as_ref(), deadline) {
            let _ = self.run_all(&run, &definition.service.exec_stop, "ExecStop");
        }
        self.end_processes(unit, &definition, None);
        self.ended(unit, &definition, ending, Some(exit), &format!("main process ended with {exit}"));
    }

    /// Says how it ended, and restarts it if its settings say so.
    pub(super) fn ended(self: &Arc<Self>, unit: &Arc<Unit>, definition: &Arc<Definition>, ending: Ending, exit: Option<Exit>, why: &str) {
        self.run_stop_post(unit, definition);
        self.forget_run(unit);
        let canceled = unit.lock().cancel || self.is_shutting_down();
        let again = !canceled && policy::restarts(&definition.service, ending, exit);
        let restarts = unit.lock().status.restarts;
        if ending != Ending::Clean && !canceled && worth_saying(restarts) {
            self.say_last_words(unit, why, again.then_some(definition.service.restart_after));
        }
        Self::settle(unit, ending, exit);
        if again {
            self.restart_later(unit, definition.service.restart_after);
        } else if ending != Ending::Clean && !canceled && !definition.on_failure.is_empty() {
            let (supervisor, units) = (Arc::clone(self), definition.on_failure.clone());
            let _ = thread::Builder::new().spawn(move || supervisor.start(&units));
        }
    }

    fn settle(unit: &Arc<Unit>, ending: Ending, exit: Option<Exit>) {
        {
            let mut inner = unit.lock();
            inner.status.result = ending.word();
            inner.status.last_exit = exit.or(inner.status.last_exit);
        }
        if ending == Ending::Clean {
            unit.set(Active::Inactive, "dead");
        } else {
            unit.set(Active::Failed, "failed");
        }
    }

    fn forget_run(&self, unit: &Arc<Unit>) {
        let socket = unit.lock().notify_socket.take();
        if let Some(socket) = socket {
            notify::close(&socket);
        }
        self.groups.remove(&unit.name);
    }

    fn say_last_words(&self, unit: &Arc<Unit>, why: &str, again: Option<Duration>) {
        let next = again.map_or_else(String::new, |after| format!("; starting it again in {after:?}"));
        self.console.say(&format!("{}: {why}{next}", unit.name));
        for line in output::tail(&self.layout.unit_log(&unit.name), LAST_WORDS) {
            self.console.say(&format!("  | {line}"));
        }
    }

    fn restart_later(self: &Arc<Self>, unit: &Arc<Unit>, after: Duration) {
        let generation = {
            let mut inner = unit.lock();
            inner.restart_generation += 1;
            inner.restart_generation
        };
        unit.set(Active::Activating, "auto-restart");
        let (supervisor, unit) = (Arc::clone(self), Arc::clone(unit));
        let _ = thread::Builder::new().name("restart".to_owned()).spawn(move || {
            let waited = unit.wait(Some(Instant::now() + after), false, |inner| inner.restart_generation != generation);
            if waited == Waited::Done {
                return;
            }
            let _job = unit.job.lock();
            let still_wanted = unit.lock().restart_generation == generation && !supervisor.is_shutting_down();
            if still_wanted {
                unit.lock().status.restarts += 1;
                supervisor.start_locked(&unit);
            }
        });
    }

    /// Whether any process of a unit is alive.
    pub fn has_processes(&self, unit: &Unit) -> bool {
        let main = unit.lock().main.as_ref().map(|main| main.pid);
        main.is_some_and(|pid| test_kill_process(pid).is_ok()) || !self.groups.processes(&unit.name).is_empty()
    }

    /// Sends a signal to a unit's processes: the main one or all of them.
    pub fn kill(&self, unit: &Unit, signal: Signal, main_only: bool) -> bool {
        let main = unit.lock().main.as_ref().map(|main| main.pid);
        let sent = main.is_some_and(|pid| kill_process(pid, signal).is_ok());
        if !main_only {
            self.groups.signal(&unit.name, signal, main);
        }
        sent || !main_only
    }
}

/// The first few failures in a row and then ever fewer: a crash loop must not bury the console.
fn worth_saying(restarts: u32) -> bool {
    restarts < 3 || restarts.is_power_of_two()
}
