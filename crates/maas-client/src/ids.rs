//! Ids as types, so that a subnet's number is never taken for a VLAN's. Used by every endpoint.

use std::{cmp::Ordering, fmt, hash, marker::PhantomData};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What MAAS calls a machine: six letters and digits, for as long as the machine is known to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SystemId(String);

impl SystemId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SystemId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for SystemId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for SystemId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The number of an object of kind `K`, such as `Id<Subnet>`.
///
/// An answer without the number gives -1: MAAS has no such object, while 0 is its default pool and default domain.
pub struct Id<K>(i64, PhantomData<fn() -> K>);

impl<K> Id<K> {
    /// The id with this number.
    pub const fn new(number: i64) -> Self {
        Self(number, PhantomData)
    }

    /// The number.
    pub const fn number(self) -> i64 {
        self.0
    }
}

impl<K> Default for Id<K> {
    fn default() -> Self {
        Self::new(-1)
    }
}

impl<K> From<i64> for Id<K> {
    fn from(number: i64) -> Self {
        Self::new(number)
    }
}

impl<K> fmt::Display for Id<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<K> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl<'de, K> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map_or_else(Self::default, Self::new))
    }
}

// Written out, since derives would ask the same of `K`.
impl<K> Copy for Id<K> {}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K> Eq for Id<K> {}

impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<K> hash::Hash for Id<K> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
