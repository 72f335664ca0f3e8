//! Numbers as older kinds let them be stored, without an upper bound: one object with a silly number must not hide all objects of its kind from a
//! watch. Used by the kinds and by the slices of Cluster API.

use serde::{Deserialize, Deserializer};

/// Reads an optional amount; what is beyond all machines is as good as the largest.
pub(crate) fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let bound = |number: i64| u32::try_from(number.clamp(0, i32::MAX.into())).unwrap_or_default();
    Ok(Option::<i64>::deserialize(deserializer)?.map(bound))
}

/// Reads an optional port; what is none was not given.
pub(crate) fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let port = Option::<i64>::deserialize(deserializer)?.and_then(|number| u16::try_from(number).ok());
    Ok(port.filter(|port| *port != 0))
}
