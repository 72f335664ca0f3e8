//! Machines for tests: one in a directory that any user can run, and one in namespaces of its own for root.

use std::fs;
use std::path::{Path, PathBuf};
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

/// The genuine programs a test needs.
#[derive(Clone, Copy)]
pub enum Agents {
    CloudInit,
    Ignition,
}

/// A machine with namespaces and an overlay root of its own.
pub struct RealMachine {
    directory: tempfile::TempDir,
}

/// How one of its boots went.
#[derive(Debug)]
pub struct RealBoot {
    pub report: BootReport,
    pub console: String,
}

impl RealMachine {
    /// None, with the reason in one line, where it cannot run.
    pub fn new(agents: Agents) -> Option<Self> {
        let (name, program) = match agents {
            Agents::CloudInit => ("cloud-init", "/usr/bin/cloud-init"),
            Agents::Ignition => ("ignition", "/usr/lib/dracut/modules.d/30ignition/ignition"),
        };
        let reason = if !rustix::process::geteuid().is_root() {
            Some("a machine in namespaces needs root".to_owned())
        } else if !Path::new(program).exists() {
            Some(format!("{name} is not installed"))
        } else {
            None
        };
        if let Some(reason) = reason {
            assert!(std::env::var_os("CI").is_none(), "continuous integration leaves nothing out: {reason}");
            eprintln!("left out: {reason}");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let machine = Self { directory };
        fs::create_dir_all(machine.units()).expect("a place for units");
        Some(machine)
    }

    fn units(&self) -> PathBuf {
        self.directory.path().join("image/etc/systemd/system")
    }

    pub fn write_unit(&self, name: &str, text: &str) {
        fs::write(self.units().join(name), text).expect("a unit");
    }

    /// A file the machine kept below /var/lib/metalshift.
    pub fn kept(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join("kept").join(name)).unwrap_or_default()
    }

    /// Boots, powers off, and boots the kept disk again.
    pub fn boot_twice(&self, user_data: &[u8]) -> [RealBoot; 2] {
        let image = Layout::at(self.directory.path().join("image"));
        let options = lab::init::image::ImageOptions { pause_image: "none".into(), network_plugins: "/usr/lib/cni".into() };
        lab::init::image::write(image.root(), &options).expect("the files of the image");
        // The agents are the point here; the container runtime has tests of its own.
        fs::remove_dir_all(image.administrator_units().join("multi-user.target.wants")).expect("links");
        fs::remove_file(image.administrator_units().join("machine-image.target.wants/machine-images.service")).expect("a link");
        let identity = Identity { instance_id: "one".into(), hostname: "test-machine".into(), ..Identity::default() };
        identity.write(&image, user_data).expect("an identity");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/init/machine.sh");
        let output = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "--"])
            .arg("/bin/bash")
            .arg(script)
            .arg(self.directory.path())
            .arg(std::env::current_exe().expect("this program"))
            .env_remove(super::ROLE)
            .stdin(Stdio::null())
            .output()
            .expect("unshare");
        let complaint = || format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ["1", "2"].map(|number| {
            let read = |name: &str| fs::read_to_string(self.directory.path().join(format!("{name}.{number}"))).unwrap_or_default();
            let report = serde_json::from_str(&read("boot.json"))
                .unwrap_or_else(|_| panic!("no report of boot {number}: {}{}", complaint(), read("console")));
            RealBoot { report, console: read("console") }
        })
    }
}
