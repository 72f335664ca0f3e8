//! A directory in the cache that is made once and then used by everybody: finished programs, and what containerd makes of the images.
//! One process at a time makes it, what is not finished has another name, and what nobody has used for long is removed.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    ops::Deref,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// What nobody has used for so long is removed when something new is made. Two versions that take turns keep both of theirs.
const UNUSED: Duration = Duration::from_hours(14 * 24);

/// One directory, by the key of what it was made from.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    shelf: PathBuf,
    key: String,
}

/// Nobody else makes or removes the directory until this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct KeptLock {
    _file: File,
}

/// A directory for what is not finished. What is still in it is removed in the end.
#[derive(Debug)]
pub(crate) struct Partial {
    path: PathBuf,
}

impl Deref for Partial {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Kept {
    /// All keys of one kind of thing lie side by side in `shelf`.
    pub fn new(shelf: PathBuf, key: String) -> Self {
        Self { shelf, key }
    }

    /// Where it is when it is made.
    pub fn path(&self) -> PathBuf {
        self.shelf.join(&self.key)
    }

    /// Waits until no other process makes it; `waiting` hears who does.
    pub fn lock(&self, waiting: &mut dyn FnMut(String)) -> io::Result<KeptLock> {
        fs::create_dir_all(&self.shelf)?;
        let mut file = loop {
            let mut file = open(&self.lock_path())?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    let _ = file.read_to_string(&mut holder);
                    waiting(if holder.trim().is_empty() { "another process".to_owned() } else { holder.trim().to_owned() });
                    file.lock()?;
                }
            }
            // Who removes what is not used removes the lock with it: what we locked may have no name any more.
            let ours = file.metadata()?.ino();
            if fs::metadata(self.lock_path()).is_ok_and(|named| named.ino() == ours) {
                break file;
            }
        };
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "process {}", std::process::id())?;
        Ok(KeptLock { _file: file })
    }

    /// A new directory for what is not finished; those of processes that were killed are removed. Only while the lock is held.
    pub fn partial(&self) -> io::Result<Partial> {
        let prefix = format!("{}.partial-", self.key);
        for entry in fs::read_dir(&self.shelf)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        // Named after the process: what a killed one left may take a moment to end, and then writes into a directory that is gone.
        let partial = self.shelf.join(format!("{prefix}{}", std::process::id()));
        fs::create_dir(&partial)?;
        Ok(Partial { path: partial })
    }

    /// Remembers that it was used now. Whoever may only read the cache leaves no trace, and need not.
    pub fn note_use(&self) {
        let _ = open(&self.lock_path()).and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Removes what lies beside it and was not used for long.
    pub fn remove_unused(&self) {
        for entry in fs::read_dir(&self.shelf).into_iter().flatten().flatten() {
            let Some(name) = entry.file_name().into_string().ok() else { continue };
            // What is not finished is nobody's as soon as nobody makes it.
            let (key, is_partial) = match name.split_once(".partial-") {
                Some((key, _)) => (key, true),
                None => (name.as_str(), false),
            };
            if key.contains('.') || key == self.key {
                continue;
            }
            let other = Self::new(self.shelf.clone(), key.to_owned());
            if !entry.path().is_dir() || !(is_partial || other.is_unused()) {
                continue;
            }
            let Ok(lock) = open(&other.lock_path()) else { continue };
            if lock.try_lock().is_ok() && fs::remove_dir_all(entry.path()).is_ok() && !other.path().exists() {
                let _ = fs::remove_file(other.lock_path());
            }
        }
    }

    /// The lock tells when it was used last; one without a lock counts by its own age.
    fn is_unused(&self) -> bool {
        let used = fs::metadata(self.lock_path()).or_else(|_| fs::metadata(self.path())).and_then(|found| found.modified());
        used.is_ok_and(|used| used.elapsed().is_ok_and(|ago| ago > UNUSED))
    }

    fn lock_path(&self) -> PathBuf {
        self.shelf.join(format!("{}.lock", self.key))
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_long_is_removed_and_what_is_in_use_stays() {
        let shelf = tempfile::tempdir().unwrap();
        let kept = |key: &str| Kept::new(shelf.path().to_owned(), key.to_owned());
        let long_ago = SystemTime::now() - 2 * UNUSED;
        for key in ["new", "old", "used", "locked"] {
            fs::create_dir(kept(key).path()).unwrap();
            open(&kept(key).lock_path()).unwrap().set_modified(long_ago).unwrap();
        }
        fs::create_dir(shelf.path().join("killed.partial-7")).unwrap();
        fs::create_dir(shelf.path().join("locked.partial-8")).unwrap();
        kept("used").note_use();
        let held = kept("locked").lock(&mut |_| {}).unwrap();
        open(&kept("locked").lock_path()).unwrap().set_modified(long_ago).unwrap();
        kept("new").remove_unused();
        assert!(!kept("old").path().exists() && !kept("old").lock_path().exists());
        for key in ["new", "used", "locked", "locked.partial-8"] {
            assert!(kept(key).path().exists(), "{key}");
        }
        assert!(!kept("killed.partial-7").path().exists() && !kept("killed").lock_path().exists(), "what a killed process did not finish");
        drop(held);
    }

    #[test]
    fn a_new_beginning_removes_what_a_killed_one_left() {
        let shelf = tempfile::tempdir().unwrap();
        let kept = Kept::new(shelf.path().to_owned(), "a".to_owned());
        fs::create_dir_all(shelf.path().join("a.partial-1/deep")).unwrap();
        let partial = kept.partial().unwrap();
        assert!(partial.is_dir() && !shelf.path().join("a.partial-1").exists());
        let path = partial.to_owned();
        drop(partial);
        assert!(!path.exists(), "nobody finished it");
    }
}
