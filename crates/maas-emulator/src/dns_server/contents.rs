//! Builds the zones from the world, as MAAS writes its zone files: names of machines, names people made, records, reverse names.
//!
//! How MAAS reads a target without a final dot is not recorded: here one with a dot in it is whole, and one without lies in the domain.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hickory_proto::rr::rdata::{CNAME, MX, NS, PTR, SOA, SRV};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use hickory_proto::serialize::binary::BinEncodable as _;

use super::machine_names;
use super::reverse;
use super::zones::{Zone, Zones, absolute, address_record};
use crate::world::World;
use crate::world::dns::{DnsRecord, Domain};
use crate::world::id::Id;
use crate::world::machine::NodeKind;

/// Time to live when neither the name nor its domain nor the settings give one, in seconds.
const DEFAULT_TTL: u32 = 30;
/// Refresh, retry and expiry of MAAS's zones, in seconds.
const REFRESH: i32 = 600;
const RETRY: i32 = 1800;
const EXPIRE: i32 = 604_800;
/// Who is responsible for a zone of MAAS.
const RESPONSIBLE: &str = "nobody.example.com";
/// The mode of a subnet whose reverse zone is somebody else's.
const NO_REVERSE_ZONE: u8 = 0;

/// The zones as the world is now.
pub fn build(world: &World) -> Zones {
    let mut building = Building { zones: Zones::default(), world, pointers: BTreeMap::new() };
    building.forward_zones();
    building.reverse_zones();
    building.machines();
    building.resources();
    building.records();
    building.name_server();
    building.pointers();
    building.zones
}

struct Building<'a> {
    zones: Zones,
    world: &'a World,
    /// The names of every address, with their time to live.
    pointers: BTreeMap<IpAddr, Vec<(Name, u32)>>,
}

impl Building<'_> {
    fn forward_zones(&mut self) {
        for domain in self.world.domains.values().filter(|domain| domain.authoritative) {
            let Some(origin) = absolute(&domain.name) else {
                tracing::warn!(domain = domain.name, "the domain does not fit a packet and is not served");
                continue;
            };
            self.add_zone(origin.clone(), origin, self.ttl(None, domain.id));
        }
    }

    fn reverse_zones(&mut self) {
        let Some((default, server)) = self.default_domain() else { return };
        let ttl = self.ttl(None, default);
        for subnet in self.world.subnets.values().filter(|subnet| subnet.rdns_mode != NO_REVERSE_ZONE) {
            for origin in reverse::origins(subnet.cidr.trunc()) {
                self.add_zone(origin, server.clone(), ttl);
            }
        }
    }

    fn add_zone(&mut self, origin: Name, primary: Name, ttl: u32) {
        let (Some((_, server)), Some(responsible)) = (self.default_domain(), absolute(RESPONSIBLE)) else { return };
        // The serial only has to change with the contents.
        let serial = u32::try_from(self.world.dns_changes % u64::from(u32::MAX)).unwrap_or(0) + 1;
        let soa = SOA::new(primary, responsible, serial, REFRESH, RETRY, EXPIRE, ttl);
        self.zones.add(Zone::new(
            Record::from_rdata(origin.clone(), ttl, RData::SOA(soa)),
            Record::from_rdata(origin, ttl, RData::NS(NS(server))),
        ));
    }

    /// The default domain, whose own name is that of the name server.
    fn default_domain(&self) -> Option<(Id<Domain>, Name)> {
        let domains = &self.world.domains;
        let domain = domains.values().find(|domain| domain.is_default).or_else(|| domains.values().next())?;
        Some((domain.id, absolute(&domain.name)?))
    }

    fn ttl(&self, own: Option<u32>, domain: Id<Domain>) -> u32 {
        own.or_else(|| self.world.domains.get(domain)?.ttl)
            .or_else(|| self.world.setting("default_dns_ttl").parse().ok())
            .unwrap_or(DEFAULT_TTL)
    }

    fn machines(&mut self) {
        for machine in self.world.machines.values() {
            let ttl = self.ttl(machine.address_ttl, machine.domain);
            for (name, address) in machine_names::of(self.world, machine) {
                self.point(absolute(&name), ttl, address);
            }
        }
    }

    fn resources(&mut self) {
        for resource in self.world.names.values() {
            let ttl = self.ttl(resource.address_ttl, resource.domain);
            let name = self.full_name(&resource.name, resource.domain);
            for address in resource.addresses.iter().filter_map(|id| self.world.addresses.get(*id)?.ip) {
                self.point(name.clone(), ttl, address);
            }
        }
    }

    /// Gives a name an address and the address that name. A wildcard is no name an address could have.
    fn point(&mut self, name: Option<Name>, ttl: u32, address: IpAddr) {
        let Some(name) = name else { return };
        if !name.is_wildcard() {
            self.pointers.entry(address).or_default().push((name.clone(), ttl));
        }
        self.zones.add_record(address_record(name, ttl, address));
    }

    fn records(&mut self) {
        for record in self.world.records.values() {
            let Some(resource) = self.world.names.get(record.resource) else { continue };
            let name = self.full_name(&resource.name, resource.domain);
            let origin = self.world.domains.get(resource.domain).and_then(|domain| absolute(&domain.name));
            let (Some(name), Some(origin)) = (name, origin) else { continue };
            let Some(data) = record_data(record, &origin) else {
                tracing::warn!(%name, kind = record.rrtype, data = record.rrdata, "the record cannot be read and is not served");
                continue;
            };
            self.zones.add_record(Record::from_rdata(name, self.ttl(record.ttl, resource.domain), data));
        }
    }

    /// The name server is called as the default domain, so that has MAAS's own addresses unless a person gave it others.
    fn name_server(&mut self) {
        let Some((domain, name)) = self.default_domain() else { return };
        if !self.zones.addresses(&name).is_empty() {
            return;
        }
        let ttl = self.ttl(None, domain);
        for rack in self.world.machines.values().filter(|machine| machine.kind == NodeKind::RackController) {
            for (_, address) in machine_names::of(self.world, rack) {
                self.zones.add_record(address_record(name.clone(), ttl, address));
            }
        }
    }

    fn pointers(&mut self) {
        for (address, names) in std::mem::take(&mut self.pointers) {
            for (name, ttl) in names {
                self.zones.add_record(Record::from_rdata(reverse::name(address), ttl, RData::PTR(PTR(name))));
            }
        }
    }

    fn full_name(&self, name: &str, domain: Id<Domain>) -> Option<Name> {
        let domain = &self.world.domains.get(domain)?.name;
        if name == "@" { absolute(domain) } else { absolute(&format!("{name}.{domain}")) }
    }
}

/// The data of a record as written; none when it cannot be read or does not fit a packet.
fn record_data(record: &DnsRecord, origin: &Name) -> Option<RData> {
    let kind = match record.rrtype.as_str() {
        "CNAME" => RecordType::CNAME,
        "MX" => RecordType::MX,
        "NS" => RecordType::NS,
        "SRV" => RecordType::SRV,
        "SSHFP" => RecordType::SSHFP,
        "TXT" => RecordType::TXT,
        "HTTPS" => RecordType::HTTPS,
        _ => return None,
    };
    let data = match RData::try_from_str(kind, &record.rrdata).ok()? {
        RData::CNAME(CNAME(name)) => RData::CNAME(CNAME(target(name, origin)?)),
        RData::NS(NS(name)) => RData::NS(NS(target(name, origin)?)),
        RData::MX(mail) => RData::MX(MX::new(mail.preference, target(mail.exchange, origin)?)),
        RData::SRV(server) => RData::SRV(SRV::new(server.priority, server.weight, server.port, target(server.target, origin)?)),
        other => other,
    };
    data.to_bytes().is_ok().then_some(data)
}

fn target(mut name: Name, origin: &Name) -> Option<Name> {
    if name.is_fqdn() {
        return Some(name);
    }
    if name.iter().count() < 2 {
        return name.append_domain(origin).ok();
    }
    name.set_fqdn(true);
    Some(name)
}
