//! What a failure means to people, and when the next attempt is worth it.

use std::time::Duration;

use super::{
    draft::{Draft, MAAS_AVAILABLE},
    facts::FailedStep,
    plan::{LookAgain, Plan, StepName},
    reason,
};
use crate::{Failure, FailureKind, machine::Reason};

/// After a call of unknown outcome it is looked soon.
const SOON: Duration = Duration::from_secs(5);

/// A step did not succeed.
pub(super) fn explain(mut draft: Draft<'_>, failed: &FailedStep) -> Plan {
    let FailedStep { step, failure } = failed;
    let (reason, what) = match (step, failure.kind) {
        // The object is newer than what was known: the next look decides.
        (_, FailureKind::Stale | FailureKind::Expired) => return draft.wait(LookAgain::After(Duration::from_secs(1))),
        (_, FailureKind::NoAccess | FailureKind::Unauthenticated | FailureKind::Unavailable | FailureKind::NotMaas | FailureKind::Gone) => {
            return no_account(draft, failure);
        }
        (StepName::ListMachines, _) => (Reason::KUBERNETES_FAILED, "the machines of the cluster could not be listed"),
        (StepName::ListOthers, _) => (Reason::KUBERNETES_FAILED, "other clusters could not be listed"),
        (_, FailureKind::Kubernetes)
        | (StepName::AddFinalizer | StepName::Intend | StepName::Settle | StepName::WriteEndpoint | StepName::RemoveFinalizer, _) => {
            (Reason::KUBERNETES_FAILED, "this object could not be changed")
        }
        (StepName::ListRecords | StepName::CreateRecord, FailureKind::NotFound) => (reason::DOMAIN_NOT_FOUND, "the name cannot be made"),
        (StepName::CreateRecord | StepName::WriteRecord | StepName::RemoveRecord, FailureKind::NotPermitted) => {
            (reason::DNS_RIGHTS_MISSING, "the DNS record cannot be written")
        }
        (StepName::ListRecords | StepName::CreateRecord | StepName::WriteRecord | StepName::RemoveRecord, _) => {
            (reason::LOAD_BALANCER_FAILED, "the DNS record could not be written")
        }
        (StepName::ListFree, _) => (reason::NO_FREE_ADDRESS, "no address can be reserved"),
        (StepName::ReserveAddress, FailureKind::Conflict | FailureKind::NotPermitted) => {
            (reason::ADDRESS_TAKEN, "the address cannot be reserved")
        }
        (StepName::ReserveAddress, _) => (reason::LOAD_BALANCER_FAILED, "the address could not be reserved"),
        (StepName::ListReservations | StepName::FreeAddress, _) => (reason::LOAD_BALANCER_FAILED, "an address could not be freed"),
    };
    let message = reason.message(&format!("{what}: {}", failure.words));
    draft.no_endpoint(reason, message);
    match failure.kind {
        FailureKind::Later(after) => draft.wait(LookAgain::After(after)),
        FailureKind::Unknown | FailureKind::HalfDone => draft.wait(LookAgain::After(SOON)),
        _ => draft.wait(LookAgain::AfterBackoff),
    }
}

/// MAAS cannot be asked. What was made stays as it is: nothing is dropped and nothing flaps.
pub(super) fn no_account(mut draft: Draft<'_>, failure: &Failure) -> Plan {
    let reason = match failure.kind {
        // Of records, which is nothing about the credentials.
        FailureKind::NotPermitted => Reason::MAAS_UNAVAILABLE,
        _ => Reason::no_access(failure),
    };
    let told = api::condition::find(&draft.status.conditions, MAAS_AVAILABLE).filter(|told| told.reason == reason.name);
    // The words of one outage differ from attempt to attempt; the first are kept, so that nothing is written for that.
    let message = told.map_or_else(|| reason.message(&failure.words), |told| told.message.clone());
    draft.condition(MAAS_AVAILABLE, Some(false), reason, message.clone());
    draft.no_endpoint_unless_provisioned(reason, message);
    draft.wait(LookAgain::AfterBackoff)
}
