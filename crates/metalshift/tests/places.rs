//! Labs by name and place: one of each name in each place, wherever the paths are seen from.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "../../lab/tests/waiting/mod.rs"]
mod waiting;

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use lab::{
    LabStatus,
    programs::{Program, Search, find_or_build},
};
use waiting::until;

const SOON: Duration = Duration::from_mins(1);

/// `metalshift lab` as a person at `place` calls it, who keeps labs in `labs`.
fn command(place: &Path, labs: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metalshift"));
    command.arg("lab").args(words).current_dir(place).env("METALSHIFT_LABS", labs).stdin(Stdio::null());
    command
}

fn lab(place: &Path, labs: &str, words: &[&str]) -> Output {
    command(place, labs, words).output().unwrap()
}

fn status(place: &Path, labs: &str) -> LabStatus {
    let output = lab(place, labs, &["status", "-o", "json"]);
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Reads of a lab that is up all that it has to read; who follows a log of it is returned, and ends with the lab.
fn people_read(place: &Path, labs: &str) -> Child {
    let read = |words: &[&str]| {
        let output = lab(place, labs, words);
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let path = read(&["kubeconfig", "--path"]);
    assert_eq!(path.trim(), place.canonicalize().unwrap().join(labs).join("default/kubeconfig").to_str().unwrap());
    let kubeconfig = read(&["kubeconfig"]);
    assert_eq!(kubeconfig.trim(), fs::read_to_string(path.trim()).unwrap().trim());
    assert!(kubeconfig.contains("https://127.0.0.1:"), "{kubeconfig}");
    assert_eq!(read(&["logs"]).lines().collect::<Vec<_>>(), ["etcd", "kube-apiserver", "supervisor"]);
    let log = read(&["logs", "etcd"]);
    assert!(log.lines().count() > 3 && log.contains("etcd"), "{log}");
    assert_eq!(read(&["logs", "supervisor", "--tail", "1"]).lines().count(), 1);
    command(place, labs, &["logs", "etcd", "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[tokio::test]
async fn of_many_that_start_a_lab_at_once_one_does_and_the_others_hear_who_does() {
    let place = tempfile::tempdir().unwrap();
    let start = || command(place.path(), "labs", &["up", "--level", "api"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let racers: Vec<Child> = (0..6).map(|_| start()).collect();
    let outcomes: Vec<Output> = racers.into_iter().map(|racer| racer.wait_with_output().unwrap()).collect();
    let (winners, losers): (Vec<&Output>, Vec<&Output>) = outcomes.iter().partition(|outcome| outcome.status.success());
    let all: String = outcomes.iter().map(text).collect();
    let down = lab(place.path(), "labs", &["down"]);
    assert_eq!(winners.len(), 1, "{all}");
    for loser in losers {
        let words = text(loser);
        assert!(words.contains("is being started by another process") || words.contains("is already up"), "{words}");
        assert_eq!(loser.status.code(), Some(1), "{words}");
    }
    assert!(down.status.success() && text(&down).contains("lab default is gone"), "{}", text(&down));
    assert!(!place.path().join("labs").exists());
}

#[tokio::test]
async fn a_supervisor_that_does_not_answer_is_named_and_can_be_taken_down() {
    let place = tempfile::tempdir().unwrap();
    let mut up = command(place.path(), "labs", &["up", "--level", "api"]);
    // A variable that is empty is one that is not set.
    let up = up.env("METALSHIFT_PROGRAMS", "").output().unwrap();
    assert!(up.status.success(), "{}", text(&up));
    let etcd = status(place.path(), "labs").components.into_iter().find(|component| component.name == "etcd").unwrap();
    let parent = fs::read_to_string(format!("/proc/{}/stat", etcd.process_id.unwrap())).unwrap();
    let supervisor = parent.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().to_owned();
    assert!(Command::new("kill").args(["-STOP", &supervisor]).status().unwrap().success());
    let looked = lab(place.path(), "labs", &["status"]);
    let all = lab(place.path(), "labs", &["status", "--all"]);
    let down = lab(place.path(), "labs", &["down"]);
    assert_eq!(looked.status.code(), Some(1));
    assert!(text(&looked).contains("does not answer: end it with `"), "{}", text(&looked));
    // Nobody finds it by its name here.
    assert!(text(&looked).contains(concat!("`", env!("CARGO_BIN_EXE_metalshift"), " lab down --name default`")), "{}", text(&looked));
    assert!(String::from_utf8_lossy(&all.stdout).contains("does not answer"), "{all:?}");
    assert!(down.status.success() && text(&down).contains("lab default is gone"), "{}", text(&down));
    assert!(!place.path().join("labs").exists());
    assert!(!Path::new(&format!("/proc/{}/cwd", etcd.process_id.unwrap())).exists(), "etcd lives on");
}

#[tokio::test]
async fn a_start_that_is_interrupted_or_taken_down_says_so_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let interrupted = "it was interrupted, and nothing of it is left";
    for (signal, words) in [(Some("-INT"), interrupted), (Some("-HUP"), interrupted), (None, "metalshift lab up --name default`")] {
        // The tests themselves may run below `nohup`, which their children inherit.
        let mut up = Command::new("env");
        up.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_metalshift"), "lab", "up", "--level", "api"]);
        up.current_dir(place.path()).env("METALSHIFT_LABS", "labs").stdin(Stdio::null());
        let up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = place.path().join("labs/default/logs/etcd.log");
        until("its components start", SOON, async || log.exists()).await;
        if let Some(signal) = signal {
            assert!(Command::new("kill").args([signal, &up.id().to_string()]).status().unwrap().success());
        } else {
            assert!(lab(place.path(), "labs", &["down"]).status.success());
        }
        let ended = up.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(1));
        assert!(text(&ended).contains(words), "{}", text(&ended));
        assert!(!place.path().join("labs").exists());
    }
}

#[tokio::test]
async fn a_lab_up_that_is_killed_takes_its_lab_along_and_the_next_one_starts() {
    let place = tempfile::tempdir().unwrap();
    // An etcd that has a version and never answers anything else: its lab would not be there for minutes.
    let silent = place.path().join("programs/etcd");
    fs::create_dir(place.path().join("programs")).unwrap();
    fs::write(&silent, "#!/bin/sh\n[ \"$1\" = --version ] && exec echo etcd Version: 3.0.0\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&silent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut up = command(place.path(), "labs", &["up", "--level", "api", "--programs", "programs"]);
    let mut up = up.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let log = place.path().join("labs/default/logs/etcd.log");
    until("its components start", SOON, async || log.exists()).await;
    up.kill().unwrap();
    up.wait().unwrap();
    until("its supervisor has removed everything", SOON, async || !log.exists()).await;
    let next = lab(place.path(), "labs", &["up", "--level", "api"]);
    assert!(lab(place.path(), "labs", &["down"]).status.success());
    assert!(next.status.success(), "{}", text(&next));
    assert!(!place.path().join("labs").exists());
}

#[tokio::test]
async fn a_lab_whose_programs_are_still_being_looked_for_can_be_taken_down() {
    let place = tempfile::tempdir().unwrap();
    let (slow, asked) = (place.path().join("assets/etcd"), place.path().join("asked"));
    fs::create_dir(place.path().join("assets")).unwrap();
    fs::write(&slow, format!("#!/bin/sh\n: > {}\nexec sleep 15\n", asked.display())).unwrap();
    fs::set_permissions(&slow, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut up = command(place.path(), "labs", &["up", "--level", "api"]);
    up.env("KUBEBUILDER_ASSETS", "assets").env_remove("METALSHIFT_PROGRAMS");
    let up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it looks at programs", SOON, async || asked.exists()).await;
    let down = lab(place.path(), "labs", &["down"]);
    let ended = up.wait_with_output().unwrap();
    assert!(down.status.success() && text(&down).contains("lab default is gone"), "{}", text(&down));
    assert_eq!(ended.status.code(), Some(1), "the lab came up after it was taken down: {}", text(&ended));
    assert!(text(&ended).contains("it was interrupted, and nothing of it is left"), "{}", text(&ended));
    assert!(!place.path().join("labs").exists());
}

#[tokio::test]
async fn labs_of_one_name_in_two_places_are_two_labs_and_paths_are_those_of_the_caller() {
    let place = tempfile::tempdir().unwrap();
    let wanted = [Program::Etcd, Program::KubeApiserver];
    let programs = find_or_build(&Search::from_environment(None), &wanted, &mut |_| {}).unwrap();
    fs::create_dir(place.path().join("assets")).unwrap();
    symlink(programs.path(Program::Etcd), place.path().join("assets/etcd")).unwrap();
    let cache = programs.path(Program::KubeApiserver).ancestors().find(|path| path.ends_with("programs")).and_then(Path::parent);
    symlink(cache.unwrap(), place.path().join("cache")).unwrap();
    let start = |labs: &str| {
        let mut command = command(place.path(), labs, &["up", "--level", "api"]);
        command.env("KUBEBUILDER_ASSETS", "assets").env("METALSHIFT_CACHE", "cache").env_remove("METALSHIFT_PROGRAMS");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (first, second) = (start("here"), start("deeper/there"));
    until("somebody who looks hears that it is starting", SOON, async || {
        text(&lab(place.path(), "here", &["status"])).contains("is being started")
    })
    .await;
    for starting in [first, second] {
        let output = starting.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }
    let (here, there) = (status(place.path(), "here"), status(place.path(), "deeper/there"));
    for lab in [&here, &there] {
        let run = |name: &str| {
            let process = lab.components.iter().find(|component| component.name == name).unwrap().process_id.unwrap();
            String::from_utf8_lossy(&fs::read(format!("/proc/{process}/cmdline")).unwrap()).into_owned()
        };
        assert!(run("etcd").contains("/assets/etcd"), "{}", run("etcd"));
        assert!(run("kube-apiserver").contains("/cache/programs/"), "{}", run("kube-apiserver"));
    }
    let follows = people_read(place.path(), "here");
    assert!(lab(place.path(), "here", &["down"]).status.success());
    let followed = follows.wait_with_output().unwrap();
    assert!(followed.status.success() && String::from_utf8_lossy(&followed.stdout).lines().count() > 3, "{followed:?}");
    assert_eq!(text(&lab(place.path(), "here", &["status"])).matches("is not up").count(), 1);
    assert_eq!(status(place.path(), "deeper/there").components.len(), there.components.len(), "the other lab lives on");
    assert!(lab(place.path(), "deeper/there", &["down"]).status.success());
}
