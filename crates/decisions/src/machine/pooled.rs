//! Addresses that a pool gave to the object. Whoever deletes the claim makes the pool's provider take its address back, and in a foreground
//! deletion Kubernetes itself does so while the server still runs. A pool does not give an address to anybody else while its `IPAddress` is
//! there, so that has a finalizer of ours from before a server gets the address until no server of the object has it any more, or can get
//! it. Which one it is stays on record, since the claim that leads to it may be gone by then.

use std::{net::IpAddr, time::Duration};

use api::{
    cluster_api::{IpAddress, IpAddressClaim},
    condition, names,
};
use jiff::Timestamp;

use super::{
    draft::{ADDRESS_HELD, Draft},
    links,
    plan::{LookAgain, Step, StepName},
    reason::Reason,
    release,
};
use crate::{FailureKind, Lookup, address, plan::later};

/// Whether the object's address is safe from others.
pub(super) enum Hold {
    /// It is held, or is of no pool.
    Done,
    /// This is the next step of holding it.
    Next(Box<Step>),
    /// It went back to its pool, or is about to: somebody else may get it. What it is called.
    GoneBack(String),
}

impl Hold {
    fn next(step: Step) -> Self {
        Self::Next(Box::new(step))
    }
}

/// Holds the address that the object has from a pool, for a server that is about to get it.
pub(super) fn hold(draft: &Draft<'_>) -> Hold {
    let facts = draft.facts;
    let wanted = facts.object.spec.static_ip.as_ref();
    let Some(intent) = facts.intent().filter(|_| wanted.is_some_and(|wanted| wanted.ip.is_some() && wanted.pool_ref.is_some())) else {
        return Hold::Done;
    };
    let given = |claim: &IpAddressClaim| {
        let reference = claim.status.as_ref().map(|status| status.address_ref.name.clone());
        reference.filter(|name| !name.is_empty() && address::is_of(&facts.object, claim))
    };
    let named = match &*facts.address_claim {
        Lookup::Found(claim) => given(claim),
        Lookup::Outdated => return Hold::next(Step::LookForClaim),
        Lookup::Missing | Lookup::Forbidden | Lookup::Failed(_) => None,
    };
    // Nothing stands for the address any more, or ever did.
    let Some(name) = named.or_else(|| intent.pooled.last().cloned()) else {
        return Hold::GoneBack(wanted.and_then(|wanted| wanted.ip.clone()).unwrap_or_default());
    };
    match facts.pooled.get(&name) {
        None | Some(Lookup::Outdated | Lookup::Forbidden | Lookup::Failed(_)) => Hold::next(Step::LookForAddress { address: name }),
        // Somebody wrote another one: only what the pool gave is given to servers.
        Some(Lookup::Found(address)) if !is_asked_for(draft, address) => Hold::GoneBack(name),
        Some(Lookup::Found(address)) if is_held_for_us(draft, address) => Hold::Done,
        Some(Lookup::Found(address)) if is_for_us(draft, address) && address.metadata.deletion_timestamp.is_none() => {
            if !intent.pooled.contains(&name) || draft.may_send_until().is_none() {
                return Hold::next(draft.intend(|intent| {
                    intent.pooled.retain(|other| *other != name);
                    intent.pooled.push(name);
                }));
            }
            Hold::next(Step::HoldAddress(Box::new(address.clone())))
        }
        Some(Lookup::Found(_) | Lookup::Missing) => Hold::GoneBack(name),
    }
}

/// What comes of holding the address of a server that got it before it was held.
pub(super) enum Later {
    /// This is the next step.
    Next(Box<Step>),
    /// There is nothing to do now, and then it is looked again.
    Wait(LookAgain),
}

/// Holds the address of a server that got it before it was held. What cannot be held is no fault of a server that runs: it is shown, and tried
/// again.
pub(super) fn hold_later(draft: &mut Draft<'_>) -> Later {
    let step = match hold(draft) {
        Hold::Next(step) => step,
        Hold::GoneBack(name) => {
            let words = format!("address {name} went back to its pool while the machine has it, and somebody else may get it");
            draft.condition(ADDRESS_HELD, Some(false), Reason::ADDRESS_NOT_CLAIMED, Reason::ADDRESS_NOT_CLAIMED.message(&words));
            return Later::Wait(LookAgain::OnChange);
        }
        Hold::Done => {
            if condition::find(&draft.status.conditions, ADDRESS_HELD).is_some() {
                draft.condition(ADDRESS_HELD, Some(true), Reason::ADDRESS_HELD, "");
            }
            return Later::Wait(LookAgain::OnChange);
        }
    };
    match &draft.facts.failed {
        Some(failed) if is_of_holding(failed.step) => {
            // Somebody else changed the address or the object in that moment, which is no trouble.
            if failed.failure.kind != FailureKind::Stale {
                let words = format!("the address that it has from a pool could not be held: {}", failed.failure.words);
                draft.condition(ADDRESS_HELD, Some(false), Reason::KUBERNETES_FAILED, Reason::KUBERNETES_FAILED.message(&words));
            }
            Later::Wait(LookAgain::AfterBackoff)
        }
        // It failed before the node could not be named either, and both are tried again.
        Some(failed) if failed.step == StepName::NameNode => Later::Wait(LookAgain::AfterBackoff),
        _ => match held_again_at(draft).filter(|_| step.name() == StepName::Intend) {
            Some(again) => Later::Wait(LookAgain::After(Duration::try_from(again.duration_since(draft.now)).unwrap_or_default())),
            None => Later::Next(step),
        },
    }
}

fn is_of_holding(step: StepName) -> bool {
    matches!(step, StepName::LookForClaim | StepName::LookForAddress | StepName::HoldAddress | StepName::Intend)
}

/// When the intent to hold an address is written again, if not now: it makes the object due, so that one that cannot be held would be tried
/// every second. The wait is as long as it was tried already, and so doubles every time.
fn held_again_at(draft: &Draft<'_>) -> Option<Timestamp> {
    let last = draft.facts.intent().and_then(|intent| intent.since).filter(|_| !draft.facts.intent_is_fresh)?;
    let began = condition::find(&draft.status.conditions, ADDRESS_HELD).map_or(last, |held| held.last_transition_time.0);
    let tried = Duration::try_from(last.duration_since(began)).unwrap_or_default();
    Some(later(last, tried.clamp(release::POLL, release::LONGEST_WAIT))).filter(|again| draft.now < *again)
}

/// The next step of giving back what is held for an object that is wanted, and that its servers do not have: somebody deleted the claim, or
/// the object asks for another address. While MAAS may still do what nobody saw the answer to, a server may get it yet.
pub(super) fn free_unused(draft: &Draft<'_>) -> Option<Step> {
    if draft.is_unanswered() {
        return None;
    }
    let is_unused = |address: &IpAddress| {
        let goes = address.metadata.deletion_timestamp.is_some();
        let ip = address.spec.address.parse();
        (goes || !is_asked_for(draft, address)) && ip.is_ok_and(|ip| !links::may_be_on_a_server(draft, ip))
    };
    free_where(draft, is_unused)
}

/// The next step of giving back what is held for an object that has no server any more.
pub(super) fn free(draft: &Draft<'_>) -> Option<Step> {
    free_where(draft, |_| true)
}

fn free_where(draft: &Draft<'_>, may_go: impl Fn(&IpAddress) -> bool) -> Option<Step> {
    let held = draft.facts.intent().map(|intent| intent.pooled).unwrap_or_default();
    held.into_iter().find_map(|name| match draft.facts.pooled.get(&name) {
        None | Some(Lookup::Outdated | Lookup::Forbidden | Lookup::Failed(_)) => Some(Step::LookForAddress { address: name }),
        Some(Lookup::Found(address)) if is_held_for_us(draft, address) && may_go(address) => {
            Some(Step::FreeAddress(Box::new(address.clone())))
        }
        Some(Lookup::Found(_) | Lookup::Missing) => None,
    })
}

/// Whether it was given to the claim of this object, which has the object's name.
fn is_for_us(draft: &Draft<'_>, address: &IpAddress) -> bool {
    Some(&address.spec.claim_ref.name) == draft.facts.object.metadata.name.as_ref()
}

/// Whether it is the address that the object asks for.
fn is_asked_for(draft: &Draft<'_>, address: &IpAddress) -> bool {
    let wanted = draft.facts.object.spec.static_ip.as_ref().and_then(|wanted| wanted.ip.as_deref());
    let plain = |text: &str| text.parse::<IpAddr>().map_or_else(|_| text.to_owned(), |ip| ip.to_string());
    wanted.is_some_and(|wanted| plain(wanted) == plain(&address.spec.address))
}

fn is_held_for_us(draft: &Draft<'_>, address: &IpAddress) -> bool {
    let finalizers = address.metadata.finalizers.as_deref().unwrap_or_default();
    is_for_us(draft, address) && finalizers.iter().any(|name| name == names::FINALIZER_ADDRESS)
}
