//! The directory of a person without a home. It is below that for temporary files, where its name can be guessed and anybody can put
//! something in the way, so it is used only if it is this person's alone. Labs and programs are kept in it.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

/// Where it is; it need not exist.
pub(crate) fn directory() -> PathBuf {
    std::env::temp_dir().join(format!("metalshift-{}", rustix::process::geteuid().as_raw()))
}

/// The directory `path` lies in, if that is one somebody else made or can change.
pub(crate) fn foreign(path: &Path) -> Option<PathBuf> {
    Some(directory()).filter(|directory| path.starts_with(directory) && is_foreign(directory))
}

/// Makes the directory if `path` lies in it, so that nobody else can change it. Says what was made.
pub(crate) fn make_for(path: &Path) -> io::Result<Option<PathBuf>> {
    Some(directory()).filter(|directory| path.starts_with(directory)).map_or(Ok(None), make)
}

fn make(directory: PathBuf) -> io::Result<Option<PathBuf>> {
    match fs::DirBuilder::new().mode(0o700).create(&directory) {
        Ok(()) => Ok(Some(directory)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// A link does not count as a directory, wherever it leads.
fn is_foreign(directory: &Path) -> bool {
    fs::symlink_metadata(directory)
        .is_ok_and(|found| !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn only_a_directory_of_our_own_that_nobody_else_can_write_is_used() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("own");
        assert!(!is_foreign(&own), "what does not exist is in nobody's hands");
        assert_eq!(make(own.clone()).unwrap().as_ref(), Some(&own));
        assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(make(own.clone()).unwrap(), None, "it was there");
        assert!(!is_foreign(&own));
        symlink(&own, place.path().join("link")).unwrap();
        assert!(is_foreign(&place.path().join("link")), "a link can be led elsewhere");
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(is_foreign(&own), "everybody can write it");
    }
}
