//! First step of a machine's start, in the lab's namespaces: joins the machine's control group, then becomes `unshare`, which
//! becomes the second step in namespaces of the machine's own. The group must be joined before the namespace of groups is made,
//! because that takes the group of the moment for its root.

use std::{fs, os::unix::process::CommandExt as _, path::Path, process::Command};

use super::MachineFile;
use crate::{LabError, control_groups::ControlGroup, process::MARK};

/// The body of `metalshift lab machine-start`; does not return unless it fails.
pub fn machine_start(file: &Path) -> LabError {
    if std::env::var_os(MARK).is_none() {
        return LabError::Supervisor("`lab machine-start` is started by the lab and nobody else".to_owned());
    }
    let joined = read(file)
        .and_then(|machine| ControlGroup::of(&machine.lab_group, &machine.name))
        .and_then(|group| group.create().and_then(|()| group.join()))
        .and_then(|()| std::env::current_exe().map_err(LabError::io("find", "the running program")));
    let executable = match joined {
        Ok(executable) => executable,
        Err(error) => return error,
    };
    let source = Command::new("unshare")
        .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--fork", "--kill-child=KILL", "--"])
        .arg(executable)
        .args(["lab", "machine-enter"])
        .arg(file)
        .exec();
    LabError::Io { what: "run", path: "unshare".into(), source }
}

pub(crate) fn read(file: &Path) -> Result<MachineFile, LabError> {
    let text = fs::read(file).map_err(LabError::io("read", file))?;
    serde_json::from_slice(&text).map_err(|error| LabError::Manifest { path: file.to_owned(), reason: error.to_string() })
}
