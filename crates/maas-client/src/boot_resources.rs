//! Images that machines boot and run. Uploading them is in `upload.rs`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id,
    call::{Call, Form, Path},
    units::ByteCount,
};

/// Where an image comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum BootResourceType {
    /// From a mirror.
    Synced,
    /// From a person.
    Uploaded,
    /// One this client does not know.
    Other(String),
}

impl From<String> for BootResourceType {
    fn from(text: String) -> Self {
        match text.as_str() {
            "Synced" => Self::Synced,
            "Uploaded" => Self::Uploaded,
            _ => Self::Other(text),
        }
    }
}

impl From<BootResourceType> for String {
    fn from(kind: BootResourceType) -> Self {
        match kind {
            BootResourceType::Synced => "Synced".to_owned(),
            BootResourceType::Uploaded => "Uploaded".to_owned(),
            BootResourceType::Other(text) => text,
        }
    }
}

impl Default for BootResourceType {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

/// An image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BootResource {
    /// Its number.
    pub id: Id<BootResource>,
    /// Where it comes from.
    #[serde(rename = "type")]
    pub kind: BootResourceType,
    /// Its name; one uploaded as `custom/edge-node` is listed as `edge-node` and deployed as `custom/edge-node`.
    pub name: String,
    /// Such as `amd64/ga-22.04`.
    pub architecture: String,
    /// What it is, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_image: Option<String>,
    /// The flavour of its kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kflavor: Option<String>,
    /// The variants of its architecture it runs on, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subarches: Option<String>,
    /// The platform it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The platforms it runs on, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported_platforms: Option<String>,
    /// When a machine was last deployed with it.
    pub last_deployed: Option<String>,
    /// Its versions; not in lists.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sets: BTreeMap<String, BootResourceSet>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// A version of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BootResourceSet {
    /// Its name, usually a day.
    pub version: String,
    /// Such as `stable` or `uploaded`.
    pub label: String,
    /// The size of its files.
    pub size: ByteCount,
    /// Whether MAAS has all of it.
    pub complete: bool,
    /// How much of it MAAS has, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// Its files by name.
    pub files: BTreeMap<String, BootResourceFile>,
}

/// A file of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BootResourceFile {
    /// Its name.
    pub filename: String,
    /// What is in it, such as `root-tgz`.
    pub filetype: String,
    /// Its checksum.
    pub sha256: String,
    /// Its name on the disks of MAAS.
    pub filename_on_disk: String,
    /// Its size.
    pub size: ByteCount,
    /// Whether MAAS has all of it.
    pub complete: bool,
    /// How much of it MAAS has, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// Where to send the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_uri: Option<String>,
}

/// Calls on boot resources, which are images that machines boot and run; see [`Client::boot_resources`].
#[derive(Clone, Copy, Debug)]
pub struct BootResources<'a>(pub(crate) &'a Client);

impl Client {
    /// The images.
    pub fn boot_resources(&self) -> BootResources<'_> {
        BootResources(self)
    }
}

impl BootResources<'_> {
    /// All images, or those of one origin.
    pub async fn list(self, kind: Option<&BootResourceType>) -> Result<Vec<BootResource>, Error> {
        let query = Form::new().maybe("type", kind.map(|kind| String::from(kind.clone()).to_lowercase()));
        self.0.json(Call::get(Path::new("boot-resources")).query(query)).await
    }

    /// One image with its versions and files.
    pub async fn read(self, id: Id<BootResource>) -> Result<BootResource, Error> {
        self.0.object(Call::get(Path::new("boot-resources").item(id)).about("image", id)).await
    }

    /// Whether MAAS is reading images from its mirrors now.
    pub async fn is_importing(self) -> Result<bool, Error> {
        self.0.json(Call::get(Path::new("boot-resources")).operation("is_importing")).await
    }

    /// Removes an image. For administrators. Rests on reading MAAS's source, not on recordings.
    pub async fn delete(self, id: Id<BootResource>) -> Result<(), Error> {
        self.0.done(Call::delete(Path::new("boot-resources").item(id)).about("image", id)).await
    }
}
