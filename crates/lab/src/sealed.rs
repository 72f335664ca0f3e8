//! Files of the cache that are believed only while they are as somebody left them: what a full disk, an interrupted copy or a curious
//! person changes is found out before it is used. The stores of programs and of images keep one in their records.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Files below a directory, by their paths in it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sealed {
    /// Every file with its size, which is what a full disk or an interrupted copy changes.
    pub files: BTreeMap<PathBuf, u64>,
    /// What tells that a file of the right size is another. Records of earlier versions have none.
    #[serde(default)]
    seals: BTreeMap<PathBuf, Seal>,
}

/// When a file was written, and what was in it. Only a file that was touched since is read again: digests of all would cost a second at
/// each start.
#[derive(Debug, Serialize, Deserialize)]
struct Seal {
    modified: SystemTime,
    sha256: String,
}

impl Sealed {
    /// As they are now.
    pub fn of(root: &Path, files: Vec<PathBuf>) -> io::Result<Self> {
        let mut sealed = Self::default();
        for path in files {
            let metadata = fs::metadata(root.join(&path))?;
            let seal = Seal { modified: metadata.modified()?, sha256: digest(&root.join(&path))? };
            sealed.seals.insert(path.clone(), seal);
            sealed.files.insert(path, metadata.len());
        }
        Ok(sealed)
    }

    /// Whether they are all there and as they were.
    pub fn is_intact(&self, root: &Path) -> bool {
        self.files.iter().all(|(path, size)| {
            let Ok(metadata) = fs::metadata(root.join(path)) else { return false };
            let is_as_sealed = |seal: &Seal| {
                metadata.modified().is_ok_and(|modified| modified == seal.modified)
                    || digest(&root.join(path)).is_ok_and(|digest| digest == seal.sha256)
            };
            metadata.is_file() && metadata.len() == *size && self.seals.get(path).is_none_or(is_as_sealed)
        })
    }
}

fn digest(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let (mut file, mut piece) = (File::open(path)?, vec![0; 1 << 20]);
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok(BASE64.encode(hasher.finalize()));
        }
        hasher.update(&piece[..length]);
    }
}

/// Replaces a file by one that is complete on disk, or not at all.
pub(crate) fn write_whole(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(content)?;
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&new)))
}
