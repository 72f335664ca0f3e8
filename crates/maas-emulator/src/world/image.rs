//! Images that can be deployed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::digest_so_far;
use super::id::Id;

/// An image for one architecture.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Image {
    /// Its id.
    pub id: Id<Image>,
    /// `ubuntu/jammy`, or the bare name of an uploaded one.
    pub name: String,
    /// `amd64/ga-22.04`.
    pub architecture: String,
    /// Uploaded by a person instead of synced.
    pub uploaded: bool,
    /// What it says of itself.
    pub title: Option<String>,
    /// What an uploaded one was made from.
    pub base_image: Option<String>,
    /// The kernels it offers, comma separated.
    pub subarches: String,
    /// When a machine last got it.
    pub last_deployed: Option<Timestamp>,
    /// Its content, version by version, oldest first.
    pub sets: Vec<ImageSet>,
}

/// One version of an image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ImageSet {
    /// `20260801`; the second of a day is `20260801.1`.
    pub version: String,
    /// Its files.
    pub files: Vec<ImageFile>,
}

/// A file of an image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ImageFile {
    /// Its number, by which pieces of it are uploaded.
    pub id: u32,
    /// Its name.
    pub filename: String,
    /// `squashfs`, `root-tgz`, …
    pub filetype: String,
    /// Its digest.
    pub sha256: String,
    /// Its full size in bytes.
    pub size: u64,
    /// How much of it has arrived; the content itself is not kept.
    pub received: u64,
    /// The digest of what has arrived; none for what came at once.
    #[serde(default, with = "digest_so_far")]
    pub digest: Option<Sha256>,
}

impl ImageSet {
    /// Whether all of it has arrived.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.received >= file.size)
    }
}

impl Image {
    /// Whether all of a version has arrived; an image without such a version cannot be deployed.
    pub fn is_complete(&self) -> bool {
        self.sets.iter().any(ImageSet::is_complete)
    }

    /// The name of its next version, if that is made on this day.
    pub fn next_version(&self, day: &str) -> String {
        let taken = |version: &String| self.sets.iter().any(|set| set.version == *version);
        let later = (1..).map(|number| format!("{day}.{number}"));
        std::iter::once(day.to_owned()).chain(later).find(|version| !taken(version)).unwrap_or_default()
    }

    /// The operating system and the series a deployment names.
    pub fn os_and_series(&self) -> (&str, &str) {
        if self.uploaded {
            ("custom", self.name.strip_prefix("custom/").unwrap_or(&self.name))
        } else {
            self.name.split_once('/').unwrap_or(("custom", &self.name))
        }
    }
}
