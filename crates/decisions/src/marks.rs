//! What we note on a server that is ours, as workload annotations: a person in the MAAS page sees whose it is, and so do we.

use std::collections::BTreeMap;

use api::Claim;

const CLAIM: &str = "metalshift-claim";
const MANAGEMENT_CLUSTER: &str = "metalshift-management-cluster";
const NAMESPACE: &str = "metalshift-namespace";
const CLUSTER: &str = "metalshift-cluster";
const MACHINE: &str = "metalshift-machine";

/// The marks of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// The claim: the only part that says whose the server is.
    pub claim: Claim,
    /// Which management cluster the object is in, by the uid of its namespace `kube-system`.
    pub management_cluster: String,
    /// The object's namespace.
    pub namespace: String,
    /// The cluster it belongs to.
    pub cluster: String,
    /// The object's name, which is that of its Machine too.
    pub machine: String,
}

impl Marks {
    /// As workload annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let Self { claim, management_cluster, namespace, cluster, machine } = self;
        [(CLAIM, claim.as_str()), (MANAGEMENT_CLUSTER, management_cluster), (NAMESPACE, namespace), (CLUSTER, cluster), (MACHINE, machine)]
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    /// The claim that marked a server, if any did.
    pub fn claim_on(annotations: &BTreeMap<String, String>) -> Option<&str> {
        annotations.get(CLAIM).map(String::as_str)
    }

    /// Whose the server is, in words, by the marks on it.
    pub fn holder_of(annotations: &BTreeMap<String, String>) -> String {
        let mark = |key| annotations.get(key).map(String::as_str);
        match (mark(NAMESPACE), mark(MACHINE), mark(MANAGEMENT_CLUSTER)) {
            (Some(namespace), Some(machine), Some(cluster)) => format!("{namespace}/{machine} of management cluster {cluster}"),
            (Some(namespace), Some(machine), None) => format!("{namespace}/{machine}"),
            _ => "another object".to_owned(),
        }
    }
}
