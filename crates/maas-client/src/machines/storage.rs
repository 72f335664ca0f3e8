//! What MAAS tells of a machine's disks.

use serde::{Deserialize, Serialize};

use crate::{Id, SystemId, units::ByteCount};

/// A disk, or what looks like one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BlockDevice {
    /// Its number.
    pub id: Id<BlockDevice>,
    /// The machine it is part of.
    pub system_id: SystemId,
    /// Its name, such as `sda`.
    pub name: String,
    /// `physical` or `virtual`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its size.
    pub size: ByteCount,
    /// The size of its blocks.
    pub block_size: ByteCount,
    /// What is not used of it.
    pub available_size: ByteCount,
    /// What is used of it.
    pub used_size: ByteCount,
    /// What it is used for, for people.
    pub used_for: String,
    /// Its tags, such as `ssd`.
    pub tags: Vec<String>,
    /// Where an installed system finds it.
    pub path: String,
    /// Where it is found whatever its name.
    pub id_path: Option<String>,
    /// What its maker calls it.
    pub model: Option<String>,
    /// Which of those it is.
    pub serial: Option<String>,
    /// What runs on it.
    pub firmware_version: Option<String>,
    /// The id of virtual ones.
    pub uuid: Option<String>,
    /// The NUMA node it is attached to.
    pub numa_node: Option<i64>,
    /// The VM host's storage pool it lies in.
    pub storage_pool: Option<String>,
    /// Such as `GPT`.
    pub partition_table_type: Option<String>,
    /// Its partitions.
    pub partitions: Vec<Partition>,
    /// What is on the whole of it.
    pub filesystem: Option<Filesystem>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// A partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Partition {
    /// Its number.
    pub id: Id<Partition>,
    /// The machine it is part of.
    pub system_id: SystemId,
    /// The disk it is on.
    pub device_id: Id<BlockDevice>,
    /// Always `partition`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its id.
    pub uuid: Option<String>,
    /// Its size.
    pub size: ByteCount,
    /// Whether firmware boots from it.
    pub bootable: bool,
    /// Its tags.
    pub tags: Vec<String>,
    /// What it is used for, for people.
    pub used_for: String,
    /// Where an installed system finds it.
    pub path: String,
    /// What is on it.
    pub filesystem: Option<Filesystem>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// A file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Filesystem {
    /// Such as `ext4`.
    pub fstype: String,
    /// Its label.
    pub label: Option<String>,
    /// Its id.
    pub uuid: Option<String>,
    /// Where it is mounted.
    pub mount_point: Option<String>,
    /// How it is mounted.
    pub mount_options: Option<String>,
}
