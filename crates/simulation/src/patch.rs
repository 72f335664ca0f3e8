//! The four kinds of patch, turned into the object they ask for.

use crate::{
    apply::{Intent, apply},
    refusal::Refusal,
    store::Owners,
};
use serde_json::Value;

/// A patch by its content type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Patch {
    Merge,
    Json,
    Apply(Intent),
}

impl Patch {
    pub fn from_content_type(content_type: &str, manager: Option<&str>, force: bool) -> Result<Self, Refusal> {
        match content_type.split(';').next().unwrap_or_default() {
            "application/merge-patch+json" | "application/strategic-merge-patch+json" => Ok(Self::Merge),
            "application/json-patch+json" => Ok(Self::Json),
            "application/apply-patch+yaml" => {
                let manager = manager.filter(|manager| !manager.is_empty());
                let manager = manager.ok_or_else(|| Refusal::invalid("fieldManager is required for apply patch"))?;
                Ok(Self::Apply(Intent { manager: manager.to_owned(), force }))
            }
            other => Err(Refusal::bad_request(format!("unknown patch type {other}"))),
        }
    }

    /// The object after the patch and who owns its fields then.
    pub fn result(&self, before: &Value, owners: Owners, body: &Value) -> Result<(Value, Owners), Refusal> {
        match self {
            Self::Merge => {
                let mut after = before.clone();
                json_patch::merge(&mut after, body);
                Ok((after, owners))
            }
            Self::Json => Ok((json(before, body)?, owners)),
            Self::Apply(intent) => apply(before, owners, body, intent),
        }
    }
}

/// RFC 6902, all or nothing.
fn json(before: &Value, body: &Value) -> Result<Value, Refusal> {
    let operations: json_patch::Patch =
        serde_json::from_value(body.clone()).map_err(|error| Refusal::bad_request(format!("not a JSON patch: {error}")))?;
    let mut after = before.clone();
    json_patch::patch(&mut after, &operations).map_err(|error| Refusal::invalid(format!("the JSON patch does not apply: {error}")))?;
    Ok(after)
}
