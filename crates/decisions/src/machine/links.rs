//! Fixed addresses that servers are given. MAAS leaves them on a server that it takes back, where nobody else can have them: so they are
//! written down before a server gets them, and taken off again when it is nobody's. What MAAS does not let us take off, or somebody else got
//! with the server, stays on record and is tried again.

use std::{net::IpAddr, time::Duration};

use api::{LinkedAddress, SystemId, condition};
use jiff::Timestamp;

use super::{
    draft::{ADDRESSES_FREED, Draft},
    facts::Facts,
    live::{is_ours, verdict_on},
    order::fresh_until,
    plan::{Preparation, Step},
    reason::Reason,
    release,
};
use crate::{
    FailureKind, Link, LinkMode, Lookup, Server,
    ownership::{Loss, Verdict},
    plan::later,
};

/// Writes down the address that the server is about to be given, unless that was done.
pub(super) fn not_yet_written_down(draft: &Draft<'_>, server: &Server, preparation: &Preparation) -> Option<Step> {
    let Preparation::Link { address: Some(address), .. } = preparation else { return None };
    let linked = LinkedAddress { server: server.system_id.clone(), address: *address };
    let known = draft.facts.intent().is_some_and(|intent| intent.linked.contains(&linked));
    (!known).then(|| draft.intend(move |intent| intent.linked.push(linked)))
}

/// What becomes of the fixed addresses of a server that is not ours any more.
pub(super) enum TakeOff {
    /// It has none of ours.
    Done,
    /// This is the next step of taking one off.
    Next(Box<Step>),
    /// It keeps one for now: MAAS did not let us take it off, or somebody else has the server.
    Left,
}

impl TakeOff {
    fn next(step: Step) -> Self {
        Self::Next(Box::new(step))
    }
}

/// Takes addresses of ours off a server that is nobody's. One that somebody else has is not touched.
pub(super) fn take_off(draft: &Draft<'_>, id: &SystemId, lookup: &Lookup<Server>) -> TakeOff {
    let deleting = is_deleting(draft);
    let Some(left) = left_at(draft, id, lookup) else { return TakeOff::Done };
    let free = lookup.found().filter(|_| !left.is_held());
    let Some((server, (interface, link))) = free.and_then(|server| Some((server, ours_on(draft, server)?))) else { return TakeOff::Left };
    let answered = draft.facts.not_unlinked.get(id).is_some_and(|failure| is_answer(failure.kind, deleting));
    let waits = is_told(draft) && !deleting && !draft.facts.intent_is_fresh && draft.now < asked_again_at(draft);
    if answered || waits || (deleting && is_told_of(draft, id)) {
        return TakeOff::Left;
    }
    let Some(not_after) = draft.may_touch_until(server) else { return TakeOff::next(draft.intend(|_| ())) };
    if not_after <= draft.now {
        return TakeOff::next(Step::Look { server: id.clone() });
    }
    let preparation = Preparation::Unlink { interface, link };
    TakeOff::next(Step::Prepare { server: id.clone(), preparation, not_after })
}

fn is_deleting(draft: &Draft<'_>) -> bool {
    draft.facts.object.metadata.deletion_timestamp.is_some()
}

/// Whether MAAS itself said that it does not do it. An object that goes is only let go when the answer would be the same again.
fn is_answer(kind: FailureKind, deleting: bool) -> bool {
    kind.is_refusal() || (!deleting && matches!(kind, FailureKind::HalfDone | FailureKind::Later(_)))
}

/// An interface of the server and its connection that has an address which the server got from us.
fn ours_on(draft: &Draft<'_>, server: &Server) -> Option<(i64, i64)> {
    let given = given_to(draft, &server.system_id);
    let is_ours = |link: &&Link| is_one_of(link, &given);
    server.interfaces.iter().find_map(|interface| Some((interface.id, interface.links.iter().find(is_ours)?.id)))
}

fn is_one_of(link: &Link, given: &[IpAddr]) -> bool {
    link.mode == LinkMode::Static && link.address.is_some_and(|address| given.contains(&address))
}

/// The addresses that are on record as given to a server.
fn given_to(draft: &Draft<'_>, id: &SystemId) -> Vec<IpAddr> {
    let linked = draft.facts.intent().map(|intent| intent.linked).unwrap_or_default();
    linked.into_iter().filter(|linked| linked.server == *id).map(|linked| linked.address).collect()
}

/// Those of them that a server has by what is known of it. What nobody saw gone may be there.
fn kept_by(draft: &Draft<'_>, id: &SystemId, lookup: &Lookup<Server>) -> Vec<IpAddr> {
    let mut given = given_to(draft, id);
    match lookup {
        Lookup::Found(server) => {
            let has = |address: &IpAddr| {
                server.interfaces.iter().any(|interface| interface.links.iter().any(|link| is_one_of(link, std::slice::from_ref(address))))
            };
            given.retain(has);
            given
        }
        Lookup::Missing => Vec::new(),
        Lookup::Forbidden | Lookup::Failed(_) | Lookup::Outdated => given,
    }
}

/// Whether a server that is on record as given the address has it, or nobody can tell.
pub(super) fn may_be_on_a_server(draft: &Draft<'_>, address: IpAddr) -> bool {
    let facts = draft.facts;
    let has = |server: &Server| {
        let links = || server.interfaces.iter().flat_map(|interface| &interface.links);
        fresh_until(server) <= draft.now || server.addresses.contains(&address) || links().any(|link| link.address == Some(address))
    };
    let seen = |id: &SystemId| {
        let named = facts.recorded.as_ref().filter(|_| facts.recorded_id().as_ref() == Some(id));
        named.or_else(|| facts.releasing.get(id))
    };
    let linked = facts.intent().map(|intent| intent.linked).unwrap_or_default();
    linked.iter().filter(|linked| linked.address == address).any(|linked| match seen(&linked.server) {
        Some(Lookup::Found(server)) => has(server),
        Some(Lookup::Missing) => false,
        None | Some(Lookup::Forbidden | Lookup::Failed(_) | Lookup::Outdated) => true,
    })
}

/// A server that is not ours any more and has addresses that it got from us.
pub(super) struct Left {
    /// Which.
    pub id: SystemId,
    name: String,
    addresses: String,
    /// Who has it, in words; nothing if it is nobody's.
    holder: Option<String>,
}

impl Left {
    /// Whether somebody else has it.
    pub fn is_held(&self) -> bool {
        self.holder.is_some()
    }

    /// What is left, and why; nothing if it is not known why.
    fn words(&self, facts: &Facts) -> Option<String> {
        let Self { id, name, addresses, holder } = self;
        if let Some(holder) = holder {
            return Some(format!("machine {name} {holder} the fixed address {addresses}, which it got for this object"));
        }
        let failure = facts.not_unlinked.get(id).filter(|failure| is_answer(failure.kind, false))?;
        Some(format!("machine {name} keeps the fixed address {addresses}: {}", failure.words.trim_end_matches('.')))
    }

    /// When it is taken off.
    fn outlook(&self) -> &'static str {
        match self.holder {
            Some(_) => "It is taken off by itself once nobody has the machine",
            None => "It is tried again by itself, at the latest after five minutes",
        }
    }
}

/// What is left on a server, if it is known not to be ours any more.
fn left_at(draft: &Draft<'_>, id: &SystemId, lookup: &Lookup<Server>) -> Option<Left> {
    let holder = match verdict_on(draft, id, lookup) {
        Verdict::TakenAway(Loss::Released) => None,
        Verdict::TakenAway(Loss::OtherOwner(owner)) => Some(format!("belongs to MAAS user {owner} now and keeps")),
        Verdict::TakenAway(Loss::Hidden) => Some("is not shown to us by MAAS and may keep".to_owned()),
        Verdict::Foreign { holder } => Some(format!("is held for {holder} now and keeps")),
        _ => return None,
    };
    let kept = kept_by(draft, id, lookup);
    let addresses = kept.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let name = lookup.found().map_or_else(|| id.to_string(), Server::name);
    (!kept.is_empty()).then(|| Left { id: id.clone(), name, addresses, holder })
}

/// Everything that is left on servers.
fn left(draft: &Draft<'_>) -> Vec<Left> {
    given_up(draft).into_iter().filter_map(|(id, lookup)| left_at(draft, &id, lookup)).collect()
}

/// What is left when an object goes: MAAS would say the same again, somebody else has the server, or people know of it.
pub(super) fn left_for_good(draft: &Draft<'_>) -> Vec<Left> {
    let refused = |id: &SystemId| draft.facts.not_unlinked.get(id).is_some_and(|failure| failure.kind.is_refusal());
    let mut left = left(draft);
    left.retain(|left| left.is_held() || refused(&left.id) || is_told_of(draft, &left.id));
    left
}

/// Whether people were told what an object that goes leaves on this server.
pub(super) fn is_told_of(draft: &Draft<'_>, id: &SystemId) -> bool {
    draft.said(Reason::ADDRESS_LEFT).is_some_and(|message| message.contains(id.as_str()))
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
    let left = left(draft);
    let releasing = draft.facts.intent().map(|intent| intent.releasing).unwrap_or_default();
    if releasing.iter().any(|id| left.iter().all(|left| left.id != *id)) {
        return Some(release::POLL);
    }
    if left.iter().any(|left| !left.is_held()) {
        let wait = Duration::try_from(asked_again_at(draft).duration_since(draft.now)).unwrap_or_default();
        return Some(wait.max(Duration::from_secs(1)));
    }
    (!left.is_empty()).then_some(release::LONGEST_WAIT)
}

/// Servers whose release we began, and the one that the object names, should it be lost: one that was handed over keeps what it got until
/// the object goes.
fn given_up<'a>(draft: &Draft<'a>) -> Vec<(SystemId, &'a Lookup<Server>)> {
    let facts = draft.facts;
    let releasing = facts.intent().map(|intent| intent.releasing).unwrap_or_default();
    let named = facts.recorded_id().zip(facts.recorded.as_ref());
    let lost = named.filter(|(id, _)| !releasing.contains(id) && (is_deleting(draft) || !facts.is_provisioned()));
    let begun = releasing.iter().map(|id| (id.clone(), facts.releasing.get(id).unwrap_or(&Lookup::Outdated)));
    begun.chain(lost).collect()
}

/// Whether a server that was given up has an address of ours, or nobody can tell.
fn may_be_kept(draft: &Draft<'_>) -> bool {
    let releasing = draft.facts.intent().map(|intent| intent.releasing).unwrap_or_default();
    let in_use = |id: &SystemId, lookup: &Lookup<Server>| !releasing.contains(id) && is_ours(draft, lookup, id);
    given_up(draft).iter().any(|(id, lookup)| !in_use(id, lookup) && !kept_by(draft, id, lookup).is_empty())
}

impl Draft<'_> {
    /// Says what was left on servers that went back, until MAAS shows that it is off.
    pub(super) fn shows_left_addresses(&mut self) {
        let left = left(self);
        let sentence = |left: &Left| Some(format!("{}. {}", left.words(self.facts)?, left.outlook()));
        let known: Vec<String> = left.iter().filter_map(sentence).collect();
        // MAAS's words are only known in the pass that asked; what was told of them stays.
        let complete = known.len() == left.len();
        if !known.is_empty() && (complete || !is_told(self)) {
            let message = Reason::ADDRESS_LEFT.message(&known.join(". "));
            self.condition(ADDRESSES_FREED, Some(false), Reason::ADDRESS_LEFT, message);
        } else if is_told(self) && !may_be_kept(self) {
            self.condition(ADDRESSES_FREED, Some(true), Reason::ADDRESS_FREED, "");
        }
    }
}

/// What an object that goes leaves on servers, in words.
pub(super) fn farewell(facts: &Facts, left: &[Left]) -> String {
    let words = left.iter().filter_map(|left| left.words(facts)).collect::<Vec<_>>().join("; ");
    Reason::ADDRESS_LEFT.message(&words)
}
