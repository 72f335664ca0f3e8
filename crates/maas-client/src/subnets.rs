//! Subnets and what is free in them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Client, Error, Id, SystemId, Vlan,
    call::{Call, Form, Path},
    ip_addresses::AllocationType,
};

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "as many as MAAS has")]
pub struct Subnet {
    /// Its number.
    pub id: Id<Subnet>,
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Its addresses, such as `10.20.0.0/24`.
    pub cidr: String,
    /// The VLAN it is on.
    pub vlan: Vlan,
    /// The space it belongs to, by name; `undefined` for none.
    pub space: String,
    /// The gateway; empty or nothing if there is none.
    pub gateway_ip: Option<String>,
    /// Name servers for its machines.
    pub dns_servers: Vec<String>,
    /// How reverse names are served: 0 not, 1 enabled, 2 RFC 2317.
    pub rdns_mode: i64,
    /// Whether machines may use MAAS's name server.
    pub allow_dns: bool,
    /// Whether machines may use MAAS's proxy.
    pub allow_proxy: bool,
    /// Whether MAAS looks for neighbours.
    pub active_discovery: bool,
    /// Whether MAAS gives out its addresses.
    pub managed: bool,
    /// Architectures that may not boot from it.
    pub disabled_boot_architectures: Vec<String>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// How a call names a subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubnetName {
    /// By number.
    Id(Id<Subnet>),
    /// By its addresses.
    Cidr(String),
    /// By its name.
    Name(String),
}

impl From<Id<Subnet>> for SubnetName {
    fn from(id: Id<Subnet>) -> Self {
        Self::Id(id)
    }
}

/// A run of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AddressRun {
    /// The first.
    pub start: String,
    /// The last.
    pub end: String,
    /// How many.
    pub num_addresses: u64,
    /// What reserved ones are for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub purpose: Vec<String>,
}

/// How full a subnet is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubnetStatistics {
    /// So many addresses are free.
    pub num_available: u64,
    /// The longest free run.
    pub largest_available: u64,
    /// So many are not free.
    pub num_unavailable: u64,
    /// All.
    pub total_addresses: u64,
    /// The part in use, from 0 to 1.
    pub usage: f64,
    /// The same for people.
    pub usage_string: String,
    /// The part that is free, for people.
    pub available_string: String,
    /// The first address.
    pub first_address: String,
    /// The last address.
    pub last_address: String,
    /// 4 or 6.
    pub ip_version: u8,
}

/// An address in use within a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AddressInUse {
    /// The address.
    pub ip: String,
    /// How it was given out.
    pub alloc_type: AllocationType,
    /// When.
    pub created: String,
    /// When it last changed.
    pub updated: String,
    /// The user whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The machine that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_summary: Option<NodeSummary>,
    /// The names it has in DNS, as MAAS sends them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns_records: Vec<Value>,
    /// The power controllers that have it, as MAAS sends them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bmcs: Vec<Value>,
}

/// The node that has an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct NodeSummary {
    /// Its id.
    pub system_id: SystemId,
    /// What kind of node; 0 is a machine.
    pub node_type: i64,
    /// Its whole name.
    pub fqdn: String,
    /// Its first label.
    pub hostname: String,
    /// Whether it is a container.
    pub is_container: bool,
    /// The interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// What a subnet shall be; what is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetSettings {
    /// Its name.
    pub name: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// The VLAN, by number.
    pub vlan: Option<Id<Vlan>>,
    /// The gateway.
    pub gateway_ip: Option<std::net::IpAddr>,
    /// Name servers for its machines.
    pub dns_servers: Option<Vec<std::net::IpAddr>>,
    /// Whether MAAS gives out its addresses.
    pub managed: Option<bool>,
}

/// Calls on subnets; see [`Client::subnets`].
#[derive(Clone, Copy, Debug)]
pub struct Subnets<'a>(&'a Client);

impl Client {
    /// The subnets.
    pub fn subnets(&self) -> Subnets<'_> {
        Subnets(self)
    }
}

impl SubnetSettings {
    fn form(&self) -> Form {
        let servers = self.dns_servers.as_ref().map(|servers| servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        Form::new()
            .maybe("name", self.name.as_ref())
            .maybe("description", self.description.as_ref())
            .maybe("vlan", self.vlan)
            .maybe("gateway_ip", self.gateway_ip)
            .maybe("dns_servers", servers)
            .maybe("managed", self.managed)
    }
}

fn one(name: &SubnetName) -> Call {
    let (path, text) = match name {
        SubnetName::Id(id) => (Path::new("subnets").item(id), id.to_string()),
        SubnetName::Cidr(cidr) => (Path::new("subnets").items(&format!("cidr:{cidr}")), cidr.clone()),
        SubnetName::Name(name) => (Path::new("subnets").item(format!("name:{name}")), name.clone()),
    };
    Call::get(path).about("subnet", text)
}

impl Subnets<'_> {
    /// All subnets.
    pub async fn list(self) -> Result<Vec<Subnet>, Error> {
        self.0.json(Call::get(Path::new("subnets"))).await
    }

    /// One subnet.
    pub async fn read(self, subnet: &SubnetName) -> Result<Subnet, Error> {
        self.0.object(one(subnet)).await
    }

    /// A new subnet. For administrators.
    pub async fn create(self, cidr: &str, settings: &SubnetSettings) -> Result<Subnet, Error> {
        let form = settings.form().with("cidr", cidr);
        self.0.object(Call::post(Path::new("subnets")).form(form).about("subnet", cidr)).await
    }

    /// Changes a subnet. For administrators. Rests on reading MAAS's source, not on recordings.
    pub async fn update(self, id: Id<Subnet>, settings: &SubnetSettings) -> Result<Subnet, Error> {
        self.0.object(Call::put(Path::new("subnets").item(id)).form(settings.form()).about("subnet", id)).await
    }

    /// Removes a subnet. For administrators. Rests on reading MAAS's source, not on recordings.
    pub async fn delete(self, id: Id<Subnet>) -> Result<(), Error> {
        self.0.done(Call::delete(Path::new("subnets").item(id)).about("subnet", id)).await
    }

    /// Addresses that are not to be had, in runs, and what for.
    pub async fn reserved_ip_ranges(self, subnet: &SubnetName) -> Result<Vec<AddressRun>, Error> {
        self.0.json(one(subnet).operation("reserved_ip_ranges")).await
    }

    /// Free addresses, in runs.
    pub async fn unreserved_ip_ranges(self, subnet: &SubnetName) -> Result<Vec<AddressRun>, Error> {
        self.0.json(one(subnet).operation("unreserved_ip_ranges")).await
    }

    /// How full it is.
    pub async fn statistics(self, subnet: &SubnetName) -> Result<SubnetStatistics, Error> {
        self.0.object(one(subnet).operation("statistics")).await
    }

    /// The addresses in use.
    pub async fn ip_addresses(self, subnet: &SubnetName) -> Result<Vec<AddressInUse>, Error> {
        self.0.json(one(subnet).operation("ip_addresses")).await
    }
}
