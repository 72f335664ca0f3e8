//! The user's own API keys.

use serde::Deserialize;

use crate::{
    ApiKey, Client, Error,
    call::{Call, Form, Path},
    named::Named,
};

/// An API key and the name its user gave it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthorisationToken {
    /// The name.
    pub name: String,
    /// The key; nothing if MAAS wrote it in a way we do not know.
    pub key: Option<ApiKey>,
}

/// Calls on the user's account; see [`Client::account`].
#[derive(Clone, Copy, Debug)]
pub struct Account<'a>(&'a Client);

impl Client {
    /// The account of the key's user.
    pub fn account(&self) -> Account<'_> {
        Account(self)
    }
}

// On the wire a key is plain text, so these two never leave this file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Listed {
    name: String,
    token: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Created {
    name: String,
    consumer_key: String,
    token_key: String,
    token_secret: String,
}

impl Named for Created {
    const KIND: &'static str = "API key";

    fn is_named(&self) -> bool {
        ![&self.consumer_key, &self.token_key, &self.token_secret].iter().any(|part| part.is_empty())
    }
}

impl Account<'_> {
    /// All keys of the user.
    pub async fn list_tokens(self) -> Result<Vec<AuthorisationToken>, Error> {
        let listed: Vec<Listed> = self.0.json(Call::get(Path::new("account")).operation("list_authorisation_tokens")).await?;
        Ok(listed.into_iter().map(|Listed { name, token }| AuthorisationToken { name, key: token.parse().ok() }).collect())
    }

    /// A new key of that name.
    pub async fn create_token(self, name: &str) -> Result<AuthorisationToken, Error> {
        let call = Call::post(Path::new("account")).operation("create_authorisation_token").form(Form::new().with("name", name));
        let created: Created = self.0.object(call.about("API key", name)).await?;
        let key = ApiKey::from_parts(&created.consumer_key, &created.token_key, &created.token_secret);
        Ok(AuthorisationToken { name: created.name, key: Some(key) })
    }

    /// Removes a key. The one this client signs with may be among them.
    pub async fn delete_token(self, key: &ApiKey) -> Result<(), Error> {
        let form = Form::new().with_secret("token_key", key.token());
        self.0.done(Call::post(Path::new("account")).operation("delete_authorisation_token").form(form)).await
    }
}
