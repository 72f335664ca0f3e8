//! DNS domains.

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id,
    call::{Call, Form, Path},
    units::TimeToLive,
};

/// A domain. The default one has number 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Domain {
    /// Its number.
    pub id: Id<Domain>,
    /// Its name.
    pub name: String,
    /// Whether MAAS serves it.
    pub authoritative: bool,
    /// How long its answers may be kept; nothing for MAAS's own default.
    pub ttl: Option<TimeToLive>,
    /// Whether new machines go there.
    pub is_default: bool,
    /// How many records it has.
    pub resource_record_count: u32,
    /// Its address in the API.
    pub resource_uri: String,
}

/// What a domain shall be; what is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainSettings {
    /// Another name.
    pub name: Option<String>,
    /// Whether MAAS serves it.
    pub authoritative: Option<bool>,
    /// How long its answers may be kept.
    pub ttl: Option<TimeToLive>,
}

/// Calls on domains; see [`Client::domains`].
#[derive(Clone, Copy, Debug)]
pub struct Domains<'a>(&'a Client);

impl Client {
    /// The DNS domains.
    pub fn domains(&self) -> Domains<'_> {
        Domains(self)
    }
}

impl DomainSettings {
    fn form(&self) -> Form {
        Form::new().maybe("name", self.name.as_ref()).maybe("authoritative", self.authoritative).maybe("ttl", self.ttl)
    }
}

fn one(id: Id<Domain>) -> Path {
    Path::new("domains").item(id)
}

impl Domains<'_> {
    /// All domains.
    pub async fn list(self) -> Result<Vec<Domain>, Error> {
        self.0.json(Call::get(Path::new("domains"))).await
    }

    /// One domain.
    pub async fn read(self, id: Id<Domain>) -> Result<Domain, Error> {
        self.0.object(Call::get(one(id)).about("domain", id)).await
    }

    /// A new domain. For administrators.
    pub async fn create(self, name: &str, settings: &DomainSettings) -> Result<Domain, Error> {
        let settings = DomainSettings { name: Some(name.to_owned()), ..settings.clone() };
        self.0.object(Call::post(Path::new("domains")).form(settings.form()).about("domain", name)).await
    }

    /// Changes a domain. For administrators.
    pub async fn update(self, id: Id<Domain>, settings: &DomainSettings) -> Result<Domain, Error> {
        self.0.object(Call::put(one(id)).form(settings.form()).about("domain", id)).await
    }

    /// Removes a domain without records; with records MAAS fails at it (500). For administrators.
    pub async fn delete(self, id: Id<Domain>) -> Result<(), Error> {
        self.0.done(Call::delete(one(id)).about("domain", id)).await
    }
}
