//! The programs of the lab: where they are found, and what becomes of builds that are interrupted, damaged or wanted twice.
#![allow(clippy::expect_used, reason = "what a test cannot go on without ends it")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use lab::programs::build::{Available, ensure};
use lab::programs::recipe::{Action, Compile, Effort, Recipe, SourceFile, Step, kubernetes_version};
use lab::programs::{ClusterApiPart, Program, ProgramsError, Progress, Search, Source, find_or_build};

/// Two small programs; the first has a second name.
fn tiny() -> Recipe {
    let source = |path: &str, content: &str| SourceFile { path: path.to_owned(), content: content.to_owned() };
    let step = |file: &str, names: &[&str]| Step {
        name: file.to_owned(),
        action: Action::Compile(Compile {
            module: String::new(),
            package: format!("./{file}"),
            link: "-s -w".to_owned(),
            file: file.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }),
        effort: Effort { takes: Duration::from_secs(5), packages: 30 },
    };
    Recipe {
        sources: vec![
            source("go.mod", "module tiny\n\ngo 1.21\n"),
            source("one/main.go", "package main\n\nfunc main() { println(1) }\n"),
            source("two/main.go", "package main\n\nfunc main() { println(2) }\n"),
        ],
        steps: vec![step("one", &["uno"]), step("two", &[])],
    }
}

/// A recipe, the cache it is built in, and a Go.
struct Trial {
    recipe: Recipe,
    cache: PathBuf,
    go: Vec<PathBuf>,
}

impl Trial {
    fn new(directory: &Path) -> Self {
        Self { recipe: tiny(), cache: directory.join("cache"), go: Search::from_environment(None).go }
    }

    fn ensure(&self) -> Result<(Vec<Available>, Vec<Progress>), ProgramsError> {
        let mut lines = Vec::new();
        let available = self.ensure_with(&mut |line| lines.push(line))?;
        Ok((available, lines))
    }

    fn ensure_with(&self, progress: &mut dyn FnMut(Progress)) -> Result<Vec<Available>, ProgramsError> {
        let steps: Vec<_> = self.recipe.steps.iter().collect();
        ensure(std::slice::from_ref(&self.cache), &self.go, &self.recipe, &steps, progress)
    }

    /// Which of the two steps the next call builds; the programs work afterwards.
    fn builds(&self) -> [bool; 2] {
        let (available, _) = self.ensure().expect("two programs");
        for (name, expected) in [("one", "1\n"), ("uno", "1\n"), ("two", "2\n")] {
            let output = Command::new(self.file(name)).output().expect("a program that runs");
            assert_eq!(String::from_utf8_lossy(&output.stderr), expected, "of {name}");
        }
        [available[0].built, available[1].built]
    }

    fn root(&self) -> PathBuf {
        self.cache.join("programs").join(self.recipe.key())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root().join("bin").join(name)
    }

    fn error(&self) -> String {
        self.ensure().expect_err("a failure").to_string()
    }
}

/// Writes a script by way of another process: one that this process had open for writing could be inherited by a child that another
/// test starts at that moment, and would be "busy".
fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    let write = r#"printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod 755 "$1""#;
    let status = Command::new("sh").args(["-c", write, "sh"]).arg(path).arg(text).status().expect("sh");
    assert!(status.success(), "no script {}", path.display());
}

/// The real Go behind a script that does something first when a package is built.
fn go_that_first(directory: &Path, package: &str, does: &str) -> Vec<PathBuf> {
    let real = Search::from_environment(None).go.into_iter().find(|go| go.is_file()).expect("Go");
    let path = directory.join("go");
    script(
        &path,
        &format!("cd {}\ncase \"$*\" in *{package}) {does} ;; esac\ncd \"$OLDPWD\"\nexec {} \"$@\"", directory.display(), real.display()),
    );
    vec![path]
}

/// Waits for a condition; every one here is fulfilled within moments unless something is broken.
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_build_is_made_once_and_then_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let trial = Trial::new(directory.path());
    let (available, lines) = trial.ensure().expect("two programs");
    assert!(available.iter().all(|step| step.built && step.directory == trial.root()));
    let news: Vec<_> = lines.iter().filter(|line| line.is_news()).map(ToString::to_string).collect();
    assert_eq!(news.len(), 2, "{news:?}");
    assert!(news[0].starts_with("building one (1/2), 0 s elapsed, about "), "{news:?}");
    assert_eq!(trial.builds(), [false, false]);
    let mut left = fs::read_dir(trial.cache.join("programs")).expect("the builds");
    assert!(left.all(|entry| !entry.expect("an entry").file_name().to_string_lossy().contains("partial")));
}

#[test]
fn a_person_without_go_finds_a_cache_that_another_person_filled() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut trial = Trial::new(directory.path());
    trial.ensure().expect("two programs");
    trial.go.clear();
    let steps: Vec<_> = trial.recipe.steps.iter().collect();
    let own = directory.path().join("own");
    let available = ensure(&[own.clone(), trial.cache.clone()], &[], &trial.recipe, &steps, &mut |_| ()).expect("two programs");
    assert!(available.iter().all(|step| !step.built && step.directory == trial.root()));
    assert!(!own.exists(), "nothing is written where nothing is built");
}

#[test]
fn damaged_files_are_built_again_and_whole_ones_are_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let trial = Trial::new(directory.path());
    assert_eq!(trial.builds(), [true, true]);
    let two = fs::OpenOptions::new().write(true).open(trial.file("two")).expect("a program");
    two.set_len(1000).expect("a truncated program");
    drop(two);
    assert_eq!(trial.builds(), [false, true]);
    fs::remove_file(trial.file("uno")).expect("a link");
    assert_eq!(trial.builds(), [true, false]);
    fs::set_permissions(trial.file("one"), fs::Permissions::from_mode(0o644)).expect("a file nobody can run");
    assert_eq!(trial.builds(), [true, false]);
    fs::write(trial.root().join("record.json"), "{\"steps\": {\"one\"").expect("half a record");
    assert_eq!(trial.builds(), [true, true]);
    assert_eq!(trial.builds(), [false, false]);
}

/// The builder that the next test kills.
#[test]
#[ignore = "started by the test of killed builds"]
fn builder_process() {
    let (Some(directory), Some(go)) = (std::env::var_os("TRIAL_DIRECTORY"), std::env::var_os("TRIAL_GO")) else { return };
    let trial = Trial { go: vec![PathBuf::from(go)], ..Trial::new(Path::new(&directory)) };
    trial.ensure().expect("two programs");
}

#[test]
fn a_killed_build_leaves_no_process_and_the_next_goes_on_after_the_finished_steps() {
    let directory = tempfile::tempdir().expect("a directory");
    // A compiler that is at work when the builder dies: a child of go, which knows nothing of the builder.
    let go = go_that_first(directory.path(), "./two", "sleep 600 & echo $! > new; mv new compiler; wait");
    let mut builder = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "builder_process", "--ignored"])
        .env("TRIAL_DIRECTORY", directory.path())
        .env("TRIAL_GO", &go[0])
        .stdout(Stdio::null())
        .spawn()
        .expect("a builder");
    let compiler = directory.path().join("compiler");
    wait_for("the second step", || compiler.exists());
    let compiler = fs::read_to_string(compiler).expect("the compiler's id");
    let compiler = Path::new("/proc").join(compiler.trim());
    assert!(compiler.exists());
    builder.kill().expect("a dead builder");
    builder.wait().expect("a dead builder");
    // A killed process whose parent is gone may wait a while for somebody to collect it; it does not run any more.
    let runs = || fs::read_to_string(compiler.join("stat")).is_ok_and(|stat| !stat.contains(") Z "));
    wait_for("the end of the compiler", || !runs());

    let trial = Trial::new(directory.path());
    assert_eq!(trial.builds(), [false, true]);
}

#[test]
fn two_that_want_the_same_wait_for_each_other_and_the_second_builds_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let go_on = directory.path().join("go-on");
    let does = "touch started; n=0; while [ ! -e go-on ] && [ $n -lt 1200 ]; do sleep 0.1; n=$((n+1)); done";
    let trial = Trial { go: go_that_first(directory.path(), "./one", does), ..Trial::new(directory.path()) };
    let (waits, waiting) = mpsc::channel();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| trial.builds());
        wait_for("the first build", || directory.path().join("started").exists());
        let second = scope.spawn(|| trial.ensure_with(&mut |line| waits.send(line).expect("a listener")).expect("two programs"));
        let line = waiting.recv_timeout(Duration::from_mins(1)).expect("a line about waiting");
        assert_eq!(line, Progress::Waiting { holder: format!("process {}", std::process::id()) });
        fs::write(&go_on, "").expect("a sign");
        assert_eq!(first.join().expect("the first"), [true, true]);
        assert!(second.join().expect("the second").iter().all(|step| !step.built));
    });
    assert!(waiting.try_recv().is_err(), "the second has nothing more to say");
}

#[test]
fn without_go_or_with_an_old_one_a_sentence_says_what_to_install() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut trial = Trial { go: vec![directory.path().join("nowhere/go")], ..Trial::new(directory.path()) };
    let advice = "install Go 1.25 or newer (https://go.dev/dl) or give --programs DIR";
    assert_eq!(trial.error(), format!("one, two must be built and there is no Go: {advice}"));
    let old = directory.path().join("go");
    script(&old, "echo go version go1.19.8 linux/amd64");
    trial.go = vec![old.clone()];
    assert_eq!(trial.error(), format!("one, two must be built and {} is Go 1.19.8, too old: {advice}", old.display()));
    assert!(!trial.cache.exists(), "nothing is left");
    // A good one further on is taken.
    trial.go.extend(Search::from_environment(None).go);
    assert_eq!(trial.builds(), [true, true]);
}

#[test]
fn a_failed_build_shows_what_go_said_and_where_all_of_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut trial = Trial::new(directory.path());
    trial.recipe.sources[2].content = "package main\n\nfunc main() { undefinedFunction() }\n".to_owned();
    let Err(ProgramsError::BuildFailed { step, words, log }) = trial.ensure() else { panic!("a failed build") };
    assert_eq!(step, "two");
    assert!(words.iter().any(|line| line.contains("main.go:3:15: undefined: undefinedFunction")), "{words:?}");
    assert!(fs::read_to_string(log).expect("a log").contains("undefinedFunction"));
}

#[test]
fn a_full_disk_and_a_cache_that_cannot_be_written_are_one_sentence_each() {
    let directory = tempfile::tempdir().expect("a directory");
    let full = go_that_first(directory.path(), "./one", "echo 'write $WORK/b001: no space left on device' >&2; exit 1");
    let mut trial = Trial { go: full, ..Trial::new(directory.path()) };
    let message = trial.error();
    assert!(message.starts_with(&format!("no space left while building one in {}", trial.cache.display())), "{message}");
    assert!(message.contains("about 6 GB"), "{message}");

    let file = directory.path().join("file");
    fs::write(&file, "").expect("a file");
    trial.cache = file.join("cache");
    let message = trial.error();
    assert!(message.contains("set METALSHIFT_CACHE to a directory you may write") && message.lines().count() == 1, "{message}");
}

/// A search that finds nothing and cannot build.
fn nowhere(directory: &Path) -> Search {
    Search { explicit: None, kubebuilder_assets: None, caches: vec![directory.join("cache")], go: Vec::new() }
}

#[test]
fn a_program_in_the_given_directory_is_used_whatever_its_version() {
    let directory = tempfile::tempdir().expect("a directory");
    let given = directory.path().join("given");
    script(&given.join("kube-apiserver"), "echo Kubernetes v1.30.1");
    script(&given.join("pause"), "exec sleep 600");
    let search = Search { explicit: Some(given.clone()), ..nowhere(directory.path()) };
    let programs = find_or_build(&search, &[Program::KubeApiserver, Program::Pause], &mut |_| ()).expect("both programs");
    assert_eq!(programs.path(Program::KubeApiserver), given.join("kube-apiserver"));
    assert_eq!(programs.kubernetes_version(), "v1.30.1");
    assert!(programs.iter().all(|(_, found)| found.source == Source::Explicit));
}

#[test]
fn a_program_in_the_given_directory_that_cannot_run_is_one_clear_sentence() {
    let directory = tempfile::tempdir().expect("a directory");
    let given = directory.path().join("given");
    let etcd = given.join("etcd");
    let search = Search { explicit: Some(given.clone()), ..nowhere(directory.path()) };
    let reason = || {
        let message = find_or_build(&search, &[Program::Etcd], &mut |_| ()).expect_err("a failure").to_string();
        assert_eq!(message.lines().count(), 1);
        message.replace(&etcd.display().to_string(), "ETCD").split("; ").next().unwrap_or_default().to_owned()
    };
    assert!(reason().starts_with("there is no directory "));
    script(&etcd, "echo etcd Version: 3.6.0");
    fs::set_permissions(&etcd, fs::Permissions::from_mode(0o644)).expect("a plain file");
    assert_eq!(reason(), "ETCD cannot be used: it is not executable");
    script(&etcd, "exit 3");
    assert_eq!(reason(), "ETCD cannot be used: `etcd --version` failed: exit status: 3");
    script(&etcd, "echo hello");
    assert_eq!(reason(), "ETCD cannot be used: `etcd --version` does not answer a version");
    fs::write(&etcd, "").expect("an empty file");
    assert_eq!(reason(), "ETCD cannot be used: it is not a Linux program");
    fs::remove_file(&etcd).expect("a file");
    symlink("nowhere", &etcd).expect("a link");
    assert!(reason().starts_with("ETCD cannot be used: No such file"));
}

#[test]
fn assets_count_only_if_they_answer_the_pinned_version() {
    let directory = tempfile::tempdir().expect("a directory");
    let assets = directory.path().join("assets");
    let search = Search { kubebuilder_assets: Some(assets.clone()), ..nowhere(directory.path()) };
    let found = || find_or_build(&search, &[Program::KubeApiserver], &mut |_| ());
    script(&assets.join("kube-apiserver"), "echo Kubernetes v1.34.0");
    assert!(matches!(found(), Err(ProgramsError::NoGo { .. })), "a wrong version was taken");
    script(&assets.join("kube-apiserver"), "exit 1");
    assert!(matches!(found(), Err(ProgramsError::NoGo { .. })), "a broken program was taken");
    script(&assets.join("kube-apiserver"), &format!("echo Kubernetes {}", kubernetes_version()));
    let programs = found().expect("a kube-apiserver");
    assert_eq!(programs.path(Program::KubeApiserver), assets.join("kube-apiserver"));
    assert!(programs.iter().all(|(_, found)| found.source == Source::Assets));
}

/// On a machine that has none of them this is the first build, which takes ten minutes.
#[test]
fn the_pinned_programs_are_what_they_should_be() {
    let search = Search { explicit: None, kubebuilder_assets: None, ..Search::from_environment(None) };
    let programs = find_or_build(&search, &Program::ALL, &mut |line| eprintln!("{line}")).expect("all programs");
    assert_eq!(programs.kubernetes_version(), kubernetes_version());
    for part in [ClusterApiPart::Core, ClusterApiPart::Bootstrap, ClusterApiPart::ControlPlane] {
        let manifests = programs.manifests(part).expect("manifests");
        assert!(fs::read_to_string(manifests.join("webhooks.yaml")).expect("webhooks").contains("kind: ValidatingWebhookConfiguration"));
        let definitions = fs::read_dir(manifests.join("crd")).expect("definitions").map(|entry| entry.expect("a definition").path());
        let definitions: Vec<_> = definitions.map(|path| fs::read_to_string(path).expect("a definition")).collect();
        assert!(definitions.len() >= 2 && definitions.iter().all(|text| text.contains("kind: CustomResourceDefinition")));
    }

    // As assets the same files have to answer the pinned version, each of those that can.
    let bin = programs.path(Program::Etcd).parent().expect("a directory").to_owned();
    let directory = tempfile::tempdir().expect("a directory");
    let silent = [Program::ClusterApi, Program::KubeadmBootstrap, Program::KubeadmControlPlane, Program::Pause];
    let answering: Vec<_> = Program::ALL.into_iter().filter(|program| !silent.contains(program)).collect();
    let assets = Search { kubebuilder_assets: Some(bin.clone()), ..nowhere(directory.path()) };
    let as_assets = find_or_build(&assets, &answering, &mut |_| ()).expect("programs that answer the pinned version");
    assert!(as_assets.iter().all(|(_, found)| found.source == Source::Assets));

    // The directory of a cache can be given, with what Cluster API needs installed beside it.
    let given = Search { explicit: Some(bin), ..nowhere(directory.path()) };
    let as_given = find_or_build(&given, &Program::ALL, &mut |_| ()).expect("all programs");
    assert_eq!(as_given.manifests(ClusterApiPart::Core), programs.manifests(ClusterApiPart::Core));
}

#[test]
fn what_the_given_directory_lacks_is_found_further_on() {
    let directory = tempfile::tempdir().expect("a directory");
    script(&directory.path().join("etcd"), "echo etcd Version: 3.5.9");
    let search = Search { kubebuilder_assets: None, ..Search::from_environment(Some(directory.path().to_owned())) };
    let programs = find_or_build(&search, &[Program::Etcd, Program::Pause], &mut |_| ()).expect("both programs");
    let sources: Vec<_> = programs.iter().map(|(program, found)| (program, found.source)).collect();
    assert_eq!(sources[0], (Program::Etcd, Source::Explicit));
    assert!(matches!(sources[1], (Program::Pause, Source::Cache | Source::Built)));
}
