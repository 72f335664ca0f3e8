//! A MaasMachine that goes: its server leaves the cluster's DNS, is released until MAAS shows that it is not ours any more, and only
//! then the object is let go. Nothing of the cluster gates it.

use std::time::Duration;

use api::{Intent, IntentRead, Phase, SystemId};

use super::{
    draft::Draft,
    facts::Facts,
    failures,
    keep::uses_dns,
    links::{Left, TakeOff, farewell, is_told_of, left_for_good, take_off},
    live::{Located, is_ours, is_wished_for, locate, other_maas, take_over, verdict_on},
    plan::{LookAgain, Plan, Step},
    pooled,
    reason::Reason,
    release, surplus,
};
use crate::{
    Lookup, Marks, Server,
    ownership::{Loss, Verdict},
    plan::later,
};

/// For so long the cluster may take to drop an address of a machine that goes. A cluster that cannot does not keep the machine.
const DETACH_WITHIN: Duration = Duration::from_mins(1);
/// After it was said that a server is left alone, the object goes.
const SAID: Duration = Duration::from_secs(1);

pub(super) fn decide(mut draft: Draft<'_>) -> Plan {
    let facts = draft.facts;
    if !has_our_finalizer(facts) {
        return Plan::nothing();
    }
    if facts.has_unreadable_id() {
        return draft.unreadable_id();
    }
    let nothing_was_asked_for = Intent::of(&facts.object.metadata) == IntentRead::None && facts.recorded_id().is_none();
    if nothing_was_asked_for {
        return let_go(draft);
    }
    if let Some(words) = Intent::of(&facts.object.metadata).unreadable() {
        draft.not_deployed(Reason::CLAIM_UNREADABLE, format!("{words}. {}", Reason::CLAIM_UNREADABLE.remedy));
        return draft.wait(LookAgain::AfterBackoff);
    }
    if let Err(failure) = &facts.account {
        return failures::no_account(draft, failure);
    }
    draft.maas_is_available();
    if let Some(message) = other_maas(&draft) {
        draft.not_deployed(Reason::OTHER_MAAS, message);
        return draft.wait(LookAgain::AfterBackoff);
    }
    if let Some(step) = surplus::step(&draft) {
        draft.not_deployed(Reason::RELEASING, "giving machines back to MAAS");
        draft.phase(Phase::Releasing);
        return draft.step(step);
    }
    match locate(&draft) {
        Located::Nowhere => nothing_left(draft),
        Located::Unclear(lookup) => failures::unclear(draft, &lookup),
        Located::At(id, lookup) => found(draft, &id, &lookup),
    }
}

fn has_our_finalizer(facts: &Facts) -> bool {
    let ours = [api::names::FINALIZER_MACHINE, api::names::LEGACY_MACHINE_FINALIZER];
    facts.object.metadata.finalizers.as_ref().is_some_and(|finalizers| finalizers.iter().any(|name| ours.contains(&name.as_str())))
}

fn found(mut draft: Draft<'_>, id: &SystemId, lookup: &Lookup<Server>) -> Plan {
    match (verdict_on(&draft, id, lookup), lookup) {
        (Verdict::Ours | Verdict::OursUnmarked | Verdict::Adoptable, Lookup::Found(server))
            if draft.facts.object.spec.uses_lxd() && server.vm_host.is_some() =>
        {
            draft.shows(server);
            keep_virtual_machine(draft, server)
        }
        (Verdict::Ours, Lookup::Found(server)) => {
            draft.shows(server);
            give_back(draft, server)
        }
        (Verdict::OursUnmarked | Verdict::Adoptable, Lookup::Found(server)) => {
            draft.shows(server);
            take_over(draft, server)
        }
        (Verdict::Foreign { .. }, Lookup::Found(server)) if may_be_ours(draft.facts, server) => leave_to_somebody(draft, server),
        (Verdict::TakenAway(Loss::Released), _) => gone_back(draft, id, lookup),
        (Verdict::TakenAway(Loss::OtherOwner(_) | Loss::Hidden) | Verdict::Foreign { .. }, _)
            if !is_wished_for(&draft, id) && !is_accounted_for(&draft, id) =>
        {
            leave_alone(draft, id, lookup)
        }
        (Verdict::TakenAway(_) | Verdict::Foreign { .. }, _) => nothing_left(draft),
        (Verdict::LookAgain, _) => {
            draft.not_deployed(Reason::RELEASING, "looking whether the machine is back");
            draft.step(Step::Look { server: id.clone() })
        }
        (Verdict::Undecided(failure), _) => failures::unclear_server(draft, &failure),
        // Nothing is composed yet, and a verdict of ours rests on a server that was found.
        (Verdict::Unallocated | Verdict::Ours | Verdict::OursUnmarked | Verdict::Adoptable, _) => draft.wait(LookAgain::OnChange),
    }
}

/// A machine that was composed is deleted and not released, which nobody here can yet.
fn keep_virtual_machine(mut draft: Draft<'_>, server: &Server) -> Plan {
    let message = format!(
        "machine {} was composed for this object, and virtual machines of VM hosts are not supported yet. Delete it in MAAS, and this object goes",
        server.name()
    );
    draft.not_deployed(Reason::LXD_NOT_SUPPORTED, message);
    draft.wait(LookAgain::After(release::POLL))
}

/// Says once that a server is not released because it does not look like ours, before the object is gone and nobody can read it.
fn leave_alone(mut draft: Draft<'_>, id: &SystemId, lookup: &Lookup<Server>) -> Plan {
    let name = lookup.found().map_or_else(|| id.to_string(), Server::name);
    let message = format!("machine {name} is not ours by what MAAS shows, and stays as it is. {}", Reason::LEFT_ALONE.remedy);
    draft.not_deployed(Reason::LEFT_ALONE, message);
    draft.wait(LookAgain::After(SAID))
}

/// Whether it cannot be told whose a server of our user is. Another provider allocated it, so that MAAS does not know it by our claim, and
/// somebody removed its marks; or it was released, and that other provider has it again.
fn may_be_ours(facts: &Facts, server: &Server) -> bool {
    let adopted = facts.intent().and_then(|intent| intent.adopted);
    adopted.as_ref() == Some(&server.system_id) && Marks::claim_on(&server.marks).is_none()
}

fn leave_to_somebody(mut draft: Draft<'_>, server: &Server) -> Plan {
    let message = format!("machine {} belongs to our MAAS user and has no marks. {}", server.name(), Reason::OWNERSHIP_UNCLEAR.remedy);
    draft.not_deployed(Reason::OWNERSHIP_UNCLEAR, message);
    draft.wait(LookAgain::After(release::POLL))
}

/// Whether nothing has to be said of a server that is not ours: we released it, what it keeps of ours will be said, or it was said.
fn is_accounted_for(draft: &Draft<'_>, id: &SystemId) -> bool {
    let released = draft.facts.intent().is_some_and(|intent| intent.releasing.contains(id));
    released || draft.says(Reason::LEFT_ALONE) || left_for_good(draft).iter().any(|left| left.id == *id)
}

/// The server is nobody's. What we gave to it is taken off first.
fn gone_back(draft: Draft<'_>, id: &SystemId, lookup: &Lookup<Server>) -> Plan {
    if let Some(step) = lookup.found().and_then(|server| release::remove_late_node(&draft, server)) {
        return draft.step(step);
    }
    match take_off(&draft, id, lookup) {
        TakeOff::Next(step) => draft.step(*step),
        TakeOff::Done | TakeOff::Left => nothing_left(draft),
    }
}

/// Says once what is left on servers, before the object is gone and nobody can read it.
fn leave_addresses(mut draft: Draft<'_>, left: &[Left]) -> Plan {
    let released = draft.facts.intent().map(|intent| intent.releasing).unwrap_or_default();
    let mut message = farewell(draft.facts, left);
    if left.iter().any(|left| left.is_held() && !released.contains(&left.id)) {
        message = format!("{message} {}", Reason::LEFT_ALONE.remedy);
    }
    draft.not_deployed(Reason::ADDRESS_LEFT, message);
    draft.wait(LookAgain::After(SAID))
}

fn give_back(mut draft: Draft<'_>, server: &Server) -> Plan {
    let facts = draft.facts;
    if facts.recorded_id().as_ref() != Some(&server.system_id)
        && let Some(intent) = facts.intent()
    {
        // A release blanks the agent name by which it was found.
        return draft.step(Step::Record { server: server.system_id.clone(), intent });
    }
    draft.phase(Phase::Releasing);
    if is_published(facts, server) && draft.now < later(draft.phase_began(), DETACH_WITHIN) {
        draft.not_deployed(Reason::WAITING_FOR_DNS, Reason::WAITING_FOR_DNS.meaning);
        return draft.wait(LookAgain::After(release::POLL));
    }
    draft.not_deployed(Reason::RELEASING, format!("machine {} goes back to MAAS", server.name()));
    release::give_back(draft, server, "releases the machine of")
}

fn is_published(facts: &Facts, server: &Server) -> bool {
    uses_dns(facts) && facts.is_control_plane() && server.addresses.iter().any(|address| facts.published.contains(&address.to_string()))
}

/// No server is ours. One may still turn up if an allocation was not answered.
fn nothing_left(mut draft: Draft<'_>) -> Plan {
    let facts = draft.facts;
    let recorded = facts.recorded_id();
    let left = left_for_good(&draft);
    let is_back = |id: &SystemId| Some(id) == recorded.as_ref() || left.iter().any(|left| left.id == *id);
    let still_releasing = facts.intent().is_some_and(|intent| !intent.releasing.iter().all(is_back));
    if draft.is_unanswered() {
        return draft.wait_for_answer();
    }
    if still_releasing {
        draft.not_deployed(Reason::RELEASING, "a machine is on its way back to MAAS");
        return draft.wait(LookAgain::After(release::POLL));
    }
    match &facts.claimed {
        // One that could not be marked or written down yet.
        Lookup::Found(claimed) if claimed.iter().any(|server| is_ours(&draft, &Lookup::Found(server.clone()), &server.system_id)) => {
            draft.not_deployed(
                Reason::RELEASE_FAILED,
                "a machine that is held for this object could not be given back yet; it is tried again by itself",
            );
            draft.wait(LookAgain::AfterBackoff)
        }
        // Nobody is kept for what people know of.
        Lookup::Found(_) | Lookup::Missing if left.iter().all(|left| is_told_of(&draft, &left.id)) => let_go(draft),
        Lookup::Found(_) | Lookup::Missing => leave_addresses(draft, &left),
        unknown @ (Lookup::Forbidden | Lookup::Failed(_) | Lookup::Outdated) => failures::unclear(draft, unknown),
    }
}

fn let_go(mut draft: Draft<'_>) -> Plan {
    draft.phase(Phase::Released);
    draft.not_deployed(Reason::RELEASED, "no machine is held for this object");
    let step = pooled::free(&draft).unwrap_or(Step::RemoveFinalizer);
    draft.step(step)
}
