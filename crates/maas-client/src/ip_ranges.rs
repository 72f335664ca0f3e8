//! IP ranges: addresses MAAS gives out by DHCP, and addresses it leaves to others.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id, Subnet, User,
    call::{Call, Form, Path},
};

/// What a range is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum IpRangeType {
    /// MAAS gives its addresses out by DHCP.
    Dynamic,
    /// MAAS leaves its addresses to others.
    Reserved,
    /// One this client does not know.
    Other(String),
}

impl From<String> for IpRangeType {
    fn from(text: String) -> Self {
        match text.as_str() {
            "dynamic" => Self::Dynamic,
            "reserved" => Self::Reserved,
            _ => Self::Other(text),
        }
    }
}

impl From<IpRangeType> for String {
    fn from(kind: IpRangeType) -> Self {
        match kind {
            IpRangeType::Dynamic => "dynamic".to_owned(),
            IpRangeType::Reserved => "reserved".to_owned(),
            IpRangeType::Other(text) => text,
        }
    }
}

impl Default for IpRangeType {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

/// A range of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct IpRange {
    /// Its number.
    pub id: Id<IpRange>,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: IpRangeType,
    /// The first address.
    pub start_ip: String,
    /// The last address.
    pub end_ip: String,
    /// What it is, for people.
    pub comment: Option<String>,
    /// Whose it is.
    pub user: Option<User>,
    /// The subnet it lies in.
    pub subnet: Subnet,
    /// Its address in the API.
    pub resource_uri: String,
}

/// A range to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIpRange {
    /// What it is for.
    pub kind: IpRangeType,
    /// The first address.
    pub start: IpAddr,
    /// The last address.
    pub end: IpAddr,
    /// The subnet; MAAS finds it by the addresses.
    pub subnet: Option<Id<Subnet>>,
    /// What it is, for people.
    pub comment: Option<String>,
}

/// Calls on IP ranges; see [`Client::ip_ranges`].
#[derive(Clone, Copy, Debug)]
pub struct IpRanges<'a>(&'a Client);

impl Client {
    /// The IP ranges.
    pub fn ip_ranges(&self) -> IpRanges<'_> {
        IpRanges(self)
    }
}

fn one(id: Id<IpRange>) -> Path {
    Path::new("ipranges").item(id)
}

impl IpRanges<'_> {
    /// All ranges.
    pub async fn list(self) -> Result<Vec<IpRange>, Error> {
        self.0.json(Call::get(Path::new("ipranges"))).await
    }

    /// One range.
    pub async fn read(self, id: Id<IpRange>) -> Result<IpRange, Error> {
        self.0.object(Call::get(one(id)).about("IP range", id)).await
    }

    /// A new range that overlaps no other. A dynamic one is for administrators.
    pub async fn create(self, range: &NewIpRange) -> Result<IpRange, Error> {
        let form = Form::new()
            .with("type", String::from(range.kind.clone()))
            .with("start_ip", range.start)
            .with("end_ip", range.end)
            .maybe("subnet", range.subnet)
            .maybe("comment", range.comment.as_ref());
        self.0.object(Call::post(Path::new("ipranges")).form(form).about("IP range from", range.start)).await
    }

    /// Changes a range. Rests on reading MAAS's source, not on recordings.
    pub async fn update(
        self,
        id: Id<IpRange>,
        start: Option<IpAddr>,
        end: Option<IpAddr>,
        comment: Option<&str>,
    ) -> Result<IpRange, Error> {
        let form = Form::new().maybe("start_ip", start).maybe("end_ip", end).maybe("comment", comment);
        self.0.object(Call::put(one(id)).form(form).about("IP range", id)).await
    }

    /// Removes a range. Rests on reading MAAS's source, not on recordings.
    pub async fn delete(self, id: Id<IpRange>) -> Result<(), Error> {
        self.0.done(Call::delete(one(id)).about("IP range", id)).await
    }
}
