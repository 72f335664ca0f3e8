//! The Makefile where something is missing or fails. That its targets do what they say is part of the test in `pod`.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    process::Command,
};

use crate::management::repository;

/// What `make deploy` says when these are the programs on the PATH; it must fail.
fn refused(programs: &[(&str, &str)]) -> String {
    let directory = tempfile::tempdir().unwrap();
    for (name, body) in programs {
        let program = directory.path().join(name);
        fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("PATH={}", directory.path().display());
    let output = Command::new("make").args(["deploy", &path]).current_dir(repository()).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
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
