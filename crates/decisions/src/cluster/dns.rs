//! A name in MAAS's DNS for the machines of the control plane. The name is written down before there is a record of it; the record is
//! looked for before it is made and again afterwards, since MAAS lets several come to be in a race.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use api::{EndpointIntent, EndpointOrderKind as Kind};

use super::{
    addresses,
    draft::Draft,
    endpoint::Origin,
    facts::Record,
    failures,
    members::{Membership, membership},
    orders::Outstanding,
    plan::{LookAgain, Plan, Step},
    reason,
};
use crate::{Failure, FailureKind, Lookup};

/// How often the record is compared, should nothing happen: MAAS tells nobody of changes in DNS.
const DRIFT_POLL: Duration = Duration::from_mins(5);

pub(super) fn decide(mut draft: Draft<'_>, name: &str, origin: Origin) -> Plan {
    let facts = draft.facts;
    if origin == Origin::Copied {
        let message = format!("the object was copied from another one, whose name {name} is. {}", reason::NAME_TAKEN.remedy);
        draft.no_endpoint(reason::NAME_TAKEN, message);
        return draft.wait(LookAgain::OnChange);
    }
    let records = match look(&draft) {
        Ok(records) => records,
        Err(hindrance) => return hindrance.plan(draft, name),
    };
    if origin != Origin::Ours
        && let Some(plan) = claim(&mut draft, name, origin, &records)
    {
        return plan.take(draft);
    }
    match draft.outstanding() {
        Outstanding::Nothing => {}
        Outstanding::Settle(step) | Outstanding::Ask(step) => return draft.step(step),
        Outstanding::Wait => return draft.wait_for_answer(),
    }
    let Some(record) = records.first() else { return create(draft, name) };
    let given = facts.intent().is_some_and(|intent| intent.given);
    if let Some(surplus) = records.iter().skip(1).max_by_key(|record| record.id).filter(|_| !given) {
        return draft.step(Step::RemoveRecord { id: surplus.id });
    }
    let published: BTreeSet<IpAddr> = records.iter().flat_map(Record::set).collect();
    draft.publishes(name, published.iter().copied());
    keep(draft, name, record, &published, given)
}

/// Why the records of a name are not known.
pub(super) enum Hindrance {
    NotAsked,
    NoDomain,
    Silence(Failure),
}

/// The records of the name, the one that counts first.
pub(super) fn look(draft: &Draft<'_>) -> Result<Vec<Record>, Hindrance> {
    match &draft.facts.records {
        Lookup::Found(records) => {
            let mut records = records.clone();
            records.sort_by_key(|record| record.id);
            Ok(records)
        }
        Lookup::Outdated => Err(Hindrance::NotAsked),
        Lookup::Missing if draft.facts.is_deleting() => Ok(Vec::new()),
        Lookup::Missing => Err(Hindrance::NoDomain),
        Lookup::Forbidden => {
            let words = "MAAS does not let us see DNS records".to_owned();
            Err(Hindrance::Silence(Failure { kind: FailureKind::NotPermitted, words }))
        }
        Lookup::Failed(failure) => Err(Hindrance::Silence(failure.clone())),
    }
}

impl Hindrance {
    pub(super) fn plan(self, mut draft: Draft<'_>, name: &str) -> Plan {
        match self {
            Self::NotAsked => draft.step(Step::ListRecords),
            Self::NoDomain => {
                let domain = &draft.facts.object.spec.dns_domain;
                let message =
                    format!("MAAS does not have the DNS domain {domain}, in which {name} should be. {}", reason::DOMAIN_NOT_FOUND.remedy);
                draft.no_endpoint(reason::DOMAIN_NOT_FOUND, message);
                draft.wait(LookAgain::AfterBackoff)
            }
            Self::Silence(failure) => failures::no_account(draft, &failure),
        }
    }
}

/// What comes of a name that is not on record yet.
enum Claim {
    Write(EndpointIntent),
    Taken,
}

impl Claim {
    fn take(self, draft: Draft<'_>) -> Plan {
        match self {
            Self::Write(intent) => draft.step(Step::Settle(intent)),
            Self::Taken => draft.wait(LookAgain::AfterBackoff),
        }
    }
}

/// A record that is there although we did not write its name down is used only if somebody asked for it, or the Go provider made it.
fn claim(draft: &mut Draft<'_>, name: &str, origin: Origin, records: &[Record]) -> Option<Claim> {
    let intent = EndpointIntent { name: Some(name.to_owned()), ..draft.intent() };
    match (records, origin) {
        ([], _) => None,
        (_, Origin::GoProvider) => Some(Claim::Write(EndpointIntent { reserved: addresses::ours_in(records), ..intent })),
        (_, Origin::Asked) => Some(Claim::Write(EndpointIntent { given: true, ..intent })),
        (_, Origin::New | Origin::Ours | Origin::Copied) => {
            let message = format!("MAAS has a DNS record {name} already, and it is not known whose. {}", reason::NAME_TAKEN.remedy);
            draft.no_endpoint(reason::NAME_TAKEN, message);
            Some(Claim::Taken)
        }
    }
}

fn may_write(draft: &Draft<'_>) -> bool {
    draft.account().is_some_and(|account| account.administrator)
}

fn rights_missing(mut draft: Draft<'_>, what: &str) -> Plan {
    let user = draft.account().map(|account| account.user.clone()).unwrap_or_default();
    draft.no_endpoint(reason::DNS_RIGHTS_MISSING, format!("the MAAS user {user} may not {what}. {}", reason::DNS_RIGHTS_MISSING.remedy));
    draft.wait(LookAgain::AfterBackoff)
}

fn create(mut draft: Draft<'_>, name: &str) -> Plan {
    if !may_write(&draft) {
        return rights_missing(draft, &format!("make the DNS record {name}"));
    }
    let time_to_live = draft.facts.object.spec.time_to_live();
    if api::condition::find(&draft.status.conditions, super::draft::LOAD_BALANCER_READY).is_none() {
        draft.no_endpoint(reason::WAIT_FOR_NAME, format!("making the DNS record {name}"));
    }
    let (named, name) = (name.to_owned(), name.to_owned());
    draft.tell(Kind::Create, move |intent| intent.name = Some(named), move |not_after| Step::CreateRecord { name, time_to_live, not_after })
}

/// The record is there: the endpoint is known, and leads to whoever serves.
fn keep(mut draft: Draft<'_>, name: &str, record: &Record, published: &BTreeSet<IpAddr>, given: bool) -> Plan {
    let facts = draft.facts;
    if let Some(step) = draft.endpoint_step(name) {
        return draft.step(step);
    }
    draft.provisioned_if_zones_are_known();
    let Membership { wanted, without_address } = membership(facts, published);
    let time_to_live = facts.object.spec.time_to_live();
    let stale = !given && record.time_to_live != Some(time_to_live);
    let wanted = wanted.unwrap_or_else(|| published.clone());
    // A name that leads nowhere cuts everybody off: that no machine is left has to be true and not only remembered.
    if wanted.is_empty() && !published.is_empty() && !facts.machines_are_confirmed {
        return draft.step(Step::ListMachines);
    }
    if wanted != record.set() || stale {
        return write(draft, record, &wanted, time_to_live);
    }
    if let Some(step) = addresses::next(&draft, published) {
        return addresses::take(draft, step);
    }
    if wanted.is_empty() && !without_address.is_empty() {
        let message = format!("no address of {} fits. {}", without_address.join(", "), reason::NO_MATCHING_ADDRESS.remedy);
        draft.no_endpoint(reason::NO_MATCHING_ADDRESS, message);
    } else {
        draft.endpoint_is_ready();
    }
    draft.wait(LookAgain::After(DRIFT_POLL))
}

/// Writes the whole list. What MAAS reserves for us by that is written down before.
pub(super) fn write(draft: Draft<'_>, record: &Record, wanted: &BTreeSet<IpAddr>, time_to_live: u32) -> Plan {
    if !may_write(&draft) {
        return rights_missing(draft, "write the DNS record");
    }
    let new: Vec<IpAddr> = wanted.difference(&record.set()).copied().collect();
    let known = draft.facts.reservations.as_ref();
    if !new.is_empty() && known.is_none() {
        return draft.step(Step::ListReservations);
    }
    let reserved_before = |ip: &IpAddr| known.is_some_and(|all| all.iter().any(|reservation| reservation.ip == *ip));
    let mut intent = draft.intent();
    let (theirs, ours): (Vec<IpAddr>, Vec<IpAddr>) = new.into_iter().filter(|ip| !intent.reserved.contains(ip)).partition(reserved_before);
    // Whatever else MAAS reserved for the record with our user, such as for an earlier list that was carried out late.
    let late = addresses::ours_in(std::slice::from_ref(record)).into_iter().filter(|ip| !intent.given && !intent.theirs.contains(ip));
    let reserved: BTreeSet<IpAddr> = intent.reserved.iter().copied().chain(ours).chain(late).collect();
    intent.theirs.extend(theirs);
    intent.theirs.retain(|ip| wanted.contains(ip) || record.set().contains(ip));
    let theirs: BTreeSet<IpAddr> = intent.theirs.into_iter().collect();
    let change = move |intent: &mut EndpointIntent| {
        intent.reserved = reserved.into_iter().collect();
        intent.theirs = theirs.into_iter().collect();
    };
    let (id, addresses): (i64, Vec<IpAddr>) = (record.id, wanted.iter().copied().collect());
    draft.tell(Kind::Write(addresses.clone()), change, move |not_after| Step::WriteRecord { id, time_to_live, addresses, not_after })
}
