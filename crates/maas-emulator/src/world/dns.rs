//! Domains, names and their records.

use serde::{Deserialize, Serialize};

use super::id::Id;
use super::network::Address;

/// A domain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Domain {
    /// Its id; 0 is the default domain.
    pub id: Id<Domain>,
    /// Its name.
    pub name: String,
    /// Whether MAAS serves it.
    pub authoritative: bool,
    /// Time to live of its records, in seconds.
    pub ttl: Option<u32>,
    /// Whether new machines get it.
    pub is_default: bool,
}

/// A name in a domain. Several of one name may exist: MAAS does not stop concurrent creations.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DnsResource {
    /// Its id.
    pub id: Id<DnsResource>,
    /// The name before the domain; `@` is the domain itself.
    pub name: String,
    /// The domain.
    pub domain: Id<Domain>,
    /// Time to live of its addresses, in seconds.
    pub address_ttl: Option<u32>,
    /// The addresses it points to.
    pub addresses: Vec<Id<Address>>,
    /// The transaction that made it; calls that began earlier do not see it.
    pub made_in: u64,
}

/// A record of a name other than its addresses.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DnsRecord {
    /// Its id.
    pub id: Id<DnsRecord>,
    /// The name it belongs to.
    pub resource: Id<DnsResource>,
    /// `CNAME`, `SRV`, `TXT`, `MX`, `NS` or `SSHFP`.
    pub rrtype: String,
    /// Its data as written.
    pub rrdata: String,
    /// Its own time to live, in seconds.
    pub ttl: Option<u32>,
}
