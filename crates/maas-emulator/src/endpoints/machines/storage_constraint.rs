//! The `storage` constraint: `label:size(tag,tag),…`, sizes in GB. The first entry is the device of the root file system, the others are
//! unused ones. Devices are disks, or partitions where the tag `partition` says so.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::world::machine::Machine;
use crate::world::storage::{Contents, Disk, Filesystem, Partition, Volume};

/// The tag that asks for a partition.
const PARTITION: &str = "partition";

/// What the devices must be like.
#[derive(Debug, Default)]
pub struct StorageConstraint {
    /// The root's first, then those with most tags, which fit the fewest devices.
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    label: Option<String>,
    bytes: f64,
    /// Without the one that asks for a partition.
    tags: Vec<String>,
    of_partition: bool,
}

/// A device that satisfies an entry, as MAAS names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    Disk(u32),
    Partition(u32),
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Disk(id) => write!(formatter, "{id}"),
            Device::Partition(id) => write!(formatter, "{PARTITION}:{id}"),
        }
    }
}

impl Serialize for Device {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Device::Disk(id) => serializer.serialize_u32(*id),
            Device::Partition(_) => serializer.collect_str(self),
        }
    }
}

/// What is asked of a device, whatever it is.
struct Offer<'a> {
    device: Device,
    size: u64,
    tags: &'a [String],
}

impl<'a> Offer<'a> {
    fn disk(disk: &'a Disk) -> Self {
        Offer { device: Device::Disk(disk.id), size: disk.size, tags: &disk.tags }
    }

    fn volume(volume: &'a Volume) -> Self {
        Offer { device: Device::Disk(volume.id), size: volume.size, tags: &[] }
    }

    fn partition(partition: &'a Partition) -> Self {
        Offer { device: Device::Partition(partition.id), size: partition.size, tags: &[] }
    }
}

impl StorageConstraint {
    /// Reads it; none when it is malformed.
    pub fn read(text: &str) -> Option<Self> {
        let mut entries = Vec::new();
        let mut rest = Some(text.trim());
        while let Some(text) = rest {
            let end = end_of_entry(text);
            entries.push(Entry::read(&text[..end])?);
            rest = text[end..].strip_prefix(',');
        }
        let others = entries.get_mut(1..).unwrap_or_default();
        others.sort_by_key(|entry| std::cmp::Reverse(entry.tags.len() + usize::from(entry.of_partition)));
        Some(StorageConstraint { entries })
    }

    /// The devices that satisfy it with their labels; none when the machine does not.
    pub fn assign(&self, machine: &Machine) -> Option<Vec<(Device, &str)>> {
        let mut taken: Vec<(Device, Option<&str>)> = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let offers = if index == 0 { roots(machine, entry.of_partition) } else { unused(machine, entry.of_partition) };
            let fits = |offer: &&Offer<'_>| entry.fits(offer) && !taken.iter().any(|(device, _)| *device == offer.device);
            let device = offers.iter().find(fits)?.device;
            taken.push((device, entry.label.as_deref()));
        }
        Some(taken.into_iter().filter_map(|(device, label)| Some((device, label?))).collect())
    }

    /// The devices of a machine by label, as an allocation reports them.
    pub fn by_label(&self, machine: &Machine) -> BTreeMap<&str, Vec<Device>> {
        let mut found: BTreeMap<&str, Vec<Device>> = BTreeMap::new();
        for (device, label) in self.assign(machine).unwrap_or_default() {
            found.entry(label).or_default().push(device);
        }
        found
    }

    /// What a composed machine's disks are made like: size in bytes and tags.
    pub fn disks(&self) -> impl Iterator<Item = (u64, &[String])> {
        self.entries.iter().map(|entry| (whole_bytes(entry.bytes), entry.tags.as_slice()))
    }
}

fn is_root(filesystem: Option<&Filesystem>) -> bool {
    filesystem.is_some_and(|filesystem| filesystem.mount_point.as_deref() == Some("/"))
}

/// Where the root file system is: on a disk or a volume, or on the partition itself.
fn roots(machine: &Machine, of_partition: bool) -> Vec<Offer<'_>> {
    if of_partition {
        let partitions = machine.disks.iter().flat_map(Disk::partitions);
        return partitions.filter(|partition| is_root(partition.filesystem.as_ref())).map(Offer::partition).collect();
    }
    let volumes = machine.volume_groups.iter().flat_map(|group| &group.volumes).filter(|volume| is_root(volume.filesystem.as_ref()));
    machine.disks.iter().filter(|disk| disk.holds_root()).map(Offer::disk).chain(volumes.map(Offer::volume)).collect()
}

/// What nothing is on yet, the smallest first.
fn unused(machine: &Machine, of_partition: bool) -> Vec<Offer<'_>> {
    let mut offers: Vec<Offer<'_>> = if of_partition {
        let partitions = machine.disks.iter().flat_map(Disk::partitions);
        partitions.filter(|partition| partition.filesystem.is_none()).map(Offer::partition).collect()
    } else {
        machine.disks.iter().filter(|disk| matches!(disk.contents, Contents::Unused)).map(Offer::disk).collect()
    };
    offers.sort_by_key(|offer| offer.size);
    offers
}

impl Entry {
    fn read(text: &str) -> Option<Self> {
        let (head, mut tags) = match text.split_once('(') {
            Some((head, tags)) => {
                let tags = tags.strip_suffix(')').filter(|tags| !tags.is_empty() && !tags.contains(')'))?;
                (head, tags.split(',').map(str::to_owned).collect())
            }
            None => (text, Vec::new()),
        };
        let (label, size) = match head.split_once(':') {
            Some((label, size)) => (Some(label), size),
            None => (None, head),
        };
        let is_label = |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_size = size.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let gigabytes: f64 = size.parse().ok().filter(|_| is_size && label.is_none_or(is_label))?;
        let of_partition = tags.iter().any(|tag| tag == PARTITION);
        tags.retain(|tag: &String| tag != PARTITION);
        Some(Entry { label: label.map(str::to_owned), bytes: gigabytes * 1e9, tags, of_partition })
    }

    #[expect(clippy::cast_precision_loss, reason = "sizes are below 2^53 bytes")]
    fn fits(&self, offer: &Offer<'_>) -> bool {
        offer.size as f64 >= self.bytes && self.tags.iter().all(|tag| offer.tags.contains(tag))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size in bytes, checked to be a number above zero")]
fn whole_bytes(bytes: f64) -> u64 {
    bytes.max(0.0) as u64
}

/// Where the next entry begins: a comma outside of parentheses.
fn end_of_entry(text: &str) -> usize {
    let mut depth = 0_u32;
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return index,
            _ => {}
        }
    }
    text.len()
}
