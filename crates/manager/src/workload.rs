//! The clusters that run on our machines: whether their API servers answer, and their nodes.

use decisions::{
    Failure, FailureKind,
    machine::{Facts, Learned},
};

/// The workload clusters.
#[derive(Debug, Clone, Default)]
pub struct Workload {}

impl Workload {
    /// Tells a node which machine it is.
    #[expect(clippy::unused_async, reason = "it will talk to the workload cluster")]
    pub async fn name_node(&self, _facts: &Facts, node: &str, _provider_id: &str) -> Result<Learned, Failure> {
        Err(Failure { kind: FailureKind::Unavailable, words: format!("there is no way to node {node}") })
    }
}
