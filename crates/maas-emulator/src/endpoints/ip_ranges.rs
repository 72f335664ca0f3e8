//! `ipranges/`: what DHCP hands out, and what MAAS keeps its hands off.

use std::net::IpAddr;

use crate::fleet::RangeKind;
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::addressing::number;
use crate::world::id::Id;
use crate::world::network::Range;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("ipranges/", &[Operation::get(list), Operation::post(create)]),
    Endpoint::new("ipranges/{}/", &[Operation::get(read), Operation::put(update), Operation::delete(delete)]),
];

fn list(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    Ok(Answer::json(&world.ranges.values().map(|range| render::ip_range(world, range)).collect()))
}

fn find(world: &World, call: &Call) -> Result<Id<Range>, Refusal> {
    world
        .ranges
        .values()
        .map(|range| range.id)
        .find(|id| id.to_string() == call.argument(0))
        .ok_or_else(|| Refusal::no_match(world, "IPRange"))
}

fn answer(world: &World, id: Id<Range>) -> Reply {
    world.ranges.get(id).map(|range| Answer::json(&render::ip_range(world, range))).ok_or_else(|| Refusal::no_match(world, "IPRange"))
}

fn address(call: &Call, key: &str) -> Result<IpAddr, Refusal> {
    let text = call.form.filled(key).ok_or_else(|| Refusal::field(key, "This field is required."))?;
    text.parse().map_err(|_| Refusal::field(key, "Enter a valid IPv4 or IPv6 address."))
}

/// Users may reserve ranges; dynamic ones are for administrators.
fn create(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let kind = match call.form.filled("type") {
        Some("dynamic") => RangeKind::Dynamic,
        Some("reserved") => RangeKind::Reserved,
        Some(other) => return Err(Refusal::field("type", format!("Value '{other}' is not a valid choice."))),
        None => return Err(Refusal::field("type", "This field is required.")),
    };
    if kind == RangeKind::Dynamic && !world.is_admin(user) {
        return Err(Refusal::text(403, "Unable to create dynamic IP range. You don't have sufficient privileges."));
    }
    let (start, end) = (address(call, "start_ip")?, address(call, "end_ip")?);
    let subnet = match call.form.filled("subnet") {
        Some(text) => world.subnet_specified(text),
        None => world.subnet_of(start),
    };
    let subnet = subnet.ok_or_else(|| Refusal::field("__all__", "Unable to find a subnet that contains the start IP address."))?;
    let range =
        Range { id: Id::new(0), subnet, kind, start, end, user: Some(user), comment: call.form.get("comment").unwrap_or("").to_owned() };
    check(world, &range, None)?;
    let id = world.ranges.add(None, |id| Range { id, ..range });
    answer(world, id)
}

/// Dynamic ranges overlap nothing that is in use; reserved ones overlap no range and may hold addresses.
fn check(world: &World, range: &Range, own: Option<Id<Range>>) -> Result<(), Refusal> {
    let Some(subnet) = world.subnets.get(range.subnet) else { return Err(Refusal::no_match(world, "Subnet")) };
    check_ends(subnet.cidr, range)?;
    let overlaps = |first: IpAddr, last: IpAddr| first <= range.end && range.start <= last;
    let ranges = world.ranges.values().filter(|other| Some(other.id) != own && other.subnet == range.subnet);
    let mut conflict = ranges.into_iter().any(|other| overlaps(other.start, other.end));
    let (kind, others) = match range.kind {
        RangeKind::Reserved => ("reserved", "range"),
        RangeKind::Dynamic => {
            let servers = subnet.dns_servers.iter().filter_map(|text| text.parse().ok());
            let mut single = subnet.gateway.address().into_iter().chain(servers);
            conflict = conflict || single.any(|ip| overlaps(ip, ip)) || world.uses_between(range.start, range.end);
            ("dynamic", "IP address or range")
        }
    };
    if conflict { Err(both_ends(&format!("Requested {kind} range conflicts with an existing {others}."))) } else { Ok(()) }
}

/// The smallest dynamic range of IPv6, which DHCP's own protocol wants.
const LEAST_OF_V6: u128 = 256;

fn check_ends(network: ipnet::IpNet, range: &Range) -> Result<(), Refusal> {
    let (start, end) = (range.start, range.end);
    if start.is_ipv4() != end.is_ipv4() {
        return Err(both_ends("Start IP address and end IP address must be in the same address family."));
    }
    if start > end {
        return Err(Refusal::field("end_ip", "End IP address must not be less than Start IP address."));
    }
    match (network.contains(&start), network.contains(&end)) {
        (true, true) => {}
        (false, false) => return Err(both_ends(&format!("IP addresses must be within subnet: {network}."))),
        (false, true) => return Err(Refusal::field("start_ip", format!("Start IP address must be within subnet: {network}."))),
        (true, false) => return Err(Refusal::field("end_ip", format!("End IP address must be within subnet: {network}."))),
    }
    if start == network.network() {
        return Err(Refusal::field("start_ip", "Reserved network address cannot be included in IP range."));
    }
    if end.is_ipv4() && end == network.broadcast() {
        return Err(Refusal::field("end_ip", "Broadcast address cannot be included in IP range."));
    }
    if start.is_ipv6() && range.kind == RangeKind::Dynamic && number(end) - number(start) < LEAST_OF_V6 - 1 {
        return Err(both_ends("IPv6 dynamic range must be at least 256 addresses in size."));
    }
    Ok(())
}

fn both_ends(words: &str) -> Refusal {
    Refusal::fields(["start_ip", "end_ip"].map(|field| (field.to_owned(), vec![words.to_owned()])))
}

fn read(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    answer(world, id)
}

fn own_or_admin(world: &World, call: &Call) -> Result<Id<Range>, Refusal> {
    let user = call.caller()?;
    let id = find(world, call)?;
    let own = world.ranges.get(id).is_some_and(|range| range.user == Some(user));
    if own || world.is_admin(user) { Ok(id) } else { Err(Refusal::text(403, "Unable to modify IP range. You don't own the IP range.")) }
}

fn update(world: &mut World, call: &Call) -> Reply {
    let id = own_or_admin(world, call)?;
    let Some(mut range) = world.ranges.get(id).cloned() else { return Err(Refusal::no_match(world, "IPRange")) };
    if call.form.has("start_ip") {
        range.start = address(call, "start_ip")?;
    }
    if call.form.has("end_ip") {
        range.end = address(call, "end_ip")?;
    }
    if let Some(comment) = call.form.get("comment") {
        comment.clone_into(&mut range.comment);
    }
    check(world, &range, Some(id))?;
    if let Some(row) = world.ranges.get_mut(id) {
        *row = range;
    }
    answer(world, id)
}

fn delete(world: &mut World, call: &Call) -> Reply {
    let id = own_or_admin(world, call)?;
    world.ranges.remove(id);
    Ok(Answer::deleted())
}
