//! The boot of a machine: user-data is applied by the genuine agents, the units the image and the user-data enabled are started.

pub mod cloud_init;
mod enabled;
pub mod ignition;
mod older_ignition;
pub mod report;
mod settings;
mod unread;
pub mod user_data;

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use self::report::{Agent, BootReport};
pub(crate) use self::unread::all as unread;
use self::user_data::Format;
use super::layout::Layout;
use super::process;
use super::reaper::{End, Exit};
use super::supervisor::{JobResult, Supervisor, transaction};
use super::unit::{LoadState, UnitName};

/// Name of the file with the user-data below the state directory, bytes as they were given.
pub const USER_DATA: &str = "user-data";
/// Name of the file with the identity below the state directory.
pub const IDENTITY: &str = "machine.json";
/// What the image itself needs before the scripts of the user-data run, such as container images.
pub const IMAGE_TARGET: &str = "machine-image.target";
/// What is started at boot.
pub const BOOT_TARGET: &str = "multi-user.target";

const APPLIED: &str = "instance-id";
/// Lines of an agent that are repeated when it fails.
const LAST_WORDS: usize = 3;

/// Who this machine is; written by the outside as `machine.json` before it boots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// A new one means a new machine: user-data is applied again.
    pub instance_id: String,
    /// The name of the machine.
    pub hostname: String,
    /// More meta-data for cloud-init.
    #[serde(default)]
    pub meta_data: serde_json::Map<String, serde_json::Value>,
}

impl Identity {
    /// Reads it; a machine without one is an unnamed instance.
    pub fn read(layout: &Layout) -> Self {
        let bytes = fs::read(layout.state_directory().join(IDENTITY)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_else(|_| Self {
            instance_id: "none".to_owned(),
            hostname: "machine".to_owned(),
            ..Self::default()
        })
    }

    /// Writes it and the user-data into the root directory of a machine that is going to boot.
    pub fn write(&self, layout: &Layout, user_data: &[u8]) -> io::Result<()> {
        let directory = layout.state_directory();
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(USER_DATA), user_data)?;
        fs::write(directory.join(IDENTITY), serde_json::to_vec_pretty(self)?)
    }

    /// Whether this instance has not booted on this disk before.
    pub fn is_new(&self, layout: &Layout) -> bool {
        fs::read_to_string(layout.state_directory().join(APPLIED)).map_or(true, |applied| applied.trim() != self.instance_id)
    }
}

/// One boot.
#[derive(Debug)]
pub struct Boot<'a> {
    supervisor: &'a Arc<Supervisor>,
    identity: &'a Identity,
    first: bool,
    last: Arc<Mutex<VecDeque<String>>>,
    /// Files of settings that were given to the programs that apply them.
    applied: Mutex<BTreeSet<PathBuf>>,
}

/// Boots: the console and `boot.json` say how it went.
pub fn run(supervisor: &Arc<Supervisor>, identity: &Identity, first: bool, started: Instant) -> BootReport {
    let boot = Boot { supervisor, identity, first, last: Arc::default(), applied: Mutex::default() };
    let user_data = fs::read(supervisor.layout.state_directory().join(USER_DATA)).unwrap_or_default();
    let (agent, errors) = match user_data::format(&user_data) {
        Format::Empty => (Agent::None, boot.plain()),
        Format::Ignition => (Agent::Ignition, boot.with_ignition()),
        Format::CloudInit => (Agent::CloudInit, boot.with_cloud_init(&user_data)),
    };
    let report = BootReport {
        instance_id: identity.instance_id.clone(),
        succeeded: errors.is_empty(),
        first_boot: first,
        agent,
        seconds: started.elapsed().as_secs_f64(),
        errors,
    };
    supervisor.console.say(&report.line());
    if let Err(error) = report.write(&supervisor.layout) {
        supervisor.console.say(&format!("cannot write the report of the boot: {error}"));
    }
    report
}

impl Boot<'_> {
    fn plain(&self) -> Vec<String> {
        self.supervisor.console.say("no user-data");
        settings::apply(self);
        self.read_units();
        let mut errors = self.start(IMAGE_TARGET);
        errors.extend(self.start_enabled());
        self.remember();
        errors
    }

    fn with_ignition(&self) -> Vec<String> {
        if self.first {
            self.supervisor.console.say("user-data is an Ignition configuration");
            let errors = ignition::run(self);
            if !errors.is_empty() {
                // Ignition is all or nothing: a machine it failed on does not go on.
                return errors;
            }
            self.remember();
        } else {
            self.supervisor.console.say("ignition was applied to this instance before");
        }
        settings::apply(self);
        self.read_units();
        let mut errors = self.start(IMAGE_TARGET);
        errors.extend(self.start_enabled());
        errors
    }

    fn with_cloud_init(&self, user_data: &[u8]) -> Vec<String> {
        use cloud_init::Stage;
        self.supervisor.console.say("user-data goes to cloud-init");
        if let Err(error) = cloud_init::seed(&self.supervisor.layout, self.identity, user_data) {
            return vec![format!("cannot write the seed of cloud-init: {error}")];
        }
        settings::apply(self);
        // As on a machine with systemd, units are read before cloud-init changes anything: a changed unit needs a daemon-reload.
        self.read_units();
        let mut ended: Vec<String> = [Stage::Local, Stage::Network].into_iter().filter_map(|stage| cloud_init::run(self, stage)).collect();
        for line in cloud_init::vain(&self.supervisor.layout) {
            self.supervisor.console.say(&line);
        }
        // What it has just written.
        settings::apply(self);
        let mut errors = self.start(IMAGE_TARGET);
        thread::scope(|scope| {
            let units = scope.spawn(|| self.start_enabled());
            ended.extend(cloud_init::run(self, Stage::Config));
            // The last stage may end with the machine's power.
            self.remember();
            ended.extend(cloud_init::run(self, Stage::Final));
            errors.extend(units.join().unwrap_or_default());
        });
        settings::name_vain(self);
        let recorded = cloud_init::errors(&self.supervisor.layout);
        // Its own record says more than exit statuses; those count when the record is silent.
        let mut told = if recorded.is_empty() { ended } else { recorded };
        if let Some(last) = told.last_mut() {
            last.push_str(&self.last_words());
        }
        errors.extend(told);
        errors
    }

    fn remember(&self) {
        if let Err(error) = fs::write(self.supervisor.layout.state_directory().join(APPLIED), &self.identity.instance_id) {
            self.supervisor.console.say(&format!("cannot remember that this instance booted: {error}"));
        }
    }

    fn read_units(&self) {
        for target in [IMAGE_TARGET, BOOT_TARGET].iter().filter_map(|target| UnitName::parse(target).ok()) {
            transaction::plan(&[target], &|name| self.supervisor.definition(name));
        }
    }

    /// Starts everything that is enabled.
    fn start_enabled(&self) -> Vec<String> {
        let elsewhere = enabled::elsewhere(&self.supervisor.layout);
        for line in &elsewhere.in_vain {
            self.supervisor.console.say(line);
        }
        let mut errors = self.start_units(&elsewhere.services);
        errors.extend(self.start(BOOT_TARGET));
        errors.extend(self.run_local_script());
        errors
    }

    /// /etc/rc.local, if somebody made it executable, as systemd does.
    fn run_local_script(&self) -> Option<String> {
        const SCRIPT: &str = "/etc/rc.local";
        let path = self.supervisor.layout.path(SCRIPT);
        let metadata = fs::metadata(&path).ok().filter(|metadata| metadata.len() > 0)?;
        if metadata.permissions().mode() & 0o111 == 0 {
            self.supervisor.console.say(&format!("{SCRIPT} has no effect: it is not executable"));
            return None;
        }
        match self.run("rc.local", &path.display().to_string(), &["start"], &[]) {
            Ok(exit) if exit.success() => None,
            Ok(exit) => Some(format!("{SCRIPT} ended with {exit}{}", self.last_words())),
            Err(error) => Some(format!("cannot run {SCRIPT}: {error}")),
        }
    }

    /// Starts a target; units that did not start are errors of the boot.
    fn start(&self, target: &str) -> Vec<String> {
        let Ok(target) = UnitName::parse(target) else { return Vec::new() };
        if self.supervisor.definition(&target).state == LoadState::NotFound {
            return Vec::new();
        }
        self.start_units(std::slice::from_ref(&target))
    }

    fn start_units(&self, units: &[UnitName]) -> Vec<String> {
        let failed = |(name, result): &(UnitName, JobResult)| {
            // That of a target is told by the units it wants.
            !result.succeeded() && *result != JobResult::Canceled && name.suffix() != "target"
        };
        let results = self.supervisor.start(units);
        results.into_iter().filter(failed).map(|(name, result)| format!("{name}: {}", result.reason())).collect()
    }

    /// Runs an agent with its output on the console.
    fn run(&self, tag: &'static str, program: &str, arguments: &[&str], environment: &[(&str, String)]) -> io::Result<Exit> {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("PATH", process::SEARCH_PATH).env("LANG", "C.UTF-8").stdin(Stdio::null()).current_dir("/");
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let reader = process::joined_output(&mut command)?;
        let end = Arc::new(End::default());
        let theirs = Arc::clone(&end);
        self.supervisor.reaper.spawn(&mut command, move |exit| theirs.set(exit))?;
        drop(command);
        let (console, last) = (Arc::clone(&self.supervisor.console), Arc::clone(&self.last));
        let pump = thread::Builder::new().name("agent-output".to_owned()).spawn(move || {
            for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                console.write(tag, &line);
                if !line.contains(char::is_alphanumeric) || cloud_init::is_frame(&line) {
                    continue;
                }
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                last.push_back(line);
                if last.len() > LAST_WORDS {
                    last.pop_front();
                }
            }
        })?;
        let exit = end.wait(None).unwrap_or(Exit::Status(255));
        // A process left in the background may keep the pipe; then its lines still come, but nobody waits for them.
        let deadline = Instant::now() + std::time::Duration::from_millis(200);
        while !pump.is_finished() && Instant::now() < deadline {
            thread::sleep(std::time::Duration::from_millis(5));
        }
        Ok(exit)
    }

    fn last_words(&self) -> String {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().flat_map(|line| [" | ", line.trim()]).collect()
    }
}
