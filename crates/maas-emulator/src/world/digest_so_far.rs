//! A digest in the middle of its work, as the state file keeps it: an upload in pieces goes on after a restart, and its last piece is
//! checked against all of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
use sha2::Sha256;
use sha2::digest::common::hazmat::{SerializableState, SerializedState};

#[expect(clippy::ref_option, reason = "serde passes the field as it is")]
pub fn serialize<S: Serializer>(digest: &Option<Sha256>, serializer: S) -> Result<S::Ok, S::Error> {
    digest.as_ref().map(|digest| STANDARD.encode(SerializableState::serialize(digest))).serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Sha256>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let broken = || D::Error::custom("the digest of an upload is broken");
    let bytes = STANDARD.decode(text).map_err(|_| broken())?;
    let state = SerializedState::<Sha256>::try_from(bytes.as_slice()).map_err(|_| broken())?;
    <Sha256 as SerializableState>::deserialize(&state).map(Some).map_err(|_| broken())
}
