//! Fixed addresses that servers are given. MAAS leaves them on a server that it takes back, where nobody else can have them: so they are
//! written down before a server gets them, and taken off again when it is nobody's. What MAAS does not let us take off stays on record and is
//! tried again, ever more rarely.

use std::time::Duration;

use api::{LinkedAddress, SystemId, condition};
use jiff::Timestamp;

use super::{
    draft::{ADDRESSES_FREED, Draft},
    facts::Facts,
    plan::{Preparation, Step},
    reason::Reason,
    release,
};
use crate::{FailureKind, Link, LinkMode, Lookup, Server, plan::later};

/// Writes down the address that the server is about to be given, unless that was done.
pub(super) fn not_yet_written_down(draft: &Draft<'_>, server: &Server, preparation: &Preparation) -> Option<Step> {
    let Preparation::Link { address: Some(address), .. } = preparation else { return None };
    let linked = LinkedAddress { server: server.system_id.clone(), address: *address };
    let known = draft.facts.intent().is_some_and(|intent| intent.linked.contains(&linked));
    (!known).then(|| draft.intend(move |intent| intent.linked.push(linked)))
}

/// What becomes of the fixed addresses of a server that went back and is nobody's.
pub(super) enum TakeOff {
    /// It has none of ours.
    Done,
    /// This is the next step of taking one off.
    Next(Box<Step>),
    /// MAAS did not let us take one off, and is asked again later.
    Left,
}

impl TakeOff {
    fn next(step: Step) -> Self {
        Self::Next(Box::new(step))
    }
}

/// Takes addresses of ours off a server that went back and is nobody's.
pub(super) fn take_off(draft: &Draft<'_>, server: &Server) -> TakeOff {
    let deleting = draft.facts.object.metadata.deletion_timestamp.is_some();
    let Some((interface, link)) = ours_on(draft, server) else { return TakeOff::Done };
    if deleting && draft.says(Reason::ADDRESS_LEFT) {
        // People know of it, and nobody is kept for it.
        return TakeOff::Done;
    }
    let answered = draft.facts.not_unlinked.get(&server.system_id).is_some_and(|failure| is_answer(failure.kind, deleting));
    let told = is_told(draft) && !deleting && !draft.facts.intent_is_fresh;
    if answered || (told && draft.now < asked_again_at(draft)) {
        return TakeOff::Left;
    }
    let Some(not_after) = draft.may_touch_until(server) else { return TakeOff::next(draft.intend(|_| ())) };
    if not_after <= draft.now {
        return TakeOff::next(Step::Look { server: server.system_id.clone() });
    }
    let preparation = Preparation::Unlink { interface, link };
    TakeOff::next(Step::Prepare { server: server.system_id.clone(), preparation, not_after })
}

/// Whether MAAS itself said that it does not do it. An object that goes is only let go when the answer would be the same again.
fn is_answer(kind: FailureKind, deleting: bool) -> bool {
    kind.is_refusal() || (!deleting && matches!(kind, FailureKind::HalfDone | FailureKind::Later(_)))
}

/// An interface of the server and its connection that has an address which the server got from us.
fn ours_on(draft: &Draft<'_>, server: &Server) -> Option<(i64, i64)> {
    let linked = draft.facts.intent().map(|intent| intent.linked).unwrap_or_default();
    let is_ours = |link: &&Link| {
        let given = |address| linked.contains(&LinkedAddress { server: server.system_id.clone(), address });
        link.mode == LinkMode::Static && link.address.is_some_and(given)
    };
    server.interfaces.iter().find_map(|interface| Some((interface.id, interface.links.iter().find(is_ours)?.id)))
}

/// Whether it shows that an address was left on a server.
fn is_told(draft: &Draft<'_>) -> bool {
    condition::find(&draft.status.conditions, ADDRESSES_FREED).is_some_and(|freed| freed.status == "False")
}

/// When MAAS is asked again. The wait is as long as it was tried already, and so doubles every time.
fn asked_again_at(draft: &Draft<'_>) -> Timestamp {
    let last = draft.facts.intent().and_then(|intent| intent.since).unwrap_or(draft.now);
    let began = condition::find(&draft.status.conditions, ADDRESSES_FREED).map_or(last, |freed| freed.last_transition_time.0);
    let tried = Duration::try_from(last.duration_since(began)).unwrap_or_default();
    later(last, tried.clamp(release::POLL, release::LONGEST_WAIT))
}

/// When it is looked again at servers that go back, or went back with an address of ours: nothing announces what becomes of either.
pub(super) fn poll(draft: &Draft<'_>) -> Option<Duration> {
    let (on_their_way, left): (Vec<_>, Vec<_>) = given_up(draft).into_iter().partition(|lookup| !is_left(draft, lookup));
    if !on_their_way.is_empty() {
        return Some(release::POLL);
    }
    let wait = || Duration::try_from(asked_again_at(draft).duration_since(draft.now)).unwrap_or_default();
    (!left.is_empty()).then(|| wait().max(Duration::from_secs(1)))
}

/// Servers whose release we began, and one that somebody else released before it was handed over.
fn given_up<'a>(draft: &Draft<'a>) -> Vec<&'a Lookup<Server>> {
    let facts = draft.facts;
    let releasing = facts.intent().map(|intent| intent.releasing).unwrap_or_default();
    let lost = facts.recorded.as_ref().filter(|lookup| !facts.is_provisioned() && is_left(draft, lookup));
    releasing.iter().map(|id| facts.releasing.get(id).unwrap_or(&Lookup::Outdated)).chain(lost).collect()
}

fn is_left(draft: &Draft<'_>, lookup: &Lookup<Server>) -> bool {
    lookup.found().is_some_and(|server| server.owner.is_none() && ours_on(draft, server).is_some())
}

impl Draft<'_> {
    /// Says what was left on servers that went back, until it is taken off.
    pub(super) fn shows_left_addresses(&mut self) {
        let answer = self.facts.not_unlinked.iter().find(|(_, failure)| is_answer(failure.kind, false));
        let given_up = given_up(self);
        if let Some((id, failure)) = answer
            && given_up.iter().any(|lookup| is_left(self, lookup))
        {
            let message = format!(
                "{}. It is tried again by itself, at the latest after five minutes. {}",
                left_on(self.facts, id, &failure.words),
                Reason::ADDRESS_LEFT.remedy
            );
            self.condition(ADDRESSES_FREED, Some(false), Reason::ADDRESS_LEFT, message);
        } else if is_told(self) && !given_up.iter().any(|lookup| lookup.found().is_none() || is_left(self, lookup)) {
            self.condition(ADDRESSES_FREED, Some(true), Reason::ADDRESS_FREED, "");
        }
    }
}

/// Which machine keeps its address, and why.
pub(super) fn left_on(facts: &Facts, id: &SystemId, words: &str) -> String {
    let lookup = facts.releasing.get(id).or(facts.recorded.as_ref().filter(|_| facts.recorded_id().as_ref() == Some(id)));
    let name = lookup.and_then(Lookup::found).map_or_else(|| id.to_string(), Server::name);
    format!("machine {name} keeps its fixed address: {}", words.trim_end_matches('.'))
}
