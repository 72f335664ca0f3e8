//! Why a program could not be had, each with what a person can do about it.

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong between "this program is needed" and its path.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    /// `--programs` names something that is no directory.
    #[error("there is no directory {path:?}: --programs and METALSHIFT_PROGRAMS take a directory that holds the programs")]
    NoDirectory {
        /// What was given.
        path: PathBuf,
    },
    /// A program in the directory a person named is unusable.
    #[error("{path} cannot be used: {reason}; replace it, or take it away to have it built")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Something has to be built and there is no Go.
    #[error("{missing} must be built and there is no Go: install Go 1.25 or newer (https://go.dev/dl) or give --programs DIR")]
    NoGo {
        /// The programs to build.
        missing: String,
    },
    /// Something has to be built and Go is too old for it.
    #[error("{missing} must be built and {go} is Go {found}, too old: install Go 1.25 or newer (https://go.dev/dl) or give --programs DIR")]
    OldGo {
        /// The programs to build.
        missing: String,
        /// The newest Go there is.
        go: PathBuf,
        /// Its version.
        found: String,
    },
    /// The cache cannot be written.
    #[error("cannot write {path}: {source}; set METALSHIFT_CACHE to a directory you may write, or give --programs DIR")]
    CacheNotWritable {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The cache of a person without a home may be in somebody else's hands.
    #[error("{path} belongs to somebody else, or others can write it: remove it, or set METALSHIFT_CACHE to a directory of your own")]
    ForeignCache {
        /// The directory.
        path: PathBuf,
    },
    /// The disk is full.
    #[error(
        "no space left while building {step} in {path}: a first build needs about 6 GB (0.4 GB here, the rest in Go's caches); \
         free some, or set METALSHIFT_CACHE, GOCACHE and GOMODCACHE to another disk"
    )]
    DiskFull {
        /// What was being built.
        step: String,
        /// The cache it was built in.
        path: PathBuf,
    },
    /// Go did not build a program.
    #[error(
        "building {step} failed; go's last words:\n  {}\nthe whole log is {log}; if it is about the network, see that Go reaches its modules \
         (`go env GOPROXY`), then try again: what is built already is kept; or give --programs DIR",
        words.join("\n  ")
    )]
    BuildFailed {
        /// What was being built.
        step: String,
        /// The end of what go printed.
        words: Vec<String>,
        /// All of it.
        log: PathBuf,
    },
    /// A child process could not be started or waited for.
    #[error("cannot run {program}: {source}")]
    CannotRun {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ProgramsError {
    /// A failed write below the cache, told apart by its cause.
    pub(super) fn writing(path: &Path, step: &str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { step: step.to_owned(), path: path.to_owned() },
            _ => Self::CacheNotWritable { path: path.to_owned(), source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_that_failed_is_told_with_the_log_and_what_to_do() {
        let words = vec!["dial tcp: no route".to_owned(), "exit status 1".to_owned()];
        let said = ProgramsError::BuildFailed { step: "etcd".to_owned(), words, log: "/cache/build.log".into() }.to_string();
        assert!(said.starts_with("building etcd failed; go's last words:\n  dial tcp: no route\n  exit status 1\n"), "{said}");
        for next in ["the whole log is /cache/build.log; ", "`go env GOPROXY`", "try again", "--programs DIR"] {
            assert!(said.contains(next), "{next}: {said}");
        }
    }
}
