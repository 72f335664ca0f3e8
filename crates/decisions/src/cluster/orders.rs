//! When MAAS may be told to do something. The order is on record first, with its time, and is sent soon after or not at all; when it was
//! answered, or its effect is seen, or it is too late for it, it is taken off the record. While it is on record nothing else is ordered:
//! MAAS may still carry it out.

use std::{net::IpAddr, time::Duration};

use api::{EndpointIntent, EndpointOrder, EndpointOrderKind as Kind};
use jiff::Timestamp;

use super::{
    addresses,
    draft::Draft,
    facts::OrderState,
    failures,
    others::Rival,
    plan::{LookAgain, Plan, Step, StepName},
};
use crate::{
    FailureKind,
    machine::{Reason, SEND_WITHIN, answer_to_another_is_due},
    plan::later,
};

/// How often it is looked whether something unanswered was done.
const LOOK_FOR_LATE_COMMIT: Duration = Duration::from_secs(5);

/// What becomes of the order on record.
pub(super) enum Outstanding {
    /// There is none, or it was just written and can be sent.
    Nothing,
    /// It has to be taken off the record first.
    Settle(Step),
    /// MAAS has to be asked first.
    Ask(Step),
    /// MAAS may still be at it.
    Wait,
}

impl Draft<'_> {
    /// The intent on record, or a new one.
    pub(super) fn intent(&self) -> EndpointIntent {
        let mut intent = self.facts.intent().unwrap_or_else(|| EndpointIntent::new(&self.facts.object.metadata));
        intent.maas = intent.maas.or_else(|| self.account().map(|account| account.host.clone()));
        intent
    }

    /// Until when this order may be sent; nothing if it has to be written down first.
    fn may_send_until(&self, what: &Kind) -> Option<Timestamp> {
        let order = self.facts.intent()?.order.filter(|order| order.what == *what && self.facts.order == OrderState::Written)?;
        Some(later(order.since, SEND_WITHIN)).filter(|end| self.now < *end)
    }

    /// Tells MAAS this: writes it down first, and holds back while MAAS failed at the same a moment ago.
    pub(super) fn tell(self, what: Kind, change: impl FnOnce(&mut EndpointIntent), step: impl FnOnce(Timestamp) -> Step) -> Plan {
        let name = match what {
            Kind::Create => StepName::CreateRecord,
            Kind::Write(_) => StepName::WriteRecord,
            Kind::Reserve(_) => StepName::ReserveAddress,
            Kind::Free(_) => StepName::FreeAddress,
        };
        if let Some(failed) = self.facts.failed.as_ref().filter(|failed| failed.step == name) {
            return failures::explain(self, failed);
        }
        if let Some(not_after) = self.may_send_until(&what) {
            return self.step(step(not_after));
        }
        if let Some(until) = self.facts.hold_until.filter(|until| self.now < *until) {
            let left = Duration::try_from(until.duration_since(self.now)).unwrap_or_default();
            return self.wait(LookAgain::After(left));
        }
        let order = self.order(what, change);
        self.step(order)
    }

    /// Writes the order down, with whatever changes in the intent.
    fn order(&self, what: Kind, change: impl FnOnce(&mut EndpointIntent)) -> Step {
        let mut intent = self.intent();
        intent.order = Some(EndpointOrder { since: self.now, what });
        change(&mut intent);
        Step::Intend(intent)
    }

    /// What becomes of the order on record.
    pub(super) fn outstanding(&self) -> Outstanding {
        let facts = self.facts;
        let Some(intent) = facts.intent() else { return Outstanding::Nothing };
        let Some(order) = &intent.order else { return Outstanding::Nothing };
        let settle = || Outstanding::Settle(Step::Settle(self.settled(&intent)));
        match facts.order {
            OrderState::Written if self.now < later(order.since, SEND_WITHIN) => return Outstanding::Nothing,
            OrderState::Written => return settle(),
            OrderState::Answered if !self.reserving_failed_halfway() => return settle(),
            OrderState::Found | OrderState::Unanswered | OrderState::Answered => {}
        }
        if let Kind::Reserve(address) = order.what {
            return self.unanswered_reservation(&intent, address);
        }
        if self.now >= self.answer_is_due(order) {
            return settle();
        }
        let records = facts.records.found().map(Vec::as_slice).unwrap_or_default();
        let reserved = |ip| facts.reservations.as_ref().map(|all| all.iter().any(|reservation| reservation.ip == ip));
        let done = match &order.what {
            Kind::Create => Some(!records.is_empty()),
            Kind::Write(addresses) => Some(records.iter().any(|record| record.set() == addresses.iter().copied().collect())),
            Kind::Reserve(_) => None,
            Kind::Free(ip) => reserved(*ip).map(|reserved| !reserved),
        };
        match done {
            Some(true) => settle(),
            Some(false) => Outstanding::Wait,
            None => Outstanding::Ask(Step::ListReservations),
        }
    }

    /// Until when MAAS may still carry an order out.
    fn answer_is_due(&self, order: &EndpointOrder) -> Timestamp {
        answer_to_another_is_due(order.since, self.facts.order_seen_at.unwrap_or(order.since))
    }

    fn reserving_failed_halfway(&self) -> bool {
        let failed = self.facts.failed.as_ref().filter(|failed| failed.step == StepName::ReserveAddress);
        failed.is_some_and(|failed| failed.failure.kind.may_have_changed_something())
    }

    /// An address was to be reserved, and nobody knows whether it was. That it is reserved now does not say for whom: MAAS gives an address to
    /// one only, and another cluster may have been that one. Whoever has it in the end has it on record before MAAS is told, so it is known
    /// when MAAS was asked first and Kubernetes after that.
    fn unanswered_reservation(&self, intent: &EndpointIntent, address: IpAddr) -> Outstanding {
        let facts = self.facts;
        let settle = || Outstanding::Settle(Step::Settle(self.settled(intent)));
        let due = intent.order.as_ref().map_or(self.now, |order| self.answer_is_due(order));
        let is_over = facts.order == OrderState::Answered || self.now >= due;
        let Some(reservations) = &facts.reservations else { return Outstanding::Ask(Step::ListReservations) };
        if is_over && facts.order != OrderState::Answered && facts.reservations_as_of.is_none_or(|as_of| as_of < due) {
            // It may have been reserved since.
            return Outstanding::Ask(Step::ListReservations);
        }
        if !reservations.iter().any(|reservation| reservation.ip == address) {
            return if is_over { settle() } else { Outstanding::Wait };
        }
        if !facts.others_are_confirmed {
            return Outstanding::Ask(Step::ListOthers);
        }
        match facts.rival_for(address, self.now) {
            None => settle(),
            Some(Rival::Prevails) if is_over => settle(),
            // As long as MAAS may still be at it, it stays on record: should the other free the address, it may yet be reserved for us.
            Some(Rival::Prevails | Rival::MayHave(_)) => Outstanding::Wait,
        }
    }

    /// Whether the address that was to be reserved is ours now.
    fn is_reserved_for_us(&self, address: IpAddr) -> bool {
        let facts = self.facts;
        let refused =
            facts.failed.as_ref().is_some_and(|failed| failed.step == StepName::ReserveAddress) && !self.reserving_failed_halfway();
        let is_reserved = || facts.reservations.iter().flatten().any(|reservation| reservation.ip == address);
        match facts.order {
            OrderState::Written => false,
            OrderState::Answered if !self.reserving_failed_halfway() => !refused,
            OrderState::Answered | OrderState::Found | OrderState::Unanswered => {
                is_reserved() && facts.rival_for(address, self.now).is_none()
            }
        }
    }

    /// The intent when its order is done with.
    fn settled(&self, intent: &EndpointIntent) -> EndpointIntent {
        let facts = self.facts;
        let mut settled = EndpointIntent { order: None, ..intent.clone() };
        settled.reserved.retain(|ip| !addresses::is_of_a_machine(facts, *ip));
        if let Some(records) = facts.records.found() {
            // What is not there now was not added: whoever adds it later is somebody else.
            settled.added.retain(|ip| records.iter().any(|record| record.set().contains(ip)));
        }
        if let Some(EndpointOrder { what: Kind::Reserve(address), .. }) = &intent.order {
            if self.is_reserved_for_us(*address) {
                // One that a person reserved and that is gone does not come back: this one is ours.
                settled.address_given = false;
            } else if !(facts.is_provisioned() && self.endpoint_is(&address.to_string())) {
                // What is on record without an order counts as ours, with other clusters too.
                settled.address = None;
                settled.address_given = false;
            }
        }
        if facts.failed.as_ref().is_some_and(|failed| failed.step == StepName::CreateRecord && failed.failure.kind == FailureKind::Refused)
        {
            // Somebody else made it in between, so it is not ours. Where it was asked for it can still be used, as any that was there before.
            settled.name = None;
        }
        settled
    }

    pub(super) fn wait_for_answer(mut self) -> Plan {
        let until = self.facts.intent().and_then(|intent| intent.order).map_or(self.now, |order| self.answer_is_due(&order));
        self.no_endpoint_unless_provisioned(Reason::UNANSWERED, Reason::UNANSWERED.meaning);
        let left = Duration::try_from(until.duration_since(self.now)).unwrap_or_default();
        // Nothing is left while another cluster has to give way.
        let left = if left.is_zero() { LOOK_FOR_LATE_COMMIT } else { left.max(Duration::from_secs(1)) };
        self.wait(LookAgain::After(left.min(LOOK_FOR_LATE_COMMIT)))
    }
}
