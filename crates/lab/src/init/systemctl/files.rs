//! Verbs of `systemctl` that work on unit files.

use std::path::PathBuf;

use super::arguments::Action;
use super::{FAILURE, Session};
use crate::init::control::Verb;
use crate::init::unit::condition::glob;
use crate::init::unit::install::{Change, EnabledState, InstallError, UnitFiles};
use crate::init::unit::{UnitName, load, preset};

impl Session<'_> {
    fn directory(&self) -> PathBuf {
        if self.invocation.options.runtime { self.layout.runtime_units() } else { self.layout.administrator_units() }
    }

    pub(super) fn change_files(&mut self, units: &[UnitName]) -> u8 {
        let layout = self.layout;
        let files = UnitFiles::new(layout);
        let rules = preset::read(&layout.preset_directories(), &mut Vec::new());
        let units = if matches!(self.invocation.action, Action::PresetAll) {
            preset::named(&rules, &files.administrators())
        } else {
            units.to_vec()
        };
        let mut status = 0;
        for unit in &units {
            match self.change(&files, unit, &rules) {
                Ok(changes) => self.report(&changes),
                Err(error) => {
                    self.complain(&format!("Failed to change {unit}: {error}."));
                    status = FAILURE;
                }
            }
        }
        // The real one makes its manager read the files, too; without a manager the links are all there is to do.
        if self.ask(Verb::DaemonReload, Vec::new()).is_none() || status != 0 || !self.invocation.options.now {
            return status;
        }
        match self.invocation.action {
            Action::Enable | Action::Reenable => self.job(Verb::Start, "start", units),
            Action::Disable | Action::Mask => self.job(Verb::Stop, "stop", units),
            _ => status,
        }
    }

    fn change(&mut self, files: &UnitFiles<'_>, unit: &UnitName, rules: &[preset::Rule]) -> Result<Vec<Change>, InstallError> {
        let directory = self.directory();
        match self.invocation.action {
            Action::Enable => {
                if files.enabled_state(unit) == EnabledState::Static {
                    self.complain(&format!("{unit} has no [Install] section: there is nothing to enable."));
                }
                files.enable(unit, &directory)
            }
            Action::Disable => files.disable(unit, &directory),
            Action::Reenable => {
                let mut changes = files.disable(unit, &directory)?;
                changes.extend(files.enable(unit, &directory)?);
                Ok(changes)
            }
            Action::Mask => files.mask(unit, &directory),
            Action::Unmask => files.unmask(unit, &directory),
            _ => files.preset(unit, rules),
        }
    }

    fn report(&mut self, changes: &[Change]) {
        if self.invocation.options.quiet {
            return;
        }
        for change in changes {
            match change {
                Change::Created { link, target } => self.complain(&format!("Created symlink {} → {}.", link.display(), target.display())),
                Change::Removed(link) => self.complain(&format!("Removed \"{}\".", link.display())),
            }
        }
    }

    pub(super) fn is_enabled(&mut self, units: &[UnitName]) -> u8 {
        let layout = self.layout;
        let files = UnitFiles::new(layout);
        let mut enabled = false;
        for unit in units {
            let state = files.enabled_state(unit);
            enabled |= state.counts_as_enabled();
            if state == EnabledState::NotFound {
                self.complain(&format!("Failed to get unit file state for {unit}: no such file or directory"));
            } else if !self.invocation.options.quiet {
                self.say(state.word());
            }
        }
        if enabled { 0 } else { FAILURE }
    }

    pub(super) fn cat(&mut self, units: &[UnitName]) -> u8 {
        let mut status = 0;
        for unit in units {
            let source = load::load(self.layout, unit);
            if source.fragment.is_none() && source.drop_ins.is_empty() {
                self.complain(&format!("No files found for {unit}."));
                status = FAILURE;
            }
            for path in source.fragment.iter().chain(&source.drop_ins) {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                self.say(&format!("# {}\n{text}", path.display()));
            }
        }
        status
    }

    pub(super) fn list_unit_files(&mut self, units: &[UnitName]) -> u8 {
        let layout = self.layout;
        let files = UnitFiles::new(layout);
        let patterns = self.invocation.units.clone();
        let named = files
            .all()
            .into_iter()
            .filter(|name| units.is_empty() || units.contains(name) || patterns.iter().any(|pattern| glob(pattern, name.as_str())));
        let types = self.invocation.options.types.clone();
        for name in named.filter(|name| types.is_empty() || types.iter().any(|kind| kind == name.suffix())) {
            self.say(&format!("{name:50} {}", files.enabled_state(&name).word()));
        }
        0
    }
}
