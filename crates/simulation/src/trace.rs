//! Everything that went over the (absent) wire, in order, and its digest. Two runs are the same run if their digests are.

use sha2::{Digest, Sha256};
use std::{fmt, sync::Arc, sync::Mutex, sync::PoisonError, time::Duration};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When, since the world began.
    pub at: Duration,
    /// Whose call it was.
    pub client: String,
    /// The number of the call.
    pub call: u64,
    /// What: the request with its body, the answer with its body, or an event of a watch.
    pub what: String,
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:>9.3}s {} #{} {}", self.at.as_secs_f64(), self.client, self.call, self.what)
    }
}

/// The record of a world; clones are the same record.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    entries: Arc<Mutex<Vec<Entry>>>,
}

impl Trace {
    pub(crate) fn add(&self, entry: Entry) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// All entries so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The digest of all entries, which are gone afterwards: caches and controllers of a run that was cut off may keep the record alive.
    pub fn finish(&self) -> String {
        let digest = self.digest();
        *self.entries.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
        digest
    }

    /// The digest of all entries so far: method, path, body, virtual time and answer of every call.
    pub fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for entry in self.entries.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            digest.update(format!("{} {} {} {}\n", entry.at.as_nanos(), entry.client, entry.call, entry.what));
        }
        let bytes = digest.finalize();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
    }
}
