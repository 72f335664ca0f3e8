//! Giving a server of ours back to MAAS: only after a fresh look, and only from states in which MAAS takes it.

use std::time::Duration;

use api::ProviderId;
use jiff::Timestamp;

use super::{
    draft::Draft,
    facts::NodeFacts,
    plan::{LookAgain, Plan, Step, StepName},
    reason::Reason,
};
use crate::{Server, ServerStatus, Stage, plan::later};

/// How often it is looked whether a server is back, should the feed of events say nothing.
pub(super) const POLL: Duration = Duration::from_secs(15);
/// The longest wait before a release that failed is ordered again.
pub(super) const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// Gives a server back that the verdict says is ours, or says why it is not back yet.
pub(super) fn give_back(mut draft: Draft<'_>, server: &Server, why: &str) -> Plan {
    if draft.is_unanswered() && is_releasable(server) {
        return draft.wait_for_answer();
    }
    if let Some(step) = step(&draft, server, why) {
        return draft.step(step);
    }
    if let Some(again) = ordered_again_at(&draft, server) {
        let message = format!(
            "MAAS could not release machine {}, it is {}: {}. It is told again by itself, at the latest after five minutes. {}",
            server.name(),
            server.status,
            server.complaint(),
            Reason::RELEASE_FAILED.remedy
        );
        draft.not_deployed(Reason::RELEASE_FAILED, message);
        let left = Duration::try_from(again.duration_since(draft.now)).unwrap_or_default();
        return draft.wait(LookAgain::After(left));
    }
    draft.shows_release(server);
    draft.wait(LookAgain::After(POLL))
}

/// The next step of giving back a server that the verdict says is ours; none if MAAS is at it or does not take it now.
pub(super) fn step(draft: &Draft<'_>, server: &Server, why: &str) -> Option<Step> {
    if server.status.stage() == Stage::Leaving {
        return remove_late_node(draft, server);
    }
    if !is_releasable(server) || draft.is_unanswered() || ordered_again_at(draft, server).is_some() {
        return None;
    }
    // An intent of this pass may have been about something else, such as its marks: who finds the server gone must know that it was us.
    let planned = draft.facts.intent().is_some_and(|intent| intent.releasing.contains(&server.system_id));
    let Some(not_after) = draft.may_touch_until(server).filter(|_| planned) else {
        return Some(draft.intend_to_release(&server.system_id));
    };
    if let Some(step) = remove_node(draft, server) {
        return Some(step);
    }
    if not_after <= draft.now {
        return Some(Step::Look { server: server.system_id.clone() });
    }
    Some(Step::Release { server: server.system_id.clone(), erase: draft.facts.object.spec.erase(), comment: draft.comment(why), not_after })
}

/// A server may have joined the cluster before it failed or was not wanted any more. Cluster API knows nothing of such a node and would leave
/// it, with pods that wait for it. It is ours to remove if it is where the server is and says nothing else; without an answer of the
/// cluster the server goes back all the same.
fn remove_node(draft: &Draft<'_>, server: &Server) -> Option<Step> {
    let facts = draft.facts;
    let tried = facts.failed.as_ref().is_some_and(|failed| failed.step == StepName::RemoveNode);
    if facts.is_provisioned() || tried || facts.recorded_id().as_ref() != Some(&server.system_id) {
        return None;
    }
    let says_so =
        |id: &Option<String>| id.as_ref().is_none_or(|id| id.parse::<ProviderId>().is_ok_and(|id| id.system_id == server.system_id));
    match &facts.node {
        NodeFacts::Present { name, provider_id, is_there: true } if says_so(provider_id) => {
            Some(Step::RemoveNode { node: name.clone(), provider_id: provider_id.clone() })
        }
        NodeFacts::Present { .. } | NodeFacts::Absent | NodeFacts::Unreachable => None,
    }
}

/// Until its power is off, a server that goes back may still join: between the last look at its node and the release, or after it. It is looked
/// once more while it goes, and when it is nobody's: then nothing runs on it that could join again.
pub(super) fn remove_late_node(draft: &Draft<'_>, server: &Server) -> Option<Step> {
    let begun_by_us = draft.facts.intent().is_some_and(|intent| intent.releasing.contains(&server.system_id));
    remove_node(draft, server).filter(|_| begun_by_us)
}

/// When a release that MAAS accepted and then failed at is ordered again, if not now. Its failure is an event that makes the object due, so
/// that a dead power controller would be told every second. The wait is as long as it was tried already, and so doubles every time.
fn ordered_again_at(draft: &Draft<'_>, server: &Server) -> Option<Timestamp> {
    if server.status.stage() != Stage::StuckLeaving || draft.facts.intent_is_fresh {
        return None;
    }
    let last = draft.facts.intent()?.since?;
    let tried = Duration::try_from(last.duration_since(draft.phase_began())).unwrap_or_default();
    Some(later(last, tried.clamp(POLL, LONGEST_WAIT))).filter(|again| draft.now < *again)
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
