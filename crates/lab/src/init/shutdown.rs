//! The end of a machine: units stop in reverse order, the rest is asked to end; and the commands that ask for it.

use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process_group};

use super::control::{self, Power, Request, Verb};
use super::layout::Layout;
use super::supervisor::Supervisor;

/// What is neither a unit nor part of one, such as containers, gets this long.
const STRAGGLERS: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(20);

/// Stops everything. Nothing is synced: the kernel goes on running, so what was written stays written.
pub fn stop(supervisor: &Arc<Supervisor>, within: Duration) {
    supervisor.stop_everything(within);
    if getpid() != Pid::INIT {
        return;
    }
    // Process group 1 of `kill` is everybody but the caller.
    if kill_process_group(Pid::INIT, Signal::TERM).is_ok() {
        let deadline = Instant::now() + STRAGGLERS;
        while others_alive() && Instant::now() < deadline {
            thread::sleep(GLANCE);
        }
    }
    supervisor.console.say("machine is off");
}

fn others_alive() -> bool {
    fs::read_dir("/proc").is_ok_and(|entries| {
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()))
            .any(|pid| pid > 1 && alive(pid))
    })
}

fn alive(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| stat.rsplit_once(')').map(|(_, rest)| rest.trim_start().chars().next()));
    // A zombie is the reaper's business, and what nobody can read is gone.
    !matches!(state, Some(Some('Z' | 'X')) | None)
}

/// `poweroff`, `halt`, `reboot`, `shutdown`.
pub fn command(name: &str, arguments: &[String], layout: &Layout, errors: &mut dyn Write) -> u8 {
    let mut power = if name == "reboot" { Power::Reboot } else { Power::Off };
    let mut after = Duration::ZERO;
    for argument in arguments {
        match argument.as_str() {
            "-r" | "--reboot" => power = Power::Reboot,
            "-P" | "-p" | "-h" | "-H" | "--poweroff" | "--halt" => power = Power::Off,
            "-f" | "--force" | "-ff" | "--no-wall" | "-w" | "-d" | "-n" | "now" => {}
            minutes if minutes.starts_with('+') => {
                let Ok(minutes) = minutes[1..].parse::<u64>() else {
                    let _ = writeln!(errors, "{name}: {argument} is no time");
                    return 1;
                };
                after = Duration::from_secs(60 * minutes);
            }
            option if option.starts_with('-') => {
                let _ = writeln!(errors, "{name}: unknown option {option}");
                return 1;
            }
            // A message to people who are logged in, of whom there are none.
            _ => {}
        }
    }
    match control::ask(layout, &Request { verb: Verb::Power(power, after), units: Vec::new(), no_block: false }) {
        Ok(_) => 0,
        Err(error) => {
            let _ = writeln!(errors, "{name}: cannot reach the init of this machine: {error}");
            1
        }
    }
}
