//! Why there is no way to a MAAS for an object. Every message says what was looked for, where, and what to do next; none holds a key.

use std::fmt;

use super::{certificate, credentials::DEFAULT_SECRET};

/// Where credentials were found, or looked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CredentialsPlace {
    /// A Secret.
    Secret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The environment of this process.
    Environment,
}

impl fmt::Display for CredentialsPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret { namespace, name } => write!(formatter, "the Secret {namespace}/{name}"),
            Self::Environment => formatter.write_str("the manager's environment"),
        }
    }
}

impl CredentialsPlace {
    /// What a key that was put there needs besides, to count.
    fn afterwards(&self) -> &'static str {
        match self {
            Self::Secret { .. } => "",
            Self::Environment => ", restart the manager",
        }
    }
}

/// No account for an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// Nothing names a MAAS.
    #[error(
        "no MAAS credentials for namespace {namespace}: there is no Secret {DEFAULT_SECRET} in it and no MAAS_ENDPOINT and MAAS_API_KEY in \
         the manager's environment; create that Secret with the keys MAAS_ENDPOINT and MAAS_API_KEY, or name another by identityRef"
    )]
    NoCredentials {
        /// The namespace of the object.
        namespace: String,
    },
    /// The Secret an identityRef names does not exist.
    #[error("identityRef names {place}, which does not exist; create it with the keys MAAS_ENDPOINT and MAAS_API_KEY, or correct the name")]
    SecretMissing {
        /// The Secret.
        place: CredentialsPlace,
    },
    /// The Secret could not be read.
    #[error("could not read {place}: {words}")]
    SecretUnreadable {
        /// The Secret.
        place: CredentialsPlace,
        /// What the API server said.
        words: String,
    },
    /// Part of the credentials is not there.
    #[error("{place} holds no {missing}; add it under the key {key}")]
    Incomplete {
        /// Where it was looked for.
        place: CredentialsPlace,
        /// What is missing, for people.
        missing: &'static str,
        /// The name to give it.
        key: &'static str,
    },
    /// Two spellings of one thing differ.
    #[error("{place} contradicts itself: {first} and {second} mean the same and differ; remove one of them")]
    Contradiction {
        /// Where.
        place: CredentialsPlace,
        /// One key.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A value cannot be what it should be.
    #[error("{key} in {place} cannot be used: {reason}")]
    Malformed {
        /// Where.
        place: CredentialsPlace,
        /// The key of the value.
        key: &'static str,
        /// What is wrong; never the value.
        reason: String,
    },
    /// No client could be made of it.
    #[error("cannot make a client of what {place} holds: {reason}")]
    Unusable {
        /// Where the credentials are.
        place: CredentialsPlace,
        /// What is wrong.
        reason: String,
    },
    /// MAAS does not accept the key.
    #[error(
        "MAAS at {endpoint} does not accept the API key in {place}; put a valid key there (`maas apikey --username=NAME` prints one){} and \
         check that the clocks agree to five minutes",
        place.afterwards()
    )]
    KeyRefused {
        /// Where the credentials are.
        place: CredentialsPlace,
        /// The MAAS.
        endpoint: String,
    },
    /// MAAS does not answer, or nobody knows who we are to it yet. Nothing can be concluded from it about any machine.
    #[error("MAAS at {endpoint}, named by {place}, is not available: {}", in_the_way(source))]
    Unavailable {
        /// Where the credentials are.
        place: CredentialsPlace,
        /// The MAAS.
        endpoint: String,
        /// What happened.
        source: Box<maas_client::Error>,
    },
    /// Something answers that is no MAAS, or one that refuses to say whose key it is.
    #[error("cannot work with the MAAS at {endpoint}, named by {place}: {source}")]
    NotUsable {
        /// Where the credentials are.
        place: CredentialsPlace,
        /// The address.
        endpoint: String,
        /// What happened.
        source: Box<maas_client::Error>,
    },
}

/// What was in the way, the same at every attempt: neither the call nor how often it was tried is news.
fn in_the_way(error: &maas_client::Error) -> String {
    match error {
        maas_client::Error::Unavailable { words, answered: false, .. } if !words.is_empty() => {
            certificate::next_step(words).map_or_else(|| words.clone(), |step| format!("{words}; {step}"))
        }
        other => other.to_string(),
    }
}
