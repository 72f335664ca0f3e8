//! What a person gets wrong with a lab is answered with one sentence that says what to do, the right exit code, and no traces.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "../../lab/tests/waiting/mod.rs"]
mod waiting;

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use waiting::is_root;

/// Runs `metalshift lab` with files of its own.
fn lab(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metalshift"));
    command.arg("lab").args(words).env("METALSHIFT_LABS", directory).output().unwrap()
}

/// The one sentence, after the exit code was checked and that nothing was left.
fn sentence(directory: &Path, words: &[&str], exit_code: i32) -> String {
    let output = lab(directory, words);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(exit_code), "{words:?}: {text}");
    assert!(output.stdout.is_empty(), "{words:?} printed data");
    let left: Vec<_> = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{words:?} left {left:?}");
    text
}

#[test]
fn an_unknown_level_is_a_usage_error_that_names_the_levels() {
    let labs = tempfile::tempdir().unwrap();
    let text = sentence(labs.path(), &["up", "--level", "moon"], 2);
    assert!(text.contains("choose api, capi or nodes"), "{text}");
}

#[test]
fn a_name_no_lab_can_have_is_a_usage_error_that_says_what_is_allowed() {
    let labs = tempfile::tempdir().unwrap();
    let text = sentence(labs.path(), &["up", "--name", "Rack 7"], 2);
    assert!(text.contains("lower-case letters"), "{text}");
}

#[test]
fn a_port_nobody_can_have_and_machines_where_there_are_none_are_usage_errors() {
    let labs = tempfile::tempdir().unwrap();
    let text = sentence(labs.path(), &["up", "--level", "api", "--port", "0"], 2);
    assert!(text.contains("1..=65535"), "{text}");
    let text = sentence(labs.path(), &["up", "--level", "api", "--workers", "3"], 2);
    assert!(text.contains("level api has none") && text.contains("--level nodes"), "{text}");
    let text = sentence(labs.path(), &["up", "--level", "nodes", "--workers", "1024"], 2);
    assert!(text.contains("0..=1023"), "{text}");
}

#[test]
fn a_fleet_that_cannot_be_read_understood_or_wired_is_named_before_anything_starts() {
    let (labs, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = files.path().join("fleet.yaml");
    let path = file.to_str().unwrap();
    let said = |content: &str, level: &str| {
        fs::write(&file, content).unwrap();
        sentence(labs.path(), &["up", "--level", level, "--fleet", path], 1)
    };
    let text = said("machines:\n- hostname: a\n  zone: moon\n", "api");
    assert!(text.contains(path) && text.contains("line 3") && text.contains("zone") && text.contains("moon"), "{text}");
    let text = said("subnets: [{cidr: 10.96.3.0/24}]\n", "nodes");
    assert!(text.contains(path) && text.contains("subnet 10.96.3.0/24 overlaps 10.96.0.0/16, the network of the services"), "{text}");
    fs::remove_file(&file).unwrap();
    let text = sentence(labs.path(), &["up", "--level", "api", "--fleet", path], 1);
    assert!(text.contains("could not read the fleet file") && text.contains(path), "{text}");
}

#[test]
fn a_namespace_to_watch_that_cannot_be_one_is_a_usage_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_metalshift")).arg("manage").env("WATCH_NAMESPACE", "Rack 7").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("WATCH_NAMESPACE"), "{text}");
}

#[test]
fn an_emulator_whose_machines_are_in_no_lab_says_how_to_start_one() {
    let labs = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_metalshift"));
    command.args(["emulator", "--listen", "127.0.0.1:0", "--lab", "nowhere"]).env("METALSHIFT_LABS", labs.path());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("lab nowhere is not up") && text.contains("lab up"), "{text}");
}

#[test]
fn a_taken_port_is_named_with_the_way_out() {
    let labs = tempfile::tempdir().unwrap();
    let somebody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = somebody.local_addr().unwrap().port().to_string();
    let text = sentence(labs.path(), &["up", "--level", "api", "--port", &port], 1);
    assert!(text.contains(&format!("port {port} on 127.0.0.1 is taken")) && text.contains("--port"), "{text}");
}

#[test]
fn nothing_is_installed_for_a_lab_that_cannot_start() {
    if !is_root("only root can hide a package") {
        return;
    }
    let labs = tempfile::tempdir().unwrap();
    let somebody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = somebody.local_addr().unwrap().port().to_string();
    // Ignition seems to be missing, and so does apt-get, which could bring it.
    let hide = "mount -t tmpfs none /usr/lib/dracut/modules.d/30ignition && mount --bind /dev/null /usr/bin/apt-get && exec \"$@\"";
    let up = |port: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation=private", "sh", "-c", hide, "sh", env!("CARGO_BIN_EXE_metalshift")]);
        let output = command.args(["lab", "up", "--level", "nodes"]).args(port).env("METALSHIFT_LABS", labs.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(fs::read_dir(labs.path()).unwrap().count(), 0);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = up(&["--port", &port]);
    assert!(text.contains(&format!("port {port} on 127.0.0.1 is taken")) && !text.contains("ignition"), "{text}");
    let text = up(&[]);
    assert!(text.contains("programs are missing (ignition), and there is no apt-get"), "{text}");
}

#[test]
fn a_port_that_is_roots_is_told_from_one_that_is_taken() {
    let labs = tempfile::tempdir().unwrap();
    fs::set_permissions(labs.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // In a network of its own, because a host can let everybody have every port.
    if !is_root("only root can make a network") {
        return;
    }
    let mut command = Command::new("unshare");
    command.arg("--net").arg(as_nobody().get_program()).args(as_nobody().get_args());
    let output = command.args(["lab", "up", "--level", "api", "--port", "1"]).env("METALSHIFT_LABS", labs.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("port 1 on 127.0.0.1 is only for root") && text.contains("--port"), "{text}");
    assert_eq!(fs::read_dir(labs.path()).unwrap().count(), 0);
}

#[test]
fn level_nodes_without_root_says_who_can_and_what_else_works() {
    let labs = tempfile::tempdir().unwrap();
    fs::set_permissions(labs.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let words = ["lab", "up", "--level", "nodes"];
    let output = as_nobody().args(words).env("METALSHIFT_LABS", labs.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("sudo") && text.contains("--level capi"), "{text}");
    assert_eq!(fs::read_dir(labs.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_of_programs_that_does_not_exist_is_named() {
    let (labs, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let nothing = empty.path().to_str().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_metalshift"))
        .args(["lab", "up", "--level", "api", "--programs", &format!("{nothing}/nowhere")])
        .env("METALSHIFT_LABS", labs.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("nowhere"), "{text}");
    assert_eq!(fs::read_dir(labs.path()).unwrap().count(), 0, "{text}");
}

#[test]
fn a_full_disk_is_named_with_the_path_and_the_way_out() {
    if !is_root("only root can make a disk that is full") {
        return;
    }
    // Too small for the files of a lab, for etcd, and for what etcd writes later, which it tells by a number.
    for size in ["16k", "10m", "62000k"] {
        fill_a_disk(size, "api");
    }
    // Enough for etcd to start, not for the kinds of Cluster API: who fails then is not etcd.
    fill_a_disk("66m", "capi");
}

fn fill_a_disk(size: &str, level: &str) {
    let labs = tempfile::tempdir().unwrap();
    let path = labs.path().to_str().unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", path]).status();
    assert!(mounted.unwrap().success());
    let output = lab(labs.path(), &["up", "--level", level]);
    let left: Vec<_> = fs::read_dir(labs.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(Command::new("umount").arg(path).status().unwrap().success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("no space left") && text.contains("METALSHIFT_LABS"), "{text}");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn programs_are_found_where_debian_has_them_also_by_who_does_not_look_there() {
    let labs = tempfile::tempdir().unwrap();
    let poor = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metalshift"));
        command.arg("lab").args(words).env("METALSHIFT_LABS", labs.path()).env("PATH", "/nowhere").output().unwrap()
    };
    let up = poor(&["up", "--level", "api"]);
    let kubectl = poor(&["exec", "--", "kubectl", "version"]);
    let down = poor(&["down"]);
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    assert!(String::from_utf8_lossy(&kubectl.stdout).contains("Server Version"), "{}", String::from_utf8_lossy(&kubectl.stderr));
    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    assert_eq!(fs::read_dir(labs.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_too_long_for_a_socket_is_refused_before_anything_is_made() {
    let root = tempfile::tempdir().unwrap();
    let labs = root.path().join("x".repeat(120));
    let output = lab(&labs, &["up", "--level", "api"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("too long for a socket") && text.contains("METALSHIFT_LABS"), "{text}");
    assert!(!labs.exists());
}

#[test]
fn a_directory_that_cannot_be_written_is_named_with_the_way_out() {
    let labs = tempfile::tempdir().unwrap();
    fs::set_permissions(labs.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let output = as_nobody().args(["lab", "up", "--level", "api"]).env("METALSHIFT_LABS", labs.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("permission denied") && text.contains("set METALSHIFT_LABS"), "{text}");
}

#[test]
fn logs_of_somebody_elses_lab_are_not_taken_for_none() {
    let labs = tempfile::tempdir().unwrap();
    fs::set_permissions(labs.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let logs = labs.path().join("default/logs");
    fs::create_dir_all(&logs).unwrap();
    fs::set_permissions(&logs, fs::Permissions::from_mode(0o000)).unwrap();
    for words in [&["logs"][..], &["logs", "etcd"]] {
        let output = as_nobody().arg("lab").args(words).env("METALSHIFT_LABS", labs.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
        assert!(text.contains("permission denied") && text.contains("the user whose lab it is or with sudo"), "{words:?}: {text}");
    }
    fs::set_permissions(&logs, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn without_a_home_a_directory_others_can_write_is_not_used() {
    let temporary = tempfile::tempdir().unwrap();
    fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let without_home = |words: &[&str]| {
        let mut command = as_nobody();
        command.arg("lab").args(words).env("TMPDIR", temporary.path());
        for variable in ["HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "METALSHIFT_LABS"] {
            command.env_remove(variable);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(without_home(&["down"]).0, Some(0));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    let user = String::from_utf8(as_nobody_runs("id").arg("-u").output().unwrap().stdout).unwrap();
    let guessed = temporary.path().join(format!("metalshift-{}", user.trim()));
    fs::create_dir(&guessed).unwrap();
    fs::set_permissions(&guessed, fs::Permissions::from_mode(0o777)).unwrap();
    for words in [&["up", "--level", "api"][..], &["status"]] {
        let (exit_code, text) = without_home(words);
        assert_eq!(exit_code, Some(1), "{text}");
        assert!(text.contains("others can write it") && text.contains("METALSHIFT_LABS"), "{text}");
    }
}

#[test]
fn a_place_that_was_not_there_is_not_there_afterwards() {
    let persons = tempfile::tempdir().unwrap();
    let labs = persons.path().join("a/b/labs");
    let somebody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = somebody.local_addr().unwrap().port().to_string();
    for (words, exit_code) in [
        (&["up", "--level", "api", "--port", &port][..], 1),
        (&["up", "--level", "api", "--programs", "/nowhere"], 1),
        (&["down"], 0),
        (&["down", "--all"], 0),
        (&["status"], 1),
        (&["up", "--level", "api"], 0),
        (&["down"], 0),
    ] {
        let output = lab(&labs, words);
        assert_eq!(output.status.code(), Some(exit_code), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        let is_up = words == ["up", "--level", "api"];
        assert_eq!(persons.path().join("a").exists(), is_up, "{words:?}");
    }
    assert!(persons.path().exists());
}

#[test]
fn a_lab_that_is_not_up_is_named_with_the_command_that_starts_it() {
    let labs = tempfile::tempdir().unwrap();
    for words in [&["status"][..], &["kubeconfig"], &["exec", "--", "true"], &["logs"], &["logs", "etcd"]] {
        let text = sentence(labs.path(), words, 1);
        assert!(text.contains("metalshift lab up"), "{words:?}: {text}");
    }
}

#[test]
fn what_no_lab_has_made_is_neither_taken_nor_removed_nor_shown() {
    let labs = tempfile::tempdir().unwrap();
    fs::create_dir(labs.path().join("mine")).unwrap();
    fs::write(labs.path().join("mine/thesis"), "precious").unwrap();
    fs::write(labs.path().join("backup.lock"), "").unwrap();
    fs::write(labs.path().join("yarn.metalshift-lock"), "# yarn").unwrap();
    fs::write(labs.path().join("killed.metalshift-lock"), "").unwrap();
    for words in [&["up", "--level", "api", "--name", "mine"][..], &["up", "--level", "api", "--name", "yarn"], &["down", "--name", "mine"]]
    {
        let output = lab(labs.path(), words);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
        assert!(text.contains("was not made by a lab") && text.contains("METALSHIFT_LABS"), "{words:?}: {text}");
    }
    let shown = String::from_utf8(lab(labs.path(), &["status", "--all"]).stdout).unwrap();
    assert!(
        shown.contains("metalshift lab down --name killed") && ["mine", "yarn", "backup"].iter().all(|name| !shown.contains(name)),
        "{shown}"
    );
    let for_programs: serde_json::Value = serde_json::from_slice(&lab(labs.path(), &["status", "--all", "-o", "json"]).stdout).unwrap();
    assert_eq!(for_programs[0]["name"], "killed", "{for_programs}");
    assert!(for_programs[0]["state"].as_str().unwrap().contains("left behind"), "{for_programs}");
    assert!(labs.path().join("killed.metalshift-lock").exists(), "who looks removes nothing");
    let down = lab(labs.path(), &["down", "--all"]);
    assert!(down.status.success() && String::from_utf8_lossy(&down.stderr).contains("lab killed is gone"), "{down:?}");
    let left: Vec<_> = fs::read_dir(labs.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.len() == 3 && !labs.path().join("killed.metalshift-lock").exists(), "{left:?}");
    assert_eq!(fs::read_to_string(labs.path().join("mine/thesis")).unwrap(), "precious");
}

/// A lab of this name that this process is about to start, as far as others can see.
fn begin(labs: &Path, name: &str) -> fs::File {
    let beginning = fs::File::create(labs.join(format!("{name}.metalshift-starting"))).unwrap();
    beginning.lock().unwrap();
    beginning
}

#[test]
fn a_lab_that_cannot_be_taken_down_does_not_keep_the_others_up() {
    let labs = tempfile::tempdir().unwrap();
    let _held = [begin(labs.path(), "first"), begin(labs.path(), "third")];
    fs::write(labs.path().join("second.metalshift-lock"), "").unwrap();
    let down = lab(labs.path(), &["down", "--all"]);
    let text = String::from_utf8_lossy(&down.stderr);
    assert_eq!(down.status.code(), Some(1), "{text}");
    assert!(text.contains("lab second is gone") && !labs.path().join("second.metalshift-lock").exists(), "{text}");
    for name in ["first", "third"] {
        let sentence = format!("error: lab {name} is being started by process {}", std::process::id());
        assert_eq!(text.matches(&sentence).count(), 1, "{text}");
    }
}

#[test]
fn a_lab_that_is_being_started_has_no_kubeconfig_yet_and_says_so() {
    let labs = tempfile::tempdir().unwrap();
    let _held = begin(labs.path(), "default");
    let output = lab(labs.path(), &["kubeconfig"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("lab default is being started"), "{text}");
}

#[test]
fn a_host_or_a_place_that_machines_cannot_be_made_of_is_named_before_anything_is_made() {
    if !is_root("level nodes needs root") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    for labs in ["a,b", "a:b"] {
        let labs = place.path().join(labs);
        let output = lab(&labs, &["up", "--level", "nodes"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("mounts of level nodes cannot take: set METALSHIFT_LABS"), "{text}");
        assert!(!labs.exists());
    }
    let program = env!("CARGO_BIN_EXE_metalshift");
    let up = format!("mount --bind /var /var && exec {program} lab up --level nodes");
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &up]).env("METALSHIFT_LABS", place.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("this host has /var on /var, a file system of its own: choose --level capi"), "{text}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn root_without_the_rights_of_root_gets_level_capi_and_hears_what_level_nodes_needs() {
    if !is_root("only root can be root without rights") {
        return;
    }
    let labs = tempfile::tempdir().unwrap();
    let without_rights = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-sys_admin,-net_admin,-mknod,-sys_ptrace", "--", env!("CARGO_BIN_EXE_metalshift"), "lab"]);
        let output = command.args(words).env("METALSHIFT_LABS", labs.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (exit_code, text) = without_rights(&["up", "--level", "nodes"]);
    assert_eq!(exit_code, Some(1), "{text}");
    assert!(text.contains("level nodes needs CAP_SYS_ADMIN") && text.contains("--privileged, or choose --level capi"), "{text}");
    // A usage error of the level that was chosen, so that no lab needs to be started to see which it is.
    let (exit_code, text) = without_rights(&["up", "--workers", "2"]);
    assert_eq!(exit_code, Some(2), "{text}");
    assert!(text.contains("level capi: you are root without CAP_SYS_ADMIN") && text.contains("--privileged"), "{text}");
    assert_eq!(fs::read_dir(labs.path()).unwrap().count(), 0);
}

#[test]
fn the_level_that_was_chosen_is_told_with_the_reason_to_root_and_to_everybody_else() {
    let labs = tempfile::tempdir().unwrap();
    fs::set_permissions(labs.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // What cannot be started tells it too, and is faster.
    let ordinary = as_nobody().args(["lab", "up", "--workers", "2"]).env("METALSHIFT_LABS", labs.path()).output().unwrap();
    let text = String::from_utf8_lossy(&ordinary.stderr);
    assert!(text.contains("level capi: nodes and machines need root; run with sudo for level nodes"), "{text}");
    if !is_root("only root gets level nodes") {
        return;
    }
    let somebody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = somebody.local_addr().unwrap().port().to_string();
    let text = sentence(labs.path(), &["up", "--port", &port], 1);
    assert!(text.contains("level nodes: you are root, so nodes and machines can run") && text.contains(&port), "{text}");
}

#[test]
fn a_place_for_labs_that_is_a_file_is_named() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "x").unwrap();
    for labs in [file.clone(), file.join("labs")] {
        let output = lab(&labs, &["up", "--level", "api"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("is no directory: set METALSHIFT_LABS"), "{text}");
    }
}

#[test]
fn no_labs_at_all_are_a_sentence() {
    let labs = tempfile::tempdir().unwrap();
    let text = sentence(labs.path(), &["status", "--all"], 0);
    assert!(text.contains("there are no labs"), "{text}");
}

#[test]
fn taking_down_what_is_not_there_is_no_error() {
    let labs = tempfile::tempdir().unwrap();
    let text = sentence(labs.path(), &["down"], 0);
    assert!(text.contains("there is no lab default"), "{text}");
}

fn as_nobody() -> Command {
    as_nobody_runs(env!("CARGO_BIN_EXE_metalshift"))
}

fn as_nobody_runs(program: &str) -> Command {
    // Whoever is not root already needs no change.
    let root = std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").unwrap()) == 0;
    if !root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--", program]);
    command
}
