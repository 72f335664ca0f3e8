//! Every call counted and the latest ones kept: tests and benchmarks read here what a client really did.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

/// How many calls keep their bodies.
const BODIES: usize = 1_000;
/// How many bytes of bodies are kept in all: a list of all machines is hundreds of megabytes. The oldest go first.
const BYTES: usize = 64 << 20;
/// How many calls are kept at all; the counts go on.
const CALLS: usize = 200_000;

/// One call as it went.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Entry {
    /// Counts up from 1.
    pub number: u64,
    /// When it came.
    pub at: Timestamp,
    /// Who; nobody for anonymous calls.
    pub user: Option<String>,
    /// The token key it was signed with, the part of an API key that is no secret; whether or not MAAS accepted it.
    pub key: Option<String>,
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
    /// The request's body, of the latest thousand, as far as there is room.
    #[serde(skip)]
    pub request: Option<Bytes>,
    /// The answer's body, of the latest thousand, as far as there is room.
    #[serde(skip)]
    pub response: Option<Bytes>,
}

/// All calls.
#[derive(Debug, Default)]
pub struct Journal {
    entries: VecDeque<Entry>,
    total: u64,
    by_user: BTreeMap<String, u64>,
    by_key: BTreeMap<String, u64>,
    /// The numbers of the calls whose bodies are kept, oldest first, and how many bytes those are.
    with_bodies: VecDeque<u64>,
    bytes: usize,
}

impl Entry {
    fn body_bytes(&self) -> usize {
        [&self.request, &self.response].into_iter().flatten().map(Bytes::len).sum()
    }
}

impl Journal {
    /// Adds a call.
    pub fn add(&mut self, mut entry: Entry) {
        self.total += 1;
        entry.number = self.total;
        *self.by_user.entry(entry.user.clone().unwrap_or_default()).or_default() += 1;
        *self.by_key.entry(entry.key.clone().unwrap_or_default()).or_default() += 1;
        self.bytes += entry.body_bytes();
        self.with_bodies.push_back(entry.number);
        self.entries.push_back(entry);
        while self.with_bodies.len() > BODIES || self.bytes > BYTES {
            let Some(number) = self.with_bodies.pop_front() else { break };
            self.drop_bodies(number);
        }
        if self.entries.len() > CALLS {
            self.entries.pop_front();
        }
    }

    fn drop_bodies(&mut self, number: u64) {
        let first = self.entries.front().map_or(0, |entry| entry.number);
        let index = number.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            self.bytes -= entry.body_bytes();
            entry.request = None;
            entry.response = None;
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

    /// How many calls were signed with each token key; the empty one is none.
    pub fn by_key(&self) -> &BTreeMap<String, u64> {
        &self.by_key
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        *self = Journal::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(journal: &mut Journal, key: &str, size: usize) {
        journal.add(Entry {
            number: 0,
            at: Timestamp::UNIX_EPOCH,
            user: Some("alice".into()),
            key: Some(key.into()),
            method: "GET".into(),
            uri: "/".into(),
            operation: None,
            status: 200,
            size,
            request: None,
            response: Some(Bytes::from(vec![0; size])),
        });
    }

    fn kept(journal: &Journal) -> Vec<u64> {
        journal.entries().filter(|entry| entry.response.is_some()).map(|entry| entry.number).collect()
    }

    #[test]
    fn large_bodies_are_kept_as_long_as_all_of_them_have_room() {
        let mut journal = Journal::default();
        for _ in 0..5 {
            call(&mut journal, "a", 20 << 20);
        }
        assert_eq!(kept(&journal), [3, 4, 5]);
        call(&mut journal, "a", 65 << 20);
        assert_eq!((kept(&journal), journal.bytes), (vec![], 0), "one that has no room at all is not kept");
        for _ in 0..1_500 {
            call(&mut journal, "b", 1_000);
        }
        assert_eq!((kept(&journal).len(), kept(&journal)[0]), (1_000, 507));
        assert_eq!((journal.total(), journal.by_key()["a"], journal.by_key()["b"], journal.by_user()["alice"]), (1_506, 6, 1_500, 1_506));
    }

    #[test]
    fn counts_are_of_all_calls_also_of_those_that_are_not_kept() {
        let mut journal = Journal::default();
        for number in 0..CALLS + 10 {
            call(&mut journal, if number % 2 == 0 { "a" } else { "b" }, 0);
        }
        assert_eq!((journal.entries().count(), journal.entries().next().map(|entry| entry.number)), (CALLS, Some(11)));
        assert_eq!((journal.total(), journal.by_key()["a"], journal.by_user()["alice"]), (200_010, 100_005, 200_010));
    }
}
