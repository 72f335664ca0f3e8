//! Optional text as people and Go programs write it: an empty string means that nothing is given. Used by the kinds.

use serde::{Deserialize, Deserializer};

/// Reads optional text; what is empty was not given.
pub(crate) fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}
