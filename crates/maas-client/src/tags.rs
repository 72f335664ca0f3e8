//! Tags, and which machines carry them.

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Machine, SystemId,
    call::{Call, Form, Path},
    named::Named,
};

/// A tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// The `XPath` expression over a machine's hardware that gives it to machines; empty for tags given by hand.
    pub definition: String,
    /// What it is for, for people.
    pub comment: String,
    /// What machines with this tag boot with.
    pub kernel_opts: Option<String>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// What a tag shall be; what is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagSettings {
    /// What it is for.
    pub comment: Option<String>,
    /// What machines with it boot with.
    pub kernel_opts: Option<String>,
    /// The `XPath` expression that gives it to machines.
    pub definition: Option<String>,
}

/// How many machines got and lost a tag. Ids that MAAS does not know count in neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TagChange {
    /// So many got it.
    pub added: u32,
    /// So many lost it.
    pub removed: u32,
}

/// A change as MAAS tells it: an answer without either number tells none.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counted {
    added: Option<u32>,
    removed: Option<u32>,
}

impl Named for Counted {
    const KIND: &'static str = "number of machines";

    fn is_named(&self) -> bool {
        self.added.is_some() || self.removed.is_some()
    }
}

/// Calls on tags; see [`Client::tags`].
#[derive(Clone, Copy, Debug)]
pub struct Tags<'a>(&'a Client);

impl Client {
    /// The tags.
    pub fn tags(&self) -> Tags<'_> {
        Tags(self)
    }
}

impl TagSettings {
    fn form(&self) -> Form {
        Form::new()
            .maybe("comment", self.comment.as_ref())
            .maybe("kernel_opts", self.kernel_opts.as_ref())
            .maybe("definition", self.definition.as_ref())
    }
}

fn one(name: &str) -> Path {
    Path::new("tags").item(name)
}

impl Tags<'_> {
    /// All tags.
    pub async fn list(self) -> Result<Vec<Tag>, Error> {
        self.0.json(Call::get(Path::new("tags"))).await
    }

    /// One tag.
    pub async fn read(self, name: &str) -> Result<Tag, Error> {
        self.0.object(Call::get(one(name)).about("tag", name)).await
    }

    /// A new tag. For administrators.
    pub async fn create(self, name: &str, settings: &TagSettings) -> Result<Tag, Error> {
        let form = Form::new().with("name", name).and(&settings.form());
        self.0.object(Call::post(Path::new("tags")).form(form).about("tag", name)).await
    }

    /// Changes a tag. For administrators.
    pub async fn update(self, name: &str, settings: &TagSettings) -> Result<Tag, Error> {
        self.0.object(Call::put(one(name)).form(settings.form()).about("tag", name)).await
    }

    /// Removes a tag from MAAS and from every machine. For administrators. Sent once, as another tag may have the name by then.
    pub async fn delete(self, name: &str) -> Result<(), Error> {
        self.0.done(Call::delete(one(name)).once().about("tag", name)).await
    }

    /// The machines that carry it and that the user may see.
    pub async fn machines(self, name: &str) -> Result<Vec<Machine>, Error> {
        self.0.object(Call::get(one(name)).operation("machines").about("tag", name)).await
    }

    /// Gives the tag to machines and takes it from others. For administrators. Doing it twice changes nothing more, so it is repeated as
    /// settings are.
    pub async fn update_nodes(self, name: &str, add: &[SystemId], remove: &[SystemId]) -> Result<TagChange, Error> {
        let form = Form::new().each("add", add).each("remove", remove);
        let call = Call::post(one(name)).operation("update_nodes").form(form).about("tag", name);
        let counted: Counted = self.0.object(call.repeatable()).await?;
        Ok(TagChange { added: counted.added.unwrap_or_default(), removed: counted.removed.unwrap_or_default() })
    }
}
