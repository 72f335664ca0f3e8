//! Builds the workspace and says where the results are. Used by `test` and `bench`.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::Deserialize;

use crate::command::{cargo, read};

/// What cargo built.
#[derive(Debug)]
pub struct Built(Vec<Artifact>);

/// What a thing is built as, in cargo's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program.
    Bin,
    /// A program that needs what only tests may use.
    Example,
    /// A test.
    Test,
}

/// A program that runs tests when it is run: those of a file in `tests`, or those inside of a library or program.
#[derive(Debug)]
pub struct TestProgram {
    pub package: String,
    pub name: String,
    pub executable: PathBuf,
    /// The package's directory, where cargo runs its tests.
    pub directory: PathBuf,
}

impl TestProgram {
    /// Whether it is the one of this name in this package.
    pub fn is(&self, (package, name): (&str, &str)) -> bool {
        self.package == package && self.name == name
    }
}

impl fmt::Display for TestProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.package, self.name)
    }
}

/// A message of cargo about something it built; other messages have other fields.
#[derive(Debug, Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// Builds programs and tests alike, with the same features for both: whatever comes after finds everything built.
pub fn everything() -> anyhow::Result<Built> {
    let mut build = cargo(&["build", "--locked", "--workspace", "--all-targets", "--message-format=json-render-diagnostics"]);
    let messages = read(&mut build)?;
    Ok(Built(messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()))
}

impl Built {
    /// The executable of this name in the package whose directory is called `package`.
    pub fn executable(&self, package: &str, kind: Kind, name: &str) -> anyhow::Result<PathBuf> {
        let found = self.0.iter().find(|artifact| artifact.is(package, kind, name));
        found.and_then(|artifact| artifact.executable.clone()).with_context(|| format!("cargo built no {name} in {package}"))
    }

    /// All programs that run tests.
    pub fn tests(&self) -> Vec<TestProgram> {
        self.0.iter().filter_map(Artifact::as_test).collect()
    }
}

impl Artifact {
    fn as_test(&self) -> Option<TestProgram> {
        let runs_tests = self.profile.test && ["lib", "bin", "test"].iter().any(|kind| self.target.kind == [*kind]);
        let directory = self.manifest_path.parent().filter(|_| runs_tests)?;
        Some(TestProgram {
            package: directory.file_name()?.to_str()?.to_owned(),
            name: self.target.name.clone(),
            executable: self.executable.clone()?,
            directory: directory.to_owned(),
        })
    }

    fn is(&self, package: &str, kind: Kind, name: &str) -> bool {
        let word = match kind {
            Kind::Bin => "bin",
            Kind::Example => "example",
            Kind::Test => "test",
        };
        let directory = self.manifest_path.parent().and_then(Path::file_name);
        // A program is built twice, once as the test of what is inside it.
        let as_wanted = self.profile.test == (kind == Kind::Test);
        self.target.name == name && self.target.kind == [word] && as_wanted && directory.is_some_and(|directory| directory == package)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_tests_are_told_apart() {
        let artifact = |kind: &str, test: bool, path: &str| Artifact {
            manifest_path: "/clone/crates/lab/Cargo.toml".into(),
            target: Target { name: "lab".to_owned(), kind: vec![kind.to_owned()] },
            profile: Profile { test },
            executable: Some(path.into()),
        };
        let built = Built(vec![artifact("bin", true, "unit"), artifact("test", true, "test"), artifact("bin", false, "program")]);
        assert_eq!(built.executable("lab", Kind::Bin, "lab").unwrap(), Path::new("program"));
        assert_eq!(built.executable("lab", Kind::Test, "lab").unwrap(), Path::new("test"));
        assert!(built.executable("manager", Kind::Test, "lab").is_err());
        assert!(built.executable("lab", Kind::Example, "lab").is_err());
        let tests = built.tests();
        let tests: Vec<_> = tests.iter().map(|test| (test.to_string(), test.executable.display().to_string())).collect();
        assert_eq!(tests, [("lab/lab".to_owned(), "unit".to_owned()), ("lab/lab".to_owned(), "test".to_owned())]);
    }
}
