//! A MaasMachine that is wanted: which server is it, whose is that, and what comes next.

use api::{Intent, Phase, SystemId};

use super::{
    acquire,
    draft::Draft,
    failures, lost, ours,
    plan::{LookAgain, Plan, Step},
    reason::Reason,
    surplus,
};
use crate::{
    Lookup, Server, ServerStatus,
    ownership::{Evidence, Loss, Verdict, verdict},
};

pub(super) fn decide(mut draft: Draft<'_>) -> Plan {
    let facts = draft.facts;
    if facts.object.spec.uses_lxd() {
        let reason = Reason::LXD_NOT_SUPPORTED;
        draft.not_deployed_unless_handed_over(reason, reason.message(reason.meaning));
        return draft.wait(LookAgain::OnChange);
    }
    if let Some(words) = Intent::of(&facts.object.metadata).unreadable() {
        draft.not_deployed_unless_handed_over(Reason::CLAIM_UNREADABLE, format!("{words}. {}", Reason::CLAIM_UNREADABLE.remedy));
        return draft.wait(LookAgain::AfterBackoff);
    }
    if facts.has_unreadable_id() {
        return draft.unreadable_id();
    }
    if !facts.concerns_maas() && draft.shows_what_is_missing() {
        draft.phase(Phase::Pending);
        return draft.wait_for_what_is_missing();
    }
    if let Err(failure) = &facts.account {
        return failures::no_account(draft, failure);
    }
    draft.maas_is_available();
    if let Some(message) = other_maas(&draft) {
        draft.not_deployed_unless_handed_over(Reason::OTHER_MAAS, message);
        return draft.wait(LookAgain::AfterBackoff);
    }
    draft.shows_left_addresses();
    if let Some(step) = surplus::step(&draft) {
        return draft.step(step);
    }
    match locate(&draft) {
        Located::Nowhere => acquire::decide(draft, None),
        Located::Unclear(lookup) => failures::unclear(draft, &lookup),
        Located::At(id, lookup) => found(draft, &id, &lookup),
    }
}

/// Why the MAAS we reach, or the user we are to it, is not the one the object's server was allocated from.
pub(super) fn other_maas(draft: &Draft<'_>) -> Option<String> {
    let intent = draft.facts.intent()?;
    let account = draft.account()?;
    let (host, user) = (intent.maas.as_deref().unwrap_or(&account.host), intent.user.as_deref().unwrap_or(&account.user));
    (host != account.host || user != account.user).then(|| {
        format!(
            "the machine was allocated by user {user} of the MAAS at {host}, and the credentials are those of user {} at {} now. {}",
            account.user,
            account.host,
            Reason::OTHER_MAAS.remedy
        )
    })
}

/// Where the object's server is.
pub(super) enum Located {
    /// There is none.
    Nowhere,
    /// It is this one.
    At(SystemId, Box<Lookup<Server>>),
    /// Nobody knows now.
    Unclear(Lookup<Vec<Server>>),
}

/// The server the object names, or else the one with our claim; of several the one with the lowest id.
pub(super) fn locate(draft: &Draft<'_>) -> Located {
    let facts = draft.facts;
    if let Some(id) = facts.recorded_id() {
        let lookup = facts.recorded.clone().unwrap_or(Lookup::Outdated);
        return Located::At(id, Box::new(lookup));
    }
    if facts.intent().is_none() {
        return Located::Nowhere;
    }
    match &facts.claimed {
        Lookup::Found(claimed) => claimed
            .iter()
            .filter(|server| is_ours(draft, &Lookup::Found((*server).clone()), &server.system_id))
            .min_by(|one, other| one.system_id.cmp(&other.system_id))
            .map_or(Located::Nowhere, |server| Located::At(server.system_id.clone(), Box::new(Lookup::Found(server.clone())))),
        Lookup::Missing => Located::Nowhere,
        unknown @ (Lookup::Forbidden | Lookup::Failed(_) | Lookup::Outdated) => Located::Unclear(unknown.clone()),
    }
}

/// Whose a server is.
pub(super) fn verdict_on(draft: &Draft<'_>, id: &SystemId, lookup: &Lookup<Server>) -> Verdict {
    let facts = draft.facts;
    let intent = facts.intent();
    // Another provider hands a server over with its whole identity. A system id alone is a wish, and proves nothing.
    let adopting = facts.is_provisioned() && is_taken_on(draft, id) && !lookup.found().is_some_and(|server| facts.was_taken_again(server));
    let listed = facts.claimed.found().is_some_and(|claimed| claimed.iter().any(|server| server.system_id == *id));
    verdict(Evidence {
        user: draft.account().map(|account| account.user.as_str()).unwrap_or_default(),
        claim: intent.as_ref().map(|intent| &intent.claim),
        has_our_agent_name: listed,
        recorded_by_another_provider: adopting,
        composed_by_us: false,
        server: lookup,
    })
}

/// Whether the object named the server before we had anything to do with it.
fn is_taken_on(draft: &Draft<'_>, id: &SystemId) -> bool {
    match draft.facts.intent() {
        Some(intent) => intent.adopting.as_ref() == Some(id),
        None => draft.facts.recorded_id().as_ref() == Some(id),
    }
}

/// Whether somebody asked for exactly this server, and it was never ours.
pub(super) fn is_wished_for(draft: &Draft<'_>, id: &SystemId) -> bool {
    !draft.facts.is_provisioned() && is_taken_on(draft, id)
}

pub(super) fn is_ours(draft: &Draft<'_>, lookup: &Lookup<Server>, id: &SystemId) -> bool {
    matches!(verdict_on(draft, id, lookup), Verdict::Ours | Verdict::OursUnmarked)
}

fn found(mut draft: Draft<'_>, id: &SystemId, lookup: &Lookup<Server>) -> Plan {
    let verdict = verdict_on(&draft, id, lookup);
    match (&verdict, lookup) {
        (Verdict::Ours, Lookup::Found(server)) => {
            draft.shows(server);
            ours::decide(draft, server)
        }
        (Verdict::OursUnmarked | Verdict::Adoptable, Lookup::Found(server)) => {
            draft.shows(server);
            take_over(draft, server)
        }
        (Verdict::TakenAway(Loss::Released), Lookup::Found(server))
            if is_wished_for(&draft, id) && server.status == ServerStatus::Ready =>
        {
            acquire::decide(draft, Some(id))
        }
        (Verdict::Foreign { holder }, _) => lost::foreign(draft, id, lookup, holder),
        (Verdict::TakenAway(loss), _) => lost::taken_away(draft, id, lookup, loss),
        (Verdict::LookAgain, _) => draft.step(Step::Look { server: id.clone() }),
        (Verdict::Undecided(failure), _) => failures::unclear_server(draft, failure),
        // Nothing is composed yet, and a verdict of ours rests on a server that was found.
        (Verdict::Unallocated | Verdict::Ours | Verdict::OursUnmarked | Verdict::Adoptable, _) => draft.wait(LookAgain::OnChange),
    }
}

/// The next step of marking a server: the intent, with a claim if another provider made the object, and then the marks.
pub(super) fn mark(draft: &Draft<'_>, server: &Server) -> Step {
    let id = &server.system_id;
    match (draft.facts.intent(), draft.may_touch_until(server)) {
        (None, _) => draft.intend(|intent| intent.adopting = Some(id.clone())),
        (Some(_), None) => draft.intend(|_| ()),
        (Some(_), Some(end)) if end <= draft.now => Step::Look { server: id.clone() },
        (Some(intent), Some(not_after)) => Step::Mark { server: id.clone(), marks: draft.marks(intent.claim), not_after },
    }
}

/// Claims the object if another provider made it, then marks the server.
pub(super) fn take_over(draft: Draft<'_>, server: &Server) -> Plan {
    let step = mark(&draft, server);
    draft.step(step)
}
