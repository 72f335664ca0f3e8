//! How an attempt is carried out: what MAAS is told about the server's power, and what is looked at until the attempt has had its time.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    cycle::intend,
    draft::Draft,
    facts::Ordered,
    failures,
    give_up::give_up,
    plan::{LookAgain, Plan, Step, StepName},
    reason,
};
use crate::{
    FailureKind, Power, Server,
    machine::{LATE_COMMIT, Reason},
    plan::later,
};

/// How long a server takes to be off.
const GOES_OFF: Duration = Duration::from_secs(5);
/// How often it is looked whether one that takes longer is.
const GOES_OFF_SLOWLY: Duration = Duration::from_secs(15);

/// Carries out the attempt that was written down a moment ago. A server that its power controller says is off only needs to be switched on.
pub(super) fn cycle(draft: Draft<'_>, server: &Server) -> Plan {
    let facts = draft.facts;
    match facts.ordered {
        Some(Ordered::NotSwitchable) => {
            let message = format!("only a person can switch machine {}", server.name());
            return give_up(draft, reason::NOT_SWITCHABLE, message);
        }
        Some(Ordered::Off) => return after_off(draft, server),
        Some(Ordered::On) => return waits_for_node(draft, server),
        None => {}
    }
    if let Some(failed) = facts.failed.as_ref().filter(|failed| is_about_power(failed.step)) {
        return failures::order(draft, server, &failed.failure);
    }
    let id = server.system_id.clone();
    match (server.power, facts.power_now, draft.may_touch_until(server).filter(|end| draft.now < *end)) {
        (Power::Off, None, _) => draft.step(Step::QueryPower { server: id }),
        // Nothing was told to MAAS in time, so this was no attempt.
        (_, _, None) => failures::take_back(draft, None),
        (Power::Off, Some(Power::Off), Some(not_after)) => {
            let comment = draft.comment("switches on the machine of");
            draft.step(Step::PowerOn { server: id, comment, not_after })
        }
        (_, _, Some(not_after)) => {
            let comment = draft.comment("switches off and on the machine of");
            draft.step(Step::PowerOff { server: id, comment, not_after })
        }
    }
}

/// Its power was taken, and MAAS says so when it was: it is switched on at once, so that nobody who ends this leaves it without power.
fn after_off(draft: Draft<'_>, server: &Server) -> Plan {
    let facts = draft.facts;
    let is_told = |kind: FailureKind| {
        kind.may_have_changed_something()
            || matches!(kind, FailureKind::Refused | FailureKind::NotFound | FailureKind::NotPermitted | FailureKind::Conflict)
    };
    match (&facts.failed, facts.power_now, draft.may_touch_until(server).filter(|end| draft.now < *end)) {
        (Some(failed), _, _) if failed.step == StepName::PowerOn && is_told(failed.failure.kind) => {
            failures::order(draft, server, &failed.failure)
        }
        (None, None, _) => draft.step(Step::QueryPower { server: server.system_id.clone() }),
        (None, Some(Power::Off), Some(not_after)) => {
            let comment = draft.comment("switches on the machine of");
            draft.step(Step::PowerOn { server: server.system_id.clone(), comment, not_after })
        }
        // The next pass goes on from there.
        _ => switched_off(draft, server, GOES_OFF),
    }
}

/// Switches on again, and waits for the node. Only the power controller's own word counts: to switch on a server that runs may restart it.
pub(super) fn watch(draft: Draft<'_>, server: &Server, end: Timestamp) -> Plan {
    let facts = draft.facts;
    // Only who saw MAAS's answer shows this.
    let was_switched_off = draft.reason() == Some(reason::SWITCHED_OFF.name);
    if facts.ordered == Some(Ordered::On) || server.locked || (!was_switched_off && server.power != Power::Off) {
        return waits_for_node(draft, server);
    }
    if let Some(failed) = facts.failed.as_ref() {
        return if is_about_power(failed.step) {
            failures::order(draft, server, &failed.failure)
        } else {
            failures::not_begun(draft, &failed.failure)
        };
    }
    let earlier = if was_switched_off { draft.order_of_others_until() } else { draft.earlier_order_until() };
    let id = server.system_id.clone();
    match (facts.power_now, earlier, draft.may_touch_until(server)) {
        (None, Some(earlier), _) if !was_switched_off => draft.wait_until(earlier.min(end)),
        (None, _, _) => draft.step(Step::QueryPower { server: id }),
        (Some(Power::On), None, _) if was_switched_off && is_going_off(&draft) => switched_off(draft, server, GOES_OFF_SLOWLY),
        (Some(Power::On), _, _) => waits_for_node(draft, server),
        (Some(Power::Unclear), _, _) => {
            let message = format!("it is not clear whether machine {} has power. {}", server.name(), Reason::POWER_UNCLEAR.remedy);
            draft.hold(Reason::POWER_UNCLEAR, message, LookAgain::After(failures::POLL))
        }
        (Some(Power::Off), Some(earlier), _) => draft.wait_until(earlier.min(end)),
        (Some(Power::Off), None, None) => intend(draft),
        (Some(Power::Off), None, Some(not_after)) if not_after <= draft.now => draft.step(Step::Look { server: id }),
        (Some(Power::Off), None, Some(not_after)) => {
            let comment = draft.comment("switches on the machine of");
            draft.step(Step::PowerOn { server: id, comment, not_after })
        }
    }
}

fn is_about_power(step: StepName) -> bool {
    match step {
        StepName::QueryPower | StepName::PowerOff | StepName::PowerOn => true,
        StepName::Intend | StepName::Begin | StepName::Look | StepName::HandOver => false,
    }
}

/// Whether a server that is on may still be about to go off.
fn is_going_off(draft: &Draft<'_>) -> bool {
    draft.status.last_remediated.as_ref().is_some_and(|began| draft.now < later(began.0, LATE_COMMIT))
}

fn switched_off(mut draft: Draft<'_>, server: &Server, look_again: Duration) -> Plan {
    draft.not_remediated(reason::SWITCHED_OFF, format!("machine {} was switched off and is about to be switched on", server.name()));
    draft.wait(LookAgain::After(look_again))
}

/// What MAAS could not do stays to be read until the attempt has had its time.
fn waits_for_node(mut draft: Draft<'_>, server: &Server) -> Plan {
    let failed = draft.reason() == Some(reason::POWER_CYCLE_FAILED.name);
    if !failed || draft.facts.ordered.is_some() {
        let message = format!("machine {} was told to go off and on again; its node is waited for", server.name());
        draft.not_remediated(reason::WAITING_FOR_NODE, message);
    }
    // Should it have no power then, for whatever reason, it is switched on.
    failures::wait_for_attempt(draft)
}
