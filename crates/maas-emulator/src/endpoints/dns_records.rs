//! `dnsresourcerecords/`: records of names other than their addresses.

use serde_json::{Value, json};

use super::dns_resources::{check_name, fqdn, is_dotted, name_wished};
use super::domains::{find_domain, ttl};
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::world::World;
use crate::world::dns::{DnsRecord, DnsResource};
use crate::world::id::Id;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("dnsresourcerecords/", &[Operation::get(list_records), Operation::post(create_record)]),
    Endpoint::new(
        "dnsresourcerecords/{}/",
        &[Operation::get(read_record), Operation::put(update_record), Operation::delete(delete_record)],
    ),
];

/// A record as MAAS shows it.
pub fn record_summary(record: &DnsRecord, world: &World) -> Value {
    json!({
        "id": record.id,
        "fqdn": world.names.get(record.resource).map(|name| fqdn(world, name)),
        "rrtype": record.rrtype,
        "rrdata": record.rrdata,
        "ttl": record.ttl,
        "resource_uri": format!("/MAAS/api/2.0/dnsresourcerecords/{}/", record.id),
    })
}

fn list_records(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let query = &call.query;
    let domain = match query.filled("domain") {
        Some(text) => Some(find_domain(world, text).ok_or_else(|| Refusal::no_match(world, "Domain"))?),
        None => None,
    };
    let mut rows: Vec<(&DnsResource, &DnsRecord)> = world
        .records
        .values()
        .filter_map(|record| Some((world.names.get(record.resource)?, record)))
        .filter(|(name, _)| domain.is_none_or(|domain| name.domain == domain))
        .filter(|(name, _)| query.filled("name").is_none_or(|wanted| name.name == wanted))
        .filter(|(name, _)| query.filled("fqdn").is_none_or(|wanted| fqdn(world, name) == wanted))
        .filter(|(_, record)| query.filled("rrtype").is_none_or(|wanted| record.rrtype == wanted))
        .collect();
    rows.sort_by(|one, other| (one.0.domain, &one.0.name, one.1.id).cmp(&(other.0.domain, &other.0.name, other.1.id)));
    Ok(Answer::json(&rows.into_iter().map(|(_, record)| record_summary(record, world)).collect()))
}

const RECORD_TYPES: [&str; 7] = ["CNAME", "MX", "NS", "SRV", "SSHFP", "TXT", "HTTPS"];

fn create_record(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let need = |key: &str| call.form.filled(key).map(str::to_owned).ok_or_else(|| Refusal::text(400, format!("{key} must be provided.")));
    let (rrtype, rrdata) = (need("rrtype")?.to_ascii_uppercase(), need("rrdata")?);
    if !RECORD_TYPES.contains(&rrtype.as_str()) {
        return Err(Refusal::field("rrtype", format!("'{rrtype}' is not one of the supported resource types.")));
    }
    let ttl = ttl(call, "ttl")?;
    let (name, domain) =
        name_wished(world, &call.form)?.ok_or_else(|| Refusal::text(400, "Either name and domain (or fqdn) must be specified."))?;
    check_name(&name, false)?;
    check_data(&rrtype, &rrdata)?;
    let resource = world.names.values().find(|other| other.name == name && other.domain == domain).map(|other| other.id);
    if let Some(resource) = resource {
        let has_addresses = world.names.get(resource).is_some_and(|row| !row.addresses.is_empty());
        let of_name = || world.records.values().filter(|record| record.resource == resource);
        let (is_alias, is_other) =
            (of_name().any(|record| record.rrtype == "CNAME"), has_addresses || of_name().any(|record| record.rrtype != "CNAME"));
        if rrtype == "CNAME" && is_alias {
            return Err(Refusal::field("__all__", "Only one CNAME can be associated with a name."));
        }
        if (rrtype == "CNAME" && is_other) || (rrtype != "CNAME" && is_alias) {
            return Err(Refusal::field("__all__", "CNAME records for a name cannot coexist with non-CNAME records."));
        }
    }
    let made_in = world.commits;
    let resource = resource
        .unwrap_or_else(|| world.names.add(None, |id| DnsResource { id, name, domain, address_ttl: None, addresses: Vec::new(), made_in }));
    let id = world.records.add(None, |id| DnsRecord { id, resource, rrtype, rrdata, ttl });
    world.dns_changes += 1;
    answer_record(world, id)
}

/// Whether data are of the form their type has.
fn check_data(rrtype: &str, data: &str) -> Result<(), Refusal> {
    let words: Vec<&str> = data.split_whitespace().collect();
    let number = |text: &str| text.parse::<u16>().is_ok();
    let server = |text: &str| text == "." || is_dotted(text.strip_suffix('.').unwrap_or(text));
    let wrong = match (rrtype, &words[..]) {
        ("CNAME" | "NS", [target]) if server(target) => None,
        ("MX", [preference, target]) if number(preference) && server(target) => None,
        ("SRV", [priority, weight, port, target]) if [priority, weight, port].into_iter().all(|text| number(text)) && server(target) => {
            None
        }
        ("SSHFP", [algorithm, kind, print]) if number(algorithm) && number(kind) && print.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            None
        }
        ("CNAME", _) => Some("Invalid CNAME: Should be '<server>'."),
        ("NS", _) => Some("Invalid NS: Should be '<server>'."),
        ("MX", _) => Some("Invalid parameters for MX record: Should be '<preference> <server>'. Range for preference is 0-65535."),
        ("SRV", _) => {
            Some("Invalid parameters for SRV record: Should be '<priority> <weight> <port> <server>'. Range for each is 0-65535.")
        }
        ("SSHFP", _) => Some("Invalid parameters for SSHFP record: Should be '<algorithm> <fptype> <fingerprint>'."),
        _ => None,
    };
    wrong.map_or(Ok(()), |words| Err(Refusal::field("__all__", words)))
}

fn answer_record(world: &World, id: Id<DnsRecord>) -> Reply {
    world.records.get(id).map(|record| Answer::json(&record_summary(record, world))).ok_or_else(|| Refusal::no_match(world, "DNSData"))
}

fn find_record(world: &World, call: &Call) -> Result<Id<DnsRecord>, Refusal> {
    world
        .records
        .values()
        .map(|record| record.id)
        .find(|id| id.to_string() == call.argument(0))
        .ok_or_else(|| Refusal::no_match(world, "DNSData"))
}

fn read_record(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find_record(world, call)?;
    answer_record(world, id)
}

fn update_record(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, find_record)?;
    let ttl = ttl(call, "ttl")?;
    if let (Some(record), Some(data)) = (world.records.get(id), call.form.filled("rrdata")) {
        check_data(&record.rrtype, data)?;
    }
    if let Some(record) = world.records.get_mut(id) {
        if let Some(data) = call.form.filled("rrdata") {
            data.clone_into(&mut record.rrdata);
        }
        record.ttl = ttl.or(record.ttl);
    }
    world.dns_changes += 1;
    answer_record(world, id)
}

/// The last record takes its name along when that has no addresses.
fn delete_record(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, find_record)?;
    let resource = world.records.remove(id).map(|record| record.resource);
    if let Some(resource) = resource {
        let bare = world.names.get(resource).is_some_and(|name| name.addresses.is_empty())
            && !world.records.values().any(|record| record.resource == resource);
        if bare {
            world.names.remove(resource);
        }
    }
    world.dns_changes += 1;
    Ok(Answer::deleted())
}
