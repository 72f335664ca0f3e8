//! Addresses that MAAS reserved for our user because they were in the record. MAAS keeps them reserved when they leave it, or with the
//! record gone, and would never hand them out again: they are freed, if they were ours.

use std::{collections::BTreeSet, net::IpAddr};

use api::{EndpointIntent, EndpointOrderKind as Kind};

use super::{
    draft::Draft,
    facts::{Facts, Record},
    plan::{Plan, Step},
};

/// What to do next about an address that may have to be freed.
pub(super) enum Next {
    Ask,
    Forget(EndpointIntent),
    Free(IpAddr),
}

/// Addresses of records that nobody but us has reserved.
pub(super) fn ours_in(records: &[Record]) -> Vec<IpAddr> {
    let all = records.iter().flat_map(|record| &record.addresses);
    all.filter(|address| address.is_our_reservation).map(|address| address.ip).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether an address in the record turned out to be a machine's own, or somebody else's: then it is nothing of ours.
pub(super) fn is_of_a_machine(facts: &Facts, ip: IpAddr) -> bool {
    let mut all = facts.records.found().into_iter().flatten().flat_map(|record| &record.addresses);
    all.any(|address| address.ip == ip && !address.is_our_reservation)
}

/// The next thing to do about addresses that have left the record, if there are any.
pub(super) fn next(draft: &Draft<'_>, published: &BTreeSet<IpAddr>) -> Option<Next> {
    let facts = draft.facts;
    let intent = facts.intent()?;
    let (not_ours, ours): (Vec<IpAddr>, Vec<IpAddr>) = intent.reserved.iter().copied().partition(|ip| is_of_a_machine(facts, *ip));
    if !not_ours.is_empty() {
        return Some(Next::Forget(EndpointIntent { reserved: ours, ..intent }));
    }
    let left: Vec<IpAddr> = ours.iter().copied().filter(|ip| !published.contains(ip)).collect();
    if left.is_empty() {
        return None;
    }
    let Some(reservations) = &facts.reservations else { return Some(Next::Ask) };
    let must_free = |ip: &IpAddr| {
        let ours = reservations.iter().any(|reservation| reservation.ip == *ip && !reservation.on_machine);
        ours && !facts.is_of_other(*ip)
    };
    if let Some(ip) = left.iter().find(|ip| must_free(ip)) {
        return Some(Next::Free(*ip));
    }
    let reserved = ours.into_iter().filter(|ip| published.contains(ip)).collect();
    Some(Next::Forget(EndpointIntent { reserved, ..intent }))
}

pub(super) fn take(draft: Draft<'_>, next: Next) -> Plan {
    match next {
        Next::Ask => draft.step(Step::ListReservations),
        Next::Forget(intent) => draft.step(Step::Settle(intent)),
        Next::Free(address) => draft.tell(Kind::Free(address), |_| (), move |not_after| Step::FreeAddress { address, not_after }),
    }
}
