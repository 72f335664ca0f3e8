//! Debian's ignition: fetches and applies a configuration before any unit starts, once in the life of an instance.

use std::fs;

use super::{Boot, user_data};
use crate::init::unit::install::UnitFiles;
use crate::init::unit::preset;

const PROGRAM: &str = "/usr/lib/dracut/modules.d/30ignition/ignition";
const MERGED: &str = "/run/ignition.json";

/// Fetches and applies; what went wrong in words.
pub fn run(boot: &Boot<'_>) -> Vec<String> {
    let layout = &boot.supervisor.layout;
    let user_data = layout.state_directory().join(super::USER_DATA);
    let environment = [("IGNITION_CONFIG_FILE", user_data.display().to_string()), ("PATH", crate::init::process::SEARCH_PATH.to_owned())];
    for stage in ["fetch", "files"] {
        let arguments = ["--platform", "file", "--stage", stage, "--log-to-stdout", "--root", "/"];
        let failed = match boot.run("ignition", PROGRAM, &arguments, &environment) {
            Ok(exit) if exit.success() => None,
            Ok(exit) => Some(format!("ignition stage {stage} ended with {exit}{}", boot.last_words())),
            Err(error) => Some(format!("cannot run ignition: {error}")),
        };
        if let Some(failed) = failed {
            return vec![failed];
        }
        if stage == "fetch" {
            let merged = fs::read(MERGED).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
            for line in user_data::vain_ignition(&merged) {
                boot.supervisor.console.say(&line);
            }
        }
    }
    apply_presets(boot)
}

/// Enables what ignition asked to be enabled, as systemd does at a first boot.
fn apply_presets(boot: &Boot<'_>) -> Vec<String> {
    let supervisor = boot.supervisor;
    let mut complaints = Vec::new();
    let rules = preset::read(&supervisor.layout.preset_directories(), &mut complaints);
    for complaint in &complaints {
        supervisor.console.say(complaint);
    }
    let files = UnitFiles::new(&supervisor.layout);
    let units = preset::named(&rules, &files.administrators());
    units
        .iter()
        .filter_map(|unit| {
            // A unit without an [Install] section is not an error in a preset.
            let known = files.read(unit).fragment.is_some();
            let result = if known {
                files.preset(unit, &rules).err().map(|error| error.to_string())
            } else {
                Some(format!("preset names {unit}, which does not exist"))
            };
            result.inspect(|problem| supervisor.console.say(problem)).filter(|_| known)
        })
        .collect()
}
