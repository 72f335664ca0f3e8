//! Nodes, as little of them as is needed, and the rule which node is a machine's. The follower reads them, [`super::followed`] keeps them.

use std::{borrow::Cow, collections::BTreeMap, net::IpAddr};

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

/// What is kept of a node, under its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SeenNode {
    /// What it says its machine is.
    pub provider_id: Option<String>,
    /// Whether its kubelet reports that it is ready.
    pub ready: bool,
    /// Where its kubelet says it is.
    pub addresses: Vec<IpAddr>,
}

pub(super) type Nodes = BTreeMap<String, SeenNode>;

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

/// The names a machine's node may have. Kubernetes has lower-case names only; MAAS does not mind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// In the order in which they count.
    exact: Vec<String>,
    /// What a node of another domain begins with.
    beginning: Option<String>,
    /// And where it is.
    addresses: Vec<IpAddr>,
}

impl Names {
    pub fn new(hostname: &str, fqdn: &str, addresses: &[IpAddr]) -> Self {
        let clean = |name: &str| name.trim_end_matches('.').to_lowercase();
        let (hostname, fqdn) = (clean(hostname), clean(fqdn));
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let beginning = Some(hostname.as_str()).filter(|name| !name.is_empty()).map(|name| format!("{name}."));
        let mut exact = Vec::new();
        for name in [hostname.clone(), fqdn.clone(), short(&hostname), short(&fqdn)] {
            if !name.is_empty() && !exact.contains(&name) {
                exact.push(name);
            }
        }
        Self { exact, beginning, addresses: addresses.to_vec() }
    }

    pub fn has(&self, node: &str) -> bool {
        self.exact.iter().any(|name| name == node)
    }

    /// Whether a node of this name may be the machine's.
    pub fn may_be(&self, node: &str) -> bool {
        self.has(node) || self.beginning.as_ref().is_some_and(|beginning| node.starts_with(beginning))
    }

    /// The machine's node. One that only begins with the host's name counts if it is where the machine is, if there is no other such, and if
    /// it is not called like another machine: hosts of two domains may share the name, and a node that got the wrong machine's id keeps it
    /// for ever.
    pub fn find<'a>(&self, nodes: &'a Nodes, is_of_another: impl Fn(&str) -> bool) -> Option<(&'a str, &'a SeenNode)> {
        if let Some((name, seen)) = self.exact.iter().find_map(|name| nodes.get_key_value(name)) {
            return Some((name, seen));
        }
        let beginning = self.beginning.as_ref()?;
        let is_there = |seen: &SeenNode| seen.addresses.iter().any(|address| self.addresses.contains(address));
        let alike = nodes.range(beginning.clone()..).take_while(|(name, _)| name.starts_with(beginning));
        let mut alike = alike.filter(|(name, seen)| is_there(seen) && !is_of_another(name));
        match (alike.next(), alike.next()) {
            (Some((name, seen)), None) => Some((name, seen)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(hostname: &str, fqdn: &str, nodes: &[&str], of_another: &[&str]) -> Option<String> {
        let place: IpAddr = [10, 0, 0, 1].into();
        let nodes = nodes.iter().map(|name| ((*name).to_owned(), SeenNode { addresses: vec![place], ..SeenNode::default() })).collect();
        Names::new(hostname, fqdn, &[place]).find(&nodes, |name| of_another.contains(&name)).map(|(name, _)| name.to_owned())
    }

    #[test]
    fn s22_a_node_is_found_by_host_upper_case_fqdn_and_short_name() {
        for (hostname, fqdn, nodes, expected) in [
            ("worker", "worker.maas", &["other", "worker"][..], Some("worker")),
            ("Worker-A", "Worker-A.MAAS", &["worker-a"][..], Some("worker-a")),
            ("worker", "worker.maas", &["worker.maas"][..], Some("worker.maas")),
            ("worker", "Worker.Maas.", &["worker.maas"][..], Some("worker.maas")),
            ("worker.maas", "worker.maas", &["worker"][..], Some("worker")),
            ("worker", "worker.maas", &["worker.example.com"][..], Some("worker.example.com")),
            ("worker", "worker.maas", &["worker2", "worker-2.maas", "my.worker.maas"][..], None),
            ("worker", "worker.maas", &[][..], None),
            ("", "", &["worker", ".worker"][..], None),
        ] {
            assert_eq!(found(hostname, fqdn, nodes, &[]).as_deref(), expected, "{hostname} {fqdn} {nodes:?}");
        }
    }

    #[test]
    fn s22_of_two_names_the_exact_one_counts() {
        assert_eq!(found("worker", "worker.maas", &["worker", "worker.maas"], &[]).as_deref(), Some("worker"));
        assert_eq!(found("worker", "worker.maas", &["worker.a", "worker.maas"], &[]).as_deref(), Some("worker.maas"));
    }

    #[test]
    fn s22_a_node_of_another_domain_counts_only_without_doubt() {
        assert_eq!(found("worker", "worker.maas", &["worker.a", "worker.b"], &[]), None);
        assert_eq!(found("worker", "worker.maas", &["worker.a", "worker.b"], &["worker.b"]).as_deref(), Some("worker.a"));
        assert_eq!(found("worker", "worker.maas", &["worker.b"], &["worker.b"]), None);
    }

    #[test]
    fn a_node_of_another_domain_is_somebody_elses_unless_it_is_where_the_machine_is() {
        let node = |addresses: &[[u8; 4]]| {
            let addresses = addresses.iter().map(|address| (*address).into()).collect();
            [("worker.elsewhere".to_owned(), SeenNode { addresses, ..SeenNode::default() })].into()
        };
        let is_found = |machine: &[[u8; 4]], nodes: &Nodes| {
            let addresses: Vec<IpAddr> = machine.iter().map(|address| (*address).into()).collect();
            Names::new("worker", "worker.maas", &addresses).find(nodes, |_| false).is_some()
        };
        assert!(is_found(&[[10, 0, 0, 1], [10, 1, 0, 1]], &node(&[[192, 0, 2, 1], [10, 1, 0, 1]])));
        for (machine, nodes) in [(&[[10, 0, 0, 1]][..], node(&[[10, 0, 0, 2]])), (&[[10, 0, 0, 1]][..], node(&[])), (&[][..], node(&[]))] {
            assert!(!is_found(machine, &nodes), "{nodes:?}");
        }
    }

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
