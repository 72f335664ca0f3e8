//! `cargo xtask test`: the one command that checks and tests everything. Continuous integration calls it too.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use lab::{
    Level,
    programs::{Program, Search},
};
use serde::Deserialize;

use crate::{
    arrows,
    command::{cargo, command, read, run as run_command},
    generate, leftovers, nobody,
    output::say,
    prepare,
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
    /// Clippy has nothing to say
    Lint,
    /// Everything builds
    Build,
    /// Generated files are up to date
    Generated,
    /// Installs the Debian packages of level nodes (root)
    Packages,
    /// Finds or builds the programs of Kubernetes
    Programs,
    /// All tests, those in documentation included
    Tests,
    /// Tests of levels api and capi again as user nobody (root)
    Nobody,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Arrows => "arrows",
            Self::Lint => "lint",
            Self::Build => "build",
            Self::Generated => "generated",
            Self::Packages => "packages",
            Self::Programs => "programs",
            Self::Tests => "tests",
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
            Self::Lint => run_command(&mut cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny=warnings"])),
            Self::Build => build().map(drop),
            Self::Generated => generate::check(&build()?.program("metalshift")?),
            Self::Packages => prepare::packages(),
            Self::Programs => prepare::programs(&Program::ALL).map(drop),
            Self::Tests => tests(),
            Self::Nobody => as_nobody(),
        }
    }
}

/// Takes the steps until one fails, and says where the time went.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let root = Level::highest_here().0 == Level::Nodes;
    if let Some(left_out) = left_out(root, continuous_integration())? {
        say(left_out);
    }
    let mut steps = Steps::default();
    let wanted = Step::value_variants().iter().filter(|step| arguments.only.is_empty() || arguments.only.contains(step));
    let outcome = wanted.filter(|step| root || !step.needs_root()).try_for_each(|step| steps.take(step.name(), || step.take()));
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

fn format() -> anyhow::Result<()> {
    run_command(&mut cargo(&["fmt", "--all", "--check"]))?;
    let beside_go = Search::from_environment(None).go.into_iter().map(|go| go.with_file_name("gofmt"));
    let gofmt = beside_go.into_iter().find(|gofmt| gofmt.is_file()).context("there is no gofmt: install Go 1.25 or newer")?;
    let unformatted = read(command(gofmt).args(["-l", "kubernetes"]))?;
    ensure!(unformatted.is_empty(), "gofmt would change these files:\n{unformatted}");
    Ok(())
}

fn tests() -> anyhow::Result<()> {
    // Labs of their own place, so that no lab a person has up is taken for a leftover.
    let labs = tempfile::Builder::new().prefix("metalshift-").tempdir().context("could not make a temporary directory")?;
    leftovers::none_after(labs.path(), || {
        run_command(cargo(&["test", "--locked", "--workspace", "--no-fail-fast"]).env("METALSHIFT_LABS", labs.path()))
    })
}

fn as_nobody() -> anyhow::Result<()> {
    let built = build()?;
    let programs: Vec<PathBuf> = nobody::TESTS.iter().map(|(package, test)| built.test(package, test)).collect::<Result<_, _>>()?;
    nobody::run_tests(&programs)
}

/// What cargo built.
struct Built(Vec<Artifact>);

/// A message of cargo about something it built; other messages have other fields.
#[derive(Debug, Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Builds programs and tests alike, with the same features for both: what follows finds everything built.
fn build() -> anyhow::Result<Built> {
    let mut build = cargo(&["build", "--locked", "--workspace", "--all-targets", "--message-format=json-render-diagnostics"]);
    let messages = read(&mut build)?;
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(Built(artifacts))
}

impl Built {
    fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        self.find(name, |artifact| artifact.target.name == name && artifact.target.kind == ["bin"] && !artifact.profile.test)
    }

    fn test(&self, package: &str, name: &str) -> anyhow::Result<PathBuf> {
        self.find(name, |artifact| {
            let directory = artifact.manifest_path.parent().and_then(Path::file_name);
            artifact.target.name == name && artifact.target.kind == ["test"] && directory.is_some_and(|directory| directory == package)
        })
    }

    fn find(&self, name: &str, is_it: impl Fn(&Artifact) -> bool) -> anyhow::Result<PathBuf> {
        let found = self.0.iter().find(|artifact| is_it(artifact));
        found.and_then(|artifact| artifact.executable.clone()).with_context(|| format!("cargo built no {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_and_never_accepted_in_continuous_integration() {
        assert_eq!(left_out(true, true).unwrap(), None);
        assert!(left_out(false, false).unwrap().is_some_and(|line| line.contains("level nodes")));
        assert!(left_out(false, true).is_err());
    }

    #[test]
    fn programs_and_tests_are_told_apart() {
        let artifact = |kind: &str, test: bool, path: &str| Artifact {
            manifest_path: "/clone/crates/lab/Cargo.toml".into(),
            target: Target { name: "lab".to_owned(), kind: vec![kind.to_owned()] },
            profile: Profile { test },
            executable: Some(path.into()),
        };
        let built = Built(vec![artifact("bin", true, "unit"), artifact("test", true, "test"), artifact("bin", false, "program")]);
        assert_eq!(built.program("lab").unwrap(), Path::new("program"));
        assert_eq!(built.test("lab", "lab").unwrap(), Path::new("test"));
        assert!(built.test("manager", "lab").is_err());
    }
}
