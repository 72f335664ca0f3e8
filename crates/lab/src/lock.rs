//! A file that says "this lives, in that process": the kernel lets go of it when its holder dies. `directory` keeps two for every
//! lab, with names of their own: an empty file that is called like any lock may be somebody else's.

use std::{
    fs::{self, File, TryLockError},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::{LabError, place};

/// How often a held lock is looked at before it counts as held: somebody who only looks holds it for a moment.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
    _file: File,
}

impl LockFile {
    /// Takes the lock; nothing when another process holds it.
    pub fn try_take(path: &Path) -> Result<Option<Self>, LabError> {
        let mut looks = 0;
        loop {
            let file = File::options().append(true).create(true).open(path).map_err(LabError::io("open", path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if looks < LOOKS => {
                    looks += 1;
                    thread::sleep(BETWEEN_LOOKS);
                    continue;
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(source)) => return Err(LabError::io("lock", path)(source)),
            }
            let metadata = file.metadata().map_err(LabError::io("look at", path))?;
            if metadata.len() > 0 {
                return Err(LabError::NotOurs { path: path.to_owned() });
            }
            // The holder before us removes the file when it ends: what we locked may have no name any more.
            let ours = metadata.ino();
            if fs::metadata(path).is_ok_and(|named| named.ino() == ours) {
                return Ok(Some(Self { path: path.to_owned(), _file: file }));
            }
        }
    }

    /// Whether a process holds it. Who only asks makes no file and removes none.
    pub fn is_held(path: &Path) -> bool {
        let Ok(file) = File::open(path) else { return false };
        for look in 0..=LOOKS {
            match file.try_lock_shared() {
                Err(TryLockError::WouldBlock) if look < LOOKS => thread::sleep(BETWEEN_LOOKS),
                Err(TryLockError::WouldBlock) => return true,
                _ => return false,
            }
        }
        false
    }

    /// The process that holds it, as the kernel tells; nothing when nobody does.
    pub fn holder(path: &Path) -> Option<u32> {
        let path = path.canonicalize().ok()?;
        let inode = fs::metadata(&path).ok()?.ino().to_string();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let holds = |line: &str| {
            // 7: FLOCK  ADVISORY  WRITE 4711 fe:01:262157 0 EOF
            let mut words = line.split_whitespace().skip(1);
            let (kind, mode) = (words.next()?, words.nth(1)?);
            let (process, file) = (words.next()?.parse().ok()?, words.next()?);
            (kind == "FLOCK" && mode == "WRITE" && file.rsplit(':').next() == Some(&inode)).then_some(process)
        };
        // Files of other file systems have numbers of their own.
        locks.lines().filter_map(holds).find(|process| has_open(*process, &path))
    }

    #[cfg(test)]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn has_open(process: u32, path: &Path) -> bool {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file == path)
}

impl Drop for LockFile {
    /// No file is left behind; whoever opened it meanwhile sees that it has no name any more. With the last lock goes what was made for it.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        self.path.parent().into_iter().for_each(place::remove_if_unused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_and_free_again_when_its_holder_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = LockFile::try_take(&path).unwrap().expect("nobody holds it");
        assert!(LockFile::try_take(&path).unwrap().is_none() && LockFile::is_held(&path));
        assert_eq!(LockFile::holder(&path), Some(std::process::id()));
        drop(held);
        assert_eq!(LockFile::holder(&path), None);
        assert!(!path.exists() && !LockFile::is_held(&path) && !path.exists(), "who only asks makes no file");
        assert!(LockFile::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn a_file_of_somebody_else_is_neither_taken_nor_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("yarn.lock");
        fs::write(&path, "# yarn").unwrap();
        assert!(!LockFile::is_held(&path));
        assert!(matches!(LockFile::try_take(&path), Err(LabError::NotOurs { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "# yarn");
    }
}
