//! A server that is ours: when an attempt is begun, and when it is given up. How one is carried out is in `power`.

use api::{Intent, RemediationPhase};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    draft::Draft,
    failures,
    give_up::give_up,
    plan::{LookAgain, Plan, Step, StepName},
    power, reason,
};
use crate::{
    Server, Stage,
    machine::{FRESH_FOR, Reason, SEND_WITHIN, answer_is_due},
    plan::later,
};

pub(super) fn decide(draft: Draft<'_>, server: &Server) -> Plan {
    match server.status.stage() {
        Stage::Running => running(draft, server),
        Stage::UnderRepair | Stage::Unclear => {
            let message = format!("machine {} is in state {} in MAAS. {}", server.name(), server.status, reason::UNDER_REPAIR.remedy);
            draft.hold(reason::UNDER_REPAIR, message, LookAgain::After(failures::POLL))
        }
        Stage::Shelved | Stage::Held | Stage::Installing | Stage::InstallFailed | Stage::Broken | Stage::Leaving | Stage::StuckLeaving => {
            let message = format!(
                "machine {} is in state {} in MAAS although it was handed over as deployed: {}",
                server.name(),
                server.status,
                server.complaint()
            );
            give_up(draft, reason::MACHINE_FAILED, message)
        }
    }
}

fn running(draft: Draft<'_>, server: &Server) -> Plan {
    if server.in_memory {
        let message = format!("machine {} runs in memory and would lose everything with its power", server.name());
        return give_up(draft, reason::RUNS_IN_MEMORY, message);
    }
    if draft.facts.before_attempt.is_some() {
        return power::cycle(draft, server);
    }
    match draft.deadline() {
        Some(end) if draft.now < end => power::watch(draft, server, end),
        Some(_) | None if draft.attempts() >= draft.facts.object.spec.retry_limit() => exhausted(draft, server),
        Some(_) | None => begin(draft, server),
    }
}

fn exhausted(draft: Draft<'_>, server: &Server) -> Plan {
    let (attempts, timeout) = (draft.attempts(), draft.facts.object.spec.timeout());
    let times = if attempts == 1 { "once".to_owned() } else { format!("{attempts} times") };
    let failed = draft.reason() == Some(reason::POWER_CYCLE_FAILED.name);
    let cause = draft.message().trim_end_matches(reason::POWER_CYCLE_FAILED.remedy).trim_end_matches([' ', '.']);
    let cause = if failed { format!(": {cause}") } else { String::new() };
    let message =
        format!("machine {} was to be switched off and on {times}, and its node was not well within {timeout:?}{cause}", server.name());
    give_up(draft, reason::EXHAUSTED, message)
}

/// Writes the next attempt down, after the intent to tell MAAS something.
fn begin(mut draft: Draft<'_>, server: &Server) -> Plan {
    if server.locked {
        let message = format!("machine {} is locked in MAAS. {}", server.name(), Reason::LOCKED.remedy);
        return draft.hold(Reason::LOCKED, message, LookAgain::After(failures::POLL));
    }
    if let Some(end) = draft.settles_until() {
        let left = end.duration_since(draft.now).unsigned_abs();
        return draft.hold(reason::AFTER_PAUSE, reason::AFTER_PAUSE.meaning, LookAgain::After(left));
    }
    if let Some(end) = draft.earlier_order_until() {
        let left = end.duration_since(draft.now).unsigned_abs();
        return draft.hold(reason::EARLIER_ORDER, reason::EARLIER_ORDER.meaning, LookAgain::After(left));
    }
    if let Some(failed) =
        draft.facts.failed.as_ref().filter(|failed| matches!(failed.step, StepName::Intend | StepName::Begin | StepName::Look))
    {
        return failures::not_begun(draft, &failed.failure);
    }
    match draft.may_touch_until(server) {
        None => intend(draft),
        Some(end) if end <= draft.now => draft.step(Step::Look { server: server.system_id.clone() }),
        Some(_) => {
            let number = draft.attempts() + 1;
            draft.status.attempts = Some(number);
            // Kubernetes keeps whole seconds.
            draft.status.last_remediated = Some(Time(Timestamp::from_second(draft.now.as_second()).unwrap_or(draft.now)));
            draft.phase(RemediationPhase::Running);
            let limit = draft.facts.object.spec.retry_limit();
            let message = format!("machine {} is switched off and on, attempt {number} of {limit}", server.name());
            draft.not_remediated(reason::POWER_CYCLING, message);
            draft.step(Step::Begin)
        }
    }
}

/// Writes down that MAAS is about to be told something: should the MaasMachine go meanwhile, its server is not given back before that is done.
pub(super) fn intend(draft: Draft<'_>) -> Plan {
    let Some(intent) = draft.facts.intent() else { return draft.wait(LookAgain::OnChange) };
    let intent = Intent { since: Some(draft.now), writer: Some(draft.facts.writer.clone()), ..intent };
    draft.step(Step::Intend { intent })
}

impl Draft<'_> {
    /// Until when MAAS may be told what follows from the intent, about a server as it was last seen; nothing if it has to be written first.
    pub(super) fn may_touch_until(&self, server: &Server) -> Option<Timestamp> {
        let since = self.facts.intent()?.since.filter(|_| self.facts.intent_is_fresh)?;
        Some(later(since, SEND_WITHIN).min(later(server.read_at, FRESH_FOR)))
    }

    /// Until when something that MAAS was told before this pass may still be under way, whoever told it.
    pub(super) fn earlier_order_until(&self) -> Option<Timestamp> {
        let since = self.facts.intent()?.since.filter(|_| !self.facts.intent_is_fresh)?;
        Some(answer_is_due(since)).filter(|end| self.now < *end)
    }

    /// The same for what the rules about machines told it.
    pub(super) fn order_of_others_until(&self) -> Option<Timestamp> {
        let ours = self.facts.intent()?.writer.is_some_and(|writer| writer.starts_with(super::WRITER));
        self.earlier_order_until().filter(|_| !ours)
    }
}
