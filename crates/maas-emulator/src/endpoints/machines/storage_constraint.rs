//! The `storage` constraint: `label:size(tag,tag),…`, sizes in GB. The first entry is the disk of the root file system, the others are
//! unused disks.

use std::collections::BTreeMap;

use crate::world::machine::Machine;
use crate::world::storage::{Contents, Disk};

/// What the disks must be like.
#[derive(Debug)]
pub struct StorageConstraint {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    label: Option<String>,
    bytes: f64,
    tags: Vec<String>,
}

impl StorageConstraint {
    /// Reads it; none when it is malformed.
    pub fn read(text: &str) -> Option<Self> {
        let mut entries = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = end_of_entry(rest);
            entries.push(Entry::read(rest[..end].trim())?);
            rest = rest[end..].strip_prefix(',').unwrap_or("");
        }
        (!entries.is_empty()).then_some(StorageConstraint { entries })
    }

    /// The disks that satisfy it, by label; none when the machine does not.
    pub fn assign(&self, machine: &Machine) -> Option<BTreeMap<String, u32>> {
        let mut assigned = BTreeMap::new();
        let root = machine.disks.iter().find(|disk| disk.holds_root())?;
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        let first = entries.remove(0);
        if !first.fits(root) {
            return None;
        }
        first.note(root.id, &mut assigned);
        let mut unused: Vec<&Disk> = machine.disks.iter().filter(|disk| matches!(disk.contents, Contents::Unused)).collect();
        unused.sort_by_key(|disk| disk.size);
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.tags.len()));
        for entry in entries {
            let position = unused.iter().position(|disk| entry.fits(disk))?;
            entry.note(unused.remove(position).id, &mut assigned);
        }
        Some(assigned)
    }

    /// What a composed machine's disks are made like: size in bytes and tags.
    pub fn disks(&self) -> impl Iterator<Item = (u64, &[String])> {
        self.entries.iter().map(|entry| (whole_bytes(entry.bytes), entry.tags.as_slice()))
    }

    /// Whether any entry has a label, so that an answer reports disks.
    pub fn is_labelled(&self) -> bool {
        self.entries.iter().any(|entry| entry.label.is_some())
    }
}

impl Entry {
    fn read(text: &str) -> Option<Self> {
        let (head, tags) = match text.split_once('(') {
            Some((head, tags)) => {
                (head, tags.strip_suffix(')')?.split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect())
            }
            None => (text, Vec::new()),
        };
        let (label, size) = match head.split_once(':') {
            Some((label, size)) => (Some(label.to_owned()), size),
            None => (None, head),
        };
        let gigabytes: f64 = size.trim().parse().ok().filter(|size: &f64| size.is_finite() && *size >= 0.0)?;
        Some(Entry { label, bytes: gigabytes * 1e9, tags })
    }

    #[expect(clippy::cast_precision_loss, reason = "disk sizes are below 2^53 bytes")]
    fn fits(&self, disk: &Disk) -> bool {
        disk.size as f64 >= self.bytes && self.tags.iter().all(|tag| disk.tags.contains(tag))
    }

    fn note(&self, disk: u32, assigned: &mut BTreeMap<String, u32>) {
        if let Some(label) = &self.label {
            assigned.insert(label.clone(), disk);
        }
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
