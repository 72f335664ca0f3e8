//! The Makefile where something is missing or fails. That its targets do what they say is part of the test in `pod`.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Output},
};

use crate::management::repository;

/// What `make deploy` says when these are the programs on the PATH; it must fail.
fn refused(programs: &[(&str, &str)]) -> String {
    refused_with(programs, &[])
}

/// The same with these variables.
fn refused_with(programs: &[(&str, &str)], variables: &[(&str, &str)]) -> String {
    let output = make("deploy", programs, variables);
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a target comes to when these are the programs on the PATH.
fn make(target: &str, programs: &[(&str, &str)], variables: &[(&str, &str)]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    for (name, body) in programs {
        let program = directory.path().join(name);
        fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("PATH={}", directory.path().display());
    let mut make = Command::new("make");
    make.args([target, &path]).env_remove("MAAS_ENDPOINT").env_remove("MAAS_API_KEY").envs(variables.iter().copied());
    make.current_dir(repository()).output().unwrap()
}

#[test]
fn docker_build_and_test_are_commands_of_xtask() {
    for (target, command) in [("docker-build", "cargo xtask image"), ("test", "cargo xtask test")] {
        let output = Command::new("make").args(["--dry-run", "--no-print-directory", target]).current_dir(repository()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), command);
    }
}

#[test]
fn deploy_names_the_program_that_is_missing() {
    let works = |name| (name, "exit 0");
    assert!(refused(&[works("kubectl")]).contains("make deploy needs clusterctl on the PATH"));
    assert!(refused(&[works("clusterctl")]).contains("make deploy needs kubectl on the PATH"));
}

#[test]
fn deploy_applies_nothing_when_the_variables_could_not_be_filled_in() {
    let words = refused(&[("clusterctl", "echo 'kind: Namespace'; echo 'no such variable' >&2; exit 1"), ("kubectl", "echo applied >&2")]);
    assert!(words.contains("no such variable") && !words.contains("applied"), "{words}");
}

#[test]
fn deploy_wants_an_endpoint_and_its_key_together() {
    let programs = [("clusterctl", "exit 0"), ("kubectl", "echo applied >&2")];
    for half in [("MAAS_ENDPOINT", "http://maas.example/MAAS"), ("MAAS_API_KEY", "a:b:c")] {
        let words = refused_with(&programs, &[half]);
        assert!(words.contains("MAAS_ENDPOINT and MAAS_API_KEY belong together") && !words.contains("applied"), "{words}");
    }
}

#[test]
fn deploy_applies_nothing_over_the_go_provider_and_says_what_to_do_first() {
    let kubectl = "if [ $1 = get ]; then printf controller-manager; else echo applied >&2; fi";
    let words = refused(&[("clusterctl", "exit 0"), ("kubectl", kubectl)]);
    assert!(words.contains("docs/migration.md") && words.contains("kubectl delete deployment capmaas-controller-manager"), "{words}");
    assert!(!words.contains("applied"), "{words}");
}

#[test]
fn undeploy_removes_nothing_while_there_are_clusters_or_machines_that_nobody_would_give_back() {
    let with = |objects: &str| {
        let kubectl = format!("case $1/$2 in get/customresourcedefinition) echo $3;; get/*) {objects};; *) echo removed >&2;; esac");
        let output = make("undeploy", &[("kubectl", &kubectl)], &[]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (done, words) = with("[ $2 = maasclusters ] || echo maasmachine/racks-1");
    assert!(!done && words.contains("there are still maasmachines") && words.contains("maasmachine/racks-1"), "{words}");
    assert!(!words.contains("removed"), "{words}");
    let (done, words) = with("echo forbidden >&2; exit 1");
    assert!(!done && !words.contains("removed"), "{words}");
    let (done, words) = with("true");
    assert!(done && words.contains("removed"), "{words}");
}
