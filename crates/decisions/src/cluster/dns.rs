//! A name in MAAS's DNS for the machines of the control plane. The name is written down before there is a record of it; the record is
//! looked for before it is made and again afterwards, since MAAS lets several come to be in a race.

use std::{collections::BTreeSet, net::IpAddr, ops::ControlFlow, time::Duration};

use api::{EndpointIntent, EndpointOrderKind as Kind};

use super::{
    addresses,
    draft::{Draft, LOAD_BALANCER_READY},
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
    let draft = match claim(draft, name, origin, &records) {
        ControlFlow::Continue(draft) => draft,
        ControlFlow::Break(plan) => return plan,
    };
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
    keep(draft, name, record, &records)
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

/// A name that another cluster has is left to it. A record that is there although we did not write its name down is used only if somebody
/// asked for it, or the Go provider made it.
fn claim<'a>(draft: Draft<'a>, name: &str, origin: Origin, records: &[Record]) -> ControlFlow<Plan, Draft<'a>> {
    let taken = |mut draft: Draft<'a>, words: String| {
        draft.no_endpoint(reason::NAME_TAKEN, format!("{words}. {}", reason::NAME_TAKEN.remedy));
        ControlFlow::Break(draft.wait(LookAgain::AfterBackoff))
    };
    if origin == Origin::Ours {
        return ControlFlow::Continue(draft);
    }
    if let Some(holder) = draft.facts.holder_of(name) {
        return taken(draft, format!("the DNS name {name} is that of the MaasCluster {holder}"));
    }
    let intent = EndpointIntent { name: Some(name.to_owned()), ..draft.intent() };
    match (records, origin) {
        ([], _) => ControlFlow::Continue(draft),
        (_, Origin::GoProvider) => {
            ControlFlow::Break(draft.step(Step::Settle(EndpointIntent { reserved: addresses::ours_in(records), ..intent })))
        }
        (_, Origin::Asked) => ControlFlow::Break(draft.step(Step::Settle(EndpointIntent { given: true, ..intent }))),
        (_, Origin::New | Origin::Ours | Origin::Copied) => {
            taken(draft, format!("MAAS has a DNS record {name} already, and it is not known whose"))
        }
    }
}

pub(super) fn may_write(draft: &Draft<'_>) -> bool {
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
    if api::condition::find(&draft.status.conditions, LOAD_BALANCER_READY).is_none() {
        draft.no_endpoint(reason::WAIT_FOR_NAME, format!("making the DNS record {name}"));
    }
    let (named, name) = (name.to_owned(), name.to_owned());
    let change = move |intent: &mut EndpointIntent| {
        intent.name = Some(named);
        // One that was there before and is gone does not come back: this one is ours.
        intent.given = false;
        intent.added.clear();
    };
    draft.tell(Kind::Create, change, move |not_after| Step::CreateRecord { name, time_to_live, not_after })
}

/// The record is there: the endpoint is known, and leads to whoever serves.
fn keep(mut draft: Draft<'_>, name: &str, record: &Record, records: &[Record]) -> Plan {
    if let Some(step) = draft.endpoint_step(name) {
        return draft.step(step);
    }
    draft.provisioned_if_zones_are_known();
    let (mut draft, led) = match lead(draft, name, record, records) {
        ControlFlow::Continue(led) => led,
        ControlFlow::Break(plan) => return plan,
    };
    if let Some(step) = addresses::next(&draft, &led.published) {
        return addresses::take(draft, step);
    }
    if !led.held.is_empty() {
        draft.endpoint_is_unclear(&led);
    } else if led.to_nobody && !led.without_address.is_empty() {
        let message = format!("no address of {} fits. {}", led.without_address.join(", "), reason::NO_MATCHING_ADDRESS.remedy);
        draft.no_endpoint(reason::NO_MATCHING_ADDRESS, message);
    } else {
        draft.endpoint_is_ready();
    }
    draft.wait(LookAgain::After(DRIFT_POLL))
}

/// What a record that is as it should be leads to.
pub(super) struct Led {
    published: BTreeSet<IpAddr>,
    to_nobody: bool,
    without_address: Vec<String>,
    unseen: Vec<String>,
    held: BTreeSet<IpAddr>,
}

impl Draft<'_> {
    /// The name leads to addresses of which it is not known whether anybody has them.
    fn endpoint_is_unclear(&mut self, led: &Led) {
        let held = led.held.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let unseen = led.unseen.join(", ");
        let message = format!(
            "the name also leads to {held}, which no machine of the control plane is known to have: MAAS has not shown the machine of {unseen} yet, and it may be there. {}",
            reason::MACHINES_NOT_SEEN.remedy
        );
        self.condition(LOAD_BALANCER_READY, None, reason::MACHINES_NOT_SEEN, message);
    }
}

/// Sees to it that the record leads to whoever serves, and to nobody else whom we brought there.
pub(super) fn lead<'a>(mut draft: Draft<'a>, name: &str, record: &Record, records: &[Record]) -> ControlFlow<Plan, (Draft<'a>, Led)> {
    let facts = draft.facts;
    let published: BTreeSet<IpAddr> = records.iter().flat_map(Record::set).collect();
    let intent = draft.intent();
    // In a record that was there before only what we added is ours to take out.
    let (ours, foreign): (BTreeSet<IpAddr>, BTreeSet<IpAddr>) =
        published.iter().copied().partition(|ip| !intent.given || intent.added.contains(ip));
    let Membership { wanted: members, without_address, unseen, held } = membership(facts, &published);
    let to_nobody = members.as_ref().is_none_or(BTreeSet::is_empty);
    let held = held.intersection(&ours).copied().collect();
    let members = members.unwrap_or_else(|| ours.clone());
    // A machine does not wait for an address to go that stays, by somebody else's hand.
    draft.publishes(name, published.iter().filter(|ip| ours.contains(ip) || members.contains(ip)).copied().collect());
    // A name that leads nowhere cuts everybody off: that no machine is left has to be true and not only remembered.
    if members.is_empty() && !ours.is_empty() && !facts.machines_are_confirmed {
        return ControlFlow::Break(draft.step(Step::ListMachines));
    }
    // What somebody has in another record of the name stays there alone.
    let elsewhere: BTreeSet<IpAddr> = foreign.difference(&record.set()).copied().collect();
    let wanted: BTreeSet<IpAddr> =
        record.set().intersection(&foreign).chain(&members).filter(|ip| !elsewhere.contains(ip)).copied().collect();
    let time_to_live = Some(facts.object.spec.time_to_live()).filter(|_| !intent.given);
    let is_stale = time_to_live.is_some() && record.time_to_live != time_to_live;
    if wanted != record.set() || is_stale {
        return ControlFlow::Break(write(draft, record, &wanted, time_to_live));
    }
    ControlFlow::Continue((draft, Led { published, to_nobody, without_address, unseen, held }))
}

/// Writes the whole list. What is in it by our hand, and what MAAS reserves for us by that, is written down before.
pub(super) fn write(draft: Draft<'_>, record: &Record, wanted: &BTreeSet<IpAddr>, time_to_live: Option<u32>) -> Plan {
    if !may_write(&draft) {
        return rights_missing(draft, "write the DNS record");
    }
    let new: Vec<IpAddr> = wanted.difference(&record.set()).copied().collect();
    let known = draft.facts.reservations.as_ref();
    if !new.is_empty() && known.is_none() {
        return draft.step(Step::ListReservations);
    }
    let mut intent = draft.intent();
    let mut added: BTreeSet<IpAddr> = intent.added.iter().chain(new.iter().filter(|_| intent.given)).copied().collect();
    added.retain(|ip| wanted.contains(ip) || record.set().contains(ip));
    let reserved_before = |ip: &IpAddr| known.is_some_and(|all| all.iter().any(|reservation| reservation.ip == *ip));
    let (theirs, ours): (Vec<IpAddr>, Vec<IpAddr>) = new.into_iter().filter(|ip| !intent.reserved.contains(ip)).partition(reserved_before);
    // Whatever else MAAS reserved for the record with our user, such as for an earlier list that was carried out late.
    let late = addresses::ours_in(std::slice::from_ref(record)).into_iter().filter(|ip| !intent.given && !intent.theirs.contains(ip));
    let reserved: BTreeSet<IpAddr> = intent.reserved.iter().copied().chain(ours).chain(late).collect();
    intent.theirs.extend(theirs);
    intent.theirs.retain(|ip| wanted.contains(ip) || record.set().contains(ip));
    let theirs: BTreeSet<IpAddr> = intent.theirs.into_iter().collect();
    let change = move |intent: &mut EndpointIntent| {
        intent.added = added.into_iter().collect();
        intent.reserved = reserved.into_iter().collect();
        intent.theirs = theirs.into_iter().collect();
    };
    let (id, addresses): (i64, Vec<IpAddr>) = (record.id, wanted.iter().copied().collect());
    draft.tell(Kind::Write(addresses.clone()), change, move |not_after| Step::WriteRecord { id, time_to_live, addresses, not_after })
}
