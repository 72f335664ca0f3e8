//! Starting one service: its commands in order, by the rules of its type.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::Supervisor;
use super::jobs::JobResult;
use super::policy::{self, Ending};
use super::state::{Active, Main, Unit, Waited};
use crate::init::output;
use crate::init::process::{self, LaunchError};
use crate::init::reaper::{End, Exit, pid_of};
use crate::init::unit::command::CommandLine;
use crate::init::unit::condition;
use crate::init::unit::service::ServiceType;
use crate::init::unit::{Definition, LoadState, UnitKind};

/// Why a start did not succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Launch(#[from] LaunchError),
    #[error("{phase}: {program} ended with {exit}")]
    Command { phase: &'static str, program: String, exit: Exit },
    #[error("{phase} took longer than {limit:?}")]
    Timeout { phase: &'static str, limit: Duration },
    #[error("stopped while it was starting")]
    Canceled,
    #[error("{0}")]
    Protocol(String),
    #[error("skipped by ExecCondition")]
    Skipped,
}

impl Failure {
    fn ending(&self) -> Ending {
        match self {
            Self::Command { exit: Exit::Status(status), .. } => Ending::ExitStatus(*status),
            Self::Command { exit: Exit::Signal(signal), .. } => Ending::Signal(*signal),
            Self::Timeout { .. } => Ending::Timeout,
            Self::Launch(_) | Self::Protocol(_) => Ending::Impossible,
            Self::Canceled | Self::Skipped => Ending::Clean,
        }
    }
}

/// What one start works with.
pub(super) struct Run<'a> {
    pub unit: &'a Arc<Unit>,
    pub definition: &'a Definition,
    pub variables: BTreeMap<String, String>,
    pub deadline: Option<(Instant, Duration)>,
    pub cancelable: bool,
}

impl Supervisor {
    /// Starts one unit alone; what it requires has been started by the caller.
    pub(super) fn start_alone(self: &Arc<Self>, unit: &Arc<Unit>) -> JobResult {
        let _job = unit.job.lock();
        {
            let mut inner = unit.lock();
            inner.restart_generation += 1;
            inner.cancel = false;
        }
        self.start_locked(unit)
    }

    /// The same with the unit's job lock held.
    pub(super) fn start_locked(self: &Arc<Self>, unit: &Arc<Unit>) -> JobResult {
        let definition = unit.definition();
        if self.is_shutting_down() {
            return JobResult::Canceled;
        }
        match &definition.state {
            LoadState::NotFound => return JobResult::NotFound,
            LoadState::Masked => return JobResult::Masked,
            LoadState::Unreadable(why) => return JobResult::Failed(why.clone()),
            LoadState::Loaded => {}
        }
        self.name_what_has_no_effect(&definition);
        if unit.status().active == Active::Active {
            return JobResult::Done;
        }
        if let Some(unmet) = condition::unmet(&definition.conditions, self.facts) {
            let text = format!("Condition{}={}{}", unmet.test, if unmet.negated { "!" } else { "" }, unmet.argument);
            self.console.say(&format!("{}: not started: {text} is not met", unit.name));
            unit.lock().status.unmet_condition = Some(text.clone());
            unit.set(Active::Inactive, "dead");
            return JobResult::Skipped(text);
        }
        unit.lock().status.unmet_condition = None;
        if let Some(unmet) = condition::unmet(&definition.asserts, self.facts) {
            return JobResult::Failed(format!("Assert{}={} is not met", unmet.test, unmet.argument));
        }
        if unit.name.kind() != UnitKind::Service {
            unit.set(Active::Active, "active");
            return JobResult::Done;
        }
        self.start_service(unit, &definition)
    }

    fn start_service(self: &Arc<Self>, unit: &Arc<Unit>, definition: &Arc<Definition>) -> JobResult {
        if let Some(refusal) = &definition.service.refusal {
            unit.lock().status.result = "resources";
            unit.set(Active::Failed, "failed");
            return JobResult::Failed(format!("bad unit file setting: {refusal}"));
        }
        let allowed = policy::may_start(&mut unit.lock().starts, definition.start_limit, Instant::now());
        if !allowed {
            unit.lock().status.result = "start-limit-hit";
            unit.set(Active::Failed, "failed");
            self.console.say(&format!("{}: started too often, given up until reset-failed", unit.name));
            return JobResult::Failed("start of the unit was attempted too often".to_owned());
        }
        {
            let mut inner = unit.lock();
            inner.ready = false;
            inner.status.result = "success";
            inner.status.text.clear();
        }
        unit.set(Active::Activating, "start-pre");
        match self.launch(unit, definition) {
            Ok(()) => JobResult::Done,
            Err(failure) => self.start_failed(unit, definition, &failure),
        }
    }

    fn launch(self: &Arc<Self>, unit: &Arc<Unit>, definition: &Arc<Definition>) -> Result<(), Failure> {
        let service = &definition.service;
        process::make_directories(service)?;
        let mut variables = process::variables(service)?;
        if service.kind == ServiceType::Notify {
            let socket = self.listen(unit).map_err(LaunchError::Spawn)?;
            variables.insert("NOTIFY_SOCKET".to_owned(), socket.display().to_string());
            unit.lock().notify_socket = Some(socket);
        }
        let deadline = service.start_limit().map(|limit| (Instant::now() + limit, limit));
        let mut run = Run { unit, definition, variables, deadline, cancelable: true };
        for line in &service.exec_condition {
            match self.run_command(&run, line, "ExecCondition")? {
                Exit::Status(0) => {}
                Exit::Status(1..=254) => return Err(Failure::Skipped),
                exit => return Err(Failure::Command { phase: "ExecCondition", program: line.words[0].clone(), exit }),
            }
        }
        self.run_all(&run, &service.exec_start_pre, "ExecStartPre")?;
        unit.set(Active::Activating, "start");
        if service.kind == ServiceType::Oneshot {
            self.run_all(&run, &service.exec_start, "ExecStart")?;
            self.run_all(&run, &service.exec_start_post, "ExecStartPost")?;
            self.finish_oneshot(unit, definition);
            return Ok(());
        }
        if let Some(line) = service.exec_start.first() {
            self.start_main(&run, line)?;
        }
        let main = unit.lock().main.clone();
        run.variables.extend(main.map(|main| ("MAINPID".to_owned(), main.pid.as_raw_nonzero().to_string())));
        unit.set(Active::Activating, "start-post");
        self.run_all(&run, &service.exec_start_post, "ExecStartPost")?;
        let running = unit.lock().main.is_some();
        unit.set(Active::Active, if running { "running" } else { "exited" });
        Ok(())
    }

    fn finish_oneshot(&self, unit: &Arc<Unit>, definition: &Definition) {
        if definition.service.remain_after_exit {
            unit.set(Active::Active, "exited");
        } else {
            self.groups.remove(&unit.name);
            unit.set(Active::Inactive, "dead");
        }
    }

    /// Starts the main process and waits until it counts as started.
    fn start_main(self: &Arc<Self>, run: &Run<'_>, line: &CommandLine) -> Result<(), Failure> {
        let Run { unit, definition, .. } = run;
        let mut command = process::prepare(line, &definition.service, &run.variables, self.groups.of(&unit.name).as_deref())?;
        let end = Arc::new(End::default());
        let pid = self.spawn_logged(run, line, &mut command, &end, definition.service.kind != ServiceType::Forking)?;
        if definition.service.kind == ServiceType::Forking {
            let exit = Self::wait_for(run, "ExecStart", &end)?;
            if !exit.success() && !line.ignore_failure {
                return Err(Failure::Command { phase: "ExecStart", program: line.words[0].clone(), exit });
            }
            return self.find_forked_main(run);
        }
        unit.lock().main = Some(Main { pid, end: Arc::clone(&end) });
        if definition.service.kind != ServiceType::Notify {
            return Ok(());
        }
        let waited = unit.wait(run.deadline.map(|(deadline, _)| deadline), run.cancelable, |inner| {
            inner.ready || inner.main.as_ref().is_none_or(|main| main.end.get().is_some())
        });
        let (ready, exit) = {
            let inner = unit.lock();
            (inner.ready, inner.main.as_ref().and_then(|main| main.end.get()))
        };
        match (waited, ready, exit) {
            (Waited::Canceled, ..) => Err(Failure::Canceled),
            (_, true, _) => Ok(()),
            (Waited::TimedOut, ..) => {
                Err(Failure::Timeout { phase: "waiting for READY=1", limit: run.deadline.map_or(Duration::ZERO, |(_, limit)| limit) })
            }
            (_, _, Some(exit)) => Err(Failure::Command { phase: "ExecStart", program: line.words[0].clone(), exit }),
            _ => Err(Failure::Protocol("ended before it said READY=1".to_owned())),
        }
    }

    /// The main process of a service that forks: named by its PID file, or the one that is left.
    fn find_forked_main(self: &Arc<Self>, run: &Run<'_>) -> Result<(), Failure> {
        let from_file = |path: &Path| std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).and_then(Pid::from_raw);
        let mut main = None;
        if let Some(file) = &run.definition.service.pid_file {
            // The file may come a moment after the first process has ended.
            let deadline = run.deadline.map_or_else(|| Instant::now() + Duration::from_secs(5), |(deadline, _)| deadline);
            while main.is_none() && Instant::now() < deadline && !run.unit.lock().cancel {
                main = from_file(file);
                if main.is_none() {
                    thread::sleep(Duration::from_millis(20));
                }
            }
            if main.is_none() {
                return Err(Failure::Protocol(format!("no process id in {}", file.display())));
            }
        }
        let main = main.or_else(|| self.groups.processes(&run.unit.name).first().copied());
        if let Some(pid) = main {
            self.adopt_main(run.unit, pid);
        }
        Ok(())
    }

    /// Takes a process that was not started here as the main one.
    pub(super) fn adopt_main(self: &Arc<Self>, unit: &Arc<Unit>, pid: Pid) {
        let end = Arc::new(End::default());
        self.reaper.watch(pid, self.on_main_exit(unit, &end));
        unit.lock().main = Some(Main { pid, end: Arc::clone(&end) });
        if test_kill_process(pid).is_err() {
            self.on_main_exit(unit, &end)(Exit::Status(0));
        }
    }

    fn on_main_exit(self: &Arc<Self>, unit: &Arc<Unit>, end: &Arc<End>) -> impl FnOnce(Exit) + Send + use<> {
        let (supervisor, unit, end) = (Arc::clone(self), Arc::clone(unit), Arc::clone(end));
        move |exit| {
            end.set(exit);
            unit.poke();
            let _ = thread::Builder::new().name("ended".to_owned()).spawn(move || supervisor.main_ended(&unit, &end, exit));
        }
    }

    /// Starts a process whose lines go to the log of the unit.
    fn spawn_logged(
        self: &Arc<Self>,
        run: &Run<'_>,
        line: &CommandLine,
        command: &mut std::process::Command,
        end: &Arc<End>,
        main: bool,
    ) -> Result<Pid, Failure> {
        let reader = process::joined_output(command).map_err(LaunchError::Spawn)?;
        let child = if main {
            self.reaper.spawn(command, self.on_main_exit(run.unit, end))
        } else {
            let (unit, end) = (Arc::clone(run.unit), Arc::clone(end));
            self.reaper.spawn(command, move |exit| {
                end.set(exit);
                unit.poke();
            })
        };
        let child = child.map_err(LaunchError::Spawn)?;
        // The command holds the writing end; while it lives the reader would never see the end.
        *command = std::process::Command::new("/bin/true");
        let who = Path::new(&line.words[0]).file_name().map_or_else(|| line.words[0].clone(), |name| name.to_string_lossy().into_owned());
        output::pump(reader, self.sink(run.definition, &who, child.id())).map_err(LaunchError::Spawn)?;
        pid_of(child.id()).ok_or_else(|| Failure::Protocol("a process without an id".to_owned()))
    }

    pub(super) fn run_all(self: &Arc<Self>, run: &Run<'_>, lines: &[CommandLine], phase: &'static str) -> Result<(), Failure> {
        for line in lines {
            let exit = match self.run_command(run, line, phase) {
                Err(Failure::Launch(LaunchError::Program(_))) if line.ignore_failure => continue,
                result => result?,
            };
            let accepted = line.ignore_failure || policy::ending(&run.definition.service, exit) == Ending::Clean;
            if !accepted {
                return Err(Failure::Command { phase, program: line.words[0].clone(), exit });
            }
        }
        Ok(())
    }

    fn run_command(self: &Arc<Self>, run: &Run<'_>, line: &CommandLine, phase: &'static str) -> Result<Exit, Failure> {
        let group = self.groups.of(&run.unit.name);
        let mut command = process::prepare(line, &run.definition.service, &run.variables, group.as_deref())?;
        let end = Arc::new(End::default());
        let pid = self.spawn_logged(run, line, &mut command, &end, false)?;
        Self::wait_for(run, phase, &end).inspect_err(|_| {
            let _ = kill_process(pid, Signal::KILL);
        })
    }

    fn wait_for(run: &Run<'_>, phase: &'static str, end: &End) -> Result<Exit, Failure> {
        let waited = run.unit.wait(run.deadline.map(|(deadline, _)| deadline), run.cancelable, |_| end.get().is_some());
        match (waited, end.get()) {
            (_, Some(exit)) => Ok(exit),
            (Waited::Canceled, None) => Err(Failure::Canceled),
            _ => Err(Failure::Timeout { phase, limit: run.deadline.map_or(Duration::ZERO, |(_, limit)| limit) }),
        }
    }

    fn start_failed(self: &Arc<Self>, unit: &Arc<Unit>, definition: &Arc<Definition>, failure: &Failure) -> JobResult {
        let main = unit.lock().main.take();
        self.end_processes(unit, definition, main.as_ref());
        let exit = main.and_then(|main| main.end.get());
        self.ended(unit, definition, failure.ending(), exit, &failure.to_string());
        match failure {
            Failure::Canceled => JobResult::Canceled,
            Failure::Skipped => JobResult::Skipped("ExecCondition".to_owned()),
            Failure::Timeout { .. } => JobResult::TimedOut(failure.to_string()),
            _ => JobResult::Failed(failure.to_string()),
        }
    }
}
