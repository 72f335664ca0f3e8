//! Physical zones: the failure domains of a MAAS. They are addressed by name.

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id,
    call::{Call, Form, Path},
};

/// A physical zone: a failure domain of a MAAS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Zone {
    /// Its number, which composing a VM wants.
    pub id: Id<Zone>,
    /// Its name, which everything else wants.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Its address in the API.
    pub resource_uri: String,
}

/// Calls on zones, which are addressed by name; see [`Client::zones`].
#[derive(Clone, Copy, Debug)]
pub struct Zones<'a>(&'a Client);

impl Client {
    /// The physical zones.
    pub fn zones(&self) -> Zones<'_> {
        Zones(self)
    }
}

fn one(name: &str) -> Path {
    Path::new("zones").item(name)
}

impl Zones<'_> {
    /// All zones.
    pub async fn list(self) -> Result<Vec<Zone>, Error> {
        self.0.json(Call::get(Path::new("zones"))).await
    }

    /// One zone.
    pub async fn read(self, name: &str) -> Result<Zone, Error> {
        self.0.object(Call::get(one(name)).about("zone", name)).await
    }

    /// A new zone. For administrators.
    pub async fn create(self, name: &str, description: &str) -> Result<Zone, Error> {
        let form = Form::new().with("name", name).maybe("description", Some(description).filter(|text| !text.is_empty()));
        self.0.object(Call::post(Path::new("zones")).form(form).about("zone", name)).await
    }

    /// Gives a zone another name, description or both. For administrators.
    pub async fn update(self, name: &str, new_name: Option<&str>, description: Option<&str>) -> Result<Zone, Error> {
        let form = Form::new().maybe("name", new_name).maybe("description", description);
        // After a new name the old one is not there to be changed again.
        let call = Call::put(one(name)).form(form).about("zone", name);
        self.0.object(if new_name.is_some() { call.once() } else { call }).await
    }

    /// Removes a zone; its machines go to the default zone. One that is not there counts as removed. For administrators. Sent once, as
    /// another zone may have the name by then.
    pub async fn delete(self, name: &str) -> Result<(), Error> {
        self.0.done(Call::delete(one(name)).once().about("zone", name)).await
    }
}
