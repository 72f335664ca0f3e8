//! Network spaces: groups of VLANs that can reach each other. Answers rest on reading MAAS's source, not on recordings.

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id, Subnet, Vlan,
    call::{Call, Form, Path},
};

/// A network space: a group of VLANs that can reach each other. Rests on reading MAAS's source, not on recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Space {
    /// Its number; -1 for what belongs to no space.
    pub id: Id<Space>,
    /// Its name; `undefined` for what belongs to no space.
    pub name: String,
    /// Its VLANs.
    pub vlans: Vec<Vlan>,
    /// The subnets of those.
    pub subnets: Vec<Subnet>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// Calls on spaces; see [`Client::spaces`]. All rest on reading MAAS's source, not on recordings.
#[derive(Clone, Copy, Debug)]
pub struct Spaces<'a>(&'a Client);

impl Client {
    /// The network spaces. Calls on them rest on reading MAAS's source, not on recordings.
    pub fn spaces(&self) -> Spaces<'_> {
        Spaces(self)
    }
}

fn one(id: Id<Space>) -> Path {
    Path::new("spaces").item(id)
}

impl Spaces<'_> {
    /// All spaces.
    pub async fn list(self) -> Result<Vec<Space>, Error> {
        self.0.json(Call::get(Path::new("spaces"))).await
    }

    /// One space.
    pub async fn read(self, id: Id<Space>) -> Result<Space, Error> {
        self.0.object(Call::get(one(id)).about("space", id)).await
    }

    /// A new space. For administrators.
    pub async fn create(self, name: &str) -> Result<Space, Error> {
        self.0.object(Call::post(Path::new("spaces")).form(Form::new().with("name", name)).about("space", name)).await
    }

    /// Gives a space another name. For administrators.
    pub async fn rename(self, id: Id<Space>, name: &str) -> Result<Space, Error> {
        self.0.object(Call::put(one(id)).form(Form::new().with("name", name)).about("space", id)).await
    }

    /// Removes a space. For administrators.
    pub async fn delete(self, id: Id<Space>) -> Result<(), Error> {
        self.0.done(Call::delete(one(id)).about("space", id)).await
    }
}
