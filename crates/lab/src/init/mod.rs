//! What runs inside a machine of the lab: PID 1, the stand-in for systemd, `systemctl`, and the files of the machine's image.
//!
//! The outside makes the namespaces, mounts the root, writes [`boot::Identity`] and the user-data into it, and executes the program as
//! PID 1, which calls [`run`]. Programs inside reach it as `systemctl`, `journalctl`, `poweroff`, … through [`command`].

pub mod boot;
pub mod cgroup;
pub mod console;
pub mod control;
pub mod image;
pub mod journalctl;
pub mod layout;
pub mod output;
pub mod process;
pub mod reaper;
pub mod shutdown;
pub mod supervisor;
pub mod systemctl;
pub mod unit;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use boot::Identity;
use boot::report::BootReport;
use cgroup::ControlGroups;
use console::Console;
use control::Power;
use layout::Layout;
use reaper::Reaper;
use supervisor::Supervisor;
use unit::condition::Facts;

/// Exit status of PID 1 when the machine powered off.
pub const POWERED_OFF: u8 = 0;
/// Exit status of PID 1 when the machine wants to be started again.
pub const WANTS_REBOOT: u8 = 64;
/// Exit status of PID 1 when it could not even begin.
pub const CANNOT_BEGIN: u8 = 70;

/// How PID 1 runs.
#[derive(Debug, Clone)]
pub struct InitOptions {
    /// Where things are.
    pub layout: Layout,
    /// Where control groups are mounted; none: units are tracked by their main process only.
    pub control_groups: Option<PathBuf>,
    /// All units together get this long to stop.
    pub stop_within: Duration,
}

impl Default for InitOptions {
    fn default() -> Self {
        Self { layout: Layout::default(), control_groups: Some("/sys/fs/cgroup".into()), stop_within: Duration::from_secs(8) }
    }
}

/// Why PID 1 could not begin.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A directory.
    #[error("cannot make directory {path}: {source}")]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Signals, threads or sockets.
    #[error("cannot {what}: {source}")]
    Begin {
        /// What was tried.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Runs a machine from its boot to its end; the value is the exit status of PID 1.
pub fn run(options: &InitOptions) -> u8 {
    match begin(options) {
        Ok((supervisor, power)) => {
            shutdown::stop(&supervisor, options.stop_within);
            match power {
                Power::Off => POWERED_OFF,
                Power::Reboot => WANTS_REBOOT,
            }
        }
        Err(error) => {
            let _ = writeln!(io::stdout(), "init: {error}");
            CANNOT_BEGIN
        }
    }
}

/// Boots and waits for the wish to end.
fn begin(options: &InitOptions) -> Result<(Arc<Supervisor>, Power), InitError> {
    let started = Instant::now();
    let layout = &options.layout;
    for path in [layout.runtime_directory(), layout.state_directory(), layout.log_directory()] {
        fs::create_dir_all(&path).map_err(|source| InitError::Directory { path, source })?;
    }
    BootReport::forget(layout);
    let console = Arc::new(Console::new(&layout.log_directory()));
    let begin = |what| move |source| InitError::Begin { what, source };
    console.listen(&layout.path("/dev/console")).map_err(begin("listen to the console"))?;
    let (sender, receiver) = mpsc::channel();
    listen_to_signals(sender.clone()).map_err(begin("listen to signals"))?;
    let reaper = Reaper::start().map_err(begin("start the reaper"))?;
    let groups = options.control_groups.as_deref().map_or_else(ControlGroups::none, ControlGroups::find);
    let identity = Identity::read(layout);
    let first_boot = identity.is_new(layout);
    console.say(&format!(
        "{} (instance {}) starts{}",
        identity.hostname,
        identity.instance_id,
        if first_boot { " for the first time" } else { "" }
    ));
    if !groups.available() {
        console.say("no control group tree to track units in: only main processes are known");
    }
    let supervisor = Supervisor::new(layout.clone(), console, reaper, groups, Facts { first_boot });
    control::serve(&supervisor, sender).map_err(begin("open the control socket"))?;
    let booting = Arc::clone(&supervisor);
    thread::Builder::new()
        .name("boot".to_owned())
        .spawn(move || boot::run(&booting, &identity, first_boot, started))
        .map_err(begin("start the boot"))?;
    let (power, why) = receiver.recv().unwrap_or((Power::Off, "nobody is left to ask"));
    supervisor.console.say(&format!("{}: {why}", if power == Power::Off { "powering off" } else { "rebooting" }));
    Ok((supervisor, power))
}

fn listen_to_signals(power: Sender<(Power, &'static str)>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let wish = if signal == SIGINT { (Power::Reboot, "SIGINT") } else { (Power::Off, "power button") };
            if power.send(wish).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// Names under which the program is a tool of the machine.
pub const COMMANDS: [&str; 6] = ["systemctl", "journalctl", "poweroff", "reboot", "halt", "shutdown"];

/// Runs one of [`COMMANDS`]; the value is its exit status.
pub fn command(name: &str, arguments: &[String], layout: &Layout, output: &mut dyn Write, errors: &mut dyn Write) -> u8 {
    match name {
        "systemctl" => systemctl::run(arguments, layout, output, errors),
        "journalctl" => journalctl::run(arguments, layout, output, errors),
        _ => shutdown::command(name, arguments, layout, errors),
    }
}
