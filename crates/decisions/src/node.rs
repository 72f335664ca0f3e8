//! Which node of a workload cluster is a machine's: by the names of both, and in doubt by where they are.

use std::{collections::BTreeMap, net::IpAddr};

/// What is kept of a node, under its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenNode {
    /// What it says its machine is.
    pub provider_id: Option<String>,
    /// Whether its kubelet reports that it is ready.
    pub ready: bool,
    /// Where its kubelet says it is.
    pub addresses: Vec<IpAddr>,
}

/// By name.
pub type Nodes = BTreeMap<String, SeenNode>;

/// The names a machine's node may have. Kubernetes has lower-case names only; MAAS does not mind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// In the order in which they count.
    exact: Vec<String>,
    /// What a node of another domain begins with.
    beginning: Option<String>,
    /// And where it is.
    addresses: Vec<IpAddr>,
}

impl Names {
    /// Of a host that is called so in MAAS, and is at these addresses.
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

    /// Whether this is one of them, as it is.
    pub fn has(&self, node: &str) -> bool {
        self.exact.iter().any(|name| name == node)
    }

    /// Whether a node of this name may be the machine's.
    pub fn may_be(&self, node: &str) -> bool {
        self.has(node) || self.beginning.as_ref().is_some_and(|beginning| node.starts_with(beginning))
    }

    /// Whether a node reports an address of the machine.
    pub fn is_where(&self, seen: &SeenNode) -> bool {
        seen.addresses.iter().any(|address| self.addresses.contains(address))
    }

    /// The machine's node. One that only begins with the host's name counts if it is where the machine is, if there is no other such, and if
    /// it is not called like another machine: hosts of two domains may share the name, and a node that got the wrong machine's id keeps it
    /// for ever.
    pub fn find<'a>(&self, nodes: &'a Nodes, is_of_another: impl Fn(&str) -> bool) -> Option<(&'a str, &'a SeenNode)> {
        if let Some((name, seen)) = self.exact.iter().find_map(|name| nodes.get_key_value(name)) {
            return Some((name, seen));
        }
        let beginning = self.beginning.as_ref()?;
        let alike = nodes.range(beginning.clone()..).take_while(|(name, _)| name.starts_with(beginning));
        let mut alike = alike.filter(|(name, seen)| self.is_where(seen) && !is_of_another(name));
        match (alike.next(), alike.next()) {
            (Some((name, seen)), None) => Some((name, seen)),
            _ => None,
        }
    }
}
