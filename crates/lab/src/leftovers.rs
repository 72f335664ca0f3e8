//! Removes what a killed lab left: processes by the mark in their environment, control groups, files.
//! Called with the lab's lock held, so the lab is dead and stays dead meanwhile.

use std::{
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{LabDirectory, LabError, control_groups, directory::MARKER, process::MARK};

/// How long killed processes may take to be gone; the kernel tears down a whole PID namespace in this time.
const GONE_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Removes everything of a dead lab but its lock.
pub(crate) fn remove(directory: &LabDirectory) -> Result<(), LabError> {
    directory.check_marker()?;
    end_processes(&directory.path());
    remove_control_groups(&directory.control_group())?;
    remove_files(&directory.path())
}

/// Kills every process that carries the lab's mark and waits until none is left.
pub(crate) fn end_processes(directory: &Path) {
    let deadline = Instant::now() + GONE_WITHIN;
    loop {
        let ours = marked_processes(directory);
        if ours.is_empty() || Instant::now() > deadline {
            return;
        }
        for process in ours {
            // Gone in between is as good as killed.
            let _ = kill_process(process, Signal::KILL);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The processes whose environment names this lab. Zombies have no environment any more.
pub(crate) fn marked_processes(directory: &Path) -> Vec<Pid> {
    let mark = [MARK.as_bytes(), b"=", directory.as_os_str().as_bytes()].concat();
    let own = rustix::process::getpid();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
        .filter(|process| *process != own)
        .filter(|process| {
            fs::read(format!("/proc/{}/environ", process.as_raw_nonzero()))
                .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == mark))
        })
        .collect()
}

fn remove_control_groups(lab: &str) -> Result<(), LabError> {
    for group in control_groups::of_lab(lab) {
        let deadline = Instant::now() + GONE_WITHIN;
        loop {
            match control_groups::remove_tree(&group) {
                Ok(()) => break,
                // Processes of a namespace that is being torn down still count for a moment. Others have nothing to live for either: the
                // group is that of a machine, and what was stopped in it ends only so.
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                    control_groups::kill_tree(&group);
                    thread::sleep(LOOK_EVERY);
                }
                Err(source) => return Err(LabError::Io { what: "remove the control group", path: group, source }),
            }
        }
    }
    Ok(())
}

fn remove_files(path: &Path) -> Result<(), LabError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| LabError::Io { what: "remove", path, source }
    };
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed(path))?,
    };
    // The marker last: who is killed in between leaves what is still known to be a lab's.
    for entry in entries.flatten().filter(|entry| entry.file_name() != MARKER) {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let removed = if is_directory { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&entry.path())(error)),
            _ => {}
        }
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{control_groups::ControlGroup, waiting::is_root};

    #[test]
    fn a_stopped_process_in_a_control_group_does_not_keep_it() {
        if !is_root("only root makes control groups") {
            return;
        }
        let lab = format!("metalshift-stopped-{}", std::process::id());
        let group = ControlGroup::of(&lab, "rack").unwrap();
        group.create().unwrap();
        let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = Pid::from_child(&sleeper);
        for list in group.process_lists() {
            fs::create_dir_all(list.parent().unwrap()).unwrap();
            fs::write(list, sleeper.id().to_string()).unwrap();
        }
        kill_process(process, Signal::STOP).unwrap();
        // Somebody must bury it, or it counts for ever.
        let burial = thread::spawn(move || sleeper.wait());
        remove_control_groups(&lab).unwrap();
        assert!(!burial.join().unwrap().unwrap().success());
        assert!(control_groups::of_lab(&lab).is_empty());
    }
}
