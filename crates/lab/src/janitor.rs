//! Cleans up after a lab whose owner died without a word. A test process can end at any moment (its harness calls `exit`, a
//! person presses Ctrl-C), so a small shell waits at the other end of a pipe that the kernel closes with its owner.

use std::{
    io::Write as _,
    os::unix::process::CommandExt as _,
    process::{Child, ChildStdin, Command, Stdio},
};

use crate::{LabDirectory, LabError, command::search_path, place::MADE, process::MARK};

/// Ends when it is dismissed. When its input ends without a word, it takes the lab's lock as everybody does who wants to remove
/// something: while it holds the mark of those who begin, so that it never comes between one who begins and its lab. Who has begun
/// cleans up itself, and who owns the lab lives; both may also be what is dying, hence the repetitions. Then it ends what carries the
/// lab's mark, since the kernel does not kill what had not asked for that yet when its parent died, and removes control groups with all
/// that is in them, files, and the lock; with the last lock also the place of labs, as far as it was made for them.
const SCRIPT: &str = r#"
read -r word && exit
directory=$1 lock=$2 group=$3 beginning=$4 patience=$5 labs=$6 made=$7 mark=$8
own() { flock -n "$1" && [ "/proc/$$/fd/$1" -ef "$2" ]; }
begin() { exec 8>>"$beginning"; own 8 "$beginning"; }
take() { exec 9>>"$lock"; own 9 "$lock"; }
attempts=0 taken=
while [ -z "$taken" ]; do
  if begin; then
    take && taken=yes
    rm -f -- "$beginning"
  fi
  exec 8>&-
  attempts=$((attempts + 1))
  [ "$taken" ] || [ $attempts -lt $patience ] || exit
  [ "$taken" ] || sleep 0.1
done
groups() { for found in /sys/fs/cgroup/"$group" /sys/fs/cgroup/*/"$group"; do [ -d "$found" ] && echo "$found"; done; }
# A path of two lines would be two patterns, and the second could be in anything.
marked() { [ "$lines" -eq 0 ] && grep -lzxF -- "$mark=$directory" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
lines=$(printf %s "$directory" | wc -l)
attempts=0
while [ $attempts -lt $patience ]; do
  marked | xargs -r kill -9 2>/dev/null
  for found in $(groups); do
    find "$found" -name cgroup.procs -exec cat {} + | grep -vx 0 | xargs -r kill -9
    find "$found" -depth -type d -exec rmdir {} +
  done 2>/dev/null
  find "$directory" -mindepth 1 -maxdepth 1 ! -name .metalshift-lab -exec rm -rf -- {} + 2>/dev/null
  rm -rf -- "$directory" 2>/dev/null
  [ ! -e "$directory" ] && [ -z "$(groups)" ] && [ -z "$(marked)" ] && break
  attempts=$((attempts + 1))
  sleep 0.1
done
rm -f -- "$lock"
cd "$labs" && [ "$(ls -A)" = "$made" ] || exit
grep -qxF -- "$labs" "$made" || exit
paths=$(sort -r "$made")
rm -f -- "$made"
cd /
rmdir -- "$labs" || { printf '%s\n' "$paths" > "$labs/$made"; exit; }
printf '%s\n' "$paths" | while IFS= read -r path; do [ "$path" = "$labs" ] || rmdir -- "$path" || break; done
"#;

/// How often a lock is tried and a removal repeated, a tenth of a second apart: the kernel tears down a PID namespace meanwhile.
const PATIENCE: u32 = 100;

/// The waiting shell. Dropping this lets it do its work; [`Janitor::dismiss`] ends it without.
pub(crate) struct Janitor {
    input: Option<ChildStdin>,
    shell: Child,
}

impl Janitor {
    /// Watches over the files of a lab that belongs to this process.
    pub fn hire(directory: &LabDirectory) -> Result<Self, LabError> {
        Self::with_patience(directory, PATIENCE)
    }

    fn with_patience(directory: &LabDirectory, patience: u32) -> Result<Self, LabError> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "metalshift-lab-janitor"])
            .args([directory.path(), directory.lock_path()])
            .arg(directory.control_group())
            .arg(directory.starting_path())
            .arg(patience.to_string())
            .arg(directory.labs())
            .args([MADE, MARK])
            .env("PATH", search_path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // A Ctrl-C at the terminal goes to a whole process group, and the janitor must survive it.
            .process_group(0)
            .spawn()
            .map_err(LabError::start("sh"))?;
        Ok(Self { input: shell.stdin.take(), shell })
    }

    /// There is nothing left to do.
    pub fn dismiss(mut self) {
        if let Some(input) = &mut self.input {
            // One that has died needs no word.
            let _ = input.write_all(b"dismissed\n");
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.input.take();
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn lab_below(labs: &Path) -> LabDirectory {
        let directory = LabDirectory::in_labs(labs, "killed".parse().unwrap());
        directory.create().unwrap();
        fs::write(directory.logs().join("etcd.log"), "text").unwrap();
        directory
    }

    #[test]
    fn what_a_dead_owner_left_is_removed_locks_included() {
        let persons = tempfile::tempdir().unwrap();
        // The person's directory itself, and one that was made for labs.
        for labs in ["", "deeper/labs"] {
            let labs = persons.path().join(labs);
            crate::place::make(&labs).unwrap();
            let directory = lab_below(&labs);
            let janitor = Janitor::hire(&directory).unwrap();
            fs::write(directory.lock_path(), "").unwrap();
            fs::write(directory.starting_path(), "").unwrap();
            drop(janitor);
            let left: Vec<_> = fs::read_dir(persons.path()).unwrap().flatten().map(|entry| entry.path()).collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }

    #[test]
    fn the_next_lab_of_the_name_is_left_alone_whether_it_begins_or_lives() {
        let labs = tempfile::tempdir().unwrap();
        let directory = lab_below(labs.path());
        for begins in [true, false] {
            let janitor = Janitor::with_patience(&directory, 3).unwrap();
            let held = if begins { directory.begin() } else { directory.take() }.unwrap();
            drop(janitor);
            assert!(directory.logs().join("etcd.log").exists(), "the files of another lab are gone (it begins: {begins})");
            assert!(held.path().exists(), "the lock of another lab is gone (it begins: {begins})");
        }
    }

    #[test]
    fn a_component_that_outlived_its_owner_is_ended_and_one_of_another_lab_is_not() {
        let labs = tempfile::tempdir().unwrap();
        let directory = lab_below(labs.path());
        let component = |lab: &Path| Command::new("sleep").arg("1000").env(MARK, lab).spawn().unwrap();
        let (mut left, mut neighbours) = (component(&directory.path()), component(&labs.path().join("killed-too")));
        drop(Janitor::hire(&directory).unwrap());
        let (left_ended, neighbour_ended) = (left.try_wait().unwrap().is_some(), neighbours.try_wait().unwrap().is_some());
        for child in [&mut left, &mut neighbours] {
            let _ = child.kill();
            child.wait().unwrap();
        }
        assert!(left_ended && !neighbour_ended);
    }

    #[test]
    fn a_dismissed_janitor_touches_nothing() {
        let labs = tempfile::tempdir().unwrap();
        let directory = lab_below(labs.path());
        Janitor::hire(&directory).unwrap().dismiss();
        assert!(directory.logs().join("etcd.log").exists());
    }
}
