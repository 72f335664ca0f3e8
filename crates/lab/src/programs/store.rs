//! The finished programs on disk: `<cache>/programs/<key>/` with `bin/`, the directories of copied files, and the record of what is whole.
//! `build` fills it; nothing in it is believed unless the record says so and the files still agree.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ProgramsError;
use super::progress::Progress;
use crate::kept::{Kept, KeptLock, Partial};
use crate::sealed::{Sealed, write_whole};

/// One build in one cache.
#[derive(Clone, Debug)]
pub(super) struct Store {
    kept: Kept,
    root: PathBuf,
}

/// Which steps are done: replaced as a whole after each, so that a build that was killed goes on after its last finished step.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    pub steps: BTreeMap<String, StepRecord>,
}

/// What a finished step left.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StepRecord {
    /// The Go it was built with; for people, see `Recipe::key`.
    pub go: String,
    pub seconds: f64,
    /// The files it left.
    #[serde(flatten)]
    pub sealed: Sealed,
}

impl Store {
    pub(super) fn new(cache: &Path, key: &str) -> Self {
        let kept = Kept::new(cache.join("programs"), key.to_owned());
        Self { root: kept.path(), kept }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The record; one that cannot be read counts as none, and what it would have listed is built again.
    pub(super) fn record(&self) -> Record {
        let text = fs::read(self.record_path()).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Whether a step is done and its files are as it left them.
    pub(super) fn holds(&self, record: &Record, step: &str) -> bool {
        record.steps.get(step).is_some_and(|step| step.sealed.is_intact(&self.root) && step.sealed.files.keys().all(|path| self.runs(path)))
    }

    /// Nothing but programs is in `bin`.
    fn runs(&self, path: &Path) -> bool {
        let is_executable = |metadata: fs::Metadata| metadata.permissions().mode() & 0o111 != 0;
        !path.starts_with("bin") || fs::metadata(self.root.join(path)).is_ok_and(is_executable)
    }

    /// Adds a finished step to the record.
    pub(super) fn finish(&self, step: &str, files: Vec<PathBuf>, go: &str, seconds: f64) -> Result<(), ProgramsError> {
        let failed = |source| ProgramsError::writing(&self.root, step, source);
        let sealed = Sealed::of(&self.root, files).map_err(failed)?;
        let mut record = self.record();
        record.steps.insert(step.to_owned(), StepRecord { go: go.to_owned(), seconds, sealed });
        write_whole(&self.record_path(), &record).map_err(failed)
    }

    fn record_path(&self) -> PathBuf {
        self.root.join("record.json")
    }

    /// Waits until no other process builds here; the line about it names that process.
    pub(super) fn lock(&self, progress: &mut dyn FnMut(Progress)) -> Result<KeptLock, ProgramsError> {
        let failed = |source| ProgramsError::writing(&self.root, "the programs", source);
        let lock = self.kept.lock(&mut |holder| progress(Progress::Waiting { holder })).map_err(failed)?;
        fs::create_dir_all(&self.root).map_err(failed)?;
        Ok(lock)
    }

    /// A new directory for what is not finished.
    pub(super) fn partial(&self) -> io::Result<Partial> {
        self.kept.partial()
    }

    /// Remembers that these programs are used.
    pub(super) fn note_use(&self) {
        self.kept.note_use();
    }

    /// Removes other builds that nobody has used for long.
    pub(super) fn remove_unused(&self) {
        self.kept.remove_unused();
    }
}

/// How long steps took on this machine when all had to be compiled, kept over changes of the recipe.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Durations {
    pub seconds: BTreeMap<String, f64>,
}

impl Durations {
    pub(super) fn read(cache: &Path) -> Self {
        fs::read(Self::path(cache)).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// Losing an estimate is no reason to fail a build, so nothing is reported.
    pub(super) fn write(&self, cache: &Path) {
        let _ = write_whole(&Self::path(cache), self);
    }

    fn path(cache: &Path) -> PathBuf {
        cache.join("programs").join("durations.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_program_of_the_right_size_is_not_believed_and_one_that_was_copied_is() {
        let cache = tempfile::tempdir().unwrap();
        let store = Store::new(cache.path(), "key");
        let program = store.root().join("bin/etcd");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        let write = |content: &str| {
            fs::write(&program, content).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("whole");
        store.finish("etcd", vec!["bin/etcd".into()], "go1.25", 1.0).unwrap();
        assert!(store.holds(&store.record(), "etcd"));
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
        fs::File::options().write(true).open(&program).unwrap().set_modified(later).unwrap();
        assert!(store.holds(&store.record(), "etcd"), "only its time has changed");
        write("hole!");
        assert!(!store.holds(&store.record(), "etcd"));
    }
}
