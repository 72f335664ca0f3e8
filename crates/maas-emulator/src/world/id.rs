//! Ids that know what they are an id of, and the tables they are keys of.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number MAAS's database gave a row of kind `Row`.
pub struct Id<Row>(pub u32, PhantomData<fn() -> Row>);

impl<Row> Id<Row> {
    /// The id with this number.
    pub const fn new(number: u32) -> Self {
        Id(number, PhantomData)
    }
}

impl<Row> Clone for Id<Row> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<Row> Copy for Id<Row> {}
impl<Row> PartialEq for Id<Row> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<Row> Eq for Id<Row> {}
impl<Row> PartialOrd for Id<Row> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<Row> Ord for Id<Row> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<Row> Hash for Id<Row> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<Row> fmt::Debug for Id<Row> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}
impl<Row> fmt::Display for Id<Row> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}
impl<Row> Serialize for Id<Row> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
impl<'de, Row> Deserialize<'de> for Id<Row> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(Id::new)
    }
}

/// Rows in the order of their ids, as MAAS lists them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "Row: Serialize", deserialize = "Row: Deserialize<'de>"))]
pub struct Table<Row> {
    next: u32,
    rows: BTreeMap<Id<Row>, Row>,
}

impl<Row> Table<Row> {
    /// An empty table whose first row gets this id.
    pub fn starting_at(first: u32) -> Self {
        Table { next: first, rows: BTreeMap::new() }
    }

    /// Adds the row that `make` builds for its id: the wished one, or the next.
    pub fn add(&mut self, wished: Option<u32>, make: impl FnOnce(Id<Row>) -> Row) -> Id<Row> {
        let number = wished.unwrap_or(self.next);
        self.next = self.next.max(number.saturating_add(1));
        let id = Id::new(number);
        self.rows.insert(id, make(id));
        id
    }

    /// The row with this id.
    pub fn get(&self, id: Id<Row>) -> Option<&Row> {
        self.rows.get(&id)
    }

    /// The row with this id, to change it.
    pub fn get_mut(&mut self, id: Id<Row>) -> Option<&mut Row> {
        self.rows.get_mut(&id)
    }

    /// Takes the row out.
    pub fn remove(&mut self, id: Id<Row>) -> Option<Row> {
        self.rows.remove(&id)
    }

    /// All rows by id.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Id<Row>, &Row)> {
        self.rows.iter().map(|(id, row)| (*id, row))
    }

    /// All rows by id.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.rows.values()
    }

    /// All rows by id, to change them.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Row> {
        self.rows.values_mut()
    }

    /// Rows from this number on, which need not be one that a row could have.
    pub fn from(&self, number: i64) -> impl DoubleEndedIterator<Item = &Row> {
        let first = match u32::try_from(number.max(0)) {
            Ok(number) => std::ops::Bound::Included(Id::new(number)),
            Err(_) => std::ops::Bound::Excluded(Id::new(u32::MAX)),
        };
        self.rows.range((first, std::ops::Bound::Unbounded)).map(|(_, row)| row)
    }

    /// Rows before this number, which need not be one that a row could have.
    pub fn before(&self, number: i64) -> impl DoubleEndedIterator<Item = &Row> {
        let end = match u32::try_from(number.max(0)) {
            Ok(number) => std::ops::Bound::Excluded(Id::new(number)),
            Err(_) => std::ops::Bound::Unbounded,
        };
        self.rows.range((std::ops::Bound::Unbounded, end)).map(|(_, row)| row)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The id the next row will get; ids are never used twice.
    pub fn next_id(&self) -> u32 {
        self.next
    }

    /// Lets ids go on from at least here.
    pub fn skip_to(&mut self, next: u32) {
        self.next = self.next.max(next);
    }
}
