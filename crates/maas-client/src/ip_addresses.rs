//! IP addresses that users have reserved. Any user may reserve, and release their own.

use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    Client, Error, Interface, Subnet, User,
    call::{Call, Form, Path},
};

/// How an address came to be given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "i64")]
pub enum AllocationType {
    /// By MAAS, for as long as the machine is deployed.
    Automatic,
    /// To a machine, for good.
    Static,
    /// To a user.
    UserReserved,
    /// By DHCP.
    Dhcp,
    /// MAAS saw it in use.
    Observed,
    /// One this client does not know.
    Other(i64),
}

impl From<i64> for AllocationType {
    fn from(number: i64) -> Self {
        match number {
            0 => Self::Automatic,
            1 => Self::Static,
            4 => Self::UserReserved,
            5 => Self::Dhcp,
            6 => Self::Observed,
            other => Self::Other(other),
        }
    }
}

impl From<AllocationType> for i64 {
    fn from(kind: AllocationType) -> Self {
        match kind {
            AllocationType::Automatic => 0,
            AllocationType::Static => 1,
            AllocationType::UserReserved => 4,
            AllocationType::Dhcp => 5,
            AllocationType::Observed => 6,
            AllocationType::Other(number) => number,
        }
    }
}

impl Default for AllocationType {
    fn default() -> Self {
        Self::Other(-1)
    }
}

impl<'de> Deserialize<'de> for AllocationType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map_or_else(Self::default, Self::from))
    }
}

/// An address MAAS has given out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct IpAddress {
    /// The address; empty for one that is yet to be chosen.
    pub ip: String,
    /// How it was given out.
    pub alloc_type: AllocationType,
    /// The same in words.
    pub alloc_type_name: String,
    /// When, in UTC.
    pub created: String,
    /// The subnet it lies in; nothing outside all subnets.
    pub subnet: Option<Subnet>,
    /// Whose it is.
    pub owner: Option<User>,
    /// The interfaces that have it.
    pub interface_set: Vec<Interface>,
    /// Its address in the API: that of the collection.
    pub resource_uri: String,
}

/// What address to reserve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    /// Any address of this subnet, by CIDR, number or `name:…`.
    pub subnet: Option<String>,
    /// This address.
    pub ip: Option<IpAddr>,
    /// Gives the address this name in DNS too.
    pub hostname: Option<String>,
    /// Binds the address to this MAC address.
    pub mac: Option<String>,
}

/// Calls on IP addresses; see [`Client::ip_addresses`]. Any user may reserve, and release their own.
#[derive(Clone, Copy, Debug)]
pub struct IpAddresses<'a>(&'a Client);

impl Client {
    /// The reserved IP addresses.
    pub fn ip_addresses(&self) -> IpAddresses<'_> {
        IpAddresses(self)
    }
}

impl IpAddresses<'_> {
    /// The user's reservations, or only the given address.
    pub async fn list(self, ip: Option<IpAddr>) -> Result<Vec<IpAddress>, Error> {
        self.0.json(Call::get(Path::new("ipaddresses")).query(Form::new().maybe("ip", ip))).await
    }

    /// All addresses of all users and machines. For administrators.
    pub async fn list_all(self) -> Result<Vec<IpAddress>, Error> {
        self.0.json(Call::get(Path::new("ipaddresses")).query(Form::new().with("all", true))).await
    }

    /// Reserves an address. One that is taken or lies in a reserved range is a conflict; a full subnet is
    /// [`Error::Unavailable`] without a time to try again.
    pub async fn reserve(self, reserve: &Reserve) -> Result<IpAddress, Error> {
        let form = Form::new()
            .maybe("subnet", reserve.subnet.as_ref())
            .maybe("ip", reserve.ip)
            .maybe("hostname", reserve.hostname.as_ref())
            .maybe("mac", reserve.mac.as_ref());
        let subject = reserve.ip.map(|ip| ip.to_string()).or_else(|| reserve.subnet.clone()).unwrap_or_default();
        self.0
            .object(Call::post(Path::new("ipaddresses")).operation("reserve").form(form).about("address", subject).taken_is_not_found())
            .await
    }

    /// Gives an address back. With `force`, for administrators, also what is not the user's.
    pub async fn release(self, ip: IpAddr, force: bool) -> Result<(), Error> {
        let form = Form::new().with("ip", ip);
        let form = if force { form.with("force", true) } else { form };
        self.0.done(Call::post(Path::new("ipaddresses")).operation("release").form(form).about("address", ip)).await
    }
}
