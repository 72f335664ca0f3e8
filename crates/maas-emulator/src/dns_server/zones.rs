//! Zones and what is found in them: names, wildcards, delegations. `contents` fills them from the world, `answer` asks them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{Name, RData, Record, RecordType};

/// Everything the server is authoritative for at one moment.
#[derive(Debug, Clone, Default)]
pub struct Zones {
    zones: BTreeMap<Name, Zone>,
}

/// One zone.
#[derive(Debug, Clone)]
pub struct Zone {
    origin: Name,
    soa: Record,
    /// Every name with its records; names that only have names below them are there without any.
    names: BTreeMap<Name, Vec<Record>>,
}

/// What a zone says to a name.
#[derive(Debug)]
pub enum Found<'a> {
    /// The name exists, perhaps by a wildcard; its records, perhaps none.
    Name(&'a [Record]),
    /// The name belongs to the servers of these NS records.
    Elsewhere(Vec<&'a Record>),
    /// The zone has no such name.
    Nothing,
}

impl Zones {
    /// Adds a zone; one of the same origin stays.
    pub fn add(&mut self, zone: Zone) {
        self.zones.entry(zone.origin.clone()).or_insert(zone);
    }

    /// The names of all zones, without a final dot.
    pub fn origins(&self) -> Vec<String> {
        self.zones.keys().map(|origin| origin.to_ascii().trim_end_matches('.').to_owned()).collect()
    }

    /// The zone a name lies in, the most specific one.
    pub fn zone_of(&self, name: &Name) -> Option<&Zone> {
        self.zones.get(&self.origin_of(name)?)
    }

    /// Adds a record where it belongs; one outside all zones is nobody's.
    pub fn add_record(&mut self, record: Record) {
        let origin = self.origin_of(&record.name);
        if let Some(zone) = origin.and_then(|origin| self.zones.get_mut(&origin)) {
            zone.add(record);
        }
    }

    /// The addresses of a name, for the additional section; also of name servers below the end of a zone, which only it can tell.
    pub fn addresses(&self, name: &Name) -> Vec<Record> {
        let Some(zone) = self.zone_of(name) else { return Vec::new() };
        let records = match (zone.names.get(name).map(Vec::as_slice), zone.find(name)) {
            (Some(records), _) | (None, Found::Name(records)) => records,
            (None, Found::Elsewhere(_) | Found::Nothing) => return Vec::new(),
        };
        records.iter().filter(|record| record.record_type().is_ip_addr()).map(|record| renamed(record, name)).collect()
    }

    fn origin_of(&self, name: &Name) -> Option<Name> {
        ancestors(name).find(|ancestor| self.zones.contains_key(ancestor))
    }
}

impl Zone {
    /// A zone with its SOA and name server.
    pub fn new(soa: Record, name_server: Record) -> Self {
        let origin = soa.name.clone();
        let names = BTreeMap::from([(origin.clone(), vec![soa.clone(), name_server])]);
        Zone { origin, soa, names }
    }

    /// The SOA as answers without data carry it: it says how long "no" may be remembered.
    pub fn no(&self) -> Record {
        let mut soa = self.soa.clone();
        if let RData::SOA(data) = &soa.data {
            soa.ttl = soa.ttl.min(data.minimum);
        }
        soa
    }

    /// What there is at a name of this zone.
    pub fn find(&self, name: &Name) -> Found<'_> {
        let below_origin: Vec<Name> = ancestors(name).take_while(|ancestor| *ancestor != self.origin).collect();
        for ancestor in below_origin.iter().rev() {
            let servers: Vec<&Record> =
                self.names.get(ancestor).into_iter().flatten().filter(|record| record.record_type() == RecordType::NS).collect();
            if !servers.is_empty() {
                return Found::Elsewhere(servers);
            }
        }
        if let Some(records) = self.names.get(name) {
            return Found::Name(records);
        }
        let encloser = below_origin.into_iter().skip(1).find(|ancestor| self.names.contains_key(ancestor));
        let wildcard = encloser.unwrap_or_else(|| self.origin.clone()).prepend_label("*").ok();
        wildcard.and_then(|wildcard| self.names.get(&wildcard)).map_or(Found::Nothing, |records| Found::Name(records))
    }

    /// Adds a record once; all records of a name and type live as long as the shortest of them.
    fn add(&mut self, mut record: Record) {
        for ancestor in ancestors(&record.name).skip(1).take_while(|ancestor| *ancestor != self.origin) {
            self.names.entry(ancestor).or_default();
        }
        let records = self.names.entry(record.name.clone()).or_default();
        let kind = record.record_type();
        let mut is_new = true;
        for other in records.iter_mut().filter(|other| other.record_type() == kind) {
            record.ttl = record.ttl.min(other.ttl);
            is_new &= other.data != record.data;
        }
        for other in records.iter_mut().filter(|other| other.record_type() == kind) {
            other.ttl = record.ttl;
        }
        if is_new {
            records.push(record);
        }
    }
}

/// A name and all it lies in, up to the root.
fn ancestors(name: &Name) -> impl Iterator<Item = Name> {
    std::iter::successors(Some(name.clone()), |name| (!name.is_root()).then(|| name.base_name()))
}

/// A record under another name: what a wildcard gives.
pub fn renamed(record: &Record, name: &Name) -> Record {
    let mut record = record.clone();
    record.name = name.clone();
    record
}

/// The record that gives a name an address.
pub fn address_record(name: Name, ttl: u32, address: IpAddr) -> Record {
    let data = match address {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    };
    Record::from_rdata(name, ttl, data)
}

/// A name from text, whatever its labels hold; none when it is too long for a packet.
pub fn absolute(text: &str) -> Option<Name> {
    Name::from_labels(text.trim_end_matches('.').split('.').map(str::as_bytes)).ok()
}
