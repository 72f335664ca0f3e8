//! How to reach MAAS when the environment says so: endpoint and key under the names of all generations of the provider.
//!
//! The key is kept out of `Debug` and of every error. `metalshift manage` reads it; [`super::MaasAccounts`] falls back on it for namespaces
//! without a Secret. In a pod the variables come from a Secret beside it, whose key may change while the process runs.

use std::fmt;

/// Endpoint and key of a MAAS.
#[derive(Clone, PartialEq, Eq)]
pub struct MaasAccess {
    endpoint: String,
    key: String,
    certificate_authority: Option<String>,
    own_namespace: Option<String>,
}

/// An environment that names a MAAS only in part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MaasAccessError {
    /// There is an endpoint and no key, or the other way round.
    #[error("{given} is set but {missing} is not: set both, or neither to use the Secret of each namespace")]
    Incomplete {
        /// The variable that was found.
        given: &'static str,
        /// The variable to add.
        missing: &'static str,
    },
    /// The key cannot be one.
    #[error("{variable} is not a MAAS API key: it has three parts with colons between, as `maas apikey` prints it")]
    InvalidKey {
        /// The variable that holds it.
        variable: &'static str,
    },
    /// The endpoint cannot be one.
    #[error("{variable} is not the address of a MAAS: it begins with http:// or https:// and holds no user or password")]
    InvalidEndpoint {
        /// The variable that holds it.
        variable: &'static str,
    },
}

const ENDPOINT_NAMES: [&str; 2] = ["MAAS_ENDPOINT", "MAAS_API_URL"];
const KEY_NAMES: [&str; 2] = ["MAAS_API_KEY", "MAAS_API_TOKEN"];
/// The bundle itself and not a file: the variables usually come from a Secret that holds all of them.
const CERTIFICATE_AUTHORITY_NAMES: [&str; 2] = ["MAAS_CA_BUNDLE", "MAAS_CA"];

impl MaasAccess {
    /// Reads it from an environment; empty variables count as unset, and none at all is no access rather than an error.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, MaasAccessError> {
        let first = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| {
                let value = variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())?;
                Some((name, value))
            })
        };
        match (first(ENDPOINT_NAMES), first(KEY_NAMES)) {
            (None, None) => Ok(None),
            (Some((given, _)), None) => Err(MaasAccessError::Incomplete { given, missing: KEY_NAMES[0] }),
            (None, Some((given, _))) => Err(MaasAccessError::Incomplete { given, missing: ENDPOINT_NAMES[0] }),
            (Some((variable, endpoint)), _) if !is_address(&endpoint) => Err(MaasAccessError::InvalidEndpoint { variable }),
            (_, Some((variable, key))) if key.split(':').count() != 3 || key.split(':').any(str::is_empty) => {
                Err(MaasAccessError::InvalidKey { variable })
            }
            (Some((_, endpoint)), Some((_, key))) => {
                let certificate_authority = first(CERTIFICATE_AUTHORITY_NAMES).map(|(_, pem)| pem);
                Ok(Some(Self { endpoint, key, certificate_authority, own_namespace: None }))
            }
        }
    }

    /// The same, with a newer key of the same MAAS from the Secret of the provider's own namespace, whenever there is one.
    #[must_use]
    pub fn renewed_from(self, own_namespace: Option<String>) -> Self {
        Self { own_namespace, ..self }
    }

    /// The namespace of the provider, if a Secret in it may hold a newer key.
    pub(super) fn own_namespace(&self) -> Option<&str> {
        self.own_namespace.as_deref()
    }

    /// The address of the MAAS.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The PEM bundle that signs the MAAS's certificate, if it is not one of the system's.
    pub fn certificate_authority(&self) -> Option<&str> {
        self.certificate_authority.as_deref()
    }

    /// The key; whoever asks for it must not log it.
    pub fn reveal_key(&self) -> &str {
        &self.key
    }
}

/// Addresses are logged, so one that carries a password is refused.
fn is_address(endpoint: &str) -> bool {
    let rest = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.split('/').next().unwrap_or_default().contains('@'))
}

impl fmt::Debug for MaasAccess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MaasAccess").field("endpoint", &self.endpoint).field("key", &"(secret)").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<MaasAccess>, MaasAccessError> {
        MaasAccess::from_environment(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn both_generations_of_names_are_read_and_the_newer_wins() {
        let access = read(&[("MAAS_API_URL", "http://old"), ("MAAS_API_TOKEN", "a:b:c")]).unwrap().unwrap();
        assert_eq!((access.endpoint(), access.reveal_key()), ("http://old", "a:b:c"));
        let access =
            read(&[("MAAS_ENDPOINT", "http://new/MAAS"), ("MAAS_API_URL", "http://old"), ("MAAS_API_KEY", "a:b:c")]).unwrap().unwrap();
        assert_eq!(access.endpoint(), "http://new/MAAS");
        assert_eq!(read(&[("MAAS_ENDPOINT", "")]).unwrap(), None);
    }

    #[test]
    fn the_key_is_in_no_output() {
        let access = read(&[("MAAS_ENDPOINT", "http://maas"), ("MAAS_API_KEY", "consumer:token:hidden")]).unwrap();
        assert!(!format!("{access:?}").contains("hidden"));
        let error = read(&[("MAAS_ENDPOINT", "http://maas"), ("MAAS_API_KEY", "hidden")]).unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hidden"));
    }

    #[test]
    fn half_an_access_names_the_missing_half() {
        let error = read(&[("MAAS_API_KEY", "a:b:c")]).unwrap_err().to_string();
        assert!(error.contains("MAAS_API_KEY is set but MAAS_ENDPOINT is not"), "{error}");
    }
}
