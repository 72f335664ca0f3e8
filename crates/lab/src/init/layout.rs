//! Where things are on a machine. Everything hangs on one root so that a test can put it into a directory of its own.

use std::path::{Path, PathBuf};

use super::unit::UnitName;

/// The paths of one machine.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

impl Default for Layout {
    fn default() -> Self {
        Self::at("/")
    }
}

impl Layout {
    /// A machine whose root is this directory.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The root itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path of an absolute name below the root.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// Directories of unit files, the strongest first.
    pub fn unit_directories(&self) -> Vec<PathBuf> {
        ["etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"]
            .iter()
            .map(|directory| self.root.join(directory))
            .collect()
    }

    /// Where an administrator, cloud-init or ignition puts units and links.
    pub fn administrator_units(&self) -> PathBuf {
        self.path("/etc/systemd/system")
    }

    /// Where links of `--runtime` go.
    pub fn runtime_units(&self) -> PathBuf {
        self.path("/run/systemd/system")
    }

    /// Preset files of the machine; those of the distribution do not count, they would enable the services of the host.
    pub fn preset_directories(&self) -> Vec<PathBuf> {
        vec![self.path("/etc/systemd/system-preset"), self.path("/run/systemd/system-preset")]
    }

    /// The socket `systemctl` speaks to.
    pub fn control_socket(&self) -> PathBuf {
        self.path("/run/metalshift/init.sock")
    }

    /// The socket services of type notify speak to.
    pub fn notify_socket(&self) -> PathBuf {
        self.path("/run/metalshift/notify.sock")
    }

    /// What is gone after a reboot.
    pub fn runtime_directory(&self) -> PathBuf {
        self.path("/run/metalshift")
    }

    /// What a kept disk keeps: user-data, machine.json, boot.json.
    pub fn state_directory(&self) -> PathBuf {
        self.path("/var/lib/metalshift")
    }

    /// Logs of units.
    pub fn log_directory(&self) -> PathBuf {
        self.path("/var/log/metalshift")
    }

    /// The log of one unit.
    pub fn unit_log(&self, unit: &UnitName) -> PathBuf {
        self.log_directory().join(format!("{unit}.log"))
    }
}
