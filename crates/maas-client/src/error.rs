//! What can come of a call that did not succeed. Every variant is something a caller does differently; all name the call.

use std::{collections::BTreeMap, fmt, time::Duration};

use http::Method;

/// A call by name: for people and for logs. It holds no parameter, hence no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallName {
    /// The HTTP method.
    pub method: Method,
    /// The path below the API's version, such as `machines/abc123/`.
    pub path: String,
    /// The operation, where there is one.
    pub operation: Option<&'static str>,
    /// What it is about, such as `machine abc123`.
    pub subject: Option<String>,
}

impl fmt::Display for CallName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.method, self.path)?;
        if let Some(operation) = self.operation {
            write!(formatter, "?op={operation}")?;
        }
        if let Some(subject) = &self.subject {
            write!(formatter, " ({subject})")?;
        }
        Ok(())
    }
}

/// Why MAAS refused a call, in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// What is wrong with each field; `__all__` is about the fields together.
    pub fields: BTreeMap<String, Vec<String>>,
    /// What MAAS said as plain text.
    pub words: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        if !self.words.is_empty() {
            parts.push(self.words.clone());
        }
        for (field, complaints) in &self.fields {
            let complaints = complaints.join(" ");
            parts.push(if field == "__all__" { complaints } else { format!("{field}: {complaints}") });
        }
        formatter.write_str(if parts.is_empty() { "it did not say why" } else { "" })?;
        formatter.write_str(&parts.join("; "))
    }
}

/// A call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The call could not be made at all: nothing was sent.
    #[error("{call}: not sent: {reason}")]
    Invalid {
        /// The call.
        call: Box<CallName>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The time after which it was not to be sent was over ([`Client::not_after`](crate::Client::not_after)): nothing was sent, so nothing
    /// happened.
    #[error("{call}: not sent: too much time passed since it was decided")]
    TooLate {
        /// The call.
        call: Box<CallName>,
    },
    /// MAAS found fault with the request (400 and its kin). The same request will be refused again.
    #[error("{call}: MAAS refused it: {refusal}")]
    Refused {
        /// The call.
        call: Box<CallName>,
        /// The HTTP status.
        status: u16,
        /// Its words.
        refusal: Refusal,
    },
    /// MAAS says in its own words that there is no such object (404). The 404 of a proxy or load balancer is [`Error::NotMaas`], and to a
    /// write [`Error::OutcomeUnknown`].
    #[error("{call}: MAAS has no such object{}; it was deleted, or the name is wrong", told(words))]
    NotFound {
        /// The call.
        call: Box<CallName>,
        /// MAAS's words.
        words: String,
    },
    /// The API key is good, but its user may not do this (403). Of the 403 of a proxy the same holds as of its 404.
    #[error(
        "{call}: MAAS does not permit it{}; the object belongs to another user, is locked, or the call needs an administrator's key",
        told(words)
    )]
    NotPermitted {
        /// The call.
        call: Box<CallName>,
        /// MAAS's words; often there are none.
        words: String,
    },
    /// The API key is not accepted (401). MAAS's answer is dropped unread, since it may hold the secret it expected.
    #[error(
        "{call}: MAAS does not accept the API key; check that the key is complete, that its user exists and that the clock here is right \
         to five minutes"
    )]
    Unauthenticated {
        /// The call.
        call: Box<CallName>,
    },
    /// The state of things does not allow it (409), or what was asked for is taken already.
    #[error("{call}: it conflicts with the present state{}; {}", told(words), after_conflict(*retry_after))]
    Conflict {
        /// The call.
        call: Box<CallName>,
        /// MAAS's words.
        words: String,
        /// With it the conflict is one of the moment and may be tried again after this time; without it, it is final.
        retry_after: Option<Duration>,
    },
    /// MAAS could not be reached, a gateway in front of it cannot serve the call (429, 500, 502, 503, 504), or MAAS itself says that it
    /// cannot (503). A write that may have arrived and was not answered by MAAS is [`Error::OutcomeUnknown`] instead.
    #[error("{call}: {}{}{}; {}", unavailable(*answered, *attempts), told(words), tried(*attempts), self.after_unavailable())]
    Unavailable {
        /// The call.
        call: Box<CallName>,
        /// What MAAS or the network said.
        words: String,
        /// When to try again, if the answer said so. MAAS's own 503 without it is about something that waiting does not cure, such as a
        /// full VM host.
        retry_after: Option<Duration>,
        /// How often it was tried; 0 if it never got its turn among the calls from here, so that nothing was sent.
        attempts: u32,
        /// Whether MAAS itself answered, and not a gateway or nobody. What it does after its transaction may then have been done in part.
        answered: bool,
    },
    /// MAAS failed at it (500): a driver's error or a fault of MAAS. Of a write some may have been done. The 500 of somebody else is
    /// [`Error::Unavailable`], and to a write [`Error::OutcomeUnknown`].
    #[error("{call}: MAAS failed at it{}; {}", told(words), after_failure(&call.method))]
    Failed {
        /// The call.
        call: Box<CallName>,
        /// MAAS's words.
        words: String,
    },
    /// The call may have reached MAAS and was not answered. It may still be carried out: MAAS tries for up to 90 seconds.
    #[error(
        "{call}: nobody knows whether MAAS did it{}; look before doing it again, for MAAS may still be at it for two minutes",
        told(words)
    )]
    OutcomeUnknown {
        /// The call.
        call: Box<CallName>,
        /// What happened.
        words: String,
    },
    /// This MAAS has no such thing any more (410), such as VM hosts in versions after 3.7.
    #[error("{call}: this version of MAAS does not have it any more{}", told(words))]
    Gone {
        /// The call.
        call: Box<CallName>,
        /// MAAS's words.
        words: String,
    },
    /// What answered is not a MAAS: a login page, a proxy, another program.
    #[error("{call}: what answered is not a MAAS: {reason}; check the address, which usually ends in :5240/MAAS, and the proxy settings")]
    NotMaas {
        /// The call.
        call: Box<CallName>,
        /// How that shows.
        reason: String,
    },
}

fn told(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {}", words.trim_end_matches(['.', '\n'])) }
}

fn unavailable(answered: bool, attempts: u32) -> &'static str {
    match (answered, attempts) {
        (true, _) => "MAAS cannot serve it",
        (false, 0) => "not sent",
        (false, _) => "MAAS is not available",
    }
}

fn tried(attempts: u32) -> String {
    match attempts {
        0 => String::new(),
        1 => " (1 attempt)".to_owned(),
        _ => format!(" ({attempts} attempts)"),
    }
}

/// How the wire begins to say what is wrong with a certificate.
const CERTIFICATE: &str = "invalid peer certificate";

/// What to do about a certificate, by what the wire says is wrong with it.
fn after_certificate(fault: &str) -> &'static str {
    let fault = fault.to_ascii_lowercase();
    let has = |word| fault.contains(word);
    if has("expired") {
        "renew MAAS's certificate, or correct the clock here"
    } else if has("not valid yet") || has("notvalidyet") {
        "correct the clock here or at MAAS"
    } else if has("valid for name") || has("notvalidforname") {
        "give MAAS's address by a name that its certificate has"
    } else {
        "give the certificate authority that signed MAAS's certificate as the one to trust (a CA bundle in PEM)"
    }
}

fn after_failure(method: &Method) -> &'static str {
    if *method == Method::GET {
        "try again, and look into the log of MAAS if it stays so"
    } else {
        "part of it may have been done, so read the object again"
    }
}

fn after_conflict(retry_after: Option<Duration>) -> &'static str {
    if retry_after.is_some() { "try again" } else { "look at the object before anything else" }
}

impl Error {
    /// The call that did not succeed.
    pub fn call(&self) -> &CallName {
        match self {
            Self::Invalid { call, .. }
            | Self::TooLate { call }
            | Self::Refused { call, .. }
            | Self::NotFound { call, .. }
            | Self::NotPermitted { call, .. }
            | Self::Unauthenticated { call }
            | Self::Conflict { call, .. }
            | Self::Unavailable { call, .. }
            | Self::Failed { call, .. }
            | Self::OutcomeUnknown { call, .. }
            | Self::Gone { call, .. }
            | Self::NotMaas { call, .. } => call,
        }
    }

    fn after_unavailable(&self) -> &'static str {
        let Self::Unavailable { words, answered, retry_after, attempts, .. } = self else { return "" };
        match (answered, retry_after) {
            (false, _) if *attempts == 0 => "try again later, or let more calls run at once",
            (false, _) => {
                words.split_once(CERTIFICATE).map_or("check that it is up and reachable from here", |(_, fault)| after_certificate(fault))
            }
            (true, Some(_)) => "try again later",
            (true, None) => "waiting alone does not cure it",
        }
    }

    /// Whether the connection ended at the certificate, which is the same at the next attempt.
    pub(crate) fn is_about_certificate(&self) -> bool {
        matches!(self, Self::Unavailable { words, answered: false, .. } if words.contains(CERTIFICATE))
    }

    /// Whether there is no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// How long MAAS asks to wait before the same call may succeed. Nothing if it did not ask.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Conflict { retry_after, .. } | Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the call may have changed something in spite of the error, so that the object has to be read before the next step.
    pub fn may_have_changed_something(&self) -> bool {
        let read = self.call().method == Method::GET;
        match self {
            Self::OutcomeUnknown { .. } => true,
            Self::Failed { .. } | Self::Unavailable { answered: true, .. } => !read,
            _ => false,
        }
    }
}
