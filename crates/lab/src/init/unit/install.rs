//! Enabling, disabling and masking: the links in `/etc/systemd/system` exactly as systemctl writes them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::definition::Definition;
use super::load::LoadState;
use super::name::UnitName;
use super::preset;
use super::specifier::Machine;
use crate::init::layout::Layout;

/// Why a unit could not be enabled, disabled or masked.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// No such unit.
    #[error("unit file {0} does not exist")]
    NotFound(UnitName),
    /// It is masked.
    #[error("unit file {0} is masked; unmask it first")]
    Masked(UnitName),
    /// A template without an instance.
    #[error("unit {0} is a template without a default instance; name an instance")]
    TemplateWithoutInstance(UnitName),
    /// A file is in the way.
    #[error("{path} exists and is no link to {target}")]
    InTheWay {
        /// What exists.
        path: PathBuf,
        /// What it should point to.
        target: PathBuf,
    },
    /// The file system refused.
    #[error("cannot change {path}: {source}")]
    File {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// One change, as systemctl reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A link was made.
    Created {
        /// The link.
        link: PathBuf,
        /// What it points to.
        target: PathBuf,
    },
    /// A link was removed.
    Removed(PathBuf),
}

/// What `is-enabled` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnabledState {
    /// Linked.
    Enabled,
    /// Could be, is not.
    Disabled,
    /// Has no `[Install]` section.
    Static,
    /// Masked.
    Masked,
    /// A second name of another unit.
    Alias,
    /// A link of another unit's `Also=` only.
    Indirect,
    /// No such unit.
    NotFound,
}

impl EnabledState {
    /// The word systemctl prints.
    pub fn word(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Static => "static",
            Self::Masked => "masked",
            Self::Alias => "alias",
            Self::Indirect => "indirect",
            Self::NotFound => "not-found",
        }
    }

    /// Whether `is-enabled` succeeds.
    pub fn counts_as_enabled(self) -> bool {
        matches!(self, Self::Enabled | Self::Static | Self::Alias | Self::Indirect)
    }
}

/// The unit files of one machine.
#[derive(Debug)]
pub struct UnitFiles<'a> {
    layout: &'a Layout,
    machine: Machine,
}

impl<'a> UnitFiles<'a> {
    /// Of the machine with this layout.
    pub fn new(layout: &'a Layout) -> Self {
        Self { layout, machine: Machine::read() }
    }

    /// Loads one of them.
    pub fn read(&self, unit: &UnitName) -> Definition {
        super::read(self.layout, unit, &self.machine)
    }

    /// Makes the links of `[Install]`; `directory` is /etc/systemd/system or its volatile sister.
    pub fn enable(&self, unit: &UnitName, directory: &Path) -> Result<Vec<Change>, InstallError> {
        let mut changes = Vec::new();
        self.enable_into(unit, directory, &mut changes, &mut Vec::new())?;
        Ok(changes)
    }

    fn enable_into(
        &self,
        unit: &UnitName,
        directory: &Path,
        changes: &mut Vec<Change>,
        seen: &mut Vec<UnitName>,
    ) -> Result<(), InstallError> {
        if seen.contains(unit) {
            return Ok(());
        }
        seen.push(unit.clone());
        let definition = self.existing(unit)?;
        let (unit, target) = Self::instance_and_file(&definition)?;
        let links = links_of(&definition, &unit, directory);
        for link in links {
            if make_link(&link, &target)? {
                changes.push(Change::Created { link, target: target.clone() });
            }
        }
        for also in &definition.install.also {
            self.enable_into(also, directory, changes, seen)?;
        }
        Ok(())
    }

    /// Removes every link to the unit from `.wants`, `.requires` and aliases.
    pub fn disable(&self, unit: &UnitName, directory: &Path) -> Result<Vec<Change>, InstallError> {
        let definition = self.existing(unit)?;
        let mut units = vec![definition.name.clone()];
        units.extend(definition.install.also.iter().cloned());
        let mut changes = Vec::new();
        for unit in &units {
            for link in existing_links(directory, unit) {
                remove(&link)?;
                changes.push(Change::Removed(link));
            }
        }
        for alias in &definition.install.alias {
            let link = directory.join(alias.as_str());
            if link.is_symlink() {
                remove(&link)?;
                changes.push(Change::Removed(link));
            }
        }
        Ok(changes)
    }

    /// Links the name to /dev/null.
    pub fn mask(&self, unit: &UnitName, directory: &Path) -> Result<Vec<Change>, InstallError> {
        let link = directory.join(unit.as_str());
        let target = PathBuf::from("/dev/null");
        let created = make_link(&link, &target)?;
        Ok(if created { vec![Change::Created { link, target }] } else { Vec::new() })
    }

    /// Takes the mask away.
    pub fn unmask(&self, unit: &UnitName, directory: &Path) -> Result<Vec<Change>, InstallError> {
        let link = directory.join(unit.as_str());
        if fs::read_link(&link).is_ok_and(|target| target == Path::new("/dev/null")) {
            remove(&link)?;
            return Ok(vec![Change::Removed(link)]);
        }
        Ok(Vec::new())
    }

    /// Enables or disables as the preset files say; a unit they do not name is left alone.
    pub fn preset(&self, unit: &UnitName, rules: &[preset::Rule]) -> Result<Vec<Change>, InstallError> {
        let directory = self.layout.administrator_units();
        match preset::verdict(rules, unit) {
            Some(true) => self.enable(unit, &directory),
            Some(false) => self.disable(unit, &directory),
            None => Ok(Vec::new()),
        }
    }

    /// Whether and how a unit is enabled.
    pub fn enabled_state(&self, unit: &UnitName) -> EnabledState {
        let definition = self.read(unit);
        let directories = [self.layout.administrator_units(), self.layout.runtime_units()];
        let linked = directories.iter().any(|directory| {
            !existing_links(directory, &definition.name).is_empty()
                || definition.install.alias.iter().any(|alias| directory.join(alias.as_str()).is_symlink())
        });
        let install = &definition.install;
        match definition.state {
            LoadState::NotFound => EnabledState::NotFound,
            LoadState::Masked => EnabledState::Masked,
            _ if definition.name != *unit => EnabledState::Alias,
            _ if linked => EnabledState::Enabled,
            _ if !(install.wanted_by.is_empty() && install.required_by.is_empty() && install.alias.is_empty()) => EnabledState::Disabled,
            _ if !install.also.is_empty() => EnabledState::Indirect,
            _ => EnabledState::Static,
        }
    }

    /// Names of all unit files an administrator put there, templates included.
    pub fn administrators(&self) -> Vec<UnitName> {
        names_in(&self.layout.administrator_units())
    }

    /// Names of all unit files.
    pub fn all(&self) -> Vec<UnitName> {
        let mut names: Vec<UnitName> = self.layout.unit_directories().iter().flat_map(|directory| names_in(directory)).collect();
        names.sort();
        names.dedup();
        names
    }

    fn existing(&self, unit: &UnitName) -> Result<Definition, InstallError> {
        let definition = self.read(unit);
        match definition.state {
            LoadState::NotFound => Err(InstallError::NotFound(unit.clone())),
            LoadState::Masked => Err(InstallError::Masked(unit.clone())),
            _ => Ok(definition),
        }
    }

    /// The unit that is really enabled (a template's default instance) and the file its links point to.
    fn instance_and_file(definition: &Definition) -> Result<(UnitName, PathBuf), InstallError> {
        let unit = match (&definition.install.default_instance, definition.name.is_template()) {
            (Some(instance), true) => definition.name.with_instance(instance),
            (None, true) => return Err(InstallError::TemplateWithoutInstance(definition.name.clone())),
            (_, false) => definition.name.clone(),
        };
        let file = definition.fragment.clone().ok_or_else(|| InstallError::NotFound(unit.clone()))?;
        Ok((unit, file))
    }
}

fn links_of(definition: &Definition, unit: &UnitName, directory: &Path) -> Vec<PathBuf> {
    let install = &definition.install;
    let wants = install.wanted_by.iter().map(|by| directory.join(format!("{by}.wants")).join(unit.as_str()));
    let requires = install.required_by.iter().map(|by| directory.join(format!("{by}.requires")).join(unit.as_str()));
    let aliases = install.alias.iter().map(|alias| directory.join(alias.as_str()));
    wants.chain(requires).chain(aliases).collect()
}

fn existing_links(directory: &Path, unit: &UnitName) -> Vec<PathBuf> {
    let mut links: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wants" || extension == "requires"))
        .map(|path| path.join(unit.as_str()))
        .filter(|link| link.is_symlink())
        .collect();
    links.sort();
    links
}

fn names_in(directory: &Path) -> Vec<UnitName> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().filter(|entry| !entry.path().is_dir());
    let mut names: Vec<UnitName> = entries.filter_map(|entry| UnitName::parse(entry.file_name().to_str()?).ok()).collect();
    names.sort();
    names
}

/// Makes a link; false when it was there already.
fn make_link(link: &Path, target: &Path) -> Result<bool, InstallError> {
    let failed = |source| InstallError::File { path: link.to_owned(), source };
    if let Ok(present) = fs::read_link(link) {
        if present == target || fs::canonicalize(link).is_ok_and(|real| fs::canonicalize(target).is_ok_and(|wanted| real == wanted)) {
            return Ok(false);
        }
        fs::remove_file(link).map_err(failed)?;
    } else if link.exists() {
        return Err(InstallError::InTheWay { path: link.to_owned(), target: target.to_owned() });
    }
    if let Some(parent) = link.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    symlink(target, link).map_err(failed)?;
    Ok(true)
}

fn remove(link: &Path) -> Result<(), InstallError> {
    match fs::remove_file(link) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(InstallError::File { path: link.to_owned(), source }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> UnitName {
        UnitName::parse(text).unwrap()
    }

    fn machine_with(units: &[(&str, &str)]) -> (tempfile::TempDir, Layout) {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        fs::create_dir_all(layout.administrator_units()).unwrap();
        for (name, text) in units {
            fs::write(layout.administrator_units().join(name), text).unwrap();
        }
        (directory, layout)
    }

    #[test]
    fn enabling_links_and_disabling_removes_the_links() {
        let (_directory, layout) = machine_with(&[
            ("a.service", "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\nAlias=b.service\nAlso=c.service\n"),
            ("c.service", "[Service]\nExecStart=/bin/c\n[Install]\nRequiredBy=x.target\n"),
        ]);
        let files = UnitFiles::new(&layout);
        let directory = layout.administrator_units();
        assert_eq!(files.enabled_state(&name("a.service")), EnabledState::Disabled);
        assert_eq!(files.enable(&name("a.service"), &directory).unwrap().len(), 3);
        assert!(files.enable(&name("a.service"), &directory).unwrap().is_empty());
        assert!(directory.join("multi-user.target.wants/a.service").is_symlink());
        assert!(directory.join("x.target.requires/c.service").is_symlink());
        assert_eq!(files.enabled_state(&name("a.service")), EnabledState::Enabled);
        assert_eq!(files.enabled_state(&name("b.service")), EnabledState::Alias);
        assert_eq!(files.disable(&name("a.service"), &directory).unwrap().len(), 3);
        assert_eq!(files.enabled_state(&name("a.service")), EnabledState::Disabled);
    }

    #[test]
    fn templates_need_an_instance() {
        let (_directory, layout) =
            machine_with(&[("t@.service", "[Service]\nExecStart=/bin/a %i\n[Install]\nWantedBy=multi-user.target\n")]);
        let files = UnitFiles::new(&layout);
        let directory = layout.administrator_units();
        assert!(matches!(files.enable(&name("t@.service"), &directory), Err(InstallError::TemplateWithoutInstance(_))));
        files.enable(&name("t@x.service"), &directory).unwrap();
        let link = directory.join("multi-user.target.wants/t@x.service");
        assert_eq!(fs::read_link(link).unwrap(), directory.join("t@.service"));
    }

    #[test]
    fn a_masked_unit_cannot_be_enabled_until_it_is_unmasked() {
        let (_directory, layout) = machine_with(&[]);
        let files = UnitFiles::new(&layout);
        let directory = layout.administrator_units();
        files.mask(&name("a.service"), &directory).unwrap();
        assert!(matches!(files.enable(&name("a.service"), &directory), Err(InstallError::Masked(_))));
        files.unmask(&name("a.service"), &directory).unwrap();
        assert!(matches!(files.enable(&name("a.service"), &directory), Err(InstallError::NotFound(_))));
    }

    #[test]
    fn presets_enable_what_they_name_and_leave_the_rest() {
        let unit = "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n";
        let (_directory, layout) = machine_with(&[("a.service", unit), ("b.service", unit)]);
        let files = UnitFiles::new(&layout);
        let rules = preset::parse("enable a.service\n", &mut Vec::new());
        for unit in ["a.service", "b.service"] {
            files.preset(&name(unit), &rules).unwrap();
        }
        assert_eq!(files.enabled_state(&name("a.service")), EnabledState::Enabled);
        assert_eq!(files.enabled_state(&name("b.service")), EnabledState::Disabled);
    }
}
