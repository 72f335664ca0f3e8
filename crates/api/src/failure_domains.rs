//! The zones of MAAS a cluster may use, in the two shapes Cluster API reads: a list since its second contract, a map before. Used by the status of
//! a cluster.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A zone of MAAS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// The zone's name.
    pub name: String,
    /// Whether machines of the control plane may be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// A zone of MAAS in the older shape, which has the name as key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomainDetails {
    /// Whether machines of the control plane may be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// The zones in either shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FailureDomains {
    /// As Cluster API 1.11 and newer read it.
    List(Vec<FailureDomain>),
    /// As Cluster API up to 1.10 reads it, and as older providers have left it.
    Map(BTreeMap<String, FailureDomainDetails>),
}

impl Default for FailureDomains {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

// Written out, since the server lets any shape pass here: one that is neither must not hide the object, or all objects of its kind.
impl<'de> Deserialize<'de> for FailureDomains {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let list = serde_json::from_value(value.clone()).map(Self::List);
        Ok(list.or_else(|_| serde_json::from_value(value).map(Self::Map)).unwrap_or_default())
    }
}

impl FailureDomains {
    /// Zones for all machines, as Cluster API 1.11 and newer read it; sorted, so that the same zones are always the same text.
    pub fn list(zones: impl IntoIterator<Item = String>) -> Self {
        let zones: std::collections::BTreeSet<String> = zones.into_iter().collect();
        let domain = |name| FailureDomain { name, control_plane: Some(true), attributes: BTreeMap::new() };
        Self::List(zones.into_iter().map(domain).collect())
    }

    /// The zones' names.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::List(list) => list.iter().map(|domain| domain.name.as_str()).collect(),
            Self::Map(map) => map.keys().map(String::as_str).collect(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names().is_empty()
    }
}

// No type at all: a server refuses to write an object whose stored status has the other shape, whichever of the two it is told.
impl JsonSchema for FailureDomains {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "FailureDomains".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-preserve-unknown-fields": true})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_shapes_are_read_and_written_as_they_are() {
        let list = json!([{"name": "a", "controlPlane": true}, {"name": "b", "controlPlane": true, "attributes": {"rack": "7"}}]);
        let map = json!({"a": {"controlPlane": true}, "b": {"controlPlane": true, "attributes": {"rack": "7"}}});
        let read: FailureDomains = serde_json::from_value(list.clone()).unwrap();
        assert_eq!(read.names(), ["a", "b"]);
        assert_eq!(serde_json::to_value(&read).unwrap(), list);
        let read: FailureDomains = serde_json::from_value(map.clone()).unwrap();
        assert_eq!(read.names(), ["a", "b"]);
        assert_eq!(serde_json::to_value(&read).unwrap(), map);
    }

    #[test]
    fn what_has_neither_shape_is_read_as_no_zones() {
        for value in [json!(null), json!("a"), json!([1]), json!({"a": 1})] {
            assert!(serde_json::from_value::<FailureDomains>(value.clone()).unwrap().is_empty(), "{value}");
        }
    }

    #[test]
    fn the_same_zones_in_another_order_are_the_same_text() {
        let zones = |names: [&str; 3]| FailureDomains::list(names.map(str::to_owned));
        assert_eq!(zones(["b", "a", "b"]), zones(["a", "b", "a"]));
        assert!(FailureDomains::list([]).is_empty());
    }
}
