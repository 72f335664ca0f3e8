//! `metalshift demo`, as somebody runs it: it holds, it notices every sabotage, what it keeps can be used, and an interrupted one leaves
//! nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "../../lab/tests/waiting/mod.rs"]
mod waiting;

use std::{
    cmp::Ordering,
    fs,
    io::{BufRead as _, BufReader},
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use lab::LabDirectory;
use serde_json::Value;
use waiting::is_root;

const PROGRAM: &str = env!("CARGO_BIN_EXE_metalshift");
/// What the demo shows, in its order.
const STEPS: [&str; 7] = ["lab", "provider", "kill", "cluster", "answer", "bad-server", "delete"];

/// A demo with a lab of its own, which is removed with it, however the test ends.
struct Demo {
    name: String,
    /// Where labs are, if not where they usually are.
    labs: Option<PathBuf>,
    /// What comes before the program: a demo ends with the thread of its test.
    before: Vec<&'static str>,
}

impl Demo {
    fn new(name: &str) -> Self {
        // The same test may run beside this one, from another clone.
        let name = format!("{name}-{}", std::process::id());
        Self { name, labs: None, before: vec!["setpriv", "--pdeathsig", "TERM", "--"] }
    }

    /// One of a person who may do nothing.
    fn of_nobody(name: &str, labs: &Path) -> Self {
        fs::set_permissions(labs, fs::Permissions::from_mode(0o777)).unwrap();
        let mut demo = Self::new(name);
        demo.labs = Some(labs.to_owned());
        if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
            demo.before.splice(..0, ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]);
        }
        demo
    }

    fn directory(&self) -> PathBuf {
        self.labs.as_ref().map_or_else(|| LabDirectory::of(&self.name.parse().unwrap()).path(), |labs| labs.join(&self.name))
    }

    fn metalshift(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.before[0]);
        command.args(&self.before[1..]).arg(PROGRAM).args(words).stdin(Stdio::null());
        command.envs(self.labs.iter().map(|labs| ("METALSHIFT_LABS", labs)));
        command
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.metalshift(&[&["demo", "--name", &self.name], arguments].concat())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What a command in its lab prints; it must succeed.
    fn exec(&self, words: &[&str]) -> String {
        let output = self.metalshift(&[&["lab", "exec", "--name", &self.name, "--"], words].concat()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs it as far as a step, then does something to it; how it ended.
    fn disturbed(&self, arguments: &[&str], step: &str, disturb: impl FnOnce(&Child)) -> Output {
        let mut process = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut words = Vec::new();
        let there = lines.by_ref().any(|line| {
            words.push(line);
            words.last().is_some_and(|line| line.contains(&format!("  {step}: ")))
        });
        assert!(there, "the demo did not come as far as {step}:\n{}", words.join("\n"));
        // What it says meanwhile must not make it wait.
        let rest = std::thread::spawn(move || lines.collect::<Vec<String>>());
        disturb(&process);
        let mut output = process.wait_with_output().unwrap();
        words.extend(rest.join().unwrap());
        output.stderr = words.join("\n").into_bytes();
        output
    }

    /// Interrupts it when it has been at a step for so long, as a person who has had enough. Says whether it was still there.
    fn interrupted(&self, level: &str, signal: &str, step: &str, after: Duration) -> bool {
        let mut sent = false;
        let output = self.disturbed(&["--level", level], step, |process| {
            // The moment itself is what is tried here.
            std::thread::sleep(after);
            sent = tell(process.id(), signal);
        });
        self.assert_gone();
        if output.status.success() {
            return false;
        }
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(sent);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains("the demo was interrupted; everything of it was removed"), "{words}");
        true
    }

    /// Nothing of its lab is there any more: no file, and no process that was told of it.
    fn assert_gone(&self) {
        let directory = self.directory();
        // A killed process is gone as soon as its parent has heard of it, which nobody can wait for by name.
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let processes = processes_of(&directory).into_iter().map(|(process, words)| format!("process {process} {words}"));
            let left: Vec<String> = files_of(&directory).into_iter().chain(processes).collect();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "the demo left:\n{left:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Nothing to do when all went well.
        let _ = self.metalshift(&["lab", "down", "--name", &self.name]).output();
    }
}

/// Sends a signal; whether somebody was there to get it.
fn tell(process: u32, signal: &str) -> bool {
    Command::new("kill").args([signal, &process.to_string()]).stderr(Stdio::null()).status().unwrap().success()
}

/// Its directory and its locks lie side by side.
fn files_of(directory: &Path) -> Vec<String> {
    let beside = fs::read_dir(directory.parent().unwrap()).into_iter().flatten().flatten().map(|entry| entry.path());
    beside.filter(|path| path.file_stem() == directory.file_stem()).map(|path| path.display().to_string()).collect()
}

/// The lab's programs have its directory in their environment, the provider among their words.
fn processes_of(directory: &Path) -> Vec<(u32, String)> {
    let path = directory.as_os_str().as_bytes();
    let processes = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let told = |process: &u32| {
        ["cmdline", "environ"].iter().any(|file| {
            let content = fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
            content.windows(path.len()).any(|window| window == path)
        })
    };
    let words =
        |process: u32| String::from_utf8_lossy(&fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default()).replace('\0', " ");
    processes.filter(told).map(|process| (process, words(process))).collect()
}

/// What became of each step.
fn outcomes(output: &Output) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |step: &&str| {
        let line = text.lines().find(|line| line.split("  ").map(str::trim).any(|word| word == *step))?;
        let outcome = ["holds", "FAILED", "not tried", "left out"].into_iter().find(|word| line.trim_start().starts_with(word))?;
        Some(((*step).to_owned(), outcome.to_owned()))
    };
    STEPS.iter().filter_map(line).collect()
}

fn all_hold_but(left_out: &[&str]) -> Vec<(String, String)> {
    STEPS.map(|step| (step.to_owned(), if left_out.contains(&step) { "left out" } else { "holds" }.to_owned())).into()
}

/// One after the other: machines that boot want the whole computer.
#[test]
fn with_machines_that_boot_every_step_holds_and_a_service_that_does_not_answer_is_noticed() {
    if !is_root("machines need root") {
        return;
    }
    let demo = Demo::new("demo-real");
    let output = demo.run(&["--level", "nodes"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert_eq!(outcomes(&output), all_hold_but(&[]), "{words}");
    demo.assert_gone();
    sabotage_is_noticed("answer", "nodes");
}

#[test]
fn every_step_holds_without_root_too_and_the_demo_says_what_is_simulated_and_why() {
    let labs = tempfile::tempdir().unwrap();
    let demo = Demo::of_nobody("demo-sim", labs.path());
    let output = demo.run(&[]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert_eq!(outcomes(&output), all_hold_but(&["answer"]), "{words}");
    let said = words.lines().find(|line| line.contains("machines and nodes of this demo are simulated: "));
    assert!(said.is_some_and(|line| line.contains("root")), "{words}");
    demo.assert_gone();
}

#[test]
fn a_provider_that_ends_is_started_again_and_what_is_kept_can_be_used_as_it_is_told_and_ends_with_its_lab() {
    let demo = Demo::new("demo-keep");
    let output = demo.disturbed(&["--level", "capi", "--keep"], "bad-server", |_| {
        let provider = processes_of(&demo.directory()).into_iter().find(|(_, words)| words.contains(" manage --leader-elect"));
        assert!(tell(provider.expect("the provider does not run").0, "-KILL"));
    });
    let (data, words) = (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{words}");
    assert!(words.contains("the provider ended and was started again"), "{words}");
    assert_eq!(outcomes(&output), all_hold_but(&["answer", "delete"]), "{words}");

    let told = |what: &str| {
        let value = data.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_else(|| panic!("not told: {what}\n{data}"));
        value.split(' ').next().unwrap().to_owned()
    };
    let (management, cluster) = (told("kubeconfig of the management cluster: "), told("kubeconfig of the cluster demo: "));
    let machines = ["kubectl", "--kubeconfig", &management, "get", "maasmachines", "--output=jsonpath={.items[*].status.phase}"];
    assert_eq!(demo.exec(&machines), ["Deployed"; 6].join(" "));
    let nodes = demo.exec(&["kubectl", "--kubeconfig", &cluster, "get", "nodes", "--output=name"]);
    assert_eq!(nodes.lines().count(), 6, "{nodes}");
    let summary = told("MAAS: ").replace("/MAAS", "/emulator/summary");
    let summary: Value = serde_json::from_str(&demo.exec(&["curl", "--silent", "--noproxy", "*", &summary])).unwrap();
    assert_eq!(summary["owned"]["admin"].as_array().map(Vec::len), Some(6), "{summary}");

    // The provider works on, and everything ends as the demo says.
    demo.exec(&["kubectl", "scale", "machinedeployment", "demo-workers", "--replicas=4"]);
    let deadline = Instant::now() + Duration::from_mins(1);
    while demo.exec(&machines) != ["Deployed"; 7].join(" ") {
        assert!(Instant::now() < deadline, "nobody deploys one more server");
        std::thread::sleep(Duration::from_millis(200));
    }
    let down = format!("lab down --name {}", demo.name);
    assert!(words.contains(&format!("metalshift {down}")), "{words}");
    let ended = demo.metalshift(&down.split(' ').collect::<Vec<_>>()).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(processes_of(&demo.directory()), Vec::new(), "these do not end with the lab");
    demo.assert_gone();
}

#[test]
fn a_step_that_is_left_out_cannot_be_sabotaged() {
    let demo = Demo::new("demo-both");
    for (arguments, reason) in [
        (
            ["--keep", "--sabotage", "delete"].as_slice(),
            "the step delete is left out and cannot be sabotaged: --keep leaves the cluster running",
        ),
        (&["--sabotage", "answer"], "the step answer is left out and cannot be sabotaged: nodes are simulated and run no pods"),
    ] {
        let output = demo.run(&[&["--level", "capi"], arguments].concat());
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(words.contains(reason), "{words}");
        demo.assert_gone();
    }
}

/// A demo that is broken at this step ends there, says so, and leaves nothing.
fn sabotage_is_noticed(step: &str, level: &str) {
    let demo = Demo::new(&format!("d-{step}"));
    let output = demo.run(&["--level", level, "--sabotage", step]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains(&format!("step {step} did not hold")), "{words}");
    let place = STEPS.iter().position(|name| *name == step).unwrap();
    let expected = STEPS.iter().enumerate().map(|(number, name)| {
        let outcome = match number.cmp(&place) {
            _ if *name == "answer" && level == "capi" => "left out",
            Ordering::Less => "holds",
            Ordering::Equal => "FAILED",
            Ordering::Greater => "not tried",
        };
        ((*name).to_owned(), outcome.to_owned())
    });
    assert_eq!(outcomes(&output), expected.collect::<Vec<_>>(), "{words}");
    demo.assert_gone();
}

#[test]
fn every_sabotaged_step_is_noticed_and_nothing_is_left() {
    // Each of them mostly waits, one of them two minutes for MAAS, which may still do what it was asked before the kill. A service needs
    // machines that boot.
    let steps: Vec<&str> = STEPS.into_iter().filter(|step| *step != "answer").collect();
    for some in steps.chunks(3) {
        std::thread::scope(|scope| some.iter().for_each(|step| drop(scope.spawn(move || sabotage_is_noticed(step, "capi")))));
    }
}

#[test]
fn a_demo_whose_lab_is_killed_says_so_and_leaves_nothing() {
    let demo = Demo::new("demo-killed");
    let process = demo.command(&["--level", "capi"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // This is written when the lab is up: it goes just before or just after the demo has had a look at it.
    let (kubeconfig, deadline) = (demo.directory().join("kubeconfig"), Instant::now() + Duration::from_mins(2));
    while !kubeconfig.exists() {
        assert!(Instant::now() < deadline, "the lab did not come up");
        std::thread::sleep(Duration::from_millis(1));
    }
    let supervisors = processes_of(&demo.directory()).into_iter().filter(|(_, words)| words.trim_end().ends_with("lab supervise"));
    assert!(supervisors.filter(|(process, _)| tell(*process, "-KILL")).count() > 0, "there was nobody to kill");
    let output = process.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.lines().any(|line| line.starts_with("error: ")), "{words}");
    demo.assert_gone();
}

#[test]
fn whenever_it_is_interrupted_a_demo_removes_everything() {
    let seed = std::env::var("METALSHIFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    eprintln!("moments of seed {seed} (METALSHIFT_SEED chooses another)");
    let demo = Demo::new("demo-int");
    // A step, from where to where in it in seconds. While the lab starts there is most to leave behind.
    let mut parts = vec![
        ("capi", "-INT", "lab", 0, 3),
        ("capi", "-HUP", "lab", 3, 6),
        ("capi", "-INT", "lab", 6, 9),
        ("capi", "-TERM", "kill", 0, 12),
        ("capi", "-INT", "delete", 0, 3),
    ];
    if is_root("machines need root") {
        // Machines boot, and a kubeadm runs on the first one.
        parts.extend([("nodes", "-INT", "lab", 6, 12), ("nodes", "-INT", "cluster", 0, 10)]);
    }
    for (number, (level, signal, step, from, to)) in (0..).zip(parts) {
        let mut moment = Duration::from_secs(from) + Duration::from_secs(to - from).mul_f64(fraction(seed, number));
        // One that came too late is tried again earlier.
        while !demo.interrupted(level, signal, step, moment) {
            assert!(!moment.is_zero(), "nobody is there to be interrupted at {step}");
            moment = if moment < Duration::from_millis(100) { Duration::ZERO } else { moment / 2 };
        }
    }
}

/// A number between 0 and 1 that depends on nothing but its arguments.
fn fraction(seed: u32, number: u32) -> f64 {
    let mixed = (seed ^ number.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
    f64::from((mixed ^ (mixed >> 15)) % 1000) / 1000.0
}
