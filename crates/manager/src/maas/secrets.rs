//! Secrets with credentials: each read by its name when it is needed, kept for half a minute. Never a list and never a watch, so that the
//! manager's role needs no more than `get`.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    account_error::{AccountError, CredentialsPlace},
    credentials::Credentials,
    fresh::Fresh,
};
use crate::describe::describe_of_secret;

/// How long a Secret is believed to be as it was.
const LONGEST_AGE: Duration = Duration::from_secs(30);
/// More than this and all are forgotten: namespaces come and go over the months.
const MOST: usize = 1000;

/// What a Secret held: nothing if it does not exist, an error if it cannot be used.
type Found = Option<Result<Credentials, AccountError>>;
type Kept = Arc<Fresh<Found, AccountError>>;

/// The Secrets read so far.
pub(super) struct Secrets {
    kubernetes: Client,
    kept: Mutex<BTreeMap<(String, String), Kept>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secrets")
    }
}

impl Secrets {
    pub fn new(kubernetes: Client) -> Self {
        Self { kubernetes, kept: Mutex::default() }
    }

    /// The credentials in this Secret.
    pub async fn read(&self, namespace: &str, name: &str) -> Result<Found, AccountError> {
        let kept = self.kept(namespace, name);
        let read = async {
            let place = CredentialsPlace::Secret { namespace: namespace.to_owned(), name: name.to_owned() };
            let api: Api<Secret> = Api::namespaced(self.kubernetes.clone(), namespace);
            let secret = api.get_opt(name).await;
            let secret = secret.map_err(|error| AccountError::SecretUnreadable { place: place.clone(), words: words(&error) })?;
            Ok(secret.map(|secret| Credentials::from_secret(&place, &secret.data.unwrap_or_default())))
        };
        kept.get(LONGEST_AGE, read).await
    }

    /// Reads this Secret anew when it is asked for next.
    pub fn forget(&self, namespace: &str, name: &str) {
        if let Some(kept) = self.lock().get(&(namespace.to_owned(), name.to_owned())) {
            kept.forget();
        }
    }

    fn kept(&self, namespace: &str, name: &str) -> Kept {
        let mut all = self.lock();
        if all.len() >= MOST {
            all.clear();
        }
        Arc::clone(all.entry((namespace.to_owned(), name.to_owned())).or_default())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, String), Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why reading failed.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.is_forbidden() => {
            format!("{}; the manager's role must allow `get` of Secrets in this namespace", describe_of_secret(error))
        }
        other => describe_of_secret(other),
    }
}
