//! What a failure means to people, and when the next attempt is worth it.

use std::time::Duration;

use api::Phase;

use super::{
    draft::{DEPLOYED, Draft, MAAS_AVAILABLE, NODE_NAMED},
    facts::FailedStep,
    plan::{LookAgain, Plan, StepName},
    reason::Reason,
};
use crate::{Failure, FailureKind, Lookup, Server};

/// After a call of unknown outcome it is looked soon.
const SOON: Duration = Duration::from_secs(5);

/// A step did not succeed.
pub(super) fn explain(mut draft: Draft<'_>, failed: &FailedStep) -> Plan {
    let FailedStep { step, failure, .. } = failed;
    let (reason, what) = match (step, failure.kind) {
        (_, FailureKind::Stale | FailureKind::Expired) => {
            // The object or the server is newer than what was known: the next look decides.
            return draft.wait(LookAgain::After(Duration::from_secs(1)));
        }
        (_, FailureKind::NoAccess | FailureKind::Unauthenticated | FailureKind::Unavailable | FailureKind::NotMaas | FailureKind::Gone) => {
            return no_account(draft, failure);
        }
        (StepName::LookForClaim | StepName::LookForAddress | StepName::HoldAddress | StepName::FreeAddress, FailureKind::Kubernetes) => {
            (Reason::KUBERNETES_FAILED, "its address of a pool could not be read or changed")
        }
        (_, FailureKind::Kubernetes) => (Reason::KUBERNETES_FAILED, "this object could not be changed"),
        (_, FailureKind::Unknown) => {
            draft.not_deployed_unless_handed_over(Reason::UNANSWERED, Reason::UNANSWERED.meaning);
            return draft.wait(LookAgain::After(SOON));
        }
        (StepName::Allocate | StepName::ListCandidates, _) => (Reason::ALLOCATE_REFUSED, "MAAS refused to allocate a machine"),
        (StepName::Mark, _) => (Reason::MARK_FAILED, "the machine could not be marked"),
        (StepName::Prepare, _) if draft.facts.object.metadata.deletion_timestamp.is_some() => {
            (Reason::PREPARE_FAILED, "a fixed address could not be taken off the machine")
        }
        (StepName::Prepare, _) => (Reason::PREPARE_FAILED, "the machine could not be prepared"),
        (StepName::Deploy, _) => (Reason::DEPLOY_REFUSED, "MAAS did not start the deployment"),
        (StepName::Release, _) => (Reason::RELEASE_FAILED, "MAAS did not take the machine back"),
        (StepName::QueryPower | StepName::PowerOn, _) => (Reason::POWER_UNCLEAR, "the machine's power could not be switched"),
        (StepName::Look, _) => (Reason::LOOKING, "MAAS did not show the machine"),
        (
            StepName::Intend
            | StepName::Record
            | StepName::Provision
            | StepName::Forget
            | StepName::NameNode
            | StepName::RemoveNode
            | StepName::LookForClaim
            | StepName::LookForAddress
            | StepName::HoldAddress
            | StepName::FreeAddress
            | StepName::RemoveFinalizer,
            _,
        ) => (Reason::KUBERNETES_FAILED, "a change in Kubernetes failed"),
    };
    if *step == StepName::NameNode {
        // The machine runs; only its node does not know its name yet.
        let message = Reason::NODE_NOT_NAMED.message(&failure.words);
        draft.condition(NODE_NAMED, Some(false), Reason::NODE_NOT_NAMED, message);
        return draft.wait(LookAgain::AfterBackoff);
    }
    let message = reason.message(&format!("{what}: {}", failure.words));
    draft.not_deployed_unless_handed_over(reason, message);
    match failure.kind {
        FailureKind::Later(after) => draft.wait(LookAgain::After(after)),
        _ => draft.wait(LookAgain::AfterBackoff),
    }
}

/// MAAS cannot be asked. What is known of a machine that was handed over stays as it is: nothing flaps.
pub(super) fn no_account(mut draft: Draft<'_>, failure: &Failure) -> Plan {
    let reason = Reason::no_access(failure);
    // The words of one outage differ from attempt to attempt; the first are kept, so that nothing is written for that.
    let before = draft.facts.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let told = api::condition::find(before, MAAS_AVAILABLE).filter(|told| told.reason == reason.name);
    let message = told.map_or_else(|| reason.message(&failure.words), |told| told.message.clone());
    draft.condition(MAAS_AVAILABLE, Some(false), reason, message.clone());
    let handed_over = draft.facts.is_provisioned() && draft.facts.object.metadata.deletion_timestamp.is_none();
    if !handed_over {
        draft.not_deployed(reason, message);
        if draft.status.phase.is_none() {
            draft.phase(Phase::Pending);
        }
    } else if api::condition::find(&draft.status.conditions, DEPLOYED).is_none() {
        draft.condition(DEPLOYED, None, reason, message);
    }
    draft.wait(LookAgain::AfterBackoff)
}

/// MAAS shows servers so late that nothing can rest on it.
pub(super) fn too_slow(draft: Draft<'_>) -> Plan {
    let words = format!("MAAS takes more than {:?} to show a machine, and what it shows is too old then to act on it", super::FRESH_FOR);
    no_account(draft, &Failure { kind: FailureKind::Unavailable, words })
}

pub(super) fn available(draft: &mut Draft<'_>) {
    draft.condition(MAAS_AVAILABLE, Some(true), Reason::MAAS_AVAILABLE, "");
}

/// It is not known which servers are ours.
pub(super) fn unclear(draft: Draft<'_>, lookup: &Lookup<Vec<Server>>) -> Plan {
    let failure = match lookup {
        Lookup::Failed(failure) => failure.clone(),
        Lookup::Forbidden => Failure { kind: FailureKind::NotPermitted, words: "MAAS does not let us list machines".to_owned() },
        Lookup::Found(_) | Lookup::Missing | Lookup::Outdated => {
            Failure { kind: FailureKind::Unavailable, words: "MAAS was not asked yet".to_owned() }
        }
    };
    no_account(draft, &failure)
}

/// It is not known how the server is.
pub(super) fn unclear_server(draft: Draft<'_>, failure: &Failure) -> Plan {
    no_account(draft, failure)
}
