//! Giving a server of ours back to MAAS: only after a fresh look, and only from states in which MAAS takes it.

use super::{draft::Draft, plan::Step};
use crate::{Server, ServerStatus, Stage};

/// The next step of giving back a server that the verdict says is ours; none if MAAS is at it or does not take it now.
pub(super) fn step(draft: &Draft<'_>, server: &Server, why: &str) -> Option<Step> {
    if !is_releasable(server) {
        return None;
    }
    if draft.is_unanswered() {
        return None;
    }
    let Some(not_after) = draft.may_touch_until(server) else { return Some(draft.intend(|_| ())) };
    if not_after <= draft.now {
        return Some(Step::Look { server: server.system_id.clone() });
    }
    Some(Step::Release { server: server.system_id.clone(), erase: draft.facts.object.spec.erase(), comment: draft.comment(why), not_after })
}

/// Whether MAAS takes the server back in this state. It also has to be unlocked.
pub(super) fn is_releasable(server: &Server) -> bool {
    if server.locked {
        return false;
    }
    match server.status.stage() {
        Stage::Held | Stage::Installing | Stage::Running | Stage::InstallFailed | Stage::Broken | Stage::StuckLeaving => true,
        // MAAS answers a release of a Ready server with success and does nothing; ours it can only be by a fault of MAAS.
        Stage::Shelved => server.status == ServerStatus::Ready,
        Stage::Leaving | Stage::UnderRepair | Stage::Unclear => false,
    }
}
