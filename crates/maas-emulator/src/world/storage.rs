//! Disks, partitions and file systems of a machine.

use serde::{Deserialize, Serialize};

/// A disk. Ids of disks and partitions come from the counters of [`super::World`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Disk {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its model.
    pub model: String,
    /// Its serial number.
    pub serial: String,
    /// What the disk holds as a whole.
    pub contents: Contents,
    /// Where the kernel finds it.
    pub id_path: String,
    /// The pool of the VM host it was made in.
    pub storage_pool: Option<String>,
}

/// What a disk holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Contents {
    /// Nothing.
    Unused,
    /// A partition table.
    Partitions(Vec<Partition>),
    /// A file system without partitions.
    Filesystem(Filesystem),
}

/// A partition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Partition {
    /// Its id.
    pub id: u32,
    /// Its UUID.
    pub uuid: String,
    /// Its size in bytes.
    pub size: u64,
    /// Whether the firmware starts from it.
    pub bootable: bool,
    /// What is on it.
    pub filesystem: Option<Filesystem>,
    /// The volume group it is part of.
    pub volume_group: Option<String>,
}

/// A file system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Filesystem {
    /// `ext4`, `fat32`, …
    pub fstype: String,
    /// Its label.
    pub label: String,
    /// Its UUID.
    pub uuid: String,
    /// Where it is mounted.
    pub mount_point: Option<String>,
    /// How it is mounted.
    pub mount_options: Option<String>,
}

/// A volume group of the LVM layout with the one volume MAAS makes in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VolumeGroup {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its UUID.
    pub uuid: String,
    /// Its size in bytes.
    pub size: u64,
    /// The logical volumes in it.
    pub volumes: Vec<Volume>,
    /// The partitions or disks it is made of, by id.
    pub devices: Vec<u32>,
}

/// A logical volume.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Volume {
    /// Its id, from the same counter as disks.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its UUID.
    pub uuid: String,
    /// Its size in bytes.
    pub size: u64,
    /// What is on it.
    pub filesystem: Option<Filesystem>,
}

impl Disk {
    /// The partitions, if it has a table.
    pub fn partitions(&self) -> &[Partition] {
        match &self.contents {
            Contents::Partitions(partitions) => partitions,
            Contents::Unused | Contents::Filesystem(_) => &[],
        }
    }

    /// Whether the root file system is on it.
    pub fn holds_root(&self) -> bool {
        let is_root = |filesystem: &Filesystem| filesystem.mount_point.as_deref() == Some("/");
        match &self.contents {
            Contents::Unused => false,
            Contents::Filesystem(filesystem) => is_root(filesystem),
            Contents::Partitions(partitions) => partitions.iter().any(|partition| partition.filesystem.as_ref().is_some_and(is_root)),
        }
    }
}

/// What a partition table takes from a disk: 4 MiB at the beginning, 1 MiB at the end, and the rest in steps of 4 MiB.
const TABLE: u64 = 5 << 20;
const STEP: u64 = 4 << 20;
/// The EFI partition.
const EFI: u64 = 512 << 20;

impl Disk {
    /// A blank disk.
    pub fn unused(id: u32, name: String, size: u64) -> Self {
        let id_path = format!("/dev/{name}");
        Disk {
            id,
            name,
            size,
            tags: Vec::new(),
            model: String::new(),
            serial: String::new(),
            contents: Contents::Unused,
            id_path,
            storage_pool: None,
        }
    }

    /// What partitions can have of it.
    pub fn partitionable(&self) -> u64 {
        self.size.saturating_sub(TABLE) / STEP * STEP
    }

    /// Bytes in use, as MAAS counts them.
    pub fn used_size(&self) -> u64 {
        match &self.contents {
            Contents::Unused => 0,
            Contents::Filesystem(_) => self.size,
            Contents::Partitions(partitions) => partitions.iter().fold(TABLE, |sum, partition| sum.saturating_add(partition.size)),
        }
    }

    /// Bytes a new partition could have.
    pub fn available_size(&self) -> u64 {
        match &self.contents {
            Contents::Unused => self.partitionable(),
            Contents::Filesystem(_) => 0,
            Contents::Partitions(partitions) => {
                self.partitionable().saturating_sub(partitions.iter().map(|partition| partition.size).sum())
            }
        }
    }

    /// The flat layout: an EFI partition and the root file system on what is left.
    pub fn lay_out_flat(&mut self, world: &mut super::World, ids: &[u32]) {
        let rest = self.partitionable().saturating_sub(EFI);
        let efi = Partition::new(world, ids.first().copied(), EFI, true, Some(("fat32", "efi", "/boot/efi")));
        let root = Partition::new(world, ids.get(1).copied(), rest, false, Some(("ext4", "root", "/")));
        self.contents = Contents::Partitions(vec![efi, root]);
    }
}

impl Partition {
    /// A partition, with a file system of this type, label and mount point.
    pub fn new(world: &mut super::World, id: Option<u32>, size: u64, bootable: bool, filesystem: Option<(&str, &str, &str)>) -> Self {
        let id = id.unwrap_or(world.counters.partition);
        world.counters.partition = world.counters.partition.max(id + 1);
        let uuid = world.random.uuid();
        let filesystem = filesystem.map(|(fstype, label, mount_point)| Filesystem {
            fstype: fstype.into(),
            label: label.into(),
            uuid: world.random.uuid(),
            mount_point: Some(mount_point.into()),
            mount_options: None,
        });
        Partition { id, uuid, size, bootable, filesystem, volume_group: None }
    }
}
