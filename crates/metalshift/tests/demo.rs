//! `metalshift demo`, as somebody runs it: it holds, it notices every sabotage, what it keeps can be used, and an interrupted one leaves
//! nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "../../manager/tests/recorded_calls/mod.rs"]
mod recorded_calls;
#[path = "../../lab/tests/waiting/mod.rs"]
mod waiting;

use std::{
    cmp::Ordering,
    fmt::Display,
    fs,
    io::{BufRead as _, BufReader},
    ops::Range,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _, process::CommandExt as _},
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
        // Whoever runs the tests may have told them to outlive the terminal; these demos hear of its end.
        Self { name, labs: None, before: vec!["setpriv", "--pdeathsig", "TERM", "--", "env", "--default-signal=HUP"] }
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
        let mut command = self.command(arguments);
        // As a shell at a terminal starts it: what is typed there reaches it and whatever it started, and nobody else.
        let mut process = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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

    /// Interrupts it when it has been at a step for so long, as a person who has had enough. Says whether it was still at that step.
    fn interrupted(&self, part: &Part, after: Duration) -> bool {
        let sabotage = part.sabotaged.into_iter().flat_map(|step| ["--sabotage", step]);
        let arguments: Vec<&str> = ["--level", part.level].into_iter().chain(sabotage).collect();
        let output = self.disturbed(&arguments, part.step, |process| {
            // The moment itself is what is tried here.
            std::thread::sleep(after);
            let process = i64::from(process.id());
            // What is typed or closed at a terminal is told to all that was started there.
            assert!(tell(if part.signal == "-TERM" { process } else { -process }, part.signal), "it was not waited for");
        });
        self.assert_gone();
        let words = String::from_utf8_lossy(&output.stderr);
        let Some((before, _)) = words.split_once("interrupted: removes everything") else {
            // It had come to its end by itself.
            let end = part.sabotaged.map(|step| format!("step {step} did not hold"));
            assert!(end.map_or(output.status.success(), |end| words.contains(&end)), "{words}");
            return false;
        };
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains("the demo was interrupted; everything of it was removed"), "{words}");
        STEPS.into_iter().rfind(|step| before.contains(&format!("  {step}: "))) == Some(part.step)
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

/// Sends a signal to a process, or to a whole group by its negative number; whether somebody was there to get it.
fn tell(whom: impl Display, signal: &str) -> bool {
    Command::new("kill").args([signal, "--", &whom.to_string()]).stderr(Stdio::null()).status().unwrap().success()
}

/// Its directory and its locks lie side by side.
fn files_of(directory: &Path) -> Vec<String> {
    let beside = fs::read_dir(directory.parent().unwrap()).into_iter().flatten().flatten().map(|entry| entry.path());
    beside.filter(|path| path.file_stem() == directory.file_stem()).map(|path| path.display().to_string()).collect()
}

/// Files of its lab in which a key or a token stands, below directories that others may enter, with their modes.
fn files_with_secrets(directory: &Path, key: &str) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let (path, about) = (entry.path(), entry.metadata().unwrap());
        let mode = about.permissions().mode() & 0o777;
        if about.is_dir() && mode & 0o011 != 0 {
            found.extend(files_with_secrets(&path, key));
        } else if about.is_file() {
            let content = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            if ["PRIVATE KEY", "client-key-data", "\"token\":\"", key].iter().any(|secret| content.contains(secret)) {
                found.push((path.display().to_string(), mode));
            }
        }
    }
    found
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
    let kill_provider = || {
        let provider = processes_of(&demo.directory()).into_iter().find(|(_, words)| words.contains(" manage --leader-elect"));
        assert!(tell(provider.expect("the provider does not run").0, "-KILL"));
    };
    let output = demo.disturbed(&["--level", "capi", "--keep"], "bad-server", |_| kill_provider());
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
    let mut secrets = files_with_secrets(&demo.directory(), data.lines().find_map(|line| line.split_once(" with the key ")).unwrap().1);
    for name in ["/kubeconfig", "/demo.kubeconfig", "/provider.kubeconfig", "/fleet.yaml"] {
        assert!(secrets.iter().any(|(path, _)| path.ends_with(name)), "{name} is not among {secrets:?}");
    }
    // What was applied first had the key in it.
    let applied = demo.directory().join("apply.yaml");
    secrets.push((applied.display().to_string(), fs::metadata(&applied).unwrap().permissions().mode() & 0o777));
    let open: Vec<_> = secrets.iter().filter(|(_, mode)| mode & 0o077 != 0).map(|(path, mode)| format!("{path} {mode:o}")).collect();
    assert!(open.is_empty(), "others may read what is secret: {open:?}");
    let summary = told("MAAS: ").replace("/MAAS", "/emulator/summary");
    let ask = |more: &[&str]| demo.exec(&[&["curl", "--silent", "--noproxy", "*", &summary], more].concat());
    assert!(ask(&[]).contains("those who have one of its keys"), "whoever else has an account here learns nothing: {}", ask(&[]));
    let (_, key) = data.lines().find(|line| line.starts_with("MAAS: ")).and_then(|line| line.rsplit_once(' ')).unwrap();
    let summary: Value = serde_json::from_str(&ask(&["--oauth2-bearer", key])).unwrap();
    assert_eq!(summary["owned"]["admin"].as_array().map(Vec::len), Some(6), "{summary}");

    // The provider works on, also after its end, and everything ends as the demo says.
    kill_provider();
    demo.exec(&["kubectl", "scale", "machinedeployment", "demo-workers", "--replicas=4"]);
    let deadline = Instant::now() + Duration::from_mins(2);
    while demo.exec(&machines) != ["Deployed"; 7].join(" ") {
        assert!(Instant::now() < deadline, "nobody deploys one more server");
        std::thread::sleep(Duration::from_millis(200));
    }
    let asked = told("what the management cluster was asked: ");
    recorded_calls::assert_the_provider_minded_its_own(Path::new(&asked));
    // As somebody types it whose shell does not find the program by its name.
    let typed = |command: &str| Command::new("sh").args(["-c", command]).output().unwrap();
    let log = typed(words.lines().find(|line| line.contains(" lab logs ")).expect("nobody says where the provider's log is"));
    assert!(log.status.success() && !log.stdout.is_empty(), "{}", String::from_utf8_lossy(&log.stderr));
    let end = words.lines().find_map(|line| line.strip_suffix("` ends it all and removes it")?.split('`').nth(1)).unwrap();
    let ended = typed(end);
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

#[test]
fn a_terminal_of_80_columns_shows_every_machine_with_its_phase_and_when_that_ends() {
    let demo = Demo::new("demo-tty");
    // It ends soon after the cluster is there.
    let words = format!("{PROGRAM} demo --name {} --level capi --sabotage bad-server", demo.name);
    let mut terminal = Command::new(demo.before[0]);
    terminal.args(&demo.before[1..]).args(["script", "--quiet", "--return", "--command"]);
    let output = terminal.arg(format!("stty columns 80 rows 24; exec {words}")).arg("/dev/null").stdin(Stdio::null()).output().unwrap();
    let drawn = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{drawn}");
    assert!(drawn.contains("\u{1b}[J"), "what was drawn is drawn anew: {drawn}");
    let lines: Vec<&str> = drawn.lines().filter(|line| line.contains("─ ")).collect();
    let too_long: Vec<&&str> = lines.iter().filter(|line| line.trim_end().chars().count() > 79).collect();
    assert!(too_long.is_empty(), "{too_long:#?}");
    for end in [" s, at most ", " s, about ", "Deployed"] {
        let shown = |line: &&&str| line.contains("workers-") && line.contains(end) || line.contains("control-plane-") && line.contains(end);
        assert!(lines.iter().find(shown).is_some(), "no machine is shown with {end:?}: {drawn}");
    }
    demo.assert_gone();
}

/// What is said to a pipe: a line for what is new, and nothing that only a terminal understands.
fn assert_news_only(words: &str) {
    assert!(!words.contains('\u{1b}'), "{words}");
    let deploying: Vec<&str> = words.lines().filter(|line| line.contains(" Deploying ")).collect();
    let machines: std::collections::BTreeSet<&str> =
        deploying.iter().filter_map(|line| line.split("─ ").nth(1)?.split(' ').next()).collect();
    assert!(!machines.is_empty() && deploying.len() <= 2 * machines.len(), "times that pass are no news: {deploying:#?}");
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
    if step == "bad-server" {
        assert_news_only(&words);
    }
    demo.assert_gone();
}

#[test]
fn every_sabotaged_step_is_noticed_a_pipe_hears_only_news_and_nothing_is_left() {
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

/// When a demo is interrupted.
struct Part {
    level: &'static str,
    /// A later step that would be broken: the cluster is smaller then, and sooner there.
    sabotaged: Option<&'static str>,
    signal: &'static str,
    step: &'static str,
    /// From where to where in the step, in seconds.
    within: Range<u64>,
}

impl Part {
    fn of(level: &'static str, signal: &'static str, step: &'static str, within: Range<u64>) -> Self {
        Self { level, sabotaged: None, signal, step, within }
    }

    fn on_a_small_cluster(self, sabotaged: &'static str) -> Self {
        Self { sabotaged: Some(sabotaged), ..self }
    }

    /// At a moment that its number decides; one that came too late is tried again earlier.
    fn try_it(&self, number: u32, seed: u32) {
        let demo = Demo::new(&format!("d-int-{number}"));
        let (from, length) = (Duration::from_secs(self.within.start), Duration::from_secs(self.within.end - self.within.start));
        let mut moment = from + length.mul_f64(fraction(seed, number));
        while !demo.interrupted(self, moment) {
            assert!(!moment.is_zero(), "nobody is there to be interrupted at {}", self.step);
            moment = if moment < Duration::from_millis(100) { Duration::ZERO } else { moment / 2 };
        }
    }
}

#[test]
fn whenever_it_is_interrupted_a_demo_removes_everything() {
    let seed = std::env::var("METALSHIFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    eprintln!("moments of seed {seed} (METALSHIFT_SEED chooses another)");
    // Those that take long go together. While the lab starts there is most to leave behind.
    let parts = [
        Part::of("capi", "-INT", "bad-server", 0..3).on_a_small_cluster("delete"),
        Part::of("capi", "-INT", "delete", 0..3),
        Part::of("capi", "-TERM", "kill", 0..12).on_a_small_cluster("delete"),
        Part::of("capi", "-INT", "cluster", 0..3),
        Part::of("capi", "-INT", "provider", 0..1),
        Part::of("capi", "-INT", "lab", 0..3),
        Part::of("capi", "-HUP", "lab", 3..6),
        Part::of("capi", "-INT", "lab", 6..9),
    ];
    let numbered: Vec<(u32, &Part)> = (0..).zip(&parts).collect();
    // Each of them mostly waits.
    for some in numbered.chunks(3) {
        std::thread::scope(|scope| some.iter().for_each(|(number, part)| drop(scope.spawn(move || part.try_it(*number, seed)))));
    }
    if is_root("machines need root") {
        // Machines boot, and a kubeadm runs on the first one; then pods run.
        Part::of("nodes", "-INT", "lab", 6..12).try_it(10, seed);
        Part::of("nodes", "-INT", "cluster", 0..10).try_it(11, seed);
        Part::of("nodes", "-INT", "answer", 0..2).on_a_small_cluster("bad-server").try_it(12, seed);
    }
}

#[test]
fn a_demo_of_a_name_that_is_taken_leaves_that_lab_alone_whenever_it_is_interrupted() {
    let demo = Demo::new("demo-taken");
    let started = demo.metalshift(&["lab", "up", "--level", "api", "--name", &demo.name]).output().unwrap();
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let supervisors = || -> Vec<u32> {
        let processes = processes_of(&demo.directory()).into_iter();
        processes.filter(|(_, words)| words.trim_end().ends_with("lab supervise")).map(|(process, _)| process).collect()
    };
    let before = supervisors();
    let mut refused = 0;
    // It is refused so soon that only many moments meet it before, at and after that.
    for moment in (0..60).map(Duration::from_millis).chain([Duration::from_secs(5)]) {
        let process = demo.command(&["--level", "capi"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // The moment itself is what is tried here.
        std::thread::sleep(moment);
        tell(process.id(), "-INT");
        let output = process.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && !words.contains("removes everything"), "{words}");
        refused += u32::from(words.contains("is already up"));
        assert_eq!(supervisors(), before, "after {moment:?}: {words}");
    }
    assert!(refused > 0, "nobody says that the name is taken");
    let status = demo.metalshift(&["lab", "status", "--name", &demo.name]).output().unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
}

#[test]
fn a_demo_that_was_told_to_outlive_its_terminal_goes_on_when_that_is_closed() {
    let mut demo = Demo::new("demo-nohup");
    demo.before.push("nohup");
    // It ends as soon as its lab is up.
    let output = demo.disturbed(&["--level", "capi", "--sabotage", "lab"], "lab", |process| {
        assert!(tell(-i64::from(process.id()), "-HUP"));
    });
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("step lab did not hold"), "{words}");
    assert!(!words.contains("interrupted"), "{words}");
    demo.assert_gone();
}

/// Notes what it is asked for and which signals it gets, and takes as long over an installation as somebody wants.
const APT_GET: &str = r#"#!/bin/sh
cd @PLACE@
trap 'echo signal >> notes' INT TERM HUP
echo "$1 begins" >> notes
while [ "$1" = install ] && [ ! -e enough ]; do sleep 0.05; done
echo "$1 ends" >> notes
"#;

#[test]
fn whoever_is_interrupted_while_packages_are_installed_waits_for_apt_get_and_starts_nothing() {
    if !is_root("packages are installed by root") {
        return;
    }
    for command in ["demo --level nodes", "lab up --level nodes"] {
        let demo = Demo::new("demo-apt");
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| place.path().join(name);
        fs::write(file("apt-get"), APT_GET.replace("@PLACE@", &place.path().display().to_string())).unwrap();
        fs::set_permissions(file("apt-get"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(file("notes"), "").unwrap();
        // For this process alone there is another apt-get, and a program is missing.
        let hide = "mount --bind \"$0/apt-get\" /usr/bin/apt-get; mount -t tmpfs none /usr/lib/dracut/modules.d/30ignition";
        let script = format!("set -e; {hide}; exec {PROGRAM} {command} --name {}", demo.name);
        let mut shell = Command::new("setpriv");
        shell.args(["--pdeathsig", "TERM", "--", "unshare", "--mount", "sh", "-c", &script]).arg(place.path());
        let mut process = shell.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let notes = || fs::read_to_string(file("notes")).unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        while !notes().contains("install begins") {
            assert!(Instant::now() < deadline, "{command} installs nothing: {}", notes());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(tell(-i64::from(process.id()), "-INT"));
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.by_ref().any(|line| line.contains("interrupted: waits for apt-get")), "{command} says nothing");
        fs::write(file("enough"), "").unwrap();
        let rest: Vec<String> = lines.collect();
        assert_eq!(process.wait().unwrap().code(), Some(1), "{rest:?}");
        assert_eq!(notes(), "update begins\nupdate ends\ninstall begins\ninstall ends\n", "{command}");
        assert!(rest.len() == 1 && rest[0].starts_with("error: interrupted while Debian packages were installed"), "{rest:?}");
        demo.assert_gone();
    }
}

/// A number between 0 and 1 that depends on nothing but its arguments.
fn fraction(seed: u32, number: u32) -> f64 {
    let mixed = (seed ^ number.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
    f64::from((mixed ^ (mixed >> 15)) % 1000) / 1000.0
}
