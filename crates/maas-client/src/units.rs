//! Amounts as types: MAAS counts memory in MiB, a machine's storage in MB and disks in bytes. Used by machines and VM hosts.
//!
//! Those of VM hosts are signed: an over-committed one has less than nothing left.

use std::fmt;

use serde::{Deserialize, Serialize};

/// 2²⁰ bytes: memory. Signed, since an over-committed VM host has less than nothing left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MebiBytes(pub i64);

impl fmt::Display for MebiBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// 10⁶ bytes, with a fraction: the sum of a machine's disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MegaBytes(pub f64);

/// Bytes: disks, partitions and storage pools. Signed, since an over-committed pool has less than nothing left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteCount(pub i64);

/// Seconds a name server may keep an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimeToLive(pub u32);

impl fmt::Display for TimeToLive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
