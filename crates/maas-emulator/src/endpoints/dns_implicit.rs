//! The names nobody made: what `dnsresources/?all=true` shows beside the rows. Machines and their interfaces have such names, and so have
//! the addresses of names once more, and reserved addresses that nothing names. As MAAS's source has it; of machines also as recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};

use super::dns_resources::fqdn;
use crate::dns_server::machine_names;
use crate::world::World;
use crate::world::dns::{DnsResource, Domain};
use crate::world::id::Id;
use crate::world::machine::{Machine, NodeKind};
use crate::world::network::{Address, AddressKind};
use crate::world::people::User;

/// What is known of one full name.
#[derive(Default)]
struct Entry {
    machine: Option<(String, u8)>,
    user: Option<Id<User>>,
    resource: Option<Id<DnsResource>>,
    ttl: Option<u32>,
    addresses: BTreeSet<IpAddr>,
}

/// Names in the order they were first met.
#[derive(Default)]
struct Entries {
    places: BTreeMap<String, usize>,
    rows: Vec<(String, Entry)>,
}

impl Entries {
    fn at(&mut self, name: &str) -> &mut Entry {
        let place = *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.rows.push((name.to_owned(), Entry::default()));
            self.rows.len() - 1
        });
        &mut self.rows[place].1
    }
}

/// The names of a domain that a user may see, of those with this name and type.
pub fn rows(world: &World, domain: &Domain, user: Id<User>, name: Option<&str>, rrtype: Option<&str>) -> Vec<Value> {
    let mut entries = Entries::default();
    of_addresses(world, domain, &mut entries);
    of_machines(world, domain, &mut entries);
    let may_see = |entry: &Entry| world.is_admin(user) || entry.user.is_none_or(|owner| owner == user);
    let shown = entries.rows.iter().filter(|(_, entry)| may_see(entry)).filter_map(|(full, entry)| {
        // Only the first label is kept, so `eth1.node.maas` is shown as `eth1.maas`, and the domain itself without any.
        let relative = full.strip_suffix(domain.name.as_str()).unwrap_or(full);
        let label = relative.split('.').next().unwrap_or_default();
        let records = records(entry, rrtype);
        (name.is_none_or(|wanted| wanted == label) && !records.is_empty()).then(|| {
            json!({
                "id": -1,
                "fqdn": format!("{label}.{}", domain.name),
                "address_ttl": null,
                "ip_addresses": null,
                "resource_records": records,
                "resource_uri": "/MAAS/api/2.0/dnsresources/-1/",
            })
        })
    });
    shown.collect()
}

fn records(entry: &Entry, rrtype: Option<&str>) -> Vec<Value> {
    let kind = |address: &IpAddr| if address.is_ipv6() { "AAAA" } else { "A" };
    let wanted = entry.addresses.iter().filter(|address| rrtype.is_none_or(|wanted| wanted == kind(address)));
    wanted
        .map(|address| {
            json!({
                "system_id": entry.machine.as_ref().map(|(system_id, _)| system_id),
                "node_type": entry.machine.as_ref().map(|(_, node_type)| node_type),
                "user_id": entry.user,
                "dnsresource_id": entry.resource,
                "ttl": entry.ttl,
                "rrtype": kind(address),
                "rrdata": address.to_string(),
                "dnsdata_id": null,
            })
        })
        .collect()
}

/// Addresses that names point to, and in the default domain reserved ones that neither a name nor a machine has.
fn of_addresses(world: &World, domain: &Domain, entries: &mut Entries) {
    for address in world.addresses.values() {
        let Some(ip) = address.ip else { continue };
        let machine = machine_of(world, address);
        for name in address.names.iter().filter_map(|id| world.names.get(*id)).filter(|name| name.domain == domain.id) {
            let entry = entries.at(&fqdn(world, name));
            entry.machine = machine.map(identity).or(entry.machine.take());
            entry.ttl = name.address_ttl.or(entry.ttl);
            entry.user = address.user.or(entry.user);
            entry.resource = Some(name.id);
            entry.addresses.insert(ip);
        }
        if domain.is_default && address.kind == AddressKind::UserReserved && address.names.is_empty() && machine.is_none() {
            let entry = entries.at(&format!("{}.{}", name_of(ip), domain.name));
            entry.user = address.user;
            entry.addresses.insert(ip);
        }
    }
}

/// Names of machines first, then those of their interfaces.
fn of_machines(world: &World, domain: &Domain, entries: &mut Entries) {
    let machines = world.machines.values().filter(|machine| machine.domain == domain.id);
    let mut names: Vec<(bool, String, String, IpAddr, &Machine)> = machines
        .flat_map(|machine| {
            let own = world.fqdn(machine);
            machine_names::of(world, machine).into_iter().map(move |(name, ip)| (name != own, own.clone(), name, ip, machine))
        })
        .collect();
    names.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    for (of_interface, _, name, ip, machine) in names {
        let reserved_by = || world.address_in_use(ip).and_then(|address| address.user);
        let entry = entries.at(&name);
        entry.machine = Some(identity(machine));
        entry.user = if of_interface { machine.owner } else { reserved_by() }.or(entry.user);
        entry.ttl = None;
        entry.addresses.insert(ip);
    }
}

fn machine_of<'a>(world: &'a World, address: &Address) -> Option<&'a Machine> {
    let interfaces = address.interfaces.iter().filter_map(|id| world.interfaces.get(*id));
    interfaces.into_iter().find_map(|interface| world.machines.get(interface.machine))
}

fn identity(machine: &Machine) -> (String, u8) {
    (machine.system_id.clone(), if machine.kind == NodeKind::Machine { 0 } else { 2 })
}

/// The name an address has of itself.
fn name_of(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string().replace('.', "-"),
        IpAddr::V6(ip) => ip.segments().map(|part| format!("{part:04x}")).join("-"),
    }
}
