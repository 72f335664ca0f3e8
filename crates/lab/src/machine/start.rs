//! First and second step of a machine's start, in the lab's namespaces. The first joins the machine's control group and becomes `unshare`,
//! which makes the machine's namespace of groups: that takes the group of the moment for its root. The second, in that namespace, goes to
//! its place below that root, and becomes the `unshare` that makes all other namespaces and starts the third step in them.

use std::{fs, os::unix::process::CommandExt as _, path::Path, process::Command};

use super::MachineFile;
use crate::{LabError, control_groups::ControlGroup, process::MARK};

/// The body of `metalshift lab machine-start`; does not return unless it fails.
pub fn machine_start(file: &Path) -> LabError {
    become_unshare(file, "machine-start", &["--cgroup"], "machine-settle", |group| group.create().and_then(|()| group.join()))
}

/// The body of `metalshift lab machine-settle`; does not return unless it fails.
pub fn machine_settle(file: &Path) -> LabError {
    const NAMESPACES: [&str; 7] = ["--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child=KILL"];
    become_unshare(file, "machine-settle", &NAMESPACES, "machine-enter", ControlGroup::settle)
}

/// Does something about the machine's group and becomes the next step in other namespaces.
fn become_unshare(
    file: &Path,
    step: &str,
    namespaces: &[&str],
    next: &str,
    group: impl FnOnce(&ControlGroup) -> Result<(), LabError>,
) -> LabError {
    if std::env::var_os(MARK).is_none() {
        return LabError::Supervisor(format!("`lab {step}` is started by the lab and nobody else"));
    }
    let done = read(file)
        .and_then(|machine| ControlGroup::of(&machine.lab_group, &machine.name))
        .and_then(|found| group(&found))
        .and_then(|()| std::env::current_exe().map_err(LabError::io("find", "the running program")));
    let executable = match done {
        Ok(executable) => executable,
        Err(error) => return error,
    };
    let source = Command::new("unshare").args(namespaces).arg("--").arg(executable).args(["lab", next]).arg(file).exec();
    LabError::Io { what: "run", path: "unshare".into(), source }
}

pub(crate) fn read(file: &Path) -> Result<MachineFile, LabError> {
    let text = fs::read(file).map_err(LabError::io("read", file))?;
    serde_json::from_slice(&text).map_err(|error| LabError::Manifest { path: file.to_owned(), reason: error.to_string() })
}
