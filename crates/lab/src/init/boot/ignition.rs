//! Debian's ignition: fetches and applies a configuration before any unit starts, once in the life of an instance.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Boot, older_ignition, user_data};
use crate::init::layout::Layout;
use crate::init::unit::install::UnitFiles;
use crate::init::unit::{UnitName, preset};

const PROGRAM: &str = "/usr/lib/dracut/modules.d/30ignition/ignition";
const MERGED: &str = "/run/ignition.json";
/// Read after the file ignition writes itself.
const INSTANCES: &str = "/etc/systemd/system-preset/21-instances.preset";

/// Fetches and applies; what went wrong in words.
pub fn run(boot: &Boot<'_>) -> Vec<String> {
    let layout = &boot.supervisor.layout;
    let configuration = match prepare(boot) {
        Ok(path) => path,
        Err(error) => return vec![format!("cannot prepare the configuration for ignition: {error}")],
    };
    let environment =
        [("IGNITION_CONFIG_FILE", configuration.display().to_string()), ("PATH", crate::init::process::SEARCH_PATH.to_owned())];
    for stage in ["fetch", "files"] {
        let arguments = ["--platform", "file", "--stage", stage, "--log-to-stdout", "--root", "/"];
        let failed = match boot.run("ignition", PROGRAM, &arguments, &environment) {
            Ok(exit) if exit.success() => None,
            Ok(_) if boot.last_words().contains("unsupported config version") => {
                Some("Debian's ignition does not know this version of a configuration: use 3.0.0 to 3.3.0, or 2.x".to_owned())
            }
            Ok(exit) => Some(format!("ignition stage {stage} ended with {exit}{}", boot.last_words())),
            Err(error) => Some(format!("cannot run ignition: {error}")),
        };
        if let Some(failed) = failed {
            return vec![failed];
        }
        if stage == "fetch"
            && let Err(error) = between_stages(boot, layout)
        {
            return vec![format!("cannot read what ignition has fetched: {error}")];
        }
    }
    apply_presets(boot)
}

/// Where the configuration is in words Debian's ignition knows.
fn prepare(boot: &Boot<'_>) -> io::Result<PathBuf> {
    let layout = &boot.supervisor.layout;
    let user_data = layout.state_directory().join(super::USER_DATA);
    let configuration: Value = serde_json::from_slice(&fs::read(&user_data)?)?;
    if !older_ignition::is_version_2(&configuration) {
        return Ok(user_data);
    }
    let console = &boot.supervisor.console;
    console.say("the Ignition configuration is of version 2: it is put into the words of version 3 for Debian's ignition");
    let vain = user_data::vain_ignition(&configuration);
    let (translated, said) = older_ignition::translate(configuration);
    for line in vain.iter().chain(&said) {
        console.say(line);
    }
    let path = layout.runtime_directory().join("ignition.json");
    fs::write(&path, serde_json::to_vec(&translated)?)?;
    Ok(path)
}

/// Names what has no effect, and takes over from ignition what only a real systemd could answer it.
fn between_stages(boot: &Boot<'_>, layout: &Layout) -> io::Result<()> {
    let mut merged: Value = serde_json::from_slice(&fs::read(MERGED)?)?;
    for line in user_data::vain_ignition(&merged) {
        boot.supervisor.console.say(&line);
    }
    let rules = take_instances(&mut merged);
    if rules.is_empty() {
        return Ok(());
    }
    fs::write(MERGED, serde_json::to_vec(&merged)?)?;
    let presets = layout.path(INSTANCES);
    fs::create_dir_all(presets.parent().unwrap_or(Path::new("/")))?;
    fs::write(presets, rules.concat())
}

/// Instances of templates that are to be enabled or disabled, as lines of a preset. Ignition asks systemd for its version before it
/// writes them, and gives up without an answer.
fn take_instances(merged: &mut Value) -> Vec<String> {
    let units = merged.pointer_mut("/systemd/units").and_then(Value::as_array_mut);
    let units = units.into_iter().flatten().filter_map(Value::as_object_mut);
    units
        .filter_map(|unit| {
            let name = UnitName::parse(unit.get("name")?.as_str()?).ok()?;
            let (template, instance) = (name.template()?, name.instance()?);
            let verb = if unit.remove("enabled")?.as_bool()? { "enable" } else { "disable" };
            Some(format!("{verb} {template} {instance}\n"))
        })
        .collect()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn instances_of_templates_are_enabled_by_the_machine_itself() {
        let mut merged = json!({"systemd": {"units": [
            {"name": "pull@.service", "contents": "x"}, {"name": "pull@etcd.service", "enabled": true}, {"name": "a.service", "enabled": true},
            {"name": "pull@off.service", "enabled": false, "contents": "y"},
        ]}});
        assert_eq!(take_instances(&mut merged), ["enable pull@.service etcd\n", "disable pull@.service off\n"]);
        assert_eq!(merged.pointer("/systemd/units/1"), Some(&json!({"name": "pull@etcd.service"})));
        assert_eq!(merged.pointer("/systemd/units/2/enabled"), Some(&json!(true)));
    }
}
