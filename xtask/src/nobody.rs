//! Runs the tests of levels api and capi as a user who may do nothing: they must not need root, a home or a readable checkout. Used by
//! `test`.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

use crate::{build::TestProgram, command::RARE_COLLECTION, lanes, leftovers};

/// Their package and name.
const TESTS: [(&str, &str); 8] = [
    ("manager", "provider"),
    ("lab", "api"),
    ("lab", "capi"),
    ("manager", "real_api_server"),
    ("manager", "workload"),
    ("metalshift", "places"),
    ("api", "real_api_server"),
    ("api", "real_cluster_api"),
];
/// Those that try the lab itself are tried by root, too. What the others try does not depend on who starts the lab.
const ALSO_BY_ROOT: [(&str, &str); 3] = [("lab", "api"), ("lab", "capi"), ("metalshift", "places")];

/// More than there are processors on most computers that test this: these tests wait for Kubernetes most of the time.
const TESTS_AT_ONCE: (&str, &str) = ("RUST_TEST_THREADS", "4");

/// What the person set for the lab is meant for these runs too.
const PASSED_ON: [&str; 6] = ["PATH", "METALSHIFT_CACHE", "METALSHIFT_PROGRAMS", "KUBEBUILDER_ASSETS", "RUST_BACKTRACE", "CI"];

/// Whether user nobody runs it.
pub fn runs(program: &TestProgram) -> bool {
    TESTS.iter().any(|name| program.is(*name))
}

/// Whether user nobody runs it, and root need not.
pub fn runs_alone(program: &TestProgram) -> bool {
    runs(program) && !ALSO_BY_ROOT.iter().any(|name| program.is(*name))
}

/// Runs test programs as user nobody; needs root.
pub fn run_tests(programs: Vec<TestProgram>) -> anyhow::Result<()> {
    let missing = TESTS.iter().find(|name| !programs.iter().any(|program| program.is(**name)));
    ensure!(missing.is_none(), "cargo built no {missing:?} for user nobody");
    let failed = "could not make a temporary directory";
    let directory = tempfile::tempdir().context(failed)?;
    // Open to everybody, as /tmp is.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).context(failed)?;
    // The build may be below a home that nobody else can enter.
    let copy = |mut program: TestProgram| {
        let copy = directory.path().join(program.executable.file_name().unwrap_or_default());
        fs::copy(&program.executable, &copy).with_context(|| format!("could not copy {}", program.executable.display()))?;
        program.executable = copy;
        Ok(program)
    };
    let programs = programs.into_iter().map(copy).collect::<anyhow::Result<Vec<_>>>()?;
    // Without a home, labs are kept below the directory of temporary files.
    let labs = directory.path().join("metalshift-65534/labs");
    leftovers::none_after(&labs, || lanes::run(programs, |program| as_nobody(program, directory.path())))
}

fn as_nobody(program: &TestProgram, directory: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]).arg(&program.executable);
    command.current_dir(directory).stdin(Stdio::null()).env_clear().env("TMPDIR", directory).envs(RARE_COLLECTION).envs([TESTS_AT_ONCE]);
    command.envs(PASSED_ON.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}
