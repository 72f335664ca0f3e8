//! Users, their API keys and SSH keys.

use serde::{Deserialize, Serialize};

use super::id::Id;

/// A MAAS user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct User {
    /// Its id.
    pub id: Id<User>,
    /// Its name.
    pub name: String,
    /// Its mail address.
    pub email: String,
    /// Administrator or plain user.
    pub superuser: bool,
}

/// An API key of a user.
#[derive(Clone, Serialize, Deserialize)]
pub struct Token {
    /// Whose it is.
    pub user: Id<User>,
    /// What the user called it.
    pub name: String,
    /// First part of the key.
    pub consumer: String,
    /// Second part of the key.
    pub token: String,
    /// Third part of the key.
    pub secret: String,
}

impl Token {
    /// The key as people are told it and programs take it.
    pub fn key(&self) -> String {
        format!("{}:{}:{}", self.consumer, self.token, self.secret)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Token").field("user", &self.user).field("name", &self.name).finish_non_exhaustive()
    }
}

/// A public SSH key of a user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SshKey {
    /// Its id.
    pub id: Id<SshKey>,
    /// Whose it is.
    pub user: Id<User>,
    /// The key, one line.
    pub key: String,
    /// Where it was imported from, such as `lp:someone`.
    pub source: Option<String>,
}
