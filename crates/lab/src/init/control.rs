//! The control socket: how `systemctl`, `poweroff` and their like reach PID 1. One JSON line asks, one answers.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::reaper::Exit;
use super::supervisor::state::{Active, Unit};
use super::supervisor::{JobResult, Supervisor};
use super::unit::service::parse_signal;
use super::unit::{LoadState, UnitName};

/// The pause after a caller could not be let in.
const REST: Duration = Duration::from_millis(200);

/// How a machine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// Stays off.
    Off,
    /// Wants to be started again.
    Reboot,
}

/// What can be asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Start units with what they require.
    Start,
    /// Stop units and what depends on them.
    Stop,
    /// Stop and start.
    Restart,
    /// The same for those that run.
    TryRestart,
    /// `ExecReload=`.
    Reload,
    /// Reload if the unit can, else restart.
    ReloadOrRestart,
    /// Start one unit and stop all it does not need.
    Isolate,
    /// Send a signal.
    Kill {
        /// By name or number.
        signal: String,
        /// Not to the other processes.
        main_only: bool,
    },
    /// Forget failures and start counts.
    ResetFailed,
    /// Read unit files again.
    DaemonReload,
    /// Tell about units, or all of them.
    Describe,
    /// Write a line to the console.
    Say(String),
    /// End the machine after some time; replaces an earlier wish.
    Power(Power, Duration),
    /// Forget a wish to end it that is not due yet.
    KeepPower,
}

/// A question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// What to do.
    pub verb: Verb,
    /// To which units.
    pub units: Vec<UnitName>,
    /// Answer before it is done.
    pub no_block: bool,
}

/// What became of one unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// Which.
    pub unit: UnitName,
    /// Whether it is as wanted.
    pub succeeded: bool,
    /// There is no such unit.
    pub not_found: bool,
    /// In words.
    pub reason: String,
}

/// What is known of one unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are the properties of the same names that systemctl shows")]
pub struct Report {
    pub name: UnitName,
    pub description: String,
    pub load: String,
    pub active: String,
    pub sub: String,
    pub result: String,
    pub since: jiff::Timestamp,
    pub main_process: Option<i32>,
    pub fragment: Option<String>,
    pub drop_ins: Vec<String>,
    pub restarts: u32,
    pub last_exit: Option<String>,
    pub exit_status: i32,
    pub unmet_condition: Option<String>,
    pub text: String,
    pub changed_on_disk: bool,
}

/// An answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Reply {
    /// Of a job.
    pub outcomes: Vec<Outcome>,
    /// Of a question.
    pub reports: Vec<Report>,
    /// Units whose files changed since they were read.
    pub changed_on_disk: Vec<UnitName>,
}

/// Asks PID 1.
pub fn ask(layout: &Layout, request: &Request) -> io::Result<Reply> {
    let mut stream = UnixStream::connect(layout.control_socket())?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// Answers questions until the process ends.
pub fn serve(supervisor: &Arc<Supervisor>, power: Sender<(Power, &'static str)>) -> io::Result<()> {
    let path = supervisor.layout.control_socket();
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    let supervisor = Arc::clone(supervisor);
    let power = Arc::new(PowerSwitch { wish: Mutex::new(power), last: AtomicU64::new(0) });
    thread::Builder::new().name("control".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // Without a free file descriptor the next attempt fails at once.
                thread::sleep(REST);
                continue;
            };
            let (supervisor, power) = (Arc::clone(&supervisor), Arc::clone(&power));
            // A thread that cannot be made drops the connection, and the caller sees that.
            let _ = thread::Builder::new().name("request".to_owned()).spawn(move || answer(&stream, &supervisor, &power));
        }
    })?;
    Ok(())
}

/// Where wishes to end the machine go. Only the last one counts.
struct PowerSwitch {
    wish: Mutex<Sender<(Power, &'static str)>>,
    last: AtomicU64,
}

impl PowerSwitch {
    /// A new wish, or none: earlier ones are forgotten.
    fn forget_earlier(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn press_after(&self, after: Duration, what: Power) {
        let own = self.forget_earlier();
        thread::sleep(after);
        if self.last.load(Ordering::Relaxed) == own
            && let Ok(wish) = self.wish.lock()
        {
            let _ = wish.send((what, "asked for from inside"));
        }
    }
}

fn answer(stream: &UnixStream, supervisor: &Arc<Supervisor>, power: &PowerSwitch) {
    let mut line = String::new();
    if BufReader::new(stream).read_line(&mut line).is_err() {
        return;
    }
    let Ok(request) = serde_json::from_str::<Request>(&line) else { return };
    let reply = if request.no_block {
        let supervisor = Arc::clone(supervisor);
        let later = request.clone();
        let missing = request.units.iter().filter(|unit| supervisor.definition(unit).state == LoadState::NotFound);
        let outcomes = missing.map(|unit| outcome(unit, &JobResult::NotFound)).collect();
        let _ = thread::Builder::new().name("job".to_owned()).spawn(move || perform(&supervisor, &later));
        Reply { outcomes, ..Reply::default() }
    } else {
        perform(supervisor, &request)
    };
    if matches!(request.verb, Verb::KeepPower) {
        power.forget_earlier();
    }
    let mut bytes = serde_json::to_vec(&reply).unwrap_or_default();
    bytes.push(b'\n');
    let mut writer = stream;
    let _ = writer.write_all(&bytes);
    if let Verb::Power(what, after) = request.verb {
        power.press_after(after, what);
    }
}

fn perform(supervisor: &Arc<Supervisor>, request: &Request) -> Reply {
    let units = &request.units;
    let changed_on_disk = match request.verb {
        Verb::Start | Verb::Restart | Verb::Reload | Verb::TryRestart | Verb::ReloadOrRestart => {
            units.iter().filter(|name| supervisor.changed_on_disk(&supervisor.unit(name))).cloned().collect()
        }
        _ => Vec::new(),
    };
    for unit in &changed_on_disk {
        supervisor.console.say(&format!("{unit}: its files changed on disk since they were read; daemon-reload was not called"));
    }
    let outcomes = match &request.verb {
        Verb::Start => named(supervisor, units, &supervisor.start(units)),
        Verb::Stop => named(supervisor, units, &supervisor.stop(units, None).0),
        Verb::Restart => named(supervisor, units, &supervisor.restart(units)),
        Verb::TryRestart => {
            let running: Vec<UnitName> =
                units.iter().filter(|name| supervisor.unit(name).status().active == Active::Active).cloned().collect();
            named(supervisor, &running, &supervisor.restart(&running))
        }
        Verb::Reload => units.iter().map(|unit| outcome(unit, &supervisor.reload_unit(unit))).collect(),
        Verb::ReloadOrRestart => units.iter().map(|unit| reload_or_restart(supervisor, unit)).collect(),
        Verb::Isolate => isolate(supervisor, units),
        Verb::Kill { signal, main_only } => units.iter().map(|unit| kill(supervisor, unit, signal, *main_only)).collect(),
        Verb::ResetFailed => reset_failed(supervisor, units),
        Verb::DaemonReload => {
            supervisor.reload();
            Vec::new()
        }
        Verb::Say(line) => {
            supervisor.console.say(line);
            Vec::new()
        }
        Verb::Power(what, after) if !after.is_zero() => {
            let what = if *what == Power::Off { "power off" } else { "reboot" };
            supervisor.console.say(&format!("somebody wants this machine to {what} in {} s; `shutdown -c` prevents it", after.as_secs()));
            Vec::new()
        }
        Verb::KeepPower => {
            supervisor.console.say("a shutdown that was not due yet is cancelled");
            Vec::new()
        }
        Verb::Describe | Verb::Power(..) => Vec::new(),
    };
    let reports = if matches!(request.verb, Verb::Describe) { describe(supervisor, units) } else { Vec::new() };
    Reply { outcomes, reports, changed_on_disk }
}

/// The outcomes of the units that were asked for, by the names they were asked by.
fn named(supervisor: &Supervisor, asked: &[UnitName], results: &BTreeMap<UnitName, JobResult>) -> Vec<Outcome> {
    asked.iter().filter_map(|name| results.get(&supervisor.definition(name).name).map(|result| outcome(name, result))).collect()
}

fn outcome(unit: &UnitName, result: &JobResult) -> Outcome {
    Outcome { unit: unit.clone(), succeeded: result.succeeded(), not_found: *result == JobResult::NotFound, reason: result.reason() }
}

fn reload_or_restart(supervisor: &Arc<Supervisor>, name: &UnitName) -> Outcome {
    let reloadable = supervisor.unit(name).status().active == Active::Active && !supervisor.definition(name).service.exec_reload.is_empty();
    let result =
        if reloadable { Some(supervisor.reload_unit(name)) } else { supervisor.restart(std::slice::from_ref(name)).into_values().next() };
    outcome(name, &result.unwrap_or(JobResult::NotFound))
}

fn isolate(supervisor: &Arc<Supervisor>, units: &[UnitName]) -> Vec<Outcome> {
    let results = supervisor.start(units);
    let others: Vec<UnitName> = supervisor
        .loaded()
        .iter()
        .filter(|unit| unit.status().active != Active::Inactive && !results.contains_key(&unit.name))
        .map(|unit| unit.name.clone())
        .collect();
    supervisor.stop(&others, None);
    named(supervisor, units, &results)
}

fn kill(supervisor: &Supervisor, name: &UnitName, signal: &str, main_only: bool) -> Outcome {
    let unit = supervisor.unit(name);
    let result = match parse_signal(signal) {
        _ if unit.definition().state == LoadState::NotFound => JobResult::NotFound,
        None => JobResult::Failed(format!("unknown signal {signal}")),
        Some(signal) if supervisor.has_processes(&unit) && supervisor.kill(&unit, signal, main_only) => JobResult::Done,
        Some(_) => JobResult::Failed("no process to kill".to_owned()),
    };
    outcome(name, &result)
}

fn reset_failed(supervisor: &Supervisor, units: &[UnitName]) -> Vec<Outcome> {
    let chosen: Vec<Arc<Unit>> =
        if units.is_empty() { supervisor.loaded() } else { units.iter().map(|name| supervisor.unit(name)).collect() };
    for unit in chosen {
        unit.lock().starts.clear();
        unit.lock().status.restarts = 0;
        if unit.status().active == Active::Failed {
            unit.lock().status.result = "success";
            unit.set(Active::Inactive, "dead");
        }
    }
    Vec::new()
}

fn describe(supervisor: &Supervisor, units: &[UnitName]) -> Vec<Report> {
    let chosen: Vec<Arc<Unit>> =
        if units.is_empty() { supervisor.loaded() } else { units.iter().map(|name| supervisor.unit(name)).collect() };
    chosen.iter().map(|unit| report(supervisor, unit)).collect()
}

fn report(supervisor: &Supervisor, unit: &Unit) -> Report {
    let definition = unit.definition();
    let status = unit.status();
    let load = match definition.state {
        LoadState::Loaded => "loaded",
        LoadState::NotFound => "not-found",
        LoadState::Masked => "masked",
        LoadState::Unreadable(_) => "error",
    };
    Report {
        name: definition.name.clone(),
        description: if definition.description.is_empty() { definition.name.to_string() } else { definition.description.clone() },
        load: load.to_owned(),
        active: status.active.word().to_owned(),
        sub: status.sub.to_owned(),
        result: status.result.to_owned(),
        since: status.since,
        main_process: unit.lock().main.as_ref().map(|main| main.pid.as_raw_nonzero().get()),
        fragment: definition.fragment.as_ref().map(|path| path.display().to_string()),
        drop_ins: definition.drop_ins.iter().map(|path| path.display().to_string()).collect(),
        restarts: status.restarts,
        last_exit: status.last_exit.map(|exit| exit.to_string()),
        exit_status: match status.last_exit {
            Some(Exit::Status(number) | Exit::Signal(number)) => number,
            None => 0,
        },
        unmet_condition: status.unmet_condition,
        text: status.text,
        changed_on_disk: supervisor.changed_on_disk(unit),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, RecvTimeoutError};

    use super::*;

    #[test]
    fn a_shutdown_that_is_cancelled_or_replaced_does_not_happen() {
        let (wish, wishes) = mpsc::channel();
        let switch = Arc::new(PowerSwitch { wish: Mutex::new(wish), last: AtomicU64::new(0) });
        thread::scope(|scope| {
            let begun = |number| while switch.last.load(Ordering::Relaxed) < number {};
            scope.spawn(|| switch.press_after(Duration::from_millis(50), Power::Off));
            begun(1);
            scope.spawn(|| switch.press_after(Duration::from_millis(60), Power::Reboot));
            begun(2);
        });
        assert_eq!(wishes.try_recv().map(|(what, _)| what), Ok(Power::Reboot), "the last wish counts");
        assert!(wishes.try_recv().is_err());
        thread::scope(|scope| {
            scope.spawn(|| switch.press_after(Duration::from_millis(50), Power::Off));
            while switch.last.load(Ordering::Relaxed) < 3 {}
            switch.forget_earlier();
        });
        assert!(matches!(wishes.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout)));
    }
}
