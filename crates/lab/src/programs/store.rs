//! The finished programs on disk: `<cache>/programs/<key>/` with `bin/`, the directories of copied files, and the record of what is whole.
//! `build` fills it; nothing in it is believed unless the record says so and the files still agree.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::error::ProgramsError;
use super::progress::Progress;
use crate::kept::{Kept, KeptLock};

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
    /// Every file with its size, which is what a full disk or an interrupted copy changes.
    pub files: BTreeMap<PathBuf, u64>,
    /// What tells that a file of the right size is another. Records of earlier versions have none.
    #[serde(default)]
    pub seals: BTreeMap<PathBuf, Seal>,
}

/// When a file was written, and what was in it. Only a file that was touched since is read again: digests of all would cost a second at
/// each start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Seal {
    pub modified: SystemTime,
    pub sha256: String,
}

impl Seal {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { modified: fs::metadata(path)?.modified()?, sha256: digest(path)? })
    }

    fn is_intact(&self, path: &Path) -> bool {
        let untouched = fs::metadata(path).and_then(|metadata| metadata.modified()).is_ok_and(|modified| modified == self.modified);
        untouched || digest(path).is_ok_and(|digest| digest == self.sha256)
    }
}

fn digest(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let (mut file, mut piece) = (File::open(path)?, vec![0; 1 << 20]);
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok(BASE64.encode(hasher.finalize()));
        }
        hasher.update(&piece[..length]);
    }
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
        let intact = |(path, seal): (&PathBuf, &Seal)| seal.is_intact(&self.root.join(path));
        record
            .steps
            .get(step)
            .is_some_and(|step| step.files.iter().all(|(path, size)| self.is_whole(path, *size)) && step.seals.iter().all(intact))
    }

    fn is_whole(&self, path: &Path, size: u64) -> bool {
        let runs = |metadata: &fs::Metadata| !path.starts_with("bin") || metadata.permissions().mode() & 0o111 != 0;
        fs::metadata(self.root.join(path)).is_ok_and(|metadata| metadata.is_file() && metadata.len() == size && runs(&metadata))
    }

    /// Adds a finished step to the record.
    pub(super) fn finish(&self, step: &str, files: Vec<PathBuf>, go: &str, seconds: f64) -> Result<(), ProgramsError> {
        let failed = |source| ProgramsError::writing(&self.root, step, source);
        let (mut sizes, mut seals) = (BTreeMap::new(), BTreeMap::new());
        for path in files {
            let size = fs::metadata(self.root.join(&path)).map_err(failed)?.len();
            seals.insert(path.clone(), Seal::of(&self.root.join(&path)).map_err(failed)?);
            sizes.insert(path, size);
        }
        let mut record = self.record();
        record.steps.insert(step.to_owned(), StepRecord { go: go.to_owned(), seconds, files: sizes, seals });
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
    pub(super) fn partial(&self) -> io::Result<PathBuf> {
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

/// Replaces a file by one that is complete on disk, or not at all.
fn write_whole(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(content)?;
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&new)))
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
        let later = SystemTime::now() + std::time::Duration::from_secs(9);
        File::options().write(true).open(&program).unwrap().set_modified(later).unwrap();
        assert!(store.holds(&store.record(), "etcd"), "only its time has changed");
        write("hole!");
        assert!(!store.holds(&store.record(), "etcd"));
    }
}
