//! The Go toolchain: finding one that is new enough, and running it so that it never outlives the program that wanted the build.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::error::ProgramsError;

/// What every build gets, whatever a person's own GOFLAGS say: go.mod is not edited, no version control is asked, no machine path gets in.
pub(super) const FLAGS: [&str; 3] = ["-mod=readonly", "-buildvcs=false", "-trimpath"];

/// The minor number of the oldest Go 1 that the pinned modules accept.
const OLDEST_MINOR: u32 = 25;

/// A Go that is new enough.
#[derive(Clone, Debug)]
pub(super) struct Go {
    program: PathBuf,
    version: String,
}

/// Where Go may be: on the PATH, and where its own instructions and distributions put it, because sudo and services drop those from the PATH.
pub(super) fn candidates(path: Option<&OsStr>) -> Vec<PathBuf> {
    let on_path = path.map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    let usual = ["/usr/local/go/bin", "/usr/lib/go/bin", "/usr/lib/go-1.27/bin", "/usr/lib/go-1.26/bin", "/usr/lib/go-1.25/bin"];
    on_path.into_iter().chain(usual.map(PathBuf::from)).map(|directory| directory.join("go")).collect()
}

impl Go {
    /// The first candidate that is new enough; `missing` names what it is wanted for.
    pub(super) fn find(candidates: &[PathBuf], missing: &str) -> Result<Self, ProgramsError> {
        let mut too_old = None;
        for program in candidates.iter().filter(|program| program.is_file()) {
            let Some(version) = version_of(program) else { continue };
            if minor(&version).is_some_and(|minor| minor >= OLDEST_MINOR) {
                return Ok(Self { program: program.clone(), version });
            }
            too_old.get_or_insert((program.clone(), version));
        }
        Err(match too_old {
            Some((go, found)) => ProgramsError::OldGo { missing: missing.to_owned(), go, found },
            None => ProgramsError::NoGo { missing: missing.to_owned() },
        })
    }

    /// Its version, such as `1.26.8`.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Starts `go ARGUMENTS` in `directory`; both its outputs go to `log`, its temporary files below `temporary`.
    pub(super) fn start(&self, run: &Run<'_>) -> Result<Running, ProgramsError> {
        let cannot_run = |source| ProgramsError::CannotRun { program: self.program.clone(), source };
        let output = File::create(run.log).map_err(|source| ProgramsError::writing(run.log, run.step, source))?;
        let errors = output.try_clone().map_err(cannot_run)?;
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "sh"]).arg(&self.program).args(run.arguments);
        command.current_dir(run.directory).stdin(Stdio::piped()).stdout(output).stderr(errors).process_group(0);
        set_environment(&mut command, run);
        Ok(Running { child: command.spawn().map_err(cannot_run)? })
    }
}

/// One call of go.
pub(super) struct Run<'a> {
    /// The step it is for.
    pub step: &'a str,
    pub arguments: &'a [String],
    pub directory: &'a Path,
    pub log: &'a Path,
    pub temporary: &'a Path,
    /// Where Go keeps its caches when the person has no home directory.
    pub caches: &'a Path,
}

/// A non-empty GOFLAGS, because go takes an empty one from its own settings file instead.
fn set_environment(command: &mut Command, run: &Run<'_>) {
    command.envs([("GOFLAGS", "-mod=readonly"), ("GOWORK", "off"), ("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0"), ("LC_ALL", "C")]);
    command.env("GOTMPDIR", run.temporary);
    for changes_the_result in ["GOOS", "GOARCH", "GO111MODULE", "GOEXPERIMENT"] {
        command.env_remove(changes_the_result);
    }
    let homeless = !std::env::var_os("HOME").is_some_and(|home| Path::new(&home).is_dir());
    for (variable, directory) in [("GOCACHE", "go-build"), ("GOPATH", "go")] {
        if homeless && std::env::var_os(variable).is_none() {
            command.env(variable, run.caches.join(directory));
        }
    }
}

/// Runs its arguments as a process group that ends when this process does, however it ends.
///
/// The pipe on its standard input has no other writer than this process; the kernel closes it even after a kill -9, `read` returns, and the
/// whole group is ended: go, its compilers and its linker. A parent-death signal would reach only go itself, would also fire when a mere
/// thread of ours ends, and needs a program (setpriv) that not every machine has.
const GUARD: &str = r#"
exec 3<&0 </dev/null
"$@" 3<&- & work=$!
{ read -r _ <&3; kill -TERM 0; } & guard=$!
exec 3<&-
wait "$work"; code=$?
kill "$guard"
exit "$code"
"#;

/// A go that runs; dropping it ends it and everything it started.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
}

impl Running {
    /// Whether it is through, and if so whether it succeeded.
    pub(super) fn finished(&mut self) -> io::Result<Option<bool>> {
        Ok(self.child.try_wait()?.map(|status| status.success()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Closing the pipe is the order to end; after a normal end there is nobody left to hear it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn version_of(program: &Path) -> Option<String> {
    // Without GOTOOLCHAIN=local an old go would try to download a new one first.
    let output = Command::new(program).arg("version").env("GOTOOLCHAIN", "local").stdin(Stdio::null()).output().ok()?;
    let words = String::from_utf8(output.stdout).ok()?;
    words.split_whitespace().find_map(|word| word.strip_prefix("go1.")).map(|rest| format!("1.{rest}"))
}

fn minor(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("1.")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The last lines of a log that say something: `go build -v` also lists every package on a line of its own.
pub(super) fn last_words(log: &Path) -> Vec<String> {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let says_something = |line: &&str| line.contains(' ') && !line.starts_with("go: downloading ");
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(says_something).collect();
    lines.iter().skip(lines.len().saturating_sub(8)).map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_candidates_and_development_versions_are_compared_by_their_minor_number() {
        for (version, expected) in [("1.26.8", Some(26)), ("1.25", Some(25)), ("1.25rc1", Some(25)), ("1.19.8", Some(19)), ("2.0", None)] {
            assert_eq!(minor(version), expected, "of {version}");
        }
    }

    #[test]
    fn the_path_comes_before_the_usual_places() {
        let all = candidates(Some(OsStr::new("/opt/a:/opt/b")));
        assert_eq!(all[..3], ["/opt/a/go", "/opt/b/go", "/usr/local/go/bin/go"].map(PathBuf::from));
    }

    #[test]
    fn packages_and_downloads_are_not_what_go_said_last() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        fs::write(&log, "go: downloading a v1\ninternal/abi\n# example/x\n./x.go:3:1: syntax error\nk8s.io/api\n").expect("a log");
        assert_eq!(last_words(&log), ["# example/x", "./x.go:3:1: syntax error"]);
    }
}
