//! How a boot went, for the console and for whoever looks from outside.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::init::layout::Layout;

/// The file the report is written to, below the state and the runtime directory.
pub const FILE: &str = "boot.json";

/// What applied the user-data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agent {
    /// There was no user-data.
    None,
    /// Debian's cloud-init.
    CloudInit,
    /// Debian's ignition.
    Ignition,
}

/// The result of one boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootReport {
    /// Of which instance.
    pub instance_id: String,
    /// Whether user-data was applied and all enabled units started.
    pub succeeded: bool,
    /// Whether this instance booted for the first time.
    pub first_boot: bool,
    /// Who applied the user-data.
    pub agent: Agent,
    /// From the start of PID 1 to this report.
    pub seconds: f64,
    /// What went wrong, one sentence each.
    pub errors: Vec<String>,
}

impl BootReport {
    /// The line for the console.
    pub fn line(&self) -> String {
        if self.succeeded { format!("boot finished in {:.1} s", self.seconds) } else { format!("boot failed: {}", self.errors.join("; ")) }
    }

    /// Writes it whole or not at all; the one in the state directory last, for it is what the outside waits for.
    pub fn write(&self, layout: &Layout) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        for directory in [layout.runtime_directory(), layout.state_directory()] {
            replace(&directory.join(FILE), &text)?;
        }
        Ok(())
    }

    /// The report of this boot, once there is one; read from outside the machine.
    pub fn read(layout: &Layout) -> Option<Self> {
        serde_json::from_slice(&fs::read(layout.state_directory().join(FILE)).ok()?).ok()
    }

    /// Takes the report of an earlier boot away.
    pub fn forget(layout: &Layout) {
        for directory in [layout.runtime_directory(), layout.state_directory()] {
            let _ = fs::remove_file(directory.join(FILE));
        }
    }
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("json.new");
    fs::write(&unfinished, text)?;
    fs::rename(unfinished, path)
}
