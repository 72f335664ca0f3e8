//! A server that joined its cluster before it was handed over. Cluster API removes the node of a Machine by the id it was handed; of a server
//! that failed, or was not wanted any more, before that it knows nothing, and the node would stay in the cluster for ever. So the node is told
//! early which machine it is, and goes just before its server does, while nobody else can have that.

use api::ProviderId;

use super::{
    draft::Draft,
    facts::NodeFacts,
    plan::{Step, StepName},
};
use crate::Server;

/// Tells the node of a server that is still being installed which machine it is. One that cannot be told is told when it is handed over.
pub(super) fn name(draft: &Draft<'_>, server: &Server) -> Option<Step> {
    if has_failed(draft, StepName::NameNode) {
        return None;
    }
    let NodeFacts::Present { name, provider_id: None } = &draft.facts.node else { return None };
    Some(Step::NameNode { node: name.clone(), provider_id: provider_id(draft, server).to_string() })
}

/// What the server is handed over as. A node that was told keeps what it was told, also when the server changes its zone meanwhile.
pub(super) fn provider_id(draft: &Draft<'_>, server: &Server) -> ProviderId {
    let told = match &draft.facts.node {
        NodeFacts::Present { provider_id: Some(told), .. } => told.parse::<ProviderId>().ok(),
        NodeFacts::Present { provider_id: None, .. } | NodeFacts::Absent | NodeFacts::Unreachable => None,
    };
    let own = || ProviderId { zone: server.zone.clone(), system_id: server.system_id.clone() };
    told.filter(|told| told.system_id == server.system_id).unwrap_or_else(own)
}

/// Removes the node of a server that goes back without having been handed over. Only a node that says that it is this server: one that says
/// nothing, or something else, may be somebody's. A cluster that cannot be told keeps no server from MAAS.
pub(super) fn remove(draft: &Draft<'_>, server: &Server) -> Option<Step> {
    let facts = draft.facts;
    let is_its_own = facts.recorded_id().as_ref() == Some(&server.system_id);
    if facts.is_provisioned() || !is_its_own || has_failed(draft, StepName::RemoveNode) {
        return None;
    }
    let NodeFacts::Present { name, provider_id: Some(provider_id) } = &facts.node else { return None };
    let named = provider_id.parse::<ProviderId>().ok()?;
    (named.system_id == server.system_id).then(|| Step::RemoveNode { node: name.clone(), provider_id: provider_id.clone() })
}

fn has_failed(draft: &Draft<'_>, step: StepName) -> bool {
    draft.facts.failed.as_ref().is_some_and(|failed| failed.step == step)
}
