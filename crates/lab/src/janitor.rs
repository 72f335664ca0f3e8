//! Cleans up after a lab whose owner died without a word. A test process can end at any moment (its harness calls `exit`, a
//! person presses Ctrl-C), so a small shell waits at the other end of a pipe that the kernel closes with its owner.

use std::{
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use crate::LabError;

/// Ends when its input ends; then removes the control groups, the files and the locks. The processes of the lab are being killed
/// by the kernel at the same moment, hence the repetitions.
const SCRIPT: &str = r#"
while read -r line; do :; done
for attempt in 1 2 3 4 5 6 7 8 9 10 20 30 40 50 60 70 80 90 100; do
  for group in /sys/fs/cgroup/"$3" /sys/fs/cgroup/*/"$3"; do
    [ -d "$group" ] && find "$group" -depth -type d -exec rmdir {} +
  done 2>/dev/null
  find "$1" -mindepth 1 -maxdepth 1 ! -name .metalshift-lab -exec rm -rf -- {} + 2>/dev/null
  rm -rf -- "$1" 2>/dev/null
  if [ ! -e "$1" ]; then
    left=
    for group in /sys/fs/cgroup/"$3" /sys/fs/cgroup/*/"$3"; do [ -d "$group" ] && left=yes; done
    [ -z "$left" ] && break
  fi
  sleep 0.1
done
rm -f -- "$2" "$4"
"#;

/// The waiting shell; dropping this lets it do its work.
pub(crate) struct Janitor {
    input: Option<ChildStdin>,
    shell: Child,
}

impl Janitor {
    /// Watches over the files of a lab that belongs to this process.
    pub fn hire(directory: &Path, [lock, beginning]: [&Path; 2], control_group: &str) -> Result<Self, LabError> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "metalshift-lab-janitor"])
            .args([directory, lock])
            .arg(control_group)
            .arg(beginning)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // A Ctrl-C at the terminal goes to a whole process group, and the janitor must survive it.
            .process_group(0)
            .spawn()
            .map_err(LabError::io("run", "sh"))?;
        Ok(Self { input: shell.stdin.take(), shell })
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.input.take();
        let _ = self.shell.wait();
    }
}
