//! What answers and requests hold that nobody may see by accident. Used by power and VM host parameters and by deploy.

use std::{collections::BTreeMap, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;

/// Parameters of a power driver or a VM host by name, passwords and private keys among them. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SecretParameters(BTreeMap<String, Value>);

impl SecretParameters {
    /// The value of one parameter.
    pub fn expose(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The names there are.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for SecretParameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// What a machine runs at its first boot. It tends to hold the token a node joins its cluster with, so `Debug` does not show it.
#[derive(Clone)]
pub struct UserData(SecretString);

impl UserData {
    /// User-data from its bytes. MAAS gets it in base64, since it takes plain text for base64 when it happens to look like it.
    pub fn new(content: impl AsRef<[u8]>) -> Self {
        Self(STANDARD.encode(content).into())
    }

    /// User-data that is in base64 already, which nobody checks: MAAS takes anything else for plain text.
    pub fn from_base64(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    pub(crate) fn encoded(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for UserData {
    fn eq(&self, other: &Self) -> bool {
        self.encoded() == other.encoded()
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UserData([redacted], {} characters)", self.encoded().len())
    }
}
