//! Runs other programs from the root of the repository.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};

use crate::{build::TestProgram, output::say};

/// The root of the repository.
pub fn repository() -> PathBuf {
    // Asked at run time: clones that share a target directory may also share this program.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_owned)
}

/// Whether we may do everything: /proc shows a process as its effective user's.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// A program that works on the repository.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(repository()).stdin(Stdio::null());
    command
}

/// The cargo that runs us.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    forget_this_package(&mut command);
    command
}

/// Runs tests as cargo would.
pub fn test_program(program: &TestProgram) -> Command {
    let mut command = Command::new(&program.executable);
    forget_this_package(&mut command);
    command.current_dir(&program.directory).env("CARGO_MANIFEST_DIR", &program.directory).stdin(Stdio::null());
    command.envs(RARE_COLLECTION);
    command
}

/// For the programs of Kubernetes in labs of tests, which live for seconds: an API server that rarely collects garbage starts with three
/// quarters of the processor's time, and tests wait for hundreds of them.
pub const RARE_COLLECTION: [(&str, &str); 2] = [("GOGC", "400"), ("GOMEMLIMIT", "1GiB")];

/// Cargo describes this package to us, which is nobody else's business: build scripts and tests would see it.
fn forget_this_package(command: &mut Command) {
    for (name, _) in std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")))
    {
        command.env_remove(name);
    }
}

/// The same with what others leave of the processors: tests with real clusters beside it have deadlines, and this has none.
pub fn in_the_background(command: &Command) -> Command {
    let mut niced = Command::new("nice");
    niced.args(["--adjustment=19", "--"]).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => niced.env(name, value),
            None => niced.env_remove(name),
        };
    }
    niced.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    niced
}

/// Runs it with its output in sight.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("could not run {}", line(command)))?;
    if status.success() { Ok(()) } else { bail!("`{}` failed with {status}", line(command)) }
}

/// Runs it and shows its output when it has ended, so that it does not get between that of others.
pub fn run_quietly(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("could not run {}", line(command)))?;
    for words in [&output.stderr, &output.stdout] {
        say(String::from_utf8_lossy(words));
    }
    if output.status.success() { Ok(()) } else { bail!("`{}` failed with {}", line(command), output.status) }
}

/// Runs it and takes its standard output; the errors stay in sight.
pub fn read(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("could not run {}", line(command)))?;
    if !output.status.success() {
        bail!("`{}` failed with {}", line(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed something that is no text", line(command)))
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
