//! Every call, kept and counted: tests and benchmarks read here what a client really did.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

/// How many calls keep their bodies.
const BODIES: usize = 1_000;
/// Bodies above this are not kept: a list of all machines is hundreds of megabytes, and nobody reads it here.
const LARGEST_KEPT: usize = 128 * 1024;
/// How many calls are kept at all; the counts go on.
const CALLS: usize = 200_000;

/// One call as it went.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Counts up from 1.
    pub number: u64,
    /// When it came.
    pub at: Timestamp,
    /// Who; nobody for anonymous calls.
    pub user: Option<String>,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// The operation, wherever it was named.
    pub operation: Option<String>,
    /// The status; 0 when the connection was cut instead.
    pub status: u16,
    /// Size of the answer's body.
    pub size: usize,
    /// The request's body, of the latest thousand, unless it is large.
    #[serde(skip)]
    pub request: Option<Bytes>,
    /// The answer's body, of the latest thousand, unless it is large.
    #[serde(skip)]
    pub response: Option<Bytes>,
}

/// All calls.
#[derive(Debug, Default)]
pub struct Journal {
    entries: VecDeque<Entry>,
    total: u64,
    by_user: BTreeMap<String, u64>,
}

impl Journal {
    /// Adds a call.
    pub fn add(&mut self, mut entry: Entry) {
        self.total += 1;
        entry.number = self.total;
        entry.request.take_if(|body| body.len() > LARGEST_KEPT);
        entry.response.take_if(|body| body.len() > LARGEST_KEPT);
        *self.by_user.entry(entry.user.clone().unwrap_or_default()).or_default() += 1;
        self.entries.push_back(entry);
        let without_bodies = self.entries.len().checked_sub(BODIES + 1);
        if let Some(old) = without_bodies.and_then(|index| self.entries.get_mut(index)) {
            old.request = None;
            old.response = None;
        }
        if self.entries.len() > CALLS {
            self.entries.pop_front();
        }
    }

    /// The calls kept, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// How many calls there were in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many calls each user made; the empty name is nobody.
    pub fn by_user(&self) -> &BTreeMap<String, u64> {
        &self.by_user
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        *self = Journal::default();
    }
}
