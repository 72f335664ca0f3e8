//! A machine for tests: its root is a directory, so any user can run it.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lab::init::boot::Identity;
use lab::init::boot::report::BootReport;
use lab::init::layout::Layout;

const DEADLINE: Duration = Duration::from_secs(30);

/// What `systemctl` answered.
pub struct Answer {
    pub status: u8,
    pub output: String,
    pub errors: String,
}

/// A machine whose root is a directory; its PID 1 is a child of the test.
pub struct Machine {
    directory: tempfile::TempDir,
    layout: Layout,
    process: Child,
}

impl Machine {
    /// Boots with these units; `ROOT` in their text is the machine's directory, those with a `WantedBy=` are enabled for it.
    pub fn boot(units: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let layout = Layout::at(directory.path());
        fs::create_dir_all(layout.administrator_units()).expect("a place for units");
        for (name, text) in units {
            let path = layout.administrator_units().join(name);
            fs::write(&path, text.replace("ROOT", &directory.path().display().to_string())).expect("a unit");
            if let Some(target) = text.lines().find_map(|line| line.strip_prefix("WantedBy=")) {
                let wants = layout.administrator_units().join(format!("{target}.wants"));
                fs::create_dir_all(&wants).expect("a place for links");
                std::os::unix::fs::symlink(&path, wants.join(name)).expect("a link");
            }
        }
        let identity = Identity { instance_id: "one".into(), hostname: "test".into(), ..Identity::default() };
        identity.write(&layout, b"").expect("an identity");
        let console = fs::File::create(directory.path().join("console")).expect("a console");
        let process = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "role_of_a_machine", "--nocapture", "--test-threads=1"])
            .env(super::ROLE, directory.path())
            .stdin(Stdio::null())
            .stdout(console.try_clone().expect("a console"))
            .stderr(console)
            .spawn()
            .expect("PID 1 of the machine");
        Self { directory, layout, process }
    }

    pub fn write_unit(&self, name: &str, text: &str) {
        fs::write(self.layout.administrator_units().join(name), text).expect("a unit");
    }

    pub fn console(&self) -> String {
        self.read("console")
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.directory.path().join(path)).unwrap_or_default()
    }

    pub fn wait_until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !condition(self) {
            assert!(Instant::now() < deadline, "waited in vain until {what}:\n{}", self.console());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn wait_for_boot(&self) -> BootReport {
        self.wait_until("the boot has ended", |machine| !machine.read("var/lib/metalshift/boot.json").is_empty());
        serde_json::from_str(&self.read("var/lib/metalshift/boot.json")).expect("a report of the boot")
    }

    pub fn systemctl(&self, arguments: &str) -> Answer {
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let status = lab::init::command("systemctl", &arguments, &self.layout, &mut output, &mut errors);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Answer { status, output: text(output), errors: text(errors) }
    }

    /// Presses the power button.
    pub fn terminate(&self) {
        let pid = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a running machine");
    }

    /// The exit status PID 1 has at its end.
    pub fn wait_for_end(&mut self) -> u8 {
        let deadline = Instant::now() + DEADLINE;
        while self.process.try_wait().expect("a child").is_none() {
            assert!(Instant::now() < deadline, "the machine does not end:\n{}", self.console());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.read("var/lib/metalshift/exit-status").parse().expect("an exit status")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.terminate();
            let deadline = Instant::now() + DEADLINE;
            while self.process.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}
