//! Debian's cloud-init, fed by a `NoCloud` seed: the same four stages a machine with systemd runs.

use std::fs;
use std::io;

use super::{Boot, Identity, user_data};
use crate::init::layout::Layout;

const PROGRAM: &str = "/usr/bin/cloud-init";

/// A stage, in the order they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before the network.
    Local,
    /// With the network: `write_files`, users, bootcmd.
    Network,
    /// Configuration modules; runcmd becomes a script.
    Config,
    /// Scripts.
    Final,
}

impl Stage {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Local => &["init", "--local"],
            Self::Network => &["init"],
            Self::Config => &["modules", "--mode=config"],
            Self::Final => &["modules", "--mode=final"],
        }
    }
}

/// Writes the seed: user-data byte for byte, and the identity of the machine.
pub fn seed(layout: &Layout, identity: &Identity, user_data: &[u8]) -> io::Result<()> {
    let directory = layout.path("/var/lib/cloud/seed/nocloud");
    fs::create_dir_all(&directory)?;
    let mut meta_data = identity.meta_data.clone();
    meta_data.insert("instance-id".to_owned(), identity.instance_id.clone().into());
    meta_data.insert("local-hostname".to_owned(), identity.hostname.clone().into());
    // JSON is YAML, and quotes everything that YAML would misread.
    fs::write(directory.join("meta-data"), serde_json::to_vec_pretty(&meta_data)?)?;
    fs::write(directory.join("user-data"), user_data)
}

/// Runs one stage; its output is on the console. A bad exit status is returned, the errors themselves are in its result file.
pub fn run(boot: &Boot<'_>, stage: Stage) -> Option<String> {
    match boot.run("cloud-init", PROGRAM, stage.arguments(), &[]) {
        Ok(exit) if exit.success() => None,
        Ok(exit) => Some(format!("cloud-init {} ended with {exit}", stage.arguments().join(" "))),
        Err(error) => Some(format!("cannot run cloud-init: {error}")),
    }
}

/// Whether a line is cloud-init speaking of itself, not of what it runs.
pub fn is_frame(line: &str) -> bool {
    line.starts_with("Cloud-init v.")
        || line.starts_with("ci-info:")
        || line.contains("[WARNING]: Failed to run module")
        || line.contains("util.py[WARNING]")
}

/// What the user-data asks for in vain; known after the network stage, when all parts are merged and templates filled in.
pub fn vain(layout: &Layout) -> Vec<String> {
    fs::read_to_string(layout.path("/var/lib/cloud/instance/cloud-config.txt"))
        .map(|text| user_data::vain_cloud_config(&text))
        .unwrap_or_default()
}

/// The errors cloud-init itself recorded.
pub fn errors(layout: &Layout) -> Vec<String> {
    let path = layout.path("/run/cloud-init/result.json");
    let Ok(bytes) = fs::read(&path) else { return vec!["cloud-init left no result".to_owned()] };
    let result: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let errors = result.pointer("/v1/errors").and_then(serde_json::Value::as_array).cloned().unwrap_or_default();
    errors.iter().map(|error| format!("cloud-init: {}", error.as_str().map_or_else(|| error.to_string(), str::to_owned))).collect()
}
