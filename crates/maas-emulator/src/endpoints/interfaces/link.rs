//! Links of interfaces to subnets.

use std::net::IpAddr;

use super::fields;
use super::{administered, answer, changed_interface, link_up, links, refuse_state};
use crate::endpoints::ip_addresses;
use crate::fleet::{LinkMode, RangeKind};
use crate::http::answer::{Refusal, Reply};
use crate::http::call::Call;
use crate::world::World;
use crate::world::addressing::NewAddress;
use crate::world::id::Id;
use crate::world::network::{Address, AddressKind, Interface, InterfaceKind, Subnet};

pub(super) fn link_subnet(world: &mut World, call: &Call) -> Reply {
    let force = call.flag("force")?.unwrap_or(false);
    let (machine, id) = administered(world, call)?;
    refuse_state(world, machine, "link subnet", &[])?;
    let mode = call.form.filled("mode").ok_or_else(|| Refusal::field("mode", "This field is required."))?.to_ascii_lowercase();
    let mode = match mode.as_str() {
        "auto" => LinkMode::Auto,
        "dhcp" => LinkMode::Dhcp,
        "static" => LinkMode::Static,
        "link_up" => LinkMode::LinkUp,
        other => {
            return Err(Refusal::field(
                "mode",
                format!("'{other}' is not a valid mode.  It should be one of: 'auto', 'dhcp', 'static', 'link_up'."),
            ));
        }
    };
    refuse_in_bond(world, id)?;
    // An interface on no VLAN may go to any, and so may one that is forced to.
    let on_vlan = world.interfaces.get(id).and_then(|row| row.vlan).filter(|_| !force);
    let reachable = |subnet: &Id<Subnet>| on_vlan.is_none_or(|vlan| world.subnets.get(*subnet).is_some_and(|subnet| subnet.vlan == vlan));
    let subnet = match call.form.filled("subnet") {
        None => None,
        Some(text) => {
            let found = world.subnet_specified(text).filter(reachable);
            Some(found.ok_or_else(|| Refusal::field("subnet", format!("None found with id={text}.")))?)
        }
    };
    if subnet.is_none() && matches!(mode, LinkMode::Auto | LinkMode::Static) {
        return Err(Refusal::field("subnet", "This field is required."));
    }
    let ip = match (mode, subnet) {
        (LinkMode::Static, Some(subnet)) => Some(static_address(world, call, subnet)?),
        _ => None,
    };
    let is_gateway = call.loose_flag("default_gateway");
    if is_gateway {
        check_gateway(world, mode, subnet)?;
    }
    if force {
        for link in links(world, id) {
            world.remove_address(link);
        }
    }
    // A link that is only up makes room for one that says more.
    for link in links(world, id) {
        if world.addresses.get(link).is_some_and(|row| row.mode() == "link_up") {
            world.remove_address(link);
        }
    }
    let link = world.add_address(NewAddress { ip, kind: AddressKind::of_link(mode), subnet, user: None, interface: Some(id) });
    let vlan = subnet.and_then(|subnet| world.subnets.get(subnet)).map(|subnet| subnet.vlan);
    if let Some(row) = world.interfaces.get_mut(id).filter(|_| vlan.is_some()) {
        row.vlan = vlan;
    }
    if is_gateway {
        world.lead_by(machine, link);
    }
    answer(world, id)
}

/// What is in a bond has no addresses of its own.
fn refuse_in_bond(world: &World, id: Id<Interface>) -> Result<(), Refusal> {
    let bond = world.interfaces.values().find(|row| row.kind == InterfaceKind::Bond && row.parents.contains(&id));
    let Some(bond) = bond else { return Ok(()) };
    let name = world.interfaces.get(id).map_or("", |row| row.name.as_str());
    Err(Refusal::field("bond", format!("Cannot link interface({name}) when interface is in a bond({}).", bond.name)))
}

/// Refuses a link that cannot lead out.
fn check_gateway(world: &World, mode: LinkMode, subnet: Option<Id<Subnet>>) -> Result<(), Refusal> {
    let mode = match mode {
        LinkMode::Auto | LinkMode::Static => None,
        LinkMode::Dhcp => Some("dhcp"),
        LinkMode::LinkUp => Some("link_up"),
    };
    if let Some(mode) = mode {
        return Err(Refusal::field("default_gateway", format!("Cannot use in mode '{mode}'.")));
    }
    let Some(subnet) = subnet.and_then(|subnet| world.subnets.get(subnet)) else { return Ok(()) };
    if subnet.gateway.address().is_none() {
        let vid = world.vlans.get(subnet.vlan).map_or(0, |vlan| vlan.vid);
        let shown = format!("{}:{}(vid={vid})", subnet.name, subnet.cidr);
        let words = format!("Cannot set as default gateway because subnet {shown} doesn't provide a gateway IP address.");
        return Err(Refusal::field("default_gateway", words));
    }
    Ok(())
}

fn static_address(world: &World, call: &Call, id: Id<Subnet>) -> Result<IpAddr, Refusal> {
    let Some(text) = call.form.filled("ip_address") else { return ip_addresses::next_free(world, id) };
    let ip: IpAddr = text.parse().map_err(|_| Refusal::field("ip_address", "Enter a valid IPv4 or IPv6 address."))?;
    let Some(subnet) = world.subnets.get(id) else { return Err(Refusal::no_match(world, "Subnet")) };
    if !subnet.cidr.contains(&ip) {
        let vid = world.vlans.get(subnet.vlan).map_or(0, |vlan| vlan.vid);
        return Err(Refusal::field(
            "ip_address",
            format!("IP address is not in the given subnet '{}:{}(vid={vid})'.", subnet.name, subnet.cidr),
        ));
    }
    let dynamic =
        world.ranges.values().find(|range| range.subnet == id && range.kind == RangeKind::Dynamic && range.start <= ip && ip <= range.end);
    if let Some(range) = dynamic {
        return Err(Refusal::field("ip_address", format!("IP address is inside a dynamic range {} to {}.", range.start, range.end)));
    }
    if world.address_in_use(ip).is_some() {
        return Err(Refusal::text(404, "IP address is already in use."));
    }
    Ok(ip)
}

pub(super) fn unlink_subnet(world: &mut World, call: &Call) -> Reply {
    let id = changed_interface(world, call, "unlink subnet")?;
    let text = call.form.filled("id").ok_or_else(|| Refusal::field("id", "This field is required."))?;
    let known = links(world, id);
    let link = known.iter().copied().find(|link| link.to_string() == text);
    let link = link.ok_or_else(|| Refusal::field("id", "Select a valid choice. That choice is not one of the available choices."))?;
    let subnet = world.remove_address(link).and_then(|address| address.subnet);
    if known.len() == 1 {
        link_up(world, id, subnet);
    }
    answer(world, id)
}

/// Takes all links, what was discovered and the VLAN away.
pub(super) fn disconnect(world: &mut World, call: &Call) -> Reply {
    let id = changed_interface(world, call, "disconnect")?;
    let addresses = world.interfaces.get(id).map(|row| row.addresses.clone()).unwrap_or_default();
    for address in addresses {
        world.remove_address(address);
    }
    if let Some(row) = world.interfaces.get_mut(id) {
        row.vlan = None;
    }
    answer(world, id)
}

pub(super) fn set_default_gateway(world: &mut World, call: &Call) -> Reply {
    let (machine, id) = administered(world, call)?;
    refuse_state(world, machine, "set default gateway", &[])?;
    let gateway = |link: &Id<Address>| world.subnets.get(world.addresses.get(*link)?.subnet?)?.gateway.address();
    let usable: Vec<(Id<Address>, IpAddr)> = links(world, id).into_iter().filter_map(|link| Some((link, gateway(&link)?))).collect();
    if usable.is_empty() {
        return Err(Refusal::field("__all__", "This interface has no usable gateways."));
    }
    let chosen: Vec<Id<Address>> = match call.form.filled("link_id") {
        Some(text) => {
            let names: Vec<String> = usable.iter().map(|(link, _)| link.to_string()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let wanted = names.iter().position(|name| *name == text).and_then(|place| usable.get(place));
            vec![wanted.ok_or_else(|| Refusal::field("link_id", fields::no_choice("link_id", text, &names)))?.0]
        }
        None => first_of_each_family(&usable)?,
    };
    for link in chosen {
        world.lead_by(machine, link);
    }
    answer(world, id)
}

/// The first link of IPv4 and of IPv6; a family with several gateways needs a word which.
fn first_of_each_family(usable: &[(Id<Address>, IpAddr)]) -> Result<Vec<Id<Address>>, Refusal> {
    let of = |is_v4: bool| usable.iter().filter(move |(_, gateway)| gateway.is_ipv4() == is_v4);
    let several = |is_v4: bool| of(is_v4).next().is_some_and(|(_, first)| of(is_v4).any(|(_, other)| other != first));
    let ambiguous: Vec<&str> = [(true, "IPv4"), (false, "IPv6")].into_iter().filter(|(v4, _)| several(*v4)).map(|(_, name)| name).collect();
    if !ambiguous.is_empty() {
        let plural = if ambiguous.len() > 1 { "s" } else { "" };
        let words = format!("This field is required; Interface has more than one usable {} gateway{plural}.", ambiguous.join(" and "));
        return Err(Refusal::field("link_id", words));
    }
    Ok([true, false].into_iter().filter_map(|is_v4| of(is_v4).next()).map(|(link, _)| *link).collect())
}
