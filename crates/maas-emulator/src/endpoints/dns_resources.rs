//! `dnsresources/`: names and their addresses, with MAAS's traps: addresses outlive their names, and an update without addresses keeps
//! one.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::dns_implicit;
use super::dns_records::record_summary;
use super::domains::{find_domain, ttl};
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::form::Form;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::addressing::NewAddress;
use crate::world::dns::{DnsRecord, DnsResource, Domain};
use crate::world::id::Id;
use crate::world::network::{Address, AddressKind};
use crate::world::people::User;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("dnsresources/", &[Operation::get(list), Operation::post(create)]),
    Endpoint::new("dnsresources/{}/", &[Operation::get(read), Operation::put(update), Operation::delete(delete)]),
];

/// A label as MAAS has it: letters, digits and hyphens within.
fn is_label(text: &str) -> bool {
    let inside = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    !text.is_empty() && text.len() <= 64 && inside && !text.starts_with('-') && !text.ends_with('-')
}

/// A name as MAAS splits it: a whole domain, or so many labels and the domain of the rest. A name that does not begin with such labels is
/// more than MAAS can take.
fn split(world: &World, fqdn: &str, labels: usize, is_name: impl Fn(&[&str]) -> bool) -> Result<(String, Id<Domain>), Refusal> {
    let named = |wanted: &str| world.domains.values().find(|domain| domain.name == wanted).map(|domain| domain.id);
    if let Some(domain) = named(fqdn) {
        return Ok(("@".into(), domain));
    }
    let mut parts = fqdn.splitn(labels + 1, '.');
    let name: Vec<&str> = parts.by_ref().take(labels).collect();
    if !is_name(&name) {
        return Err(Refusal::text(500, "cannot unpack non-iterable NoneType object"));
    }
    let domain = parts.next().and_then(named).ok_or_else(|| Refusal::no_match(world, "Domain"))?;
    Ok((name.join("."), domain))
}

/// The name of an address: one label.
fn split_address(world: &World, fqdn: &str) -> Result<(String, Id<Domain>), Refusal> {
    split(world, fqdn, 1, |name| name.iter().all(|label| is_label(label)))
}

/// The name of a service: service, protocol and one label more, so its domain is shorter than others would be.
fn split_service(world: &World, fqdn: &str) -> Result<(String, Id<Domain>), Refusal> {
    split(world, fqdn, 3, |name| name.iter().take(2).all(|label| label.strip_prefix('_').is_some_and(is_label)))
}

/// The name and domain a form means. A full name is looked at only where neither part of it is given.
pub fn name_wished(world: &World, form: &Form) -> Result<Option<(String, Id<Domain>)>, Refusal> {
    let domain = match form.filled("domain") {
        Some(text) => Some(find_domain(world, text).ok_or_else(|| Refusal::no_match(world, "Domain"))?),
        None => None,
    };
    let default = || world.domains.values().find(|domain| domain.is_default).map_or(Id::new(0), |domain| domain.id);
    match (form.filled("name"), domain, form.filled("fqdn")) {
        (Some(name), domain, _) => Ok(Some((name.to_owned(), domain.unwrap_or_else(default)))),
        (None, None, Some(fqdn)) if form.get("rrtype") == Some("SRV") => split_service(world, fqdn).map(Some),
        (None, None, Some(fqdn)) => split_address(world, fqdn).map(Some),
        (None, _, _) => Ok(None),
    }
}

/// The full name.
pub fn fqdn(world: &World, name: &DnsResource) -> String {
    let domain = world.domains.get(name.domain).map_or("", |domain| domain.name.as_str());
    if name.name == "@" { domain.to_owned() } else { format!("{}.{domain}", name.name) }
}

fn render_name(world: &World, name: &DnsResource) -> Value {
    let addresses: Vec<Value> =
        name.addresses.iter().filter_map(|id| world.addresses.get(*id)).map(|address| render::address(world, address)).collect();
    let records: Vec<Value> =
        world.records.values().filter(|record| record.resource == name.id).map(|record| record_summary(record, world)).collect();
    json!({
        "id": name.id,
        "fqdn": fqdn(world, name),
        "address_ttl": name.address_ttl,
        "ip_addresses": addresses,
        "resource_records": records,
        "resource_uri": format!("/MAAS/api/2.0/dnsresources/{}/", name.id),
    })
}

fn list(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let query = &call.query;
    let domain = match query.filled("domain") {
        Some(text) => Some(find_domain(world, text).ok_or_else(|| Refusal::no_match(world, "Domain"))?),
        None => None,
    };
    let rrtype = query.filled("rrtype").map(str::to_ascii_uppercase);
    let all = call.query_flag("all")?.unwrap_or(false);
    // A full name is looked at only where neither part of it is given.
    let (domain, name) = match (domain, query.filled("name"), query.filled("fqdn")) {
        (None, None, Some(fqdn)) => {
            let (name, domain) = if rrtype.as_deref() == Some("SRV") { split_service(world, fqdn) } else { split_address(world, fqdn) }?;
            (Some(domain), Some(name))
        }
        (domain, name, _) => (domain, name.map(str::to_owned)),
    };
    let has_record =
        |name: &DnsResource, kind: &str| world.records.values().any(|record| record.resource == name.id && record.rrtype == kind);
    let mut rows: Vec<&DnsResource> = world
        .names
        .values()
        .filter(|row| domain.is_none_or(|domain| row.domain == domain))
        .filter(|row| name.as_ref().is_none_or(|wanted| row.name == *wanted))
        .filter(|row| rrtype.as_ref().is_none_or(|wanted| has_record(row, wanted)))
        .collect();
    rows.sort_by(|one, other| (one.domain, &one.name, one.id).cmp(&(other.domain, &other.name, other.id)));
    let implicit = |id: Id<Domain>| {
        let found = world.domains.get(id).filter(|_| all);
        found.map(|domain| dns_implicit::rows(world, domain, user, name.as_deref(), rrtype.as_deref())).unwrap_or_default()
    };
    // What nobody made comes before the rows of its domain, and after all rows where the domain has none.
    let mut shown: Vec<Value> = Vec::new();
    for of_one in rows.chunk_by(|one, other| one.domain == other.domain) {
        shown.extend(implicit(of_one[0].domain));
        shown.extend(of_one.iter().map(|name| render_name(world, name)));
    }
    let without_rows = world.domains.values().map(|domain| domain.id).filter(|id| domain.is_none_or(|wanted| wanted == *id));
    for id in without_rows.filter(|id| !rows.iter().any(|row| row.domain == *id)) {
        shown.extend(implicit(id));
    }
    Ok(Answer::json(&Value::Array(shown)))
}

/// The addresses a form names: separated by spaces, nothing else; ids are taken too.
fn addresses_wished(world: &World, form: &Form) -> Result<Option<Vec<IpAddr>>, Refusal> {
    let Some(text) = form.get("ip_addresses") else { return Ok(None) };
    let mut addresses = Vec::new();
    for word in text.split_whitespace() {
        let by_id = word.parse().ok().and_then(|id| world.addresses.get(Id::new(id))).and_then(|address: &Address| address.ip);
        match by_id.or_else(|| word.parse().ok()) {
            Some(ip) => addresses.push(ip),
            None => return Err(Refusal::text(500, format!("failed to detect a valid IP address from '{word}'"))),
        }
    }
    Ok(Some(addresses))
}

/// The row of an address a name points to: one that is there, or a new reservation of the caller.
fn point(world: &mut World, name: Id<DnsResource>, ip: IpAddr, user: Id<User>) {
    let known = world.address_in_use(ip).map(|address| address.id);
    let address = known.unwrap_or_else(|| {
        world.add_address(NewAddress { ip: Some(ip), kind: AddressKind::UserReserved, subnet: None, user: Some(user), interface: None })
    });
    link(world, name, address);
}

fn link(world: &mut World, name: Id<DnsResource>, address: Id<Address>) {
    if let Some(row) = world.names.get_mut(name) {
        row.addresses.push(address);
    }
    if let Some(row) = world.addresses.get_mut(address) {
        row.names.push(name);
    }
    world.dns_changes += 1;
}

/// Takes addresses from a name; the reservations stay.
fn unpoint(world: &mut World, name: Id<DnsResource>) -> Vec<Id<Address>> {
    let addresses = world.names.get_mut(name).map(|row| std::mem::take(&mut row.addresses)).unwrap_or_default();
    for address in &addresses {
        if let Some(row) = world.addresses.get_mut(*address) {
            row.names.retain(|other| *other != name);
        }
    }
    world.dns_changes += 1;
    addresses
}

fn answer(world: &World, id: Id<DnsResource>) -> Reply {
    world.names.get(id).map(|name| Answer::json(&render_name(world, name))).ok_or_else(|| Refusal::no_match(world, "DNSResource"))
}

fn find(world: &World, call: &Call) -> Result<Id<DnsResource>, Refusal> {
    world
        .names
        .values()
        .map(|name| name.id)
        .find(|id| id.to_string() == call.argument(0))
        .ok_or_else(|| Refusal::no_match(world, "DNSResource"))
}

/// Labels as other records have them: services begin with an underscore, and a wildcard may come first.
pub fn is_dotted(text: &str) -> bool {
    const LONGEST: usize = 63;
    let text = text.strip_prefix("*.").unwrap_or(text);
    let inside = |label: &str| label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    text.split('.')
        .all(|label| !label.is_empty() && label.len() <= LONGEST && inside(label) && !label.starts_with('-') && !label.ends_with('-'))
}

fn check_length(name: &str) -> Result<(), Refusal> {
    const LONGEST: usize = 191;
    let length = name.chars().count();
    if length > LONGEST {
        return Err(Refusal::field("name", format!("Ensure this value has at most {LONGEST} characters (it has {length}).")));
    }
    Ok(())
}

/// Names of addresses are one label, the domain itself or its wildcard; a name without addresses may be several labels.
pub fn check_name(name: &str, with_addresses: bool) -> Result<(), Refusal> {
    check_length(name)?;
    let well_formed = if with_addresses { is_label(name) } else { is_dotted(name) };
    if !matches!(name, "@" | "*") && !well_formed {
        return Err(Refusal::field("__all__", format!("Invalid dnsresource name: {name}.")));
    }
    Ok(())
}

fn create(world: &mut World, call: &Call) -> Reply {
    let user = call.admin(world)?;
    let (name, domain) = name_wished(world, &call.form)?.ok_or_else(|| Refusal::field("name", "This field is required."))?;
    check_name(&name, call.form.has("ip_addresses"))?;
    let (addresses, address_ttl) = (addresses_wished(world, &call.form)?.unwrap_or_default(), ttl(call, "address_ttl")?);
    if world.names.values().any(|other| other.name == name && other.domain == domain && other.made_in <= call.began) {
        return Err(Refusal::field("__all__", "Labels must be unique within their zone."));
    }
    let made_in = world.commits;
    let id = world.names.add(None, |id| DnsResource { id, name, domain, address_ttl, addresses: Vec::new(), made_in });
    for ip in addresses {
        point(world, id, ip, user);
    }
    answer(world, id)
}

/// The name a reserved address is to have.
pub struct AddressName {
    name: String,
    domain: Id<Domain>,
    known: Option<Id<DnsResource>>,
}

impl AddressName {
    /// Reads the host name of `ipaddresses/?op=reserve`: what comes after the first dot is the domain, which must be there. As MAAS's
    /// source has it, not recorded: the name itself is not looked at beyond its length, a name that is there gets one more address, and
    /// a name that is there twice is more than MAAS can take.
    pub fn read(world: &World, hostname: &str) -> Result<Self, Refusal> {
        let (name, domain) = match hostname.split_once('.').filter(|(name, _)| !name.is_empty()) {
            Some((name, domain)) => {
                let known = world.domains.values().find(|other| other.name == domain).map(|domain| domain.id);
                (name, known.ok_or_else(|| Refusal::no_match(world, "Domain"))?)
            }
            None => (hostname, world.domains.values().find(|domain| domain.is_default).map_or(Id::new(0), |domain| domain.id)),
        };
        let of_this_name: Vec<Id<DnsResource>> =
            world.names.values().filter(|other| other.name == name && other.domain == domain).map(|other| other.id).collect();
        if of_this_name.len() > 1 {
            let words = format!("get() returned more than one DNSResource -- it returned {}!", of_this_name.len());
            return Err(Refusal::text(500, words));
        }
        check_length(name)?;
        Ok(AddressName { name: name.to_owned(), domain, known: of_this_name.first().copied() })
    }

    /// Gives it to the address.
    pub fn give(self, world: &mut World, address: Id<Address>) {
        let AddressName { name, domain, known } = self;
        let made_in = world.commits;
        let new = |id| DnsResource { id, name, domain, address_ttl: None, addresses: Vec::new(), made_in };
        let id = known.unwrap_or_else(|| world.names.add(None, new));
        link(world, id, address);
    }
}

fn read(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    answer(world, id)
}

fn update(world: &mut World, call: &Call) -> Reply {
    let (id, user) = (call.administered(world, find)?, call.caller()?);
    let (addresses, address_ttl) = (addresses_wished(world, &call.form)?, ttl(call, "address_ttl")?);
    let Some(before) = world.names.get(id) else { return Err(Refusal::no_match(world, "DNSResource")) };
    // Here the domain is a number and a whole name is not read.
    let name = call.form.filled("name").unwrap_or(&before.name).to_owned();
    let domain = match call.form.filled("domain") {
        Some(text) => {
            let known = world.domains.values().find(|domain| domain.id.to_string() == text).map(|domain| domain.id);
            known.ok_or_else(|| Refusal::field("domain", "Select a valid choice. That choice is not one of the available choices."))?
        }
        None => before.domain,
    };
    check_name(&name, addresses.is_some() || !before.addresses.is_empty())?;
    let is_alias = world.records.values().any(|record| record.resource == id && record.rrtype == "CNAME");
    if is_alias && addresses.as_ref().is_some_and(|addresses| !addresses.is_empty()) {
        return Err(Refusal::field("__all__", "Cannot add address: CNAME present."));
    }
    if let Some(row) = world.names.get_mut(id) {
        row.address_ttl = address_ttl.or(row.address_ttl);
        // MAAS looks for others of the same name when one is created, not when one is renamed.
        row.name = name;
        row.domain = domain;
    }
    let before = unpoint(world, id);
    match addresses {
        // MAAS reads its own form back and finds only the last address there.
        None => {
            if let Some(last) = before.last() {
                link(world, id, *last);
            }
        }
        Some(addresses) => {
            for ip in addresses {
                point(world, id, ip, user);
            }
        }
    }
    answer(world, id)
}

fn delete(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, find)?;
    unpoint(world, id);
    remove(world, id);
    Ok(Answer::deleted())
}

/// Removes a name that leads nowhere, with its records.
pub fn remove(world: &mut World, id: Id<DnsResource>) {
    world.names.remove(id);
    let records: Vec<Id<DnsRecord>> = world.records.values().filter(|record| record.resource == id).map(|record| record.id).collect();
    for record in records {
        world.records.remove(record);
    }
}
