//! The end of a machine: units stop in reverse order, the rest is asked to end; and the commands that ask for it.

use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use jiff::civil::{DateTime, Time};
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
    let verb = match wish(name, arguments, jiff::Zoned::now().datetime()) {
        Ok(Some(verb)) => verb,
        Ok(None) => return 0,
        Err(reason) => {
            let _ = writeln!(errors, "{name}: {reason}");
            return 1;
        }
    };
    if let Verb::Power(_, after) = &verb
        && !after.is_zero()
    {
        let _ = writeln!(errors, "it will happen in {} s; `shutdown -c` prevents it", after.as_secs());
    }
    match control::ask(layout, &Request { verb, units: Vec::new(), no_block: false }) {
        Ok(_) => 0,
        Err(error) => {
            let _ = writeln!(errors, "{name}: cannot reach the init of this machine: {error}");
            1
        }
    }
}

/// What the words of the command ask for; nothing if they only warn people, of whom there are none.
fn wish(name: &str, arguments: &[String], now: DateTime) -> Result<Option<Verb>, String> {
    let mut power = if name == "reboot" { Power::Reboot } else { Power::Off };
    let mut words = Vec::new();
    for argument in arguments {
        match argument.as_str() {
            "-r" | "--reboot" => power = Power::Reboot,
            "-P" | "-p" | "-h" | "-H" | "--poweroff" | "--halt" => power = Power::Off,
            "-c" if name == "shutdown" => return Ok(Some(Verb::KeepPower)),
            "-k" if name == "shutdown" => return Ok(None),
            "-f" | "--force" | "-ff" | "--no-wall" | "-w" | "-d" | "-n" => {}
            option if option.starts_with('-') => return Err(format!("unknown option {option}")),
            word => words.push(word),
        }
    }
    let after = match (name, words.first()) {
        // After the time comes a message to people who are logged in.
        ("shutdown", Some(time)) => until(time, now).ok_or_else(|| format!("{time} is no time: use now, +MINUTES or HOURS:MINUTES"))?,
        ("shutdown", None) => Duration::from_mins(1),
        (_, Some(word)) => return Err(format!("what does {word} mean? only shutdown takes a time")),
        (_, None) => Duration::ZERO,
    };
    Ok(Some(Verb::Power(power, after)))
}

/// How long until the time a person gave: minutes from now, or the next time a clock shows it.
fn until(time: &str, now: DateTime) -> Option<Duration> {
    if time == "now" {
        return Some(Duration::ZERO);
    }
    if let Some(minutes) = time.strip_prefix('+') {
        return minutes.parse::<u32>().ok().map(|minutes| Duration::from_mins(u64::from(minutes)));
    }
    let (hours, minutes) = time.split_once(':')?;
    let wanted = Time::new(hours.parse().ok()?, minutes.parse().ok()?, 0, 0).ok()?;
    let today = now.date().to_datetime(wanted);
    let next = if today > now { today } else { now.date().tomorrow().ok()?.to_datetime(wanted) };
    Duration::try_from(next.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wished(line: &str) -> Result<Option<Verb>, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        wish(&words[0], &words[1..], jiff::civil::datetime(2030, 1, 31, 23, 0, 30, 0))
    }

    #[test]
    fn a_shutdown_waits_for_its_time() {
        for (line, power, seconds) in [
            ("shutdown -h now", Power::Off, 0),
            ("shutdown -r +5 for the new kernel", Power::Reboot, 300),
            ("shutdown -h 23:59", Power::Off, 58 * 60 + 30),
            ("shutdown 22:00", Power::Off, 22 * 3600 + 59 * 60 + 30),
            ("shutdown -P", Power::Off, 60),
            ("reboot -f", Power::Reboot, 0),
        ] {
            let verb = wished(line).unwrap();
            assert!(matches!(&verb, Some(Verb::Power(what, after)) if *what == power && after.as_secs() == seconds), "{line}: {verb:?}");
        }
        assert!(matches!(wished("shutdown -c"), Ok(Some(Verb::KeepPower))));
        assert!(matches!(wished("shutdown -k now"), Ok(None)));
    }

    #[test]
    fn what_is_no_time_ends_no_machine() {
        for line in ["shutdown -h soon", "shutdown +x", "shutdown 25:00", "poweroff 23:59", "halt --later"] {
            assert!(wished(line).is_err(), "{line}");
        }
    }
}
