//! `systemctl` of a machine: the verbs kubeadm, cloud-init, scripts and people use, with the exit statuses of the real one.

pub mod arguments;
mod files;
mod print;

use std::io::Write;

use arguments::{Action, Invocation};

use super::control::{self, Reply, Report, Request, Verb};
use super::layout::Layout;
use super::unit::UnitName;

/// Something went wrong.
const FAILURE: u8 = 1;
/// The unit does not run.
const NOT_RUNNING: u8 = 3;
/// There is no such unit (status).
const UNKNOWN_STATUS: u8 = 4;
/// There is no such unit (jobs).
const NOT_FOUND: u8 = 5;

/// What one invocation works with.
struct Session<'a> {
    layout: &'a Layout,
    invocation: Invocation,
    output: &'a mut dyn Write,
    errors: &'a mut dyn Write,
}

/// Runs it; the value is its exit status.
pub fn run(arguments: &[String], layout: &Layout, output: &mut dyn Write, errors: &mut dyn Write) -> u8 {
    match arguments::read(arguments) {
        Ok(invocation) => Session { layout, invocation, output, errors }.run(),
        Err(complaint) => {
            let _ = writeln!(errors, "systemctl: {complaint}");
            // Whoever looks at the machine from outside should see that a script asked for something that does not exist here.
            let line = format!("systemctl {}: {complaint}", arguments.join(" "));
            let _ = control::ask(layout, &Request { verb: Verb::Say(line), units: Vec::new(), no_block: false });
            FAILURE
        }
    }
}

impl Session<'_> {
    fn run(mut self) -> u8 {
        let units = match self.units() {
            Ok(units) => units,
            Err(complaint) => {
                self.complain(&complaint);
                return FAILURE;
            }
        };
        match self.invocation.action.clone() {
            Action::Job(verb, word) => self.job(verb, word, units),
            Action::Enable | Action::Disable | Action::Reenable | Action::Mask | Action::Unmask | Action::Preset | Action::PresetAll => {
                self.change_files(&units)
            }
            Action::IsEnabled => self.is_enabled(&units),
            Action::Cat => self.cat(&units),
            Action::ListUnitFiles => self.list_unit_files(&units),
            Action::IsActive => self.is_state(units, &["active", "reloading"], NOT_RUNNING),
            Action::IsFailed => self.is_state(units, &["failed"], FAILURE),
            Action::IsSystemRunning => self.is_system_running(),
            Action::Status => self.status(units),
            Action::Show => self.show(units),
            Action::ListUnits => self.list_units(),
            Action::GetDefault => self.say("multi-user.target"),
            Action::Version => self.say("systemctl of a metalshift lab machine: a stand-in for systemd 252"),
        }
    }

    fn units(&self) -> Result<Vec<UnitName>, String> {
        self.invocation.units.iter().map(|unit| UnitName::from_argument(unit).map_err(|error| error.to_string())).collect()
    }

    fn say(&mut self, line: &str) -> u8 {
        // A reader that went away is no failure.
        let _ = writeln!(self.output, "{line}");
        0
    }

    fn complain(&mut self, line: &str) {
        let _ = writeln!(self.errors, "{line}");
    }

    fn ask(&mut self, verb: Verb, units: Vec<UnitName>) -> Option<Reply> {
        let request = Request { verb, units, no_block: self.invocation.options.no_block };
        control::ask(self.layout, &request).map_err(|error| self.complain(&format!("cannot reach the init of this machine: {error}"))).ok()
    }

    fn job(&mut self, verb: Verb, word: &str, units: Vec<UnitName>) -> u8 {
        let on_units = !matches!(verb, Verb::DaemonReload | Verb::ResetFailed | Verb::Power(..));
        if units.is_empty() && on_units {
            self.complain("no unit is named");
            return FAILURE;
        }
        let verb = match (&verb, units.first().map(UnitName::as_str)) {
            (Verb::Start | Verb::Isolate, Some("poweroff.target" | "halt.target" | "shutdown.target")) => {
                Verb::Power(control::Power::Off, std::time::Duration::ZERO)
            }
            (Verb::Start | Verb::Isolate, Some("reboot.target" | "kexec.target")) => {
                Verb::Power(control::Power::Reboot, std::time::Duration::ZERO)
            }
            _ => verb,
        };
        let Some(reply) = self.ask(verb, units) else { return FAILURE };
        for unit in &reply.changed_on_disk {
            self.complain(&format!("Warning: the files of {unit} changed on disk. Run 'systemctl daemon-reload' to read them again."));
        }
        let mut status = 0;
        for outcome in reply.outcomes.iter().filter(|outcome| !outcome.succeeded) {
            self.complain(&format!("Failed to {word} {}: {}.", outcome.unit, outcome.reason));
            status = if outcome.not_found { NOT_FOUND } else { FAILURE };
        }
        status
    }

    fn describe(&mut self, units: Vec<UnitName>) -> Option<Vec<Report>> {
        self.invocation.options.no_block = false;
        self.ask(Verb::Describe, units).map(|reply| reply.reports)
    }

    fn is_state(&mut self, units: Vec<UnitName>, wanted: &[&str], otherwise: u8) -> u8 {
        let Some(reports) = self.describe(units) else { return FAILURE };
        for report in &reports {
            if !self.invocation.options.quiet {
                self.say(&report.active);
            }
        }
        if reports.iter().any(|report| wanted.contains(&report.active.as_str())) {
            return 0;
        }
        let unknown = !reports.is_empty() && reports.iter().all(|report| report.load == "not-found");
        if unknown && otherwise == NOT_RUNNING { UNKNOWN_STATUS } else { otherwise }
    }

    fn is_system_running(&mut self) -> u8 {
        let Some(reports) = self.describe(Vec::new()) else { return FAILURE };
        let booted = self.layout.runtime_directory().join(super::boot::report::FILE).exists();
        let state = match (booted, reports.iter().any(|report| report.active == "failed")) {
            (false, _) => "starting",
            (true, true) => "degraded",
            (true, false) => "running",
        };
        self.say(state);
        u8::from(state != "running")
    }

    fn status(&mut self, units: Vec<UnitName>) -> u8 {
        if units.is_empty() {
            return self.list_units();
        }
        let asked = units.clone();
        let Some(reports) = self.describe(units) else { return FAILURE };
        let mut status = 0;
        for (unit, report) in asked.iter().zip(&reports) {
            if report.load == "not-found" {
                self.complain(&format!("Unit {unit} could not be found."));
                status = UNKNOWN_STATUS;
                continue;
            }
            let enabled = super::unit::install::UnitFiles::new(self.layout).enabled_state(&report.name);
            let lines = self.invocation.options.lines.unwrap_or(10);
            let text = print::status(report, enabled, &super::output::tail(&self.layout.unit_log(&report.name), lines));
            self.say(&text);
            if !matches!(report.active.as_str(), "active" | "reloading") {
                status = status.max(NOT_RUNNING);
            }
        }
        status
    }

    fn show(&mut self, units: Vec<UnitName>) -> u8 {
        if units.is_empty() {
            return self.say("Version=252\nFeatures=\nSystemState=running");
        }
        let Some(reports) = self.describe(units) else { return FAILURE };
        for report in &reports {
            let enabled = super::unit::install::UnitFiles::new(self.layout).enabled_state(&report.name);
            let text = print::properties(report, enabled, &self.invocation.options);
            self.say(&text);
        }
        0
    }

    fn list_units(&mut self) -> u8 {
        let Some(reports) = self.describe(Vec::new()) else { return FAILURE };
        let text = print::list(&reports, &self.invocation.options, &self.invocation.units);
        self.say(&text)
    }
}
