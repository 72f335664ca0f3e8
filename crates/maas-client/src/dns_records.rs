//! DNS records other than addresses: CNAME, SRV, TXT, MX, NS, SSHFP.

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id,
    call::{Call, Form, Path},
    units::TimeToLive,
};

/// A DNS record other than an address: CNAME, SRV, TXT, MX, NS or SSHFP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DnsRecord {
    /// Its number.
    pub id: Id<DnsRecord>,
    /// The whole name.
    pub fqdn: String,
    /// Such as `SRV`.
    pub rrtype: String,
    /// What follows the type in a zone file.
    pub rrdata: String,
    /// How long it may be kept; nothing for the domain's setting.
    pub ttl: Option<TimeToLive>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// A record to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewDnsRecord {
    /// The whole name.
    pub fqdn: String,
    /// Such as `SRV`.
    pub rrtype: String,
    /// What follows the type in a zone file.
    pub rrdata: String,
    /// How long it may be kept.
    pub ttl: Option<TimeToLive>,
}

/// Calls on DNS records; see [`Client::dns_records`].
#[derive(Clone, Copy, Debug)]
pub struct DnsRecords<'a>(&'a Client);

impl Client {
    /// The DNS records.
    pub fn dns_records(&self) -> DnsRecords<'_> {
        DnsRecords(self)
    }
}

fn one(id: Id<DnsRecord>) -> Path {
    Path::new("dnsresourcerecords").item(id)
}

impl DnsRecords<'_> {
    /// All records, of one domain if it is given.
    pub async fn list(self, domain: Option<&str>) -> Result<Vec<DnsRecord>, Error> {
        self.0.json(Call::get(Path::new("dnsresourcerecords")).query(Form::new().maybe("domain", domain))).await
    }

    /// One record.
    pub async fn read(self, id: Id<DnsRecord>) -> Result<DnsRecord, Error> {
        self.0.object(Call::get(one(id)).about("DNS record", id)).await
    }

    /// A new record. For administrators.
    pub async fn create(self, record: &NewDnsRecord) -> Result<DnsRecord, Error> {
        let form =
            Form::new().with("fqdn", &record.fqdn).with("rrtype", &record.rrtype).with("rrdata", &record.rrdata).maybe("ttl", record.ttl);
        self.0.object(Call::post(Path::new("dnsresourcerecords")).form(form).about("DNS name", &record.fqdn)).await
    }

    /// Changes what a record says. For administrators. Rests on reading MAAS's source, not on recordings.
    pub async fn update(self, id: Id<DnsRecord>, rrdata: Option<&str>, ttl: Option<TimeToLive>) -> Result<DnsRecord, Error> {
        let form = Form::new().maybe("rrdata", rrdata).maybe("ttl", ttl);
        self.0.object(Call::put(one(id)).form(form).about("DNS record", id)).await
    }

    /// Removes a record. For administrators. Rests on reading MAAS's source, not on recordings.
    pub async fn delete(self, id: Id<DnsRecord>) -> Result<(), Error> {
        self.0.done(Call::delete(one(id)).about("DNS record", id)).await
    }
}
