//! First step of a machine's start, in the lab's namespaces: joins the machine's control group, then becomes `unshare`, which
//! becomes the second step in namespaces of the machine's own. The group must be joined before the namespace of groups is made,
//! because that takes the group of the moment for its root.

use std::{fs, os::unix::process::CommandExt as _, path::Path, process::Command};

use super::MachineFile;
use crate::{LabError, control_groups::ControlGroup};

/// The body of `metalshift lab machine-start`; does not return unless it fails.
pub fn machine_start(file: &Path) -> LabError {
    match read(file).and_then(|machine| ControlGroup::of(&machine.lab, &machine.name)).and_then(|group| group.create().and(group.join())) {
        Err(error) => error,
        Ok(()) => {
            let executable = match std::env::current_exe() {
                Ok(executable) => executable,
                Err(source) => return LabError::Io { what: "find", path: "/proc/self/exe".into(), source },
            };
            let error = Command::new("unshare")
                .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--fork", "--kill-child=KILL", "--"])
                .arg(executable)
                .args(["lab", "machine-enter"])
                .arg(file)
                .exec();
            LabError::Io { what: "run", path: "unshare".into(), source: error }
        }
    }
}

pub(crate) fn read(file: &Path) -> Result<MachineFile, LabError> {
    let text = fs::read(file).map_err(LabError::io("read", file))?;
    serde_json::from_slice(&text).map_err(|error| LabError::Manifest { path: file.to_owned(), reason: error.to_string() })
}
