//! A server that failed before it was handed over: it goes back and another one is tried, as often as the object says. The last one is
//! kept as it is, for an administrator to look at.

use api::{Phase, SystemId};

use super::{
    draft::Draft,
    keep,
    plan::{LookAgain, Plan},
    reason::Reason,
    release,
};
use crate::{Server, Stage};

/// Whether as many servers failed as may be tried.
pub(super) fn is_exhausted(draft: &Draft<'_>) -> bool {
    // The list is cut, the count is not.
    let listed = u32::try_from(draft.status.attempts.len()).unwrap_or(u32::MAX);
    draft.status.attempt_count.unwrap_or_default().max(listed) >= allowed(draft)
}

/// How many servers may be tried. Who asks for a certain one gets that one or none.
fn allowed(draft: &Draft<'_>) -> u32 {
    let wished = draft.facts.intent().is_some_and(|intent| intent.wished.is_some());
    if wished { 1 } else { draft.facts.object.spec.attempts() }
}

/// Whether this server was the last to be tried, and failed.
pub(super) fn is_given_up(draft: &Draft<'_>, id: &SystemId) -> bool {
    is_exhausted(draft) && draft.status.attempts.iter().any(|attempt| attempt.system_id == id.as_str())
}

/// This server failed for this cause.
pub(super) fn failed(mut draft: Draft<'_>, server: &Server, cause: &str) -> Plan {
    if draft.facts.is_provisioned() {
        let message = format!("machine {} failed: {cause}. {}", server.name(), Reason::DEPLOY_FAILED.remedy);
        return keep::failed(draft, Reason::DEPLOY_FAILED, message);
    }
    draft.failed_attempt(&server.system_id, &server.hostname, cause);
    if is_exhausted(&draft) {
        return gave_up(draft);
    }
    let message = format!("machine {} failed: {cause}. It is given back and another one is tried", server.name());
    draft.not_deployed(Reason::TRYING_ANOTHER, message);
    draft.phase(Phase::Releasing);
    give_back(draft, server)
}

/// Notes the failure of a server of which it is written down that it goes back, should nobody have shown it before the process ended.
pub(super) fn note(draft: &mut Draft<'_>, id: &SystemId, server: Option<&Server>) {
    let said = server.filter(|server| server.status.stage() == Stage::InstallFailed).map(Server::complaint);
    let cause = said.unwrap_or_else(|| "it failed just before this program was started again".to_owned());
    let hostname = server.map(|server| server.hostname.clone()).unwrap_or_default();
    draft.failed_attempt(id, &hostname, &cause);
}

/// The server goes back: it is written down first.
pub(super) fn give_back(draft: Draft<'_>, server: &Server) -> Plan {
    let Some(intent) = draft.facts.intent() else { return draft.wait(LookAgain::OnChange) };
    if !intent.releasing.contains(&server.system_id) {
        let step = draft.intend_to_release(&server.system_id);
        return draft.step(step);
    }
    release::give_back(draft, server, "gives back a machine that failed for")
}

/// No further server is tried.
pub(super) fn gave_up(mut draft: Draft<'_>) -> Plan {
    let allowed = allowed(&draft);
    let last = draft.status.attempts.last();
    let last = last
        .map(|attempt| format!("the last was {} ({}): {}. ", attempt.hostname.as_deref().unwrap_or("?"), attempt.system_id, attempt.cause));
    let message = format!("{allowed} of {allowed} attempts failed; {}{}", last.unwrap_or_default(), Reason::DEPLOY_FAILED.remedy);
    draft.not_deployed(Reason::DEPLOY_FAILED, message);
    draft.phase(Phase::Failed);
    draft.wait(LookAgain::OnChange)
}
