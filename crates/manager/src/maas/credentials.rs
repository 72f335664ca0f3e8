//! Endpoint, key and certificate authority of a MAAS, read from a Secret under every name that any generation of the provider or of
//! `HyperShift` gave them. [`super::MaasAccounts`] reads them, a [`super::Connect`] makes a client of them.

use k8s_openapi::ByteString;
use maas_client::{Address, ApiKey, ExposeSecret, SecretString};
use std::{collections::BTreeMap, fmt};

use super::{
    account_error::{AccountError, CredentialsPlace},
    environment::MaasAccess,
};

/// The Secret that counts for a namespace unless an object names another; the Go provider's installation makes it.
pub const DEFAULT_SECRET: &str = "capmaas-manager-bootstrap-credentials";

/// The first of each is the name that messages recommend.
const ENDPOINT_KEYS: [&str; 8] =
    ["MAAS_ENDPOINT", "MAAS_API_URL", "MAAS_URL", "maas-endpoint", "maas-server-url", "maas-api-url", "endpoint", "url"];
const API_KEY_KEYS: [&str; 6] = ["MAAS_API_KEY", "MAAS_API_TOKEN", "maas-api-key", "maas-api-token", "apiKey", "api-key"];
const CERTIFICATE_AUTHORITY_KEYS: [&str; 5] = ["ca.crt", "MAAS_CA_BUNDLE", "MAAS_CA", "ca-bundle", "caBundle"];

/// How to reach one MAAS as one user. `Debug` does not show the key.
#[derive(Clone)]
pub struct Credentials {
    /// Where the MAAS is.
    pub endpoint: Address,
    /// The API key.
    pub key: SecretString,
    /// The PEM bundle that signs the MAAS's certificate; without it the system's authorities count.
    pub certificate_authority: Option<Vec<u8>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").field("endpoint", &self.endpoint).field("key", &"(secret)").finish_non_exhaustive()
    }
}

impl PartialEq for Credentials {
    fn eq(&self, other: &Self) -> bool {
        self.endpoint == other.endpoint
            && self.key.expose_secret() == other.key.expose_secret()
            && self.certificate_authority == other.certificate_authority
    }
}

impl Eq for Credentials {}

impl Credentials {
    /// What a Secret holds.
    pub(super) fn from_secret(place: &CredentialsPlace, data: &BTreeMap<String, ByteString>) -> Result<Self, AccountError> {
        let (endpoint_key, endpoint) = one_of(place, data, &ENDPOINT_KEYS, "address of a MAAS", same_address)?;
        let (api_key_key, key) = one_of(place, data, &API_KEY_KEYS, "API key", |first, second| first == second)?;
        let authority = match one_of(place, data, &CERTIFICATE_AUTHORITY_KEYS, "", |first, second| first == second) {
            Ok((_, authority)) => Some(authority.into_bytes()),
            Err(AccountError::Incomplete { .. }) => None,
            Err(error) => return Err(error),
        };
        Self::new(place, (endpoint_key, &endpoint), (api_key_key, &key), authority)
    }

    /// What the environment held when the process began.
    pub(super) fn from_environment(access: &MaasAccess) -> Result<Self, AccountError> {
        let authority = access.certificate_authority().map(|pem| pem.as_bytes().to_vec());
        let (endpoint, key) = ((ENDPOINT_KEYS[0], access.endpoint()), (API_KEY_KEYS[0], access.reveal_key()));
        Self::new(&CredentialsPlace::Environment, endpoint, key, authority)
    }

    fn new(
        place: &CredentialsPlace,
        (endpoint_key, endpoint): (&'static str, &str),
        (api_key_key, key): (&'static str, &str),
        certificate_authority: Option<Vec<u8>>,
    ) -> Result<Self, AccountError> {
        let malformed = |key, reason: String| AccountError::Malformed { place: place.clone(), key, reason };
        let endpoint = endpoint.parse().map_err(|error: maas_client::MalformedAddress| malformed(endpoint_key, error.to_string()))?;
        key.parse::<ApiKey>().map_err(|error| malformed(api_key_key, error.to_string()))?;
        Ok(Self { endpoint, key: key.to_owned().into(), certificate_authority })
    }
}

/// The value under any of these keys, and the key it was under. Blank values count as absent; several must mean the same.
fn one_of(
    place: &CredentialsPlace,
    data: &BTreeMap<String, ByteString>,
    keys: &[&'static str],
    missing: &'static str,
    same: impl Fn(&str, &str) -> bool,
) -> Result<(&'static str, String), AccountError> {
    let mut found: Option<(&'static str, String)> = None;
    for key in keys {
        let Some(ByteString(bytes)) = data.get(*key) else { continue };
        let text = str::from_utf8(bytes).map_err(|_| AccountError::Malformed {
            place: place.clone(),
            key,
            reason: "it is not text; a Secret's `data` is encoded once, not twice".to_owned(),
        })?;
        let text = text.trim();
        match &found {
            _ if text.is_empty() => {}
            Some((first, known)) if !same(known, text) => {
                return Err(AccountError::Contradiction { place: place.clone(), first, second: key });
            }
            Some(_) => {}
            None => found = Some((key, text.to_owned())),
        }
    }
    found.ok_or_else(|| AccountError::Incomplete { place: place.clone(), missing, key: keys[0] })
}

/// Spellings of one address, such as with and without `/MAAS`, are no contradiction.
fn same_address(first: &str, second: &str) -> bool {
    first == second || matches!((first.parse::<Address>(), second.parse::<Address>()), (Ok(first), Ok(second)) if first == second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "consumer:token:canary";

    fn read(entries: &[(&str, &str)]) -> Result<Credentials, AccountError> {
        let place = CredentialsPlace::Secret { namespace: "a".into(), name: "s".into() };
        let data = entries.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()))).collect();
        Credentials::from_secret(&place, &data)
    }

    #[test]
    fn every_spelling_of_every_generation_is_read() {
        for endpoint in ENDPOINT_KEYS {
            for key in API_KEY_KEYS {
                let credentials = read(&[(endpoint, " http://maas:5240/MAAS/\n"), (key, &format!("{KEY}\n")), ("other", "x")]).unwrap();
                assert_eq!(credentials.endpoint.as_str(), "http://maas:5240/MAAS", "{endpoint}");
                assert_eq!(credentials.key.expose_secret(), KEY, "{key}");
                assert_eq!(credentials.certificate_authority, None);
            }
        }
        for key in CERTIFICATE_AUTHORITY_KEYS {
            let credentials = read(&[("endpoint", "https://maas"), ("apiKey", KEY), (key, "a bundle")]).unwrap();
            assert_eq!(credentials.certificate_authority.as_deref(), Some(b"a bundle".as_slice()), "{key}");
        }
    }

    #[test]
    fn two_spellings_may_agree_but_not_contradict_each_other() {
        let agreeing = [("MAAS_ENDPOINT", "http://maas/MAAS"), ("url", "http://maas/MAAS/api/2.0/"), ("apiKey", KEY), ("api-key", KEY)];
        assert!(read(&agreeing).is_ok());
        let error = read(&[("MAAS_ENDPOINT", "http://maas/MAAS"), ("endpoint", "http://other/MAAS"), ("apiKey", KEY)]).unwrap_err();
        assert!(error.to_string().contains("MAAS_ENDPOINT and endpoint mean the same and differ"), "{error}");
        let error = read(&[("url", "http://maas"), ("MAAS_API_KEY", KEY), ("MAAS_API_TOKEN", "a:b:other")]).unwrap_err();
        assert!(error.to_string().contains("MAAS_API_KEY and MAAS_API_TOKEN"), "{error}");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }

    #[test]
    fn what_is_missing_or_malformed_is_named_with_its_key() {
        for (entries, expected) in [
            (&[("MAAS_API_KEY", KEY)][..], "the Secret a/s holds no address of a MAAS; add it under the key MAAS_ENDPOINT"),
            (&[("url", "http://maas"), ("apiKey", " ")][..], "the Secret a/s holds no API key; add it under the key MAAS_API_KEY"),
            (&[("url", "maas"), ("apiKey", KEY)][..], "url in the Secret a/s cannot be used: the MAAS address must look like"),
            (&[("url", "http://maas"), ("api-key", "canary")][..], "api-key in the Secret a/s cannot be used: "),
        ] {
            let error = read(entries).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
        assert!(!format!("{:?}", read(&[("url", "http://maas"), ("apiKey", KEY)]).unwrap()).contains("canary"));
    }
}
