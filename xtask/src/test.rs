//! `cargo xtask test`: the one command that checks and tests everything. Continuous integration calls it too.

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};

use crate::{
    arrows,
    build::{self, Kind, TestProgram},
    command::{cargo, command, in_the_background, is_root, read, run as run_command, run_quietly, test_program},
    generate, lanes, leftovers, nobody,
    output::say,
    rows,
    steps::Steps,
};

/// Which steps to take.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Take only these steps, in their usual order
    #[arg(long, value_delimiter = ',', value_name = "STEPS")]
    only: Vec<Step>,
}

/// The steps in their order: what is quick to fail comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// rustfmt and gofmt have nothing to change
    Format,
    /// Dependencies between our crates go the right way
    Arrows,
    /// Every row of the contract and every scenario has a test
    Rows,
    /// Clippy has nothing to say
    Lint,
    /// Everything builds
    Build,
    /// Generated files are up to date
    Generated,
    /// Installs the Debian packages of level nodes and of the tests (root)
    Packages,
    /// Finds or builds the programs of Kubernetes
    Programs,
    /// All tests but those of the next step, those in documentation included
    Tests,
    /// The tests of the simulation, with the crash explorer in full, in a build with optimisations; beside the others, which mostly wait
    Explorer,
    /// Tests of levels api and capi as user nobody (root); those of the lab itself are for both
    Nobody,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Arrows => "arrows",
            Self::Rows => "rows",
            Self::Lint => "lint",
            Self::Build => "build",
            Self::Generated => "generated",
            Self::Packages => "packages",
            Self::Programs => "programs",
            Self::Tests => "tests",
            Self::Explorer => "explorer",
            Self::Nobody => "nobody",
        }
    }

    fn needs_root(self) -> bool {
        matches!(self, Self::Packages | Self::Nobody)
    }

    fn take(self) -> anyhow::Result<()> {
        match self {
            Self::Format => format(),
            Self::Arrows => arrows::check(),
            Self::Rows => rows::run(),
            Self::Lint => lint(),
            Self::Build => build::everything().map(drop),
            Self::Generated => generate::check(&build::everything()?.executable("metalshift", Kind::Bin, "metalshift")?),
            Self::Packages => prepare("packages"),
            Self::Programs => prepare("programs"),
            Self::Tests => tests(),
            Self::Explorer => explorer(),
            Self::Nobody => as_nobody(),
        }
    }
}

/// Takes the steps until one fails, and says where the time went.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let root = is_root();
    if let Some(left_out) = left_out(root, continuous_integration())? {
        say(left_out);
    }
    let mut steps = Steps::default();
    let wanted = Step::value_variants().iter().filter(|step| arguments.only.is_empty() || arguments.only.contains(step));
    let wanted: Vec<Step> = wanted.filter(|step| root || !step.needs_root()).copied().collect();
    let together = [Step::Tests, Step::Explorer].iter().all(|step| wanted.contains(step));
    let outcome = wanted.iter().try_for_each(|step| match step {
        Step::Tests if together => steps.take_beside(["tests", "explorer"], [|| Step::Tests.take(), || Step::Explorer.take()]),
        Step::Explorer if together => Ok(()),
        _ => steps.take(step.name(), || step.take()),
    });
    say(format!("\nwhere the time went:\n{}", steps.table()));
    outcome
}

/// The line about what this user cannot run; in continuous integration nothing may be left out.
fn left_out(root: bool, continuous_integration: bool) -> anyhow::Result<Option<&'static str>> {
    const LEFT_OUT: &str = "left out, because only root can: the tests of level nodes, and those of levels api and capi as user nobody";
    ensure!(root || !continuous_integration, "{LEFT_OUT}; continuous integration leaves nothing out, so run it as root or without CI=true");
    Ok((!root).then_some(LEFT_OUT))
}

fn continuous_integration() -> bool {
    std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()))
}

/// Toolchains of rustup's minimal profile have neither rustfmt nor clippy.
fn need(subcommand: &str) -> anyhow::Result<()> {
    let there = cargo(&[subcommand, "--version"]).output().is_ok_and(|output| output.status.success());
    ensure!(there, "there is no `cargo {subcommand}`: run `rustup component add rustfmt clippy`");
    Ok(())
}

fn lint() -> anyhow::Result<()> {
    need("clippy")?;
    run_command(&mut cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny=warnings"]))
}

fn format() -> anyhow::Result<()> {
    need("fmt")?;
    run_command(&mut cargo(&["fmt", "--all", "--check"]))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    // sudo and services drop the places where Go's own instructions and Debian put it; the lab looks for Go in the same ones.
    let usual = ["/usr/local/go/bin", "/usr/lib/go/bin", "/usr/lib/go-1.27/bin", "/usr/lib/go-1.26/bin", "/usr/lib/go-1.25/bin"];
    let mut directories = std::env::split_paths(&path).chain(usual.map(Into::into));
    let gofmt = directories.find_map(|directory| Some(directory.join("gofmt")).filter(|gofmt| gofmt.is_file()));
    let gofmt = gofmt.context("there is no gofmt: install Go 1.25 or newer")?;
    let unformatted = read(command(gofmt).args(["-l", "kubernetes"]))?;
    ensure!(unformatted.is_empty(), "gofmt would change these files:\n{unformatted}");
    Ok(())
}

/// Installs `what`; says so before it does.
fn prepare(what: &str) -> anyhow::Result<()> {
    let program = build::everything()?.executable("xtask", Kind::Example, "prepare")?;
    read(command(program).arg(what)).map(drop)
}

fn tests() -> anyhow::Result<()> {
    // Labs of their own place, so that no lab a person has up is taken for a leftover.
    let labs = tempfile::Builder::new().prefix("metalshift-").tempdir().context("could not make a temporary directory")?;
    // Where root is, user nobody has a step of its own.
    let elsewhere = |program: &TestProgram| program.package == "simulation" || (is_root() && nobody::runs_alone(program));
    let programs = build::everything()?.tests().into_iter().filter(|program| !elsewhere(program)).collect();
    let with_labs_there = |program: &TestProgram| {
        let mut command = test_program(program);
        command.env("METALSHIFT_LABS", labs.path());
        command
    };
    leftovers::none_after(labs.path(), || lanes::run(programs, with_labs_there))?;
    run_command(&mut cargo(&["test", "--locked", "--workspace", "--exclude", "simulation", "--doc"]))
}

fn explorer() -> anyhow::Result<()> {
    let tests = ["test", "--locked", "--release", "--package", "simulation"];
    run_quietly(&mut in_the_background(&cargo(&[&tests[..], &["--lib", "--test", "simulation"]].concat())))?;
    // With what it met: how often each kind of call met each fate.
    let explorer = [&tests[..], &["--test", "explorer", "--", "--show-output"]].concat();
    run_quietly(&mut in_the_background(cargo(&explorer).env("EXPLORER_FULL", "1")))
}

fn as_nobody() -> anyhow::Result<()> {
    nobody::run_tests(build::everything()?.tests().into_iter().filter(nobody::runs).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_without_a_component_is_told_how_to_get_it() {
        need("fmt").unwrap();
        let error = need("no-such-component").unwrap_err().to_string();
        assert!(error.ends_with("run `rustup component add rustfmt clippy`"), "{error}");
    }

    #[test]
    fn what_is_left_out_is_said_and_never_accepted_in_continuous_integration() {
        assert_eq!(left_out(true, true).unwrap(), None);
        assert!(left_out(false, false).unwrap().is_some_and(|line| line.contains("level nodes")));
        assert!(left_out(false, true).is_err());
    }
}
