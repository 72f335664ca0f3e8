//! DNS resources: a name and its addresses.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id, IpAddress, SystemId,
    call::{Call, Form, Path},
    units::TimeToLive,
};

/// A name in DNS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DnsResource {
    /// Its number; -1 for names that machines have by themselves.
    pub id: Id<DnsResource>,
    /// The whole name.
    pub fqdn: String,
    /// How long the addresses may be kept; nothing for the domain's setting.
    pub address_ttl: Option<TimeToLive>,
    /// The addresses; nothing for names that machines have by themselves.
    pub ip_addresses: Option<Vec<IpAddress>>,
    /// Records other than addresses; for names of machines also those.
    pub resource_records: Vec<ResourceRecord>,
    /// Its address in the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_uri: Option<String>,
}

/// One record of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ResourceRecord {
    /// Such as `A` or `SRV`.
    pub rrtype: String,
    /// What follows the type in a zone file.
    pub rrdata: String,
    /// How long it may be kept.
    pub ttl: Option<TimeToLive>,
    /// The machine whose name it is.
    pub system_id: Option<SystemId>,
    /// What kind of node that is; 0 is a machine.
    pub node_type: Option<i64>,
    /// The user it belongs to, by number.
    pub user_id: Option<i64>,
    /// The record's number, for records of [`crate::DnsRecords`].
    pub dnsdata_id: Option<Id<crate::DnsRecord>>,
    /// The resource's number.
    pub dnsresource_id: Option<Id<DnsResource>>,
}

/// Which DNS resources to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DnsFilter {
    /// Of this whole name.
    pub fqdn: Option<String>,
    /// In this domain. MAAS answers that it is not found if there is no such domain.
    pub domain: Option<String>,
    /// Of this first label.
    pub name: Option<String>,
    /// With records of this type, which is never `A`: addresses do not count.
    pub rrtype: Option<String>,
    /// Also the names that machines have by themselves.
    pub all: bool,
}

/// Calls on DNS resources, a name and its addresses; see [`Client::dns_resources`].
///
/// MAAS has traps here:
///
/// - It splits a whole name at a domain it has, and what stands before it must be one label if the name has addresses: `api.c1.example`
///   needs the domain `c1.example`, even if there is `example`.
/// - Two creates of one name at the same time both succeed. Let one writer write a name, and look again after creating.
/// - Addresses become reservations of the caller and stay reserved after the resource is gone: release them with
///   [`IpAddresses::release`](crate::IpAddresses::release).
/// - Name servers hear of changes seconds later; the answer does not wait for them.
#[derive(Clone, Copy, Debug)]
pub struct DnsResources<'a>(&'a Client);

impl Client {
    /// The DNS resources.
    pub fn dns_resources(&self) -> DnsResources<'_> {
        DnsResources(self)
    }
}

fn one(id: Id<DnsResource>) -> Path {
    Path::new("dnsresources").item(id)
}

/// Space separated: commas make MAAS fail.
fn joined(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" ")
}

impl DnsResources<'_> {
    /// The resources that match.
    pub async fn list(self, filter: &DnsFilter) -> Result<Vec<DnsResource>, Error> {
        let query = Form::new()
            .maybe("fqdn", filter.fqdn.as_ref())
            .maybe("domain", filter.domain.as_ref())
            .maybe("name", filter.name.as_ref())
            .maybe("rrtype", filter.rrtype.as_ref());
        let query = if filter.all { query.with("all", true) } else { query };
        self.0.json(Call::get(Path::new("dnsresources")).query(query)).await
    }

    /// One resource.
    pub async fn read(self, id: Id<DnsResource>) -> Result<DnsResource, Error> {
        self.0.object(Call::get(one(id)).about("DNS resource", id)).await
    }

    /// A new name below a domain MAAS has. For administrators. After [`Error::OutcomeUnknown`] look before creating again: see the traps of
    /// [`DnsResources`].
    pub async fn create(self, fqdn: &str, address_ttl: Option<TimeToLive>, addresses: &[IpAddr]) -> Result<DnsResource, Error> {
        let form = Form::new().with("fqdn", fqdn);
        self.create_from(fqdn, form, address_ttl, addresses).await
    }

    /// A new name by its label, which may be `*` or `@`, and its domain. For administrators.
    pub async fn create_in(
        self,
        domain: &str,
        label: &str,
        address_ttl: Option<TimeToLive>,
        addresses: &[IpAddr],
    ) -> Result<DnsResource, Error> {
        let form = Form::new().with("name", label).with("domain", domain);
        self.create_from(&format!("{label}.{domain}"), form, address_ttl, addresses).await
    }

    async fn create_from(self, name: &str, form: Form, ttl: Option<TimeToLive>, addresses: &[IpAddr]) -> Result<DnsResource, Error> {
        let form = form.maybe("address_ttl", ttl).maybe("ip_addresses", (!addresses.is_empty()).then(|| joined(addresses)));
        self.0.object(Call::post(Path::new("dnsresources")).form(form).about("DNS name", name)).await
    }

    /// Gives the name these addresses and no others. For administrators. Without the whole list MAAS would forget all but one, so the list
    /// is not optional. Sent once: a list that MAAS still writes when the next attempt is answered would undo whatever came after that.
    pub async fn update(self, id: Id<DnsResource>, address_ttl: Option<TimeToLive>, addresses: &[IpAddr]) -> Result<DnsResource, Error> {
        let form = Form::new().maybe("address_ttl", address_ttl).with("ip_addresses", joined(addresses));
        self.0.object(Call::put(one(id)).form(form).once().about("DNS resource", id)).await
    }

    /// Removes a name; its addresses stay reserved. For administrators.
    pub async fn delete(self, id: Id<DnsResource>) -> Result<(), Error> {
        self.0.done(Call::delete(one(id)).about("DNS resource", id)).await
    }
}
