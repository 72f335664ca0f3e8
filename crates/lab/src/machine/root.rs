//! Whether machines can be made of this host's root. They see its files through an overlay, which shows one file system and nothing that
//! is mounted in it. Asked before a lab of level nodes starts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{LabError, packages};

/// What a machine cannot do without, beside the programs of the packages.
const NEEDED: [&str; 3] = ["/etc", "/usr", "/var"];

/// Refuses a host that keeps what machines need in a file system of its own, and a place for labs that no mount could name.
pub(crate) fn check(lab: &Path) -> Result<(), LabError> {
    // Overlays are told their directories in one text, with these between them.
    if lab.to_string_lossy().contains([',', ':', '\\']) {
        return Err(LabError::NotMountable { path: lab.to_owned() });
    }
    let programs = packages::PACKAGES.iter().filter_map(|package| packages::path_of(package.program));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    NEEDED.iter().map(PathBuf::from).chain(programs).find_map(|path| mounted_elsewhere(&path, &mounts)).map_or(Ok(()), Err)
}

fn mounted_elsewhere(path: &Path, mounts: &str) -> Option<LabError> {
    // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(Path::new);
    let place = places.filter(|place| path.starts_with(place)).max_by_key(|place| place.components().count())?;
    (place != Path::new("/")).then(|| LabError::MountedElsewhere { path: path.to_owned(), place: place.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_the_root_can_be_shown_and_what_is_mounted_in_it_cannot() {
        let mounts =
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /usr/local rw - ext4 /dev/sda2 rw\n3 1 8:3 / /etc/hosts rw - ext4 x rw\n";
        for (path, expected) in [("/etc", None), ("/usr", None), ("/usr/bin/containerd", None), ("/usr/local/bin/runc", Some("/usr/local"))]
        {
            let refused = mounted_elsewhere(Path::new(path), mounts).map(|error| error.to_string());
            let expected = expected.map(|place| format!("{path} on {place}, "));
            assert_eq!(refused.is_some(), expected.is_some(), "{path}: {refused:?}");
            assert!(expected.is_none_or(|words| refused.is_some_and(|refused| refused.contains(&words))), "{path}");
        }
    }
}
