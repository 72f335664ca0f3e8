//! Servers that are ours beside the one that counts: an allocation that was carried out late, and attempts that failed. They go back.

use api::{Intent, SystemId};

use super::{
    draft::Draft,
    links::{TakeOff, take_off},
    live::{Located, locate, mark, verdict_on},
    plan::Step,
    release,
};
use crate::{Lookup, Server, ownership::Verdict};

/// The next thing to do about a surplus server, if there is anything to do now.
pub(super) fn step(draft: &Draft<'_>) -> Option<Step> {
    let facts = draft.facts;
    let intent = facts.intent()?;
    let counts = match locate(draft) {
        Located::At(id, _) => Some(id),
        Located::Nowhere | Located::Unclear(_) => None,
    };
    let begun = facts.releasing.iter().filter(|(id, _)| counts.as_ref() != Some(id));
    let planned = begun.map(|(id, lookup)| (id.clone(), lookup.clone()));
    let claimed = facts.claimed.found().into_iter().flatten();
    let unplanned = claimed
        .filter(|server| counts.as_ref() != Some(&server.system_id) && !intent.releasing.contains(&server.system_id))
        .map(|server| (server.system_id.clone(), Lookup::Found(server.clone())));
    planned.chain(unplanned).find_map(|(id, lookup)| one(draft, &intent, &id, &lookup))
}

fn one(draft: &Draft<'_>, intent: &Intent, id: &SystemId, lookup: &Lookup<Server>) -> Option<Step> {
    // A step that just failed is not repeated in this pass; the others go on.
    let attempted =
        |step: &Step| draft.facts.failed.as_ref().is_some_and(|failed| failed.step == step.name() && failed.server.as_ref() == Some(id));
    let planned = intent.releasing.contains(id);
    let step = match (verdict_on(draft, id, lookup), lookup) {
        (Verdict::OursUnmarked, Lookup::Found(server)) => Some(mark(draft, server)),
        (Verdict::Ours, Lookup::Found(_)) if !planned => Some(draft.intend_to_release(id)),
        (Verdict::Ours, Lookup::Found(server)) => release::step(draft, server, "gives back one more than it needs for"),
        (Verdict::TakenAway(_) | Verdict::Foreign { .. }, _) if planned => match take_off(draft, id, lookup) {
            TakeOff::Done => Some(forget(intent, id)),
            TakeOff::Next(step) => Some(*step),
            TakeOff::Left => None,
        },
        (Verdict::LookAgain, _) => Some(Step::Look { server: id.clone() }),
        _ => None,
    };
    step.filter(|step| !attempted(step))
}

/// Forgets a server that is not ours any more and has nothing of ours.
pub(super) fn forget(intent: &Intent, id: &SystemId) -> Step {
    let mut intent = intent.clone();
    intent.releasing.retain(|other| other != id);
    intent.linked.retain(|linked| linked.server != *id);
    Step::Forget { server: id.clone(), intent }
}

/// The object does without a server that is not ours any more, and still takes its addresses off it as soon as it can.
pub(super) fn set_aside(intent: &Intent, id: &SystemId) -> Step {
    let mut intent = intent.clone();
    if !intent.releasing.contains(id) {
        intent.releasing.push(id.clone());
    }
    Step::Forget { server: id.clone(), intent }
}
