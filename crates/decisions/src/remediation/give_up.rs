//! The end without success: the Machine is left to its owner, by the condition that Cluster API has for it.

use api::{RemediationPhase, cluster_api::Machine};

use super::{
    draft::Draft,
    failures::SOON,
    plan::{LookAgain, Plan, Step, StepName},
    reason,
};
use crate::{FailureKind, machine::Reason};

/// Nothing more is done to the machine, for this reason.
pub(super) fn give_up(mut draft: Draft<'_>, reason: Reason, message: impl Into<String>) -> Plan {
    draft.phase(RemediationPhase::Failed);
    draft.not_remediated(reason, format!("{}. The Machine is left to its owner", message.into().trim_end_matches('.')));
    hand_over(draft)
}

/// Leaves the Machine to its owner, unless it already is. Whoever finds this given up does so again: nothing else would.
pub(super) fn hand_over(mut draft: Draft<'_>) -> Plan {
    let facts = draft.facts;
    if facts.machine_condition(Machine::OWNER_REMEDIATED) == Some(false) {
        return draft.wait(LookAgain::OnChange);
    }
    match facts.failed.as_ref().filter(|failed| failed.step == StepName::HandOver) {
        None => {
            let message = draft.message().to_owned();
            draft.step(Step::HandOver { message })
        }
        Some(failed) if failed.failure.kind == FailureKind::Stale => draft.wait(LookAgain::After(SOON)),
        Some(failed) => {
            let message = format!("{}; the Machine could not be changed: {}", draft.message(), failed.failure);
            if draft.reason() != Some(reason::NOT_HANDED_OVER.name) {
                draft.not_remediated(reason::NOT_HANDED_OVER, message);
            }
            draft.wait(LookAgain::AfterBackoff)
        }
    }
}
