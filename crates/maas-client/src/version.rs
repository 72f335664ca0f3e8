//! What this MAAS is. Read it before relying on what only some versions have.

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error,
    call::{Call, Path},
};

/// The version of a MAAS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Version {
    /// Such as `3.7.3`.
    pub version: String,
    /// What distinguishes builds of it.
    pub subversion: String,
    /// What it can do, by name.
    pub capabilities: Vec<String>,
}

impl Version {
    /// The first two numbers of the version, such as 3 and 7. Nothing if it does not begin with two numbers.
    pub fn major_minor(&self) -> Option<(u32, u32)> {
        let mut numbers = self.version.split(|character: char| !character.is_ascii_digit()).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
}

impl Client {
    /// Reads the version. Needs no key.
    pub async fn version(&self) -> Result<Version, Error> {
        let call = Call::get(Path::new("version"));
        let name = Box::new(call.name.clone());
        let version: Version = self.json(call).await?;
        if version.version.is_empty() {
            return Err(Error::NotMaas { call: name, reason: "it does not say its version".to_owned() });
        }
        Ok(version)
    }
}
