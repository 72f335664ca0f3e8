//! `ipaddresses/`: reservations of users. Host names of reservations, filters of the list by owner, and hardware addresses of machines are
//! as MAAS's source has them, not recorded.

use std::net::IpAddr;

use super::dns_resources::{self, AddressName};
use super::machines::is_mac;
use crate::fleet::RangeKind;
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::addressing::NewAddress;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{Address, AddressKind, Interface, InterfaceKind, Range, Subnet};

pub const ENDPOINTS: &[Endpoint] = &[Endpoint::new(
    "ipaddresses/",
    &[Operation::get(list), Operation::post_op("reserve", reserve), Operation::post_op("release", release)],
)];

/// A row no machine has: reservations for a hardware address hang on an interface of nobody.
const NOBODY: Id<Machine> = Id::new(0);

fn list(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let all = call.query_flag("all")?.unwrap_or(false);
    let wanted: Option<IpAddr> = call
        .query
        .filled("ip")
        .map(|text| text.parse().map_err(|_| Refusal::plain(400, "Parameter 'ip' must contain an IP address.")))
        .transpose()?;
    if all && !world.is_admin(user) {
        return Err(Refusal::plain(403, "Listing all IP addresses requires admin privileges."));
    }
    let named = call.query.filled("owner");
    if named.is_some() && !world.is_admin(user) {
        return Err(Refusal::plain(403, "Listing another user's IP addresses requires admin privileges."));
    }
    // A name nobody has is the owner of nothing.
    let owner = match named {
        Some(name) => Some(world.user_named(name).map(|owner| owner.id)),
        None => (!all).then_some(Some(user)),
    };
    let shown = world.addresses.values().filter(|address| address.ip.is_some() && wanted.is_none_or(|ip| address.ip == Some(ip)));
    let shown = shown.filter(|address| all || address.kind == AddressKind::UserReserved);
    let shown = shown.filter(|address| owner.is_none_or(|owner| owner.is_some() && address.user == owner));
    Ok(Answer::json(&shown.map(|address| render::address(world, address)).collect()))
}

fn reserve(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let form = &call.form;
    let given: Option<IpAddr> = form
        .filled("ip")
        .or(form.filled("ip_address"))
        .map(|text| text.parse().map_err(|_| Refusal::field("ip_address", "Enter a valid IPv4 or IPv6 address.")))
        .transpose()?;
    // An address says by itself where it is; a subnet beside it is not looked at.
    let subnet = match (given, form.filled("subnet")) {
        (Some(ip), _) => world.subnet_of(ip).ok_or_else(|| Refusal::text(400, format!("No known subnet for IP address: {ip}.")))?,
        (None, Some(text)) => {
            world.subnet_specified(text).ok_or_else(|| Refusal::text(400, format!("Unable to identify subnet: {text}.")))?
        }
        (None, None) => return Err(Refusal::text(400, "Must supply either the 'subnet' or the 'ip' parameter.")),
    };
    if let Some(ip) = given.filter(|ip| range_with(world, subnet, RangeKind::Dynamic, *ip).is_some()) {
        let words = format!(
            "IP address {ip} belongs to an existing dynamic range. To reserve this IP address, a MAC address is required. \
             (Create a device instead.)"
        );
        return Err(Refusal::text(403, words));
    }
    let name = form.filled("hostname").map(|hostname| AddressName::read(world, hostname)).transpose()?;
    let mac = form.filled("mac").map(str::to_ascii_lowercase);
    if let Some(mac) = &mac {
        check_mac(world, mac)?;
    }
    let ip = match given {
        Some(ip) => check_free(world, subnet, ip)?,
        None => next_free(world, subnet)?,
    };
    let interface = mac.map(|mac| interface_of_nobody(world, mac, subnet));
    let id =
        world.add_address(NewAddress { ip: Some(ip), kind: AddressKind::UserReserved, subnet: Some(subnet), user: Some(user), interface });
    if let Some(name) = name {
        name.give(world, id);
    }
    Ok(answer(world, id))
}

/// Refuses what is no hardware address, and one of a machine, whose addresses are links of its interface.
fn check_mac(world: &World, mac: &str) -> Result<(), Refusal> {
    if !is_mac(mac) {
        return Err(Refusal::field("mac_address", format!("'{mac}' is not a valid MAC address.")));
    }
    let owner = world.interfaces.values().find(|interface| interface.mac == mac && interface.machine != NOBODY);
    let Some(machine) = owner.and_then(|interface| world.machines.get(interface.machine)) else { return Ok(()) };
    Err(Refusal::text(
        400,
        format!(
            "MAC address {mac} already belongs to {}. Use of the interface API is required, for an interface that belongs to a node.",
            machine.hostname
        ),
    ))
}

fn range_with(world: &World, subnet: Id<Subnet>, kind: RangeKind, ip: IpAddr) -> Option<&Range> {
    world.ranges.values().find(|range| range.subnet == subnet && range.kind == kind && range.start <= ip && ip <= range.end)
}

fn answer(world: &World, id: Id<Address>) -> Answer {
    Answer::json(&world.addresses.get(id).map(|address| render::address(world, address)).unwrap_or_default())
}

/// An address MAAS may give away when it is asked for by name.
pub fn check_free(world: &World, subnet: Id<Subnet>, ip: IpAddr) -> Result<IpAddr, Refusal> {
    if range_with(world, subnet, RangeKind::Dynamic, ip).is_some() {
        return Err(Refusal::text(403, format!("{ip} is within the dynamic range.")));
    }
    if let Some(reserved) = range_with(world, subnet, RangeKind::Reserved, ip) {
        return Err(Refusal::text(404, format!("{ip} is within the reserved range from {} to {}", reserved.start, reserved.end)));
    }
    if world.address_in_use(ip).is_some() {
        return Err(Refusal::text(404, format!("The IP address {ip} is already in use.")));
    }
    Ok(ip)
}

/// The address MAAS takes next.
pub fn next_free(world: &World, subnet: Id<Subnet>) -> Result<IpAddr, Refusal> {
    let cidr = world.subnets.get(subnet).map(|subnet| subnet.cidr);
    let exhausted = cidr.is_some_and(|cidr| world.faults.is_exhausted(cidr));
    let free = if exhausted { None } else { world.next_free(subnet) };
    free.ok_or_else(|| {
        Refusal::text(503, format!("No more IPs available in subnet: {}.", cidr.map(|cidr| cidr.to_string()).unwrap_or_default()))
    })
}

fn interface_of_nobody(world: &mut World, mac: String, subnet: Id<Subnet>) -> Id<Interface> {
    if let Some(known) = world.interfaces.values().find(|interface| interface.mac == mac) {
        return known.id;
    }
    let vlan = world.subnets.get(subnet).map(|subnet| subnet.vlan);
    world.interfaces.add(None, |id| Interface {
        id,
        machine: NOBODY,
        name: "eth0".into(),
        kind: InterfaceKind::Unknown,
        mac,
        vlan,
        addresses: Vec::new(),
        parents: Vec::new(),
        tags: Vec::new(),
        params: serde_json::Map::new(),
        enabled: true,
        link_connected: true,
        link_speed: 0,
        interface_speed: 0,
        vendor: None,
        product: None,
        firmware_version: None,
        numa_node: None,
        acquired: false,
    })
}

/// Gives an address back: the user's own reservation, or with force, by an administrator, any kind but discovered.
fn release(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let text = call.form.get("ip").ok_or_else(|| Refusal::text(400, "No provided ip!"))?;
    let force = call.flag("force")?.unwrap_or(false);
    let discovered = call.flag("discovered")?.unwrap_or(false);
    if force && !world.is_admin(user) {
        return Err(Refusal::plain(403, "Force-releasing an IP address requires admin privileges."));
    }
    let missing = text.is_empty().then_some("This field is required.");
    let ip: IpAddr = text.parse().map_err(|_| Refusal::field("ip", missing.unwrap_or("Enter a valid IPv4 or IPv6 address.")))?;
    let found = world.addresses_at(ip).find(|address| {
        let own = address.kind == AddressKind::UserReserved && address.user == Some(user);
        if force { discovered == (address.kind == AddressKind::Discovered) } else { own }
    });
    let Some(id) = found.map(|address| address.id) else {
        let words = if force { format!("IP address {ip} does not exist.") } else { not_yours(ip) };
        return Err(Refusal::text(400, words));
    };
    let (interfaces, names) = world.remove_address(id).map(|address| (address.interfaces, address.names)).unwrap_or_default();
    for name in names {
        if world.names.get(name).is_some_and(|name| name.addresses.is_empty()) {
            dns_resources::remove(world, name);
        }
    }
    for interface in interfaces {
        let idle = world.interfaces.get(interface).is_some_and(|row| row.machine == NOBODY && row.addresses.is_empty());
        if idle {
            world.remove_interface(interface);
        }
    }
    Ok(Answer::deleted())
}

fn not_yours(ip: IpAddr) -> String {
    format!(
        "IP address {ip} does not exist, is not the correct type of address, or does not belong to the requesting user.\n\
         If you are sure you want to release this address, use force=true as a MAAS administrator."
    )
}
