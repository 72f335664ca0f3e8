//! What a request path names: a resource, perhaps a namespace, perhaps an object, perhaps a part of it.

use crate::refusal::Refusal;
use std::fmt;

/// A resource as the server tells them apart; versions of one resource are the same objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    pub group: String,
    pub plural: String,
}

impl fmt::Display for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.plural)?;
        if self.group.is_empty() { Ok(()) } else { write!(formatter, ".{}", self.group) }
    }
}

/// The key of an object in the store; ordered, so lists have one order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub resource: Resource,
    pub namespace: Option<String>,
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} \"{}\"", self.resource, self.name)
    }
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub resource: Resource,
    pub version: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
}

impl Target {
    pub fn parse(path: &str) -> Result<Self, Refusal> {
        let unknown = || Refusal::not_found(format!("the path {path}"));
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let group = match parts.next() {
            Some("api") => String::new(),
            Some("apis") => parts.next().ok_or_else(unknown)?.to_owned(),
            _ => return Err(unknown()),
        };
        let version = parts.next().ok_or_else(unknown)?.to_owned();
        let rest: Vec<&str> = parts.collect();
        let (namespace, rest) = match rest.as_slice() {
            // The path of a Namespace itself, or of its status, has fewer parts than that of something within.
            ["namespaces", namespace, plural, tail @ ..] if !matches!(*plural, "status" | "finalize") => {
                (Some((*namespace).to_owned()), [&[*plural], tail].concat())
            }
            other => (None, other.to_vec()),
        };
        let (plural, name, subresource) = match rest.as_slice() {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some((*name).to_owned()), None),
            [plural, name, subresource] => (plural, Some((*name).to_owned()), Some((*subresource).to_owned())),
            _ => return Err(unknown()),
        };
        Ok(Self { resource: Resource { group, plural: (*plural).to_owned() }, version, namespace, name, subresource })
    }

    /// The key of the object named, or of one with this name.
    pub fn key(&self, name: &str) -> Key {
        Key { resource: self.resource.clone(), namespace: self.namespace.clone(), name: name.to_owned() }
    }

    pub fn api_version(&self) -> String {
        if self.resource.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.resource.group, self.version) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_all_shapes_are_read() {
        let target = Target::parse("/apis/example.com/v1/namespaces/a/widgets/w/status").unwrap();
        assert_eq!(target.api_version(), "example.com/v1");
        assert_eq!(target.key("w").to_string(), "widgets.example.com \"w\"");
        assert_eq!((target.namespace.as_deref(), target.subresource.as_deref()), (Some("a"), Some("status")));
        let namespace = Target::parse("/api/v1/namespaces/a").unwrap();
        assert_eq!((namespace.resource.plural.as_str(), namespace.name.as_deref(), namespace.namespace), ("namespaces", Some("a"), None));
        let everywhere = Target::parse("/api/v1/secrets").unwrap();
        assert_eq!((everywhere.name, everywhere.namespace), (None, None));
        assert!(Target::parse("/metrics").is_err());
    }
}
