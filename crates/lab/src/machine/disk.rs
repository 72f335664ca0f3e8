//! Disks of machines: directories in one memory file system of the lab. Power off keeps them, a wipe empties them, and the end
//! of the lab frees them even if nobody is left to do so.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::mount::{MountFlags, mount};

use crate::{LabError, command::run};

/// Directories of a machine that must be a plain file system of their own: containerd mounts overlays there, and an overlay on an
/// overlay is refused.
pub(crate) const PLAIN_DIRECTORIES: [&str; 4] = ["var/lib/containerd", "var/lib/kubelet", "var/lib/etcd", "var/log"];

/// The memory file system that holds all disks of a lab.
#[derive(Clone, Debug)]
pub(crate) struct DiskSpace {
    path: PathBuf,
}

impl DiskSpace {
    /// Mounts it; it is visible only in the mount namespace of this process and those below.
    pub fn mount(path: PathBuf) -> Result<Self, LabError> {
        fs::create_dir_all(&path).map_err(LabError::io("create", &path))?;
        mount("metalshift-disks", &path, "tmpfs", MountFlags::empty(), Some(c"mode=0755,size=80%"))
            .map_err(|error| LabError::io("mount the disks of the lab at", &path)(error.into()))?;
        Ok(Self { path })
    }

    /// Where a directory shared by all machines goes.
    pub fn shared(&self, name: &str) -> PathBuf {
        self.path.join("shared").join(name)
    }

    /// Copies a directory in, for all machines.
    pub fn copy_shared(&self, from: &Path, name: &str) -> Result<(), LabError> {
        let to = self.shared(name);
        fs::create_dir_all(&to).map_err(LabError::io("create", &to))?;
        run("cp", ["-aT".as_ref(), from.as_os_str(), to.as_os_str()]).map(drop).map_err(in_memory)
    }

    pub fn of_machine(&self, machine: &str) -> PathBuf {
        self.path.join("machines").join(machine)
    }

    /// Makes an empty disk unless there is one. Images come as hard links to a copy in the same file system: no time, no space.
    pub fn format(&self, machine: &str) -> Result<PathBuf, LabError> {
        let disk = self.of_machine(machine);
        if !disk.exists() {
            // Half a disk would be taken for a whole one.
            self.fill(&disk).inspect_err(|_| drop(self.wipe(machine))).map_err(in_memory)?;
        }
        Ok(disk)
    }

    fn fill(&self, disk: &Path) -> Result<(), LabError> {
        for directory in ["upper", "work", "root"].iter().chain(&PLAIN_DIRECTORIES) {
            let path = disk.join(directory);
            fs::create_dir_all(&path).map_err(LabError::io("create", &path))?;
        }
        let (images, own) = (self.shared("containerd"), disk.join("var/lib/containerd"));
        run("cp", ["-alT".as_ref(), images.as_os_str(), own.as_os_str()])?;
        // Databases are written in place, so every machine needs its own.
        let databases = run("find", [own.as_os_str(), "-name".as_ref(), "*.db".as_ref()])?;
        for database in databases.lines() {
            let copy = format!("{database}.own");
            fs::copy(database, &copy).and_then(|_| fs::rename(&copy, database)).map_err(LabError::io("copy", database))?;
        }
        Ok(())
    }

    /// Throws a disk away.
    pub fn wipe(&self, machine: &str) -> Result<(), LabError> {
        let disk = self.of_machine(machine);
        match fs::remove_dir_all(&disk) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(LabError::io("wipe", disk)(error)),
            _ => Ok(()),
        }
    }
}

/// No directory a person could choose has more room.
fn in_memory(error: LabError) -> LabError {
    if error.is_about_space() { LabError::MemoryFull } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::is_root;

    #[test]
    fn a_full_disk_of_machines_is_one_sentence_about_memory_and_leaves_no_half_disk() {
        if !is_root("only root can make a disk that is full") {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        run("mount", ["-t", "tmpfs", "-o", "size=96k", "tmpfs", place.path().to_str().unwrap()]).unwrap();
        let disks = DiskSpace { path: place.path().to_owned() };
        let images = disks.shared("containerd");
        fs::create_dir_all(&images).unwrap();
        fs::write(images.join("meta.db"), vec![1; 60 << 10]).unwrap();
        let formatted = disks.format("rack").map_err(|error| error.to_string());
        let left = disks.of_machine("rack").exists();
        let copied = disks.copy_shared(&images, "again").map_err(|error| error.to_string());
        run("umount", [place.path()]).unwrap();
        for refused in [formatted.map(drop), copied] {
            let words = refused.expect_err("a full disk");
            assert!(words.starts_with("no space left for the disk of a machine"), "{words}");
        }
        assert!(!left);
    }
}
