//! A MaasCluster that goes: first its machines, then its record, its addresses, and only then the object. Nothing is let go before MAAS
//! showed that nothing is left.

use std::{collections::BTreeSet, net::IpAddr, ops::ControlFlow, time::Duration};

use api::EndpointOrderKind as Kind;

use super::{
    addresses, dns,
    draft::{Draft, MAAS_AVAILABLE},
    endpoint::{Endpoint, Origin},
    facts::{Member, Record},
    failures, live,
    orders::Outstanding,
    plan::{LookAgain, Plan, Step},
    reason,
};
use crate::machine::Reason;

/// How many machines a message names.
const MACHINES_NAMED: usize = 10;
/// How often it is looked whether machines are gone, should nobody tell.
const POLL: Duration = Duration::from_mins(1);

pub(super) fn decide(mut draft: Draft<'_>) -> Plan {
    let facts = draft.facts;
    if !facts.is_held() {
        return Plan::nothing();
    }
    if !facts.machines.is_empty() {
        return wait_for_machines(draft);
    }
    if !facts.machines_are_confirmed {
        // A cache that is behind shows none, and they need their cluster for as long as they are there.
        return draft.step(Step::ListMachines);
    }
    if let Some(words) = live::unreadable(facts) {
        return draft.unreadable(&words);
    }
    let name = match (facts.intent(), facts.endpoint()) {
        (Some(intent), _) => intent.name,
        (None, Endpoint::Dns { name, origin: Origin::GoProvider }) if facts.holder_of(&name).is_none() => Some(name),
        (None, _) => return let_go(draft),
    };
    if let Err(failure) = &facts.account {
        return failures::no_account(draft, failure);
    }
    if let Some(failure) = draft.silence() {
        return failures::no_account(draft, &failure);
    }
    draft.condition(MAAS_AVAILABLE, Some(true), Reason::MAAS_AVAILABLE, "");
    if let Some(message) = draft.other_maas() {
        draft.no_endpoint(Reason::OTHER_MAAS, message);
        return draft.wait(LookAgain::AfterBackoff);
    }
    if facts.failed.is_none() && facts.hold_until.is_none_or(|until| until <= draft.now) {
        draft.no_endpoint(reason::CLEANING_UP, reason::CLEANING_UP.meaning);
    }
    let records = match &name {
        Some(name) => match dns::look(&draft) {
            Ok(records) => records,
            Err(hindrance) => return hindrance.plan(draft, name),
        },
        None => Vec::new(),
    };
    if facts.intent().is_none() {
        // What is in the record shows only as long as there is one.
        let intent = api::EndpointIntent { name, reserved: addresses::ours_in(&records), ..draft.intent() };
        return draft.step(Step::Settle(intent));
    }
    clean_up(draft, &records)
}

fn wait_for_machines(mut draft: Draft<'_>) -> Plan {
    let all = &draft.facts.machines;
    let named = all.iter().take(MACHINES_NAMED).map(Member::name).collect::<Vec<_>>().join(", ");
    let more = if all.len() > MACHINES_NAMED { ", …" } else { "" };
    let message = format!("{} machines of the cluster have to go first: {named}{more}", all.len());
    draft.no_endpoint(reason::WAITING_FOR_MACHINES, message);
    match record_of_machines(&draft) {
        Found::Name(name) => let_machines_leave(draft, &name),
        // Machines cannot be released either.
        Found::Silence => draft.wait(LookAgain::After(POLL)),
        Found::Nothing => leave_them_without_a_record(draft),
    }
}

/// What machines that go have to leave.
enum Found {
    Name(String),
    Silence,
    Nothing,
}

fn record_of_machines(draft: &Draft<'_>) -> Found {
    let facts = draft.facts;
    let Some(name) = facts.intent().and_then(|intent| intent.name) else { return Found::Nothing };
    if facts.account.is_err() || draft.silence().is_some() {
        return Found::Silence;
    }
    if draft.other_maas().is_some() || !dns::may_write(draft) {
        return Found::Nothing;
    }
    Found::Name(name)
}

/// As long as there are machines the name leads to those that stay: one that goes leaves it before it is released, as always.
fn let_machines_leave(draft: Draft<'_>, name: &str) -> Plan {
    let records = match dns::look(&draft) {
        Ok(records) => records,
        Err(dns::Hindrance::NotAsked) => return draft.step(Step::ListRecords),
        Err(dns::Hindrance::NoDomain | dns::Hindrance::Silence(_)) => return leave_them_without_a_record(draft),
    };
    match draft.outstanding() {
        Outstanding::Nothing => {}
        Outstanding::Settle(step) | Outstanding::Ask(step) => return draft.step(step),
        Outstanding::Wait => return draft.wait_for_answer(),
    }
    let Some(record) = records.first() else { return leave_them_without_a_record(draft) };
    match dns::lead(draft, name, record, &records) {
        ControlFlow::Continue((draft, _)) => draft.wait(LookAgain::After(POLL)),
        ControlFlow::Break(plan) => plan,
    }
}

/// They would wait for their addresses to leave the record, and nobody takes them out of one.
fn leave_them_without_a_record(mut draft: Draft<'_>) -> Plan {
    if let Some(network) = &mut draft.status.network {
        network.addresses.clear();
    }
    draft.wait(LookAgain::After(POLL))
}

fn clean_up(mut draft: Draft<'_>, records: &[Record]) -> Plan {
    let facts = draft.facts;
    let Some(intent) = facts.intent() else { return draft.wait(LookAgain::OnChange) };
    match draft.outstanding() {
        Outstanding::Nothing => {}
        Outstanding::Settle(step) | Outstanding::Ask(step) => return draft.step(step),
        // The record goes, whatever is written into it.
        Outstanding::Wait if !intent.given && matches!(intent.order, Some(api::EndpointOrder { what: Kind::Write(_), .. })) => {}
        Outstanding::Wait => return draft.wait_for_answer(),
    }
    // The one that was there before stays, with what others have in it.
    let (staying, going) = if intent.given { (records.first(), None) } else { (None, records.last()) };
    if let Some(record) = going {
        return draft.step(Step::RemoveRecord { id: record.id });
    }
    if let Some(record) = staying {
        let foreign: BTreeSet<IpAddr> = record.set().into_iter().filter(|ip| !intent.added.contains(ip)).collect();
        if foreign != record.set() {
            return dns::write(draft, record, &foreign, None);
        }
    }
    let reserved: Option<IpAddr> = intent.address.filter(|_| !intent.address_given);
    if let Some(address) = reserved {
        let Some(reservations) = &facts.reservations else { return draft.step(Step::ListReservations) };
        if reservations.iter().any(|reservation| reservation.ip == address) && !facts.is_of_other(address) {
            if let Some(other) = facts.going_holder_of(address) {
                let message =
                    format!("the address {address} is freed when the MaasCluster {other}, which has it too and goes as well, is gone");
                draft.no_endpoint(reason::CLEANING_UP, message);
                return draft.wait(LookAgain::After(POLL));
            }
            return draft.tell(Kind::Free(address), |_| (), move |not_after| Step::FreeAddress { address, not_after });
        }
    }
    match addresses::next(&draft, &staying.map(Record::set).unwrap_or_default()) {
        Some(next) => addresses::take(draft, next),
        None => let_go(draft),
    }
}

fn let_go(mut draft: Draft<'_>) -> Plan {
    draft.no_endpoint(reason::REMOVED, reason::REMOVED.meaning);
    draft.step(Step::RemoveFinalizer)
}
