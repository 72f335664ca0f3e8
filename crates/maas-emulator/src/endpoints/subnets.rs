//! `subnets/`: the networks and how full they are.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use crate::fleet::RangeKind;
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::addressing::{address, number};
use crate::world::id::Id;
use crate::world::machine::NodeKind;
use crate::world::network::{Address, Gateway, Subnet, Vlan};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("subnets/", &[Operation::get(list), Operation::post(create)]),
    Endpoint::new(
        "subnets/{}/",
        &[
            Operation::get(read),
            Operation::get_op("reserved_ip_ranges", reserved_ranges),
            Operation::get_op("unreserved_ip_ranges", unreserved_ranges),
            Operation::get_op("statistics", statistics),
            Operation::get_op("ip_addresses", ip_addresses),
            Operation::put(update),
            Operation::delete(delete),
        ],
    ),
];

fn find(world: &World, call: &Call) -> Result<Id<Subnet>, Refusal> {
    world.subnet_specified(call.argument(0)).ok_or_else(|| Refusal::no_match(world, "Subnet"))
}

fn answer(world: &World, id: Id<Subnet>) -> Reply {
    world.subnets.get(id).map(|subnet| Answer::json(&render::subnet(world, subnet))).ok_or_else(|| Refusal::no_match(world, "Subnet"))
}

fn list(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    Ok(Answer::json(&world.subnets.values().map(|subnet| render::subnet(world, subnet)).collect()))
}

fn read(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    answer(world, id)
}

fn gateway(call: &Call) -> Result<Option<Gateway>, Refusal> {
    match call.form.get("gateway_ip") {
        None => Ok(None),
        Some("") => Ok(Some(Gateway::Blank)),
        Some(text) => text
            .parse()
            .map(|ip| Some(Gateway::Address(ip)))
            .map_err(|_| Refusal::field("gateway_ip", "Enter a valid IPv4 or IPv6 address.")),
    }
}

fn dns_servers(call: &Call) -> Option<Vec<String>> {
    call.form.has("dns_servers").then(|| {
        call.form.all("dns_servers").flat_map(|text| text.split([',', ' '])).filter(|text| !text.is_empty()).map(str::to_owned).collect()
    })
}

fn refuse_outside(cidr: IpNet, gateway: Gateway) -> Result<(), Refusal> {
    match gateway.address().filter(|ip| !cidr.contains(ip)) {
        Some(_) => Err(Refusal::field("gateway_ip", "Gateway IP must be within CIDR range.")),
        None => Ok(()),
    }
}

const NO_CHOICE: &str = "Select a valid choice. That choice is not one of the available choices.";

fn vlan_wished(world: &World, call: &Call) -> Result<Option<Id<Vlan>>, Refusal> {
    let Some(text) = call.form.filled("vlan") else { return Ok(None) };
    let found = world.vlans.values().find(|vlan| vlan.id.to_string() == text);
    found.map(|vlan| Some(vlan.id)).ok_or_else(|| Refusal::field("vlan", NO_CHOICE))
}

/// Whether there is a reverse zone: none, one, or one that glues small networks.
fn reverse_zones(call: &Call) -> Result<Option<u8>, Refusal> {
    let Some(text) = call.form.filled("rdns_mode") else { return Ok(None) };
    match text {
        "0" => Ok(Some(0)),
        "1" => Ok(Some(1)),
        "2" => Ok(Some(2)),
        other => Err(Refusal::field("rdns_mode", format!("Select a valid choice. {other} is not one of the available choices."))),
    }
}

/// On a VLAN by id; the untagged one of the first fabric unless one is given.
fn create(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let text = call.form.filled("cidr").ok_or_else(|| Refusal::field("cidr", "This field is required."))?;
    let cidr: IpNet = text.parse().map_err(|_| Refusal::field("cidr", "Required format: <network>/<prefixlen>."))?;
    let cidr = cidr.trunc();
    if world.subnets.values().any(|subnet| subnet.cidr == cidr) {
        return Err(Refusal::field("cidr", "Subnet with this Cidr already exists."));
    }
    let first = world.fabrics.values().next();
    let untagged = || first.and_then(|fabric| world.vlans.values().find(|vlan| vlan.fabric == fabric.id && vlan.vid == 0));
    let vlan = match vlan_wished(world, call)? {
        Some(vlan) => vlan,
        None => untagged().map(|vlan| vlan.id).ok_or_else(|| Refusal::field("vlan", NO_CHOICE))?,
    };
    let gateway = gateway(call)?.unwrap_or(Gateway::Blank);
    refuse_outside(cidr, gateway)?;
    let name = call.form.filled("name").map_or_else(|| cidr.to_string(), str::to_owned);
    let description = call.form.get("description").unwrap_or("").to_owned();
    let managed = call.flag("managed")?.unwrap_or(true);
    let (servers, rdns_mode) = (dns_servers(call).unwrap_or_default(), reverse_zones(call)?.unwrap_or(2));
    let id = world.subnets.add(None, |id| Subnet {
        id,
        name,
        description,
        cidr,
        gateway,
        dns_servers: servers,
        vlan,
        managed,
        allow_dns: true,
        allow_proxy: true,
        active_discovery: false,
        rdns_mode,
    });
    answer(world, id)
}

fn update(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, find)?;
    let (gateway, servers, managed) = (gateway(call)?, dns_servers(call), call.flag("managed")?);
    let (vlan, rdns_mode) = (vlan_wished(world, call)?, reverse_zones(call)?);
    if let (Some(subnet), Some(gateway)) = (world.subnets.get(id), gateway) {
        refuse_outside(subnet.cidr, gateway)?;
    }
    if let Some(subnet) = world.subnets.get_mut(id) {
        if let Some(name) = call.form.filled("name") {
            name.clone_into(&mut subnet.name);
        }
        if let Some(description) = call.form.get("description") {
            description.clone_into(&mut subnet.description);
        }
        subnet.gateway = gateway.unwrap_or(subnet.gateway);
        subnet.dns_servers = servers.unwrap_or_else(|| subnet.dns_servers.clone());
        subnet.managed = managed.unwrap_or(subnet.managed);
        subnet.vlan = vlan.unwrap_or(subnet.vlan);
        subnet.rdns_mode = rdns_mode.unwrap_or(subnet.rdns_mode);
    }
    world.dns_changes += 1;
    answer(world, id)
}

fn delete(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, find)?;
    let served = world.subnets.get(id).and_then(|subnet| world.vlans.get(subnet.vlan)).is_some_and(|vlan| vlan.dhcp_on);
    if served && world.ranges.values().any(|range| range.subnet == id && range.kind == RangeKind::Dynamic) {
        let words =
            "Cannot delete a subnet that is actively servicing a dynamic IP range. (Delete the dynamic range or disable DHCP first.)";
        return Err(Refusal::text(400, words));
    }
    let inside: Vec<Id<Address>> =
        world.addresses.values().filter(|address| address.subnet == Some(id)).map(|address| address.id).collect();
    for address in inside {
        world.remove_address(address);
    }
    let ranges: Vec<_> = world.ranges.values().filter(|range| range.subnet == id).map(|range| range.id).collect();
    for range in ranges {
        world.ranges.remove(range);
    }
    world.subnets.remove(id);
    Ok(Answer::deleted())
}

/// A stretch and why it is taken.
type Taken = (u128, u128, Vec<&'static str>);

/// What is taken and why: stretches that overlap become one with all reasons, neighbours with the same reasons become one.
fn taken(world: &World, subnet: &Subnet) -> Vec<Taken> {
    let mut pieces: Vec<Taken> = Vec::new();
    let single = |ip: IpAddr, why: &'static str| (number(ip), number(ip), vec![why]);
    pieces.extend(subnet.gateway.address().map(|ip| single(ip, "gateway-ip")));
    let servers = subnet.dns_servers.iter().filter_map(|text| text.parse().ok()).filter(|ip: &IpAddr| subnet.cidr.contains(ip));
    pieces.extend(servers.map(|ip| single(ip, "dns-server")));
    let of_subnet = world.addresses.values().filter(|address| address.subnet == Some(subnet.id));
    pieces.extend(of_subnet.filter_map(|address| address.ip).map(|ip| single(ip, "assigned-ip")));
    pieces.extend(world.ranges.values().filter(|range| range.subnet == subnet.id).map(|range| {
        let why = match range.kind {
            RangeKind::Dynamic => "dynamic",
            RangeKind::Reserved => "reserved",
        };
        (number(range.start), number(range.end), vec![why])
    }));
    pieces.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
    let mut merged: Vec<Taken> = Vec::new();
    for (start, end, why) in pieces {
        match merged.last_mut() {
            Some(last) if start <= last.1 => {
                last.1 = last.1.max(end);
                last.2.extend(why);
                last.2.sort_unstable();
                last.2.dedup();
            }
            _ => merged.push((start, end, why)),
        }
    }
    let mut joined: Vec<Taken> = Vec::new();
    for (start, end, why) in merged {
        match joined.last_mut() {
            Some(last) if start == last.1.saturating_add(1) && last.2 == why => last.1 = end,
            _ => joined.push((start, end, why)),
        }
    }
    joined
}

fn stretch(subnet: &Subnet, start: u128, end: u128) -> Map<String, Value> {
    let is_v4 = subnet.cidr.addr().is_ipv4();
    let show = |number| json!(address(number, is_v4).to_string());
    Map::from_iter([
        ("start".to_owned(), show(start)),
        ("end".to_owned(), show(end)),
        ("num_addresses".to_owned(), json!(u64::try_from((end - start).saturating_add(1)).unwrap_or(u64::MAX))),
    ])
}

fn reserved_ranges(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    let Some(subnet) = world.subnets.get(id) else { return Err(Refusal::no_match(world, "Subnet")) };
    let shown = taken(world, subnet).into_iter().map(|(start, end, why)| {
        let mut object = stretch(subnet, start, end);
        object.insert("purpose".into(), json!(why));
        Value::Object(object)
    });
    Ok(Answer::json(&shown.collect()))
}

fn unreserved_ranges(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    let Some(subnet) = world.subnets.get(id) else { return Err(Refusal::no_match(world, "Subnet")) };
    let shown = world.free_stretches(id).into_iter().map(|(start, end)| Value::Object(stretch(subnet, start, end)));
    Ok(Answer::json(&shown.collect()))
}

#[expect(clippy::cast_precision_loss, reason = "MAAS itself shows the share as a float")]
fn statistics(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    let Some(subnet) = world.subnets.get(id) else { return Err(Refusal::no_match(world, "Subnet")) };
    let is_v4 = subnet.cidr.addr().is_ipv4();
    let (network, broadcast) = (number(subnet.cidr.network()), number(subnet.cidr.broadcast()));
    let (first, last) = if is_v4 && subnet.cidr.prefix_len() < 31 { (network + 1, broadcast - 1) } else { (network, broadcast) };
    let free = world.free_stretches(id);
    let size = |(start, end): &(u128, u128)| (end - start).saturating_add(1);
    let available = free.iter().map(size).fold(0_u128, u128::saturating_add);
    let total = (last - first).saturating_add(1);
    let usage = (total - available) as f64 / total as f64;
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    let whole = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
    let mut object = json!({
        "num_available": whole(available),
        "largest_available": whole(free.iter().map(size).max().unwrap_or(0)),
        "num_unavailable": whole(total - available),
        "total_addresses": whole(total),
        "usage": usage,
        "usage_string": percent(usage),
        "available_string": percent(1.0 - usage),
        "first_address": address(first, is_v4).to_string(),
        "last_address": address(last, is_v4).to_string(),
        "ip_version": if is_v4 { 4 } else { 6 },
    });
    if call.query.get("include_ranges").is_some_and(|text| text == "true" || text == "1") {
        let ranges: Vec<Value> = taken(world, subnet)
            .into_iter()
            .map(|(start, end, why)| {
                let mut range = stretch(subnet, start, end);
                range.insert("purpose".into(), json!(why));
                Value::Object(range)
            })
            .collect();
        object["ranges"] = json!(ranges);
    }
    Ok(Answer::json(&object))
}

/// Who has which address.
fn ip_addresses(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    let mut rows: Vec<&Address> = world.addresses.values().filter(|address| address.subnet == Some(id) && address.ip.is_some()).collect();
    rows.sort_by_key(|address| address.ip);
    Ok(Answer::json(&rows.into_iter().map(|address| summary(world, address)).collect()))
}

fn summary(world: &World, address: &Address) -> Value {
    let time = json!(address.created.strftime("%a, %d %b. %Y %H:%M:%S").to_string());
    let mut object = Map::from_iter([
        ("ip".to_owned(), json!(address.ip.map(|ip| ip.to_string()))),
        ("alloc_type".to_owned(), json!(address.kind as u8)),
        ("created".to_owned(), time.clone()),
        ("updated".to_owned(), time),
    ]);
    let interface = address.interfaces.first().and_then(|id| world.interfaces.get(*id));
    let node = interface.and_then(|interface| world.machines.get(interface.machine));
    if let (Some(interface), Some(node)) = (interface, node) {
        let node_type = if node.kind == NodeKind::Machine { 0 } else { 2 };
        object.insert(
            "node_summary".into(),
            json!({
                "system_id": node.system_id,
                "node_type": node_type,
                "fqdn": world.fqdn(node),
                "hostname": node.hostname,
                "is_container": false,
                "via": interface.name,
            }),
        );
    }
    let user = address.user.or_else(|| node.and_then(|node| node.owner));
    if let Some(user) = user {
        object.insert("user".into(), json!(world.user_name(user)));
    }
    let records: Vec<Value> = address
        .names
        .iter()
        .filter_map(|id| world.names.get(*id))
        .map(|name| json!({"id": name.id, "name": name.name, "domain": world.domains.get(name.domain).map(|domain| domain.name.as_str())}))
        .collect();
    if !records.is_empty() {
        object.insert("dns_records".into(), json!(records));
    }
    let text = address.ip.map(|ip| ip.to_string()).unwrap_or_default();
    let bmcs: Vec<Value> = world
        .all_machines()
        .filter(|machine| machine.power_parameters.get("power_address") == Some(&text))
        .map(|machine| json!({"id": machine.bmc, "power_type": machine.power_type, "nodes": [{"system_id": machine.system_id, "hostname": machine.hostname}]}))
        .collect();
    if !bmcs.is_empty() {
        object.insert("bmcs".into(), json!(bmcs));
    }
    Value::Object(object)
}
