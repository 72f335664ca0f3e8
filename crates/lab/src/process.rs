//! Components of a lab as supervised processes: started, watched, restarted when they die, ended with the lab.
//!
//! Nothing may outlive its lab, so three nets hang below each other: the kernel kills a component when the thread that started
//! it ends (`setpriv --pdeathsig`, which works for a killed lab too); every process carries the lab's directory in its
//! environment, by which a later run finds what slipped through (`leftovers`); and at level nodes the supervisor is the first
//! process of a PID namespace.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::{process::Command, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    LabError,
    command::search_path,
    probe::Probe,
    status::{ComponentState, ComponentStatus},
};

/// The environment variable every process of a lab carries: the lab's directory.
pub(crate) const MARK: &str = "METALSHIFT_LAB";

/// How often a starting component is looked at; short, because a whole lab waits for the slowest.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The same for one that was started again, for which nobody waits.
const LOOK_AGAIN_EVERY: Duration = Duration::from_millis(500);
/// How often one that runs is looked at, for `lab status`.
const LOOK_WHILE_IT_RUNS: Duration = Duration::from_secs(5);
/// How long a component may take to answer on a machine that does much else at the same time.
const START_DEADLINE: Duration = Duration::from_mins(3);
/// The wait before a component that died is started again; doubles up to the second value.
const RESTART_AFTER: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// What ran for so long was well: its end is the first one again.
const RAN_WELL: Duration = Duration::from_mins(1);
/// What a lab writes at once, and so cannot do without.
const ROOM: u64 = 64 << 20;
/// How much of a log is shown when a component fails.
const LOG_TAIL_LINES: usize = 8;

/// What to run and how to see that it runs.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    /// The name in `lab status` and of the log file.
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// What a person would connect to.
    pub address: String,
    pub probe: Probe,
}

/// The processes of one lab.
pub(crate) struct Processes {
    directory: PathBuf,
    logs: PathBuf,
    statuses: Arc<Mutex<BTreeMap<String, ComponentStatus>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Processes {
    pub fn new(directory: &Path, logs: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            logs: logs.to_owned(),
            statuses: Arc::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Starts a component and keeps it running until [`Processes::stop`]. Must be called on the thread that lives as long as the
    /// lab: the component dies with it.
    pub fn start(&self, component: &Component) {
        self.start_with(component, BTreeMap::new());
    }

    /// The same with variables, for what others must not read among its arguments.
    pub fn start_with(&self, component: &Component, environment: BTreeMap<String, String>) {
        let keeper = Keeper {
            component: component.clone(),
            environment,
            directory: self.directory.clone(),
            log: self.log_path(&component.name),
            statuses: Arc::clone(&self.statuses),
            stop: self.stop.clone(),
        };
        keeper.note(|status| status.state = ComponentState::Starting);
        self.tasks.spawn(keeper.keep());
    }

    /// Waits until the component answers, and fails as soon as it has ended instead.
    pub async fn wait_ready(&self, component: &Component) -> Result<(), LabError> {
        let deadline = Instant::now() + START_DEADLINE;
        let log = self.log_path(&component.name);
        let fail = |reason: String| {
            let log_tail = tail(&log, LOG_TAIL_LINES);
            self.blame_full_disk(LabError::ComponentFailed { component: component.name.clone(), reason, log_tail })
        };
        loop {
            let seen = component.probe.look().await;
            match (self.ended(&component.name), seen) {
                // A probe can be answered by somebody else's process on the same port; ours has ended then.
                (Some(exit), _) => return Err(fail(format!("it ended with {exit}"))),
                (None, Ok(())) => {
                    self.note_running(&component.name);
                    return Ok(());
                }
                (None, Err(words)) if Instant::now() > deadline => {
                    return Err(fail(format!("no answer within {} s: {words}", START_DEADLINE.as_secs())));
                }
                (None, Err(_)) => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// The error that a full disk is the cause of, if it is: whoever fails by it, be it a component that another one waits for or a call of
    /// the API, has other words.
    pub fn blame_full_disk(&self, error: LabError) -> LabError {
        if !error.is_about_space() && (is_full(&self.directory) || self.says_full()) {
            return LabError::DiskFull { path: self.directory.clone() };
        }
        error
    }

    /// Whether a component has met a full disk; that is rarely the last thing it says.
    fn says_full(&self) -> bool {
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        statuses.keys().any(|name| tail(&self.log_path(name), usize::MAX).contains("no space left on device"))
    }

    /// How a component ended that is not running now.
    fn ended(&self, name: &str) -> Option<String> {
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        statuses.get(name).filter(|status| status.state == ComponentState::Restarting)?.last_exit.clone()
    }

    fn note_running(&self, name: &str) {
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(status) = statuses.get_mut(name) {
            status.state = ComponentState::Running;
        }
    }

    /// The statuses as they are now, with memory as the kernel tells it.
    pub fn statuses(&self) -> Vec<ComponentStatus> {
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        statuses.values().cloned().map(ComponentStatus::with_memory).collect()
    }

    /// Ends every process and waits until they are gone. What they hold is thrown away, so they get no time to tidy up.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Where a component's output goes.
    pub fn log_path(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }
}

/// The life of one component.
struct Keeper {
    component: Component,
    environment: BTreeMap<String, String>,
    directory: PathBuf,
    log: PathBuf,
    statuses: Arc<Mutex<BTreeMap<String, ComponentStatus>>>,
    stop: CancellationToken,
}

impl Keeper {
    async fn keep(self) {
        let mut pause = None;
        loop {
            let started = Instant::now();
            let ended = self.run_once().await;
            if self.stop.is_cancelled() {
                return;
            }
            tracing::warn!(component = self.component.name, exit = ended, "component ended; starting it again");
            self.note(|status| {
                status.state = ComponentState::Restarting;
                status.process_id = None;
                status.restarts += 1;
                status.last_exit = Some(ended);
                status.trouble = None;
                status.since = Timestamp::now();
            });
            let wait = restart_after(pause, started.elapsed());
            pause = Some(wait);
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Runs the program once; returns how it ended.
    async fn run_once(&self) -> String {
        let mut child = match self.command().and_then(|mut command| command.spawn()) {
            Ok(child) => child,
            Err(error) => return format!("an error when it was started ({})", LabError::start("setpriv")(error)),
        };
        let process_id = child.id();
        let mut is_again = false;
        self.note(|status| {
            status.process_id = process_id;
            status.since = Timestamp::now();
            is_again = status.restarts > 0;
            if is_again {
                status.state = ComponentState::Starting;
            }
        });
        let exit = async {
            tokio::select! {
                biased;
                exit = child.wait() => exit,
                () = self.watch(is_again) => child.wait().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            exit = exit => return exit.map_or_else(|error| error.to_string(), describe_exit),
        }
        let _ = child.kill().await;
        "the end of the lab".to_owned()
    }

    /// Notes whether it answers, for as long as it runs. One that hangs is shown and left alone: whoever looks for the reason needs it as it
    /// is, and a busy machine must not end what only takes its time.
    async fn watch(&self, is_again: bool) {
        // Only the first start has somebody who waits for it.
        if is_again {
            loop {
                let seen = self.component.probe.look().await;
                let answers = seen.is_ok();
                self.note(|status| status.note_look(seen, Timestamp::now()));
                if answers {
                    break;
                }
                tokio::time::sleep(LOOK_AGAIN_EVERY).await;
            }
        }
        loop {
            tokio::time::sleep(LOOK_WHILE_IT_RUNS).await;
            let seen = self.component.probe.look().await;
            self.note(|status| {
                if status.state != ComponentState::Starting {
                    status.note_look(seen, Timestamp::now());
                }
            });
        }
    }

    fn command(&self) -> std::io::Result<Command> {
        let log = File::options().append(true).create(true).open(&self.log)?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&self.component.program)
            .args(&self.component.arguments)
            .current_dir(&self.directory)
            .env("PATH", search_path())
            .env(MARK, &self.directory)
            // A proxy of the person's environment must not stand between the parts of a lab.
            .env("NO_PROXY", "*")
            .env("no_proxy", "*")
            .envs(&self.environment)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true);
        // etcd takes settings from there, which would be meant for another one.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"ETCD_")) {
            command.env_remove(name);
        }
        Ok(command)
    }

    fn note(&self, change: impl FnOnce(&mut ComponentStatus)) {
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let name = &self.component.name;
        change(statuses.entry(name.clone()).or_insert_with(|| ComponentStatus::new(name, &self.component.address)));
    }
}

/// The wait before the next start, after the wait before the last one and the time it ran then.
fn restart_after(last: Option<Duration>, ran: Duration) -> Duration {
    match last {
        Some(last) if ran < RAN_WELL => (last * 2).min(RESTART_AFTER.1),
        _ => RESTART_AFTER.0,
    }
}

/// Whether there is less room than one file of etcd takes: what a program makes of that is not always words.
fn is_full(directory: &Path) -> bool {
    rustix::fs::statvfs(directory).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM)
}

pub(crate) fn describe_exit(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// The last lines of a log, or nothing when there is none.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::until;

    #[tokio::test]
    async fn a_component_that_was_started_again_is_running_only_when_it_answers() {
        let directory = tempfile::tempdir().unwrap();
        let address = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
        let component = Component {
            name: "slow".to_owned(),
            program: "sh".into(),
            arguments: ["-c", "[ -e died ] || { : > died; exit 7; }; exec sleep 600"].map(str::to_owned).into(),
            address: String::new(),
            probe: Probe::Tcp { address },
        };
        let processes = Processes::new(directory.path(), directory.path());
        processes.start(&component);
        let state = || processes.statuses().remove(0);
        until("it runs again", Duration::from_secs(30), async || state().restarts == 1 && state().process_id.is_some()).await;
        until("it is told why", Duration::from_secs(30), async || state().trouble.is_some_and(|trouble| trouble.failed_looks > 3)).await;
        assert_eq!(state().state, ComponentState::Starting);
        let _answers = std::net::TcpListener::bind(address).unwrap();
        until("it is known to run", Duration::from_secs(30), async || state().state == ComponentState::Running).await;
        assert_eq!(state().trouble, None);
        processes.stop().await;
    }

    #[tokio::test]
    async fn whatever_fails_when_a_component_has_met_a_full_disk_is_blamed_on_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let processes = Processes::new(directory.path(), directory.path());
        let component = Component {
            name: "etcd".to_owned(),
            program: "sh".into(),
            arguments: ["-c", "echo 'write wal: no space left on device'; echo bye; exec sleep 600"].map(str::to_owned).into(),
            address: String::new(),
            probe: Probe::Tcp { address: ([127, 0, 0, 1], 9).into() },
        };
        let other = || LabError::Supervisor("the API does not answer".to_owned());
        assert!(matches!(processes.blame_full_disk(other()), LabError::Supervisor(_)));
        processes.start(&component);
        let log = processes.log_path("etcd");
        until("it has spoken", Duration::from_secs(30), async || tail(&log, 1) == "bye").await;
        assert!(matches!(processes.blame_full_disk(other()), LabError::DiskFull { path } if path == directory.path()));
        let of_a_machine = LabError::Supervisor("no space left for the disk of a machine".to_owned());
        assert!(matches!(processes.blame_full_disk(of_a_machine), LabError::Supervisor(_)), "who knows which disk is full knows better");
        processes.stop().await;
    }

    #[test]
    fn what_dies_again_and_again_waits_longer_until_it_has_run_well() {
        let soon = Duration::from_secs(1);
        let mut waits = vec![restart_after(None, soon)];
        for _ in 0..6 {
            waits.push(restart_after(waits.last().copied(), soon));
        }
        let seconds: Vec<f64> = waits.iter().map(Duration::as_secs_f64).collect();
        assert_eq!(seconds, [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]);
        assert_eq!(restart_after(waits.last().copied(), RAN_WELL), RESTART_AFTER.0);
    }
}
