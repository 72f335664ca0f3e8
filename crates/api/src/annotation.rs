//! What an object means to have in MAAS is kept in an annotation of it, because annotations survive `clusterctl move` and UIDs and status do
//! not. Whether an annotation is the object's own is told here, for all of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Serialize, de::DeserializeOwned};

/// What an object's annotation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnotationRead<Intent> {
    /// There is none: MAAS was told nothing by us.
    None,
    /// The object's own.
    Ours(Intent),
    /// That of another object, copied along with its manifest.
    Copied(Intent),
    /// Somebody changed it; holds the reason.
    Unreadable(String),
}

impl<Intent> AnnotationRead<Intent> {
    /// The object's own, if it has one that can be read.
    pub fn ours(self) -> Option<Intent> {
        match self {
            Self::Ours(intent) => Some(intent),
            Self::None | Self::Copied(_) | Self::Unreadable(_) => None,
        }
    }

    /// Why it cannot be read, if it cannot.
    pub fn unreadable(self) -> Option<String> {
        match self {
            Self::Unreadable(words) => Some(words),
            Self::None | Self::Ours(_) | Self::Copied(_) => None,
        }
    }
}

/// Reads an annotation; `object` tells for which object it was written.
pub(crate) fn read<Intent: DeserializeOwned>(
    metadata: &ObjectMeta,
    annotation: &str,
    object: impl Fn(&Intent) -> &str,
) -> AnnotationRead<Intent> {
    let Some(text) = metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation)) else {
        return AnnotationRead::None;
    };
    match serde_json::from_str::<Intent>(text) {
        Ok(intent) if object(&intent) == object_of(metadata) => AnnotationRead::Ours(intent),
        Ok(intent) => AnnotationRead::Copied(intent),
        Err(error) => AnnotationRead::Unreadable(format!("annotation {annotation} cannot be read: {error}")),
    }
}

/// The value of an annotation.
pub(crate) fn write(intent: &impl Serialize) -> String {
    serde_json::json!(intent).to_string()
}

/// The object as `namespace/name`: a copied manifest carries the annotation of the original.
pub(crate) fn object_of(metadata: &ObjectMeta) -> String {
    format!("{}/{}", metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
}
