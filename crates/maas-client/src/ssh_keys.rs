//! The user's SSH keys, which MAAS puts on every machine the user deploys.

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id,
    call::{Call, Form, Path},
};

/// A public key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SshKey {
    /// Its number.
    pub id: Id<SshKey>,
    /// The key in OpenSSH's form.
    pub key: String,
    /// Where it was imported from, such as `lp:somebody`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keysource: Option<String>,
    /// Its address in the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_uri: Option<String>,
}

/// Calls on the user's SSH keys, which MAAS puts on every machine the user deploys; see [`Client::ssh_keys`].
#[derive(Clone, Copy, Debug)]
pub struct SshKeys<'a>(&'a Client);

impl Client {
    /// The SSH keys of the key's user.
    pub fn ssh_keys(&self) -> SshKeys<'_> {
        SshKeys(self)
    }
}

fn all() -> Path {
    Path::new("account/prefs/sshkeys")
}

impl SshKeys<'_> {
    /// All keys of the user.
    pub async fn list(self) -> Result<Vec<SshKey>, Error> {
        self.0.json(Call::get(all())).await
    }

    /// Adds a key.
    pub async fn create(self, key: &str) -> Result<SshKey, Error> {
        self.0.object(Call::post(all()).form(Form::new().with("key", key))).await
    }

    /// Adds the keys a user has published, such as `lp:somebody` or `gh:somebody`. Rests on reading MAAS's source, not on recordings.
    pub async fn import(self, keysource: &str) -> Result<Vec<SshKey>, Error> {
        let call = Call::post(all()).operation("import").form(Form::new().with("keysource", keysource));
        self.0.json(call.slow().about("key source", keysource)).await
    }

    /// Removes a key. Rests on reading MAAS's source, not on recordings.
    pub async fn delete(self, id: Id<SshKey>) -> Result<(), Error> {
        self.0.done(Call::delete(all().item(id)).about("SSH key", id)).await
    }
}
