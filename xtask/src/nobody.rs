//! Runs tests a second time as a user who may do nothing: levels api and capi must not need root, a home or a readable checkout.
//! Used by `test`.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context as _;

use crate::{command::run, leftovers};

/// Test programs that need no root: the package and the name of the test.
pub const TESTS: [(&str, &str); 3] = [("lab", "api"), ("lab", "capi"), ("manager", "real_api_server")];

/// What the person set for the lab is meant for these runs too.
const PASSED_ON: [&str; 6] = ["PATH", "METALSHIFT_CACHE", "METALSHIFT_PROGRAMS", "KUBEBUILDER_ASSETS", "RUST_BACKTRACE", "CI"];

/// Runs test programs as user nobody; needs root.
pub fn run_tests(programs: &[PathBuf]) -> anyhow::Result<()> {
    let failed = "could not make a temporary directory";
    let directory = tempfile::tempdir().context(failed)?;
    // Open to everybody, as /tmp is.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).context(failed)?;
    // Without a home, labs are kept below the directory of temporary files.
    let labs = directory.path().join("metalshift-65534/labs");
    programs.iter().try_for_each(|program| leftovers::none_after(&labs, || run_test(program, directory.path())))
}

fn run_test(program: &Path, directory: &Path) -> anyhow::Result<()> {
    // The build may be below a home that nobody else can enter.
    let copy = directory.join(program.file_name().unwrap_or_default());
    fs::copy(program, &copy).with_context(|| format!("could not copy {}", program.display()))?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]).arg(&copy);
    command.current_dir(directory).stdin(Stdio::null()).env_clear().env("TMPDIR", directory);
    command.envs(PASSED_ON.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    run(&mut command)?;
    fs::remove_file(&copy).with_context(|| format!("could not remove {}", copy.display()))
}
