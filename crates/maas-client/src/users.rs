//! Users, and who we are.

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use crate::{
    Client, Error,
    call::{Call, Form, Path},
};

/// A user of MAAS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct User {
    /// The name, as machines show their owner.
    pub username: String,
    /// Where mail reaches them.
    pub email: String,
    /// Whether they are an administrator.
    pub is_superuser: bool,
    /// Whether MAAS itself knows their password.
    pub is_local: bool,
    /// Its address in the API.
    pub resource_uri: String,
}

/// A user to be made.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// The name.
    pub username: String,
    /// Where mail reaches them.
    pub email: String,
    /// The first password.
    pub password: SecretString,
    /// Whether they shall be an administrator.
    pub is_superuser: bool,
}

/// Calls on users; see [`Client::users`].
#[derive(Clone, Copy, Debug)]
pub struct Users<'a>(&'a Client);

impl Client {
    /// The users.
    pub fn users(&self) -> Users<'_> {
        Users(self)
    }

    /// Who the API key belongs to: the call to check a key with, as others answer strangers oddly.
    pub async fn whoami(&self) -> Result<User, Error> {
        self.object(Call::get(Path::new("users")).operation("whoami")).await
    }
}

fn one(name: &str) -> Path {
    Path::new("users").item(name)
}

impl Users<'_> {
    /// All users, the system's own among them.
    pub async fn list(self) -> Result<Vec<User>, Error> {
        self.0.json(Call::get(Path::new("users"))).await
    }

    /// One user.
    pub async fn read(self, name: &str) -> Result<User, Error> {
        self.0.object(Call::get(one(name)).about("user", name)).await
    }

    /// A new user. For administrators. MAAS takes a name that exists for a conflict of the moment and tries for 20 seconds.
    pub async fn create(self, user: &NewUser) -> Result<User, Error> {
        let form = Form::new()
            .with("username", &user.username)
            .with("email", &user.email)
            .with_secret("password", user.password.expose_secret())
            .with("is_superuser", u8::from(user.is_superuser));
        self.0.object(Call::post(Path::new("users")).form(form).about("user", &user.username)).await
    }

    /// Removes a user; what they own goes to `heir`, without whom MAAS refuses if there is something. For administrators. Sent once, as
    /// another user may have the name by then.
    pub async fn delete(self, name: &str, heir: Option<&str>) -> Result<(), Error> {
        let query = Form::new().maybe("transfer_resources_to", heir);
        self.0.done(Call::delete(one(name)).query(query).once().about("user", name)).await
    }
}
