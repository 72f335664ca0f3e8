//! A server that is not ours any more, or never was. Before it was handed over another one is tried; afterwards that is final.

use std::ops::ControlFlow;

use api::{Intent, Phase, SystemId};

use super::{
    draft::Draft,
    links::{TakeOff, take_off},
    live::is_wished_for,
    plan::{LookAgain, Plan, Step},
    reason::Reason,
    release, retry, surplus,
};
use crate::{Lookup, Server, ownership::Loss};

pub(super) fn taken_away(mut draft: Draft<'_>, id: &SystemId, lookup: &Lookup<Server>, loss: &Loss) -> Plan {
    let facts = draft.facts;
    let begun_by_us = facts.intent().is_some_and(|intent| intent.releasing.contains(id)) && !facts.is_provisioned();
    if begun_by_us {
        retry::note(&mut draft, id, lookup.found());
    }
    let nobodys = lookup.found().filter(|_| *loss == Loss::Released);
    if let Some(step) = nobodys.and_then(|server| release::remove_late_node(&draft, server)) {
        return draft.step(step);
    }
    let forget = match way_to_forget(&draft, id, lookup) {
        ControlFlow::Continue(forget) => forget,
        ControlFlow::Break(step) => return draft.step(step),
    };
    if begun_by_us {
        return do_without(draft, id, forget);
    }
    let (reason, what) = match loss {
        Loss::Released => (Reason::TAKEN_AWAY, "was released in MAAS".to_owned()),
        Loss::OtherOwner(owner) => (Reason::TAKEN_AWAY, format!("belongs to MAAS user {owner} now")),
        Loss::Hidden => (Reason::HIDDEN, "is not shown to us by MAAS".to_owned()),
        Loss::Deleted => (Reason::NOT_FOUND, "is not in MAAS any more".to_owned()),
    };
    if *loss == Loss::Hidden || facts.is_provisioned() {
        draft.not_deployed(reason, format!("machine {} {what}. {}", name(id, lookup), reason.remedy));
        draft.phase(Phase::Failed);
        return draft.wait(LookAgain::OnChange);
    }
    another(draft, id, lookup, &format!("it {what}"), forget)
}

pub(super) fn foreign(mut draft: Draft<'_>, id: &SystemId, lookup: &Lookup<Server>, holder: &str) -> Plan {
    if draft.facts.is_provisioned() {
        let message = format!("machine {} is held for {holder}. {}", name(id, lookup), Reason::FOREIGN.remedy);
        draft.not_deployed(Reason::FOREIGN, message);
        draft.phase(Phase::Failed);
        return draft.wait(LookAgain::OnChange);
    }
    let forget = match way_to_forget(&draft, id, lookup) {
        ControlFlow::Continue(forget) => forget,
        ControlFlow::Break(step) => return draft.step(step),
    };
    another(draft, id, lookup, &format!("it is held for {holder} now"), forget)
}

/// How the object does without it, when what it got is off it or stays for now. A server that was handed over keeps its addresses on record
/// until the object goes.
fn way_to_forget(draft: &Draft<'_>, id: &SystemId, lookup: &Lookup<Server>) -> ControlFlow<Step, Forget> {
    let stays = if draft.facts.is_provisioned() { TakeOff::Done } else { take_off(draft, id, lookup) };
    match stays {
        TakeOff::Next(step) => ControlFlow::Break(*step),
        TakeOff::Done => ControlFlow::Continue(surplus::forget),
        TakeOff::Left => ControlFlow::Continue(surplus::set_aside),
    }
}

/// Lost before it was handed over: nothing of the cluster runs on it, so another one may be tried.
fn another(mut draft: Draft<'_>, id: &SystemId, lookup: &Lookup<Server>, cause: &str, forget: Forget) -> Plan {
    if is_wished_for(&draft, id) {
        return not_to_be_had(draft, id, lookup, cause);
    }
    let hostname = lookup.found().map(|server| server.hostname.clone()).unwrap_or_default();
    draft.failed_attempt(id, &hostname, cause);
    if retry::is_exhausted(&draft) {
        return retry::gave_up(draft);
    }
    draft.not_deployed(Reason::TRYING_ANOTHER, format!("machine {} is lost: {cause}. Another one is tried", name(id, lookup)));
    do_without(draft, id, forget)
}

/// Somebody asked for exactly this one: no other one is tried in its place.
fn not_to_be_had(mut draft: Draft<'_>, id: &SystemId, lookup: &Lookup<Server>, cause: &str) -> Plan {
    let state = lookup.found().map(|server| format!(", and in state {} in MAAS", server.status)).unwrap_or_default();
    let message = format!(
        "spec.systemID asks for machine {}, which cannot be allocated: {cause}{state}. Free it in MAAS, or remove spec.systemID to get another one",
        name(id, lookup)
    );
    draft.not_deployed(Reason::NO_MATCHING_MACHINE, message);
    draft.phase(Phase::Allocating);
    draft.wait(LookAgain::AfterBackoff)
}

/// How the object does without a server: for good, or with something left to do about it.
type Forget = fn(&Intent, &SystemId) -> Step;

fn do_without(draft: Draft<'_>, id: &SystemId, forget: Forget) -> Plan {
    match draft.facts.intent() {
        Some(intent) => draft.step(forget(&intent, id)),
        None => draft.wait(LookAgain::OnChange),
    }
}

fn name(id: &SystemId, lookup: &Lookup<Server>) -> String {
    lookup.found().map_or_else(|| id.to_string(), Server::name)
}
