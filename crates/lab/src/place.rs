//! The directory that all labs lie in. Whoever takes a lock makes it, and whoever lets go of the last one removes it, as far as labs have
//! made it: a directory that a person made stays, empty or not. `directory` makes it; `lock` and the janitor remove it.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
};

use crate::{LabError, private};

/// The file that names the directories that were made for labs, a line each. It lies in the place itself, so directories of people get
/// no file of ours.
pub(crate) const MADE: &str = ".metalshift-labs";

/// Makes the place if it is not there.
pub(crate) fn make(labs: &Path) -> Result<(), LabError> {
    loop {
        let mut made = Vec::new();
        made.extend(private::make_for(labs).map_err(LabError::io("create", labs))?);
        check(labs)?;
        create(labs, &mut made).map_err(LabError::io("create", labs))?;
        match remember(labs, &made) {
            // Somebody let go of the last lock in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            remembered => return remembered.map_err(LabError::io("write", labs.join(MADE))),
        }
    }
}

/// Fails where somebody else could have made the files of a lab.
pub(crate) fn check(labs: &Path) -> Result<(), LabError> {
    private::foreign(labs).map_or(Ok(()), |path| Err(LabError::ForeignDirectory { path }))
}

/// Removes the place, and what was made for it, if nothing else is in there any more.
pub(crate) fn remove_if_unused(labs: &Path) {
    let file = labs.join(MADE);
    let Ok(content) = fs::read(&file) else { return };
    let is_unused = fs::read_dir(labs).is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == MADE));
    if !is_unused || fs::remove_file(&file).is_err() {
        return;
    }
    let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut made: Vec<&Path> = lines.map(|line| Path::new(OsStr::from_bytes(line))).filter(|path| labs.starts_with(path)).collect();
    // What lies deeper first. Neither is a directory removed that has something in it.
    made.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
    let removed = made.iter().take_while(|path| fs::remove_dir(path).is_ok()).count();
    if removed == 0 {
        // Somebody has taken a lock meanwhile, and will let go of it.
        let _ = fs::write(&file, content);
    }
}

/// Makes a directory and what is missing above it, and says what that was.
fn create(directory: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    // Nobody else writes there, whatever the person's umask is.
    match fs::DirBuilder::new().mode(0o755).create(directory) {
        Ok(()) => {
            made.push(directory.to_owned());
            Ok(())
        }
        Err(error) => match (error.kind(), directory.parent()) {
            (io::ErrorKind::NotFound, Some(parent)) => {
                create(parent, made)?;
                create(directory, made)
            }
            (io::ErrorKind::AlreadyExists, _) if directory.is_dir() => Ok(()),
            _ => Err(error),
        },
    }
}

fn remember(labs: &Path, made: &[PathBuf]) -> io::Result<()> {
    // A path of two lines could be read as another directory. Such a place stays.
    let paths = made.iter().map(|path| path.as_os_str().as_bytes()).filter(|path| !path.contains(&b'\n'));
    let lines: Vec<u8> = paths.flat_map(|path| [path, b"\n"].concat()).collect();
    if lines.is_empty() {
        return Ok(());
    }
    // Several that begin at once have each made a part of it.
    File::options().append(true).create(true).open(labs.join(MADE))?.write_all(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_for_labs_goes_with_the_last_lock_and_what_a_person_made_stays() {
        let persons = tempfile::tempdir().unwrap();
        let labs = persons.path().join("a/b/labs");
        make(&labs).unwrap();
        let lock = labs.join("one.metalshift-lock");
        fs::write(&lock, "").unwrap();
        remove_if_unused(&labs);
        assert!(lock.exists() && labs.join(MADE).exists(), "a lab is there");
        fs::remove_file(lock).unwrap();
        remove_if_unused(&labs);
        assert!(!persons.path().join("a").exists());
        assert!(persons.path().exists());

        fs::create_dir(persons.path().join("a")).unwrap();
        make(&labs).unwrap();
        remove_if_unused(&labs);
        assert!(persons.path().join("a").exists() && !persons.path().join("a/b").exists());

        make(persons.path()).unwrap();
        remove_if_unused(persons.path());
        assert!(persons.path().exists() && !persons.path().join(MADE).exists());
    }

    #[test]
    fn a_place_on_whose_way_something_else_is_kept_by_now_goes_as_far_as_it_is_empty() {
        let persons = tempfile::tempdir().unwrap();
        let labs = persons.path().join("a/labs");
        make(&labs).unwrap();
        fs::write(persons.path().join("a/thesis"), "precious").unwrap();
        remove_if_unused(&labs);
        assert!(!labs.exists() && persons.path().join("a/thesis").exists());
    }

    #[test]
    fn a_place_that_was_moved_takes_no_other_directory_with_it() {
        let persons = tempfile::tempdir().unwrap();
        make(&persons.path().join("a/labs")).unwrap();
        fs::create_dir(persons.path().join("mine")).unwrap();
        fs::rename(persons.path().join("a/labs"), persons.path().join("mine/labs")).unwrap();
        remove_if_unused(&persons.path().join("mine/labs"));
        assert!(persons.path().join("mine/labs").exists() && persons.path().join("a").exists());
    }
}
