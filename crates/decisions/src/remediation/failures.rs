//! What a failure means to people and to the attempt, and when the next look is worth it.

use std::time::Duration;

use super::{
    draft::Draft,
    plan::{LookAgain, Plan},
    reason,
};
use crate::{Failure, FailureKind, Power, Server, machine::Reason, plan::later};

/// After something that another writer was faster at.
pub(super) const SOON: Duration = Duration::from_secs(1);
/// How often something that does not announce itself is looked at.
pub(super) const POLL: Duration = Duration::from_mins(1);

/// MAAS cannot be asked. Nothing is done and nothing is given up: whose the machine is and how it is, nobody knows now.
pub(super) fn no_account(draft: Draft<'_>, failure: &Failure) -> Plan {
    let reason = Reason::no_access(failure);
    let message = reason.message(&failure.words);
    draft.hold(reason, message, when(failure))
}

/// The attempt could not be written down, so nothing was done.
pub(super) fn not_begun(draft: Draft<'_>, failure: &Failure) -> Plan {
    match failure.kind {
        // The next look decides on what is newer.
        FailureKind::Stale | FailureKind::Expired => draft.wait(LookAgain::After(SOON)),
        FailureKind::Kubernetes => {
            let message = format!("the attempt could not be written down: {}", failure.words);
            draft.hold(Reason::KUBERNETES_FAILED, message, LookAgain::AfterBackoff)
        }
        _ => no_account(draft, failure),
    }
}

/// MAAS was told to switch the server, and that did not succeed.
pub(super) fn order(mut draft: Draft<'_>, server: &Server, failure: &Failure) -> Plan {
    match failure.kind {
        FailureKind::NoAccess
        | FailureKind::Unauthenticated
        | FailureKind::Later(_)
        | FailureKind::Unavailable
        | FailureKind::Gone
        | FailureKind::NotMaas
        | FailureKind::Stale
        | FailureKind::Kubernetes
        | FailureKind::Expired => take_back(draft, Some(failure)),
        FailureKind::Unknown => {
            draft.not_remediated(Reason::UNANSWERED, Reason::UNANSWERED.meaning);
            wait_for_attempt(draft)
        }
        FailureKind::Refused | FailureKind::NotFound | FailureKind::NotPermitted | FailureKind::Conflict | FailureKind::HalfDone => {
            let words = failure.words.trim_end_matches('.');
            let message = format!("MAAS could not switch machine {}: {words}. {}", server.name(), reason::POWER_CYCLE_FAILED.remedy);
            draft.not_remediated(reason::POWER_CYCLE_FAILED, message);
            match draft.deadline() {
                // What has no power shall not stay so because its power controller was slow once.
                Some(end) if server.power == Power::Off => {
                    let again = later(draft.now, POLL).min(end);
                    draft.wait_until(again)
                }
                Some(_) | None => wait_for_attempt(draft),
            }
        }
    }
}

/// It is certain that nothing was done, so an attempt that was written down in this pass does not count.
pub(super) fn take_back(mut draft: Draft<'_>, failure: Option<&Failure>) -> Plan {
    if let Some(before) = &draft.facts.before_attempt {
        draft.status.attempts = before.attempts;
        draft.status.last_remediated.clone_from(&before.last_remediated);
    }
    match failure {
        Some(failure) if !matches!(failure.kind, FailureKind::Stale | FailureKind::Expired) => no_account(draft, failure),
        Some(_) | None => draft.hold(Reason::LOOKING, Reason::LOOKING.meaning, LookAgain::After(SOON)),
    }
}

/// Looks again when MAAS can no longer be doing what it was told, and at the end of the attempt.
pub(super) fn wait_for_attempt(draft: Draft<'_>) -> Plan {
    let end = draft.deadline().unwrap_or(draft.now);
    let due = draft.facts.intent().and_then(|intent| intent.since).map(crate::machine::answer_is_due);
    match due {
        Some(due) if draft.now < due => draft.wait_until(due.min(end)),
        Some(_) | None => draft.wait_until(end),
    }
}

fn when(failure: &Failure) -> LookAgain {
    match failure.kind {
        FailureKind::Later(after) => LookAgain::After(after),
        _ => LookAgain::AfterBackoff,
    }
}
