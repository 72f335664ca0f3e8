//! What came of a call, in the words of the rules. Used wherever facts are observed and steps are taken.

use crate::{describe::describe, maas::AccountError};
use decisions::{Failure, FailureKind};
use maas_client::Error;

/// A call to MAAS that did not succeed.
pub fn of_maas(error: &Error) -> Failure {
    let kind = match error {
        Error::Invalid { .. } | Error::Refused { .. } => FailureKind::Refused,
        Error::TooLate { .. } => FailureKind::Expired,
        Error::NotFound { .. } => FailureKind::NotFound,
        Error::NotPermitted { .. } => FailureKind::NotPermitted,
        Error::Unauthenticated { .. } => FailureKind::Unauthenticated,
        Error::Conflict { retry_after: Some(after), .. } => FailureKind::Later(*after),
        Error::Conflict { retry_after: None, .. } => FailureKind::Conflict,
        Error::OutcomeUnknown { .. } => FailureKind::Unknown,
        Error::Gone { .. } => FailureKind::Gone,
        Error::NotMaas { .. } => FailureKind::NotMaas,
        _ if error.may_have_changed_something() => FailureKind::HalfDone,
        Error::Unavailable { retry_after: Some(after), .. } => FailureKind::Later(*after),
        // Whatever a newer client may tell apart: nothing was done, and it may be tried again.
        _ => FailureKind::Unavailable,
    };
    let words = match error {
        // What the client says besides is for programmers: to look before the next step is what we do anyway.
        Error::Conflict { words, .. } if !words.is_empty() => format!("MAAS says: {words}"),
        _ => error.to_string(),
    };
    Failure { kind, words }
}

/// An access to MAAS that could not be had.
pub fn of_account(error: &AccountError) -> Failure {
    let kind = match error {
        AccountError::KeyRefused { .. } => FailureKind::Unauthenticated,
        AccountError::Unavailable { .. } => FailureKind::Unavailable,
        AccountError::NotUsable { .. } => FailureKind::NotMaas,
        AccountError::NoCredentials { .. }
        | AccountError::SecretMissing { .. }
        | AccountError::SecretUnreadable { .. }
        | AccountError::Incomplete { .. }
        | AccountError::Contradiction { .. }
        | AccountError::Malformed { .. }
        | AccountError::Unusable { .. } => FailureKind::NoAccess,
    };
    Failure { kind, words: error.to_string() }
}

/// A call to the API server that did not succeed.
pub fn of_kubernetes(error: &kube::Error) -> Failure {
    let kind = match error {
        kube::Error::Api(status) if status.is_conflict() || status.is_not_found() => FailureKind::Stale,
        _ => FailureKind::Kubernetes,
    };
    Failure { kind, words: describe(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_refused_is_told_in_its_own_words_and_not_as_a_data_structure() {
        let status = kube::core::Status::failure("maasmachines \"a\" is forbidden: no", "Forbidden").with_code(403);
        let failure = of_kubernetes(&kube::Error::Api(status.boxed()));
        assert_eq!(
            (failure.kind, failure.words.as_str()),
            (FailureKind::Kubernetes, "maasmachines \"a\" is forbidden: no (403 Forbidden)")
        );
    }
}
