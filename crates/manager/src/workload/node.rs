//! Nodes as they are read, as little of them as is needed. The follower reads them, [`super::followed`] keeps them.

use std::borrow::Cow;

use decisions::node::SeenNode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, core::ClusterResourceScope};
use serde::Deserialize;

/// A node as it is read. The server sends much more (images, capacity), which is skipped while reading.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Wire")]
pub(super) struct Node {
    pub metadata: ObjectMeta,
    pub seen: SeenNode,
}

impl Resource for Node {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Node".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "nodes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "providerID")]
    provider_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
    addresses: Vec<Address>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Address {
    address: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

impl From<Wire> for Node {
    fn from(wire: Wire) -> Self {
        let ready = wire.status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "True");
        let provider_id = wire.spec.provider_id.filter(|id| !id.is_empty());
        // Names are among them too.
        let addresses = wire.status.addresses.iter().filter_map(|one| one.address.parse().ok()).collect();
        Self { metadata: wire.metadata, seen: SeenNode { provider_id, ready, addresses } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_without_what_is_not_needed() {
        let node: Node = serde_json::from_value(serde_json::json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": {"providerID": "", "podCIDR": "10.0.0.0/24"},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "x"}], "images": [{"names": ["big"]}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "a"}]},
        }))
        .unwrap();
        assert_eq!(node.seen, SeenNode { provider_id: None, ready: true, addresses: vec![[10, 0, 0, 1].into()] });
    }
}
