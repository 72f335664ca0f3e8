//! Giving a server of ours back to MAAS: only after a fresh look, and only from states in which MAAS takes it.

use std::time::Duration;

use super::{
    draft::Draft,
    order::later,
    plan::{LookAgain, Plan, Step},
    reason::Reason,
};
use crate::{Server, ServerStatus, Stage};

/// How often it is looked whether a server is back, should the feed of events say nothing.
pub(super) const POLL: Duration = Duration::from_secs(15);

/// Gives a server back that the verdict says is ours, or says why it is not back yet.
pub(super) fn give_back(mut draft: Draft<'_>, server: &Server, why: &str) -> Plan {
    if draft.is_unanswered() && is_releasable(server) {
        return draft.wait_for_answer();
    }
    if let Some(step) = step(&draft, server, why) {
        return draft.step(step);
    }
    draft.shows_release(server);
    draft.wait(LookAgain::After(POLL))
}

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

impl Draft<'_> {
    /// Why a server that goes back is not back yet.
    fn shows_release(&mut self, server: &Server) {
        let limit = self.facts.object.spec.deadlines().release;
        let slow = later(self.phase_began(), limit) <= self.now;
        let name = server.name();
        match server.status.stage() {
            _ if server.locked => self.not_deployed(Reason::LOCKED, format!("machine {name} is locked in MAAS. {}", Reason::LOCKED.remedy)),
            Stage::Leaving if slow => {
                let message = format!("machine {name} is {} for longer than {limit:?}. {}", server.status, Reason::RELEASE_SLOW.remedy);
                self.not_deployed(Reason::RELEASE_SLOW, message);
            }
            Stage::Leaving => self.not_deployed(Reason::RELEASING, format!("machine {name} is {} in MAAS", server.status)),
            _ => {
                let message =
                    format!("MAAS does not take machine {name} back in state {}. {}", server.status, Reason::STATE_UNDEFINED.remedy);
                self.not_deployed(Reason::RELEASE_FAILED, message);
            }
        }
    }
}
