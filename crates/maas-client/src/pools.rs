//! Resource pools. Their items are addressed by number, below a path of its own.

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id,
    call::{Call, Form, Path},
};

/// A resource pool. The default one has number 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ResourcePool {
    /// Its number, which composing a VM wants.
    pub id: Id<ResourcePool>,
    /// Its name, which everything else wants.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Its address in the API.
    pub resource_uri: String,
}

/// Calls on resource pools, which are addressed by number; see [`Client::resource_pools`].
#[derive(Clone, Copy, Debug)]
pub struct ResourcePools<'a>(&'a Client);

impl Client {
    /// The resource pools.
    pub fn resource_pools(&self) -> ResourcePools<'_> {
        ResourcePools(self)
    }
}

fn one(id: Id<ResourcePool>) -> Path {
    Path::new("resourcepool").item(id)
}

impl ResourcePools<'_> {
    /// All pools the user may see.
    pub async fn list(self) -> Result<Vec<ResourcePool>, Error> {
        self.0.json(Call::get(Path::new("resourcepools"))).await
    }

    /// One pool.
    pub async fn read(self, id: Id<ResourcePool>) -> Result<ResourcePool, Error> {
        self.0.object(Call::get(one(id)).about("resource pool", id)).await
    }

    /// A new pool. For administrators.
    pub async fn create(self, name: &str, description: &str) -> Result<ResourcePool, Error> {
        let form = Form::new().with("name", name).maybe("description", Some(description).filter(|text| !text.is_empty()));
        self.0.object(Call::post(Path::new("resourcepools")).form(form).about("resource pool", name)).await
    }

    /// Gives a pool another name, description or both. For administrators.
    pub async fn update(self, id: Id<ResourcePool>, name: Option<&str>, description: Option<&str>) -> Result<ResourcePool, Error> {
        let form = Form::new().maybe("name", name).maybe("description", description);
        self.0.object(Call::put(one(id)).form(form).about("resource pool", id)).await
    }

    /// Removes a pool without machines. For administrators.
    pub async fn delete(self, id: Id<ResourcePool>) -> Result<(), Error> {
        self.0.done(Call::delete(one(id)).about("resource pool", id)).await
    }
}
