//! What is done to a server between its allocation and its deployment: no swap, a static address, how its interfaces are connected.
//! MAAS lets only administrators do any of it.

use std::net::IpAddr;

use api::Swap;
use ipnet::IpNet;

use super::{
    draft::{Draft, PREPARED},
    plan::Preparation,
    reason::Reason,
};
use crate::{Link, LinkMode, NetworkInterface, Server, SubnetName};

/// How one interface shall be connected.
struct Wish {
    interface: String,
    subnet: String,
    mode: LinkMode,
    address: Option<IpAddr>,
}

/// Why the object asks for something our user may not do and a machine must not be deployed without.
pub(super) fn impossible(draft: &Draft<'_>) -> Option<String> {
    let spec = &draft.facts.object.spec;
    let asks = spec.static_ip.is_some() || !spec.network_interfaces.is_empty();
    let account = draft.account()?;
    (asks && !account.administrator).then(|| {
        let user = &account.user;
        format!(
            "spec.staticIP and spec.networkInterfaces need an administrator's key, and MAAS user {user} is none. {}",
            Reason::NO_RIGHTS.remedy
        )
    })
}

/// The next thing to do to the server, or why it cannot be done.
pub(super) fn next(draft: &mut Draft<'_>, server: &Server) -> Result<Option<Preparation>, String> {
    if let Some(preparation) = swap(draft, server) {
        return Ok(Some(preparation));
    }
    for wish in wishes(draft, server)? {
        let interface = server
            .interfaces
            .iter()
            .find(|interface| interface.name == wish.interface)
            .ok_or_else(|| format!("machine {} has no network interface {}", server.name(), wish.interface))?;
        if let Some(preparation) = connect(interface, &wish) {
            return Ok(Some(preparation));
        }
    }
    Ok(None)
}

fn swap(draft: &mut Draft<'_>, server: &Server) -> Option<Preparation> {
    let wanted = draft.facts.object.spec.swap() == Swap::Off;
    let account = draft.account()?;
    if wanted && !server.swap_off && !account.administrator {
        let message =
            format!("swap is left as MAAS sets it up: only administrators may change that, and MAAS user {} is none", account.user);
        draft.condition(PREPARED, Some(false), Reason::NO_RIGHTS, message);
        return None;
    }
    draft.condition(PREPARED, Some(true), Reason::PREPARED, "");
    (wanted && !server.swap_off).then_some(Preparation::SwapOff)
}

fn wishes(draft: &Draft<'_>, server: &Server) -> Result<Vec<Wish>, String> {
    let spec = &draft.facts.object.spec;
    let mut wishes = Vec::new();
    for wanted in &spec.network_interfaces {
        let mode = match wanted.mode {
            api::LinkMode::Auto => LinkMode::Auto,
            api::LinkMode::Static => LinkMode::Static,
            api::LinkMode::Dhcp => LinkMode::Dhcp,
            api::LinkMode::LinkUp => LinkMode::LinkUp,
        };
        let address = wanted.ip.as_deref().map(parse).transpose()?;
        wishes.push(Wish { interface: wanted.name.clone(), subnet: wanted.subnet.clone(), mode, address });
    }
    if let Some((ip, cidr)) = spec.static_ip.as_ref().and_then(|wanted| Some((wanted.ip.as_deref()?, wanted.cidr.as_deref()))) {
        let address = parse(ip)?;
        let interface = interface_for(server, address, cidr)
            .ok_or_else(|| format!("machine {} has no network interface to boot from", server.name()))?;
        let subnets = || interface.links.iter().filter_map(|link| link.subnet.as_ref());
        let linked = subnets().find(|subnet| contains(subnet, address)).or_else(|| subnets().next());
        let subnet = cidr.map(str::to_owned).or_else(|| linked.map(|subnet| subnet.cidr.clone()));
        let subnet = subnet
            .ok_or("spec.staticIP.cidr is missing, and the machine's interface is in no subnet: say which subnet the address is in")?;
        // The address counts where both are asked of one interface.
        wishes.retain(|wish| wish.interface != interface.name);
        wishes.push(Wish { interface: interface.name.clone(), subnet, mode: LinkMode::Static, address: Some(address) });
    }
    Ok(wishes)
}

fn parse(ip: &str) -> Result<IpAddr, String> {
    ip.parse().map_err(|_| format!("{ip} is not an address"))
}

fn contains(subnet: &SubnetName, address: IpAddr) -> bool {
    subnet.cidr.parse::<IpNet>().is_ok_and(|network| network.contains(&address))
}

/// The interface whose subnet has the address, or else the one in the subnet of that name, or else the one the server boots from; what lies
/// on top of that counts in its place.
fn interface_for<'a>(server: &'a Server, address: IpAddr, cidr: Option<&str>) -> Option<&'a NetworkInterface> {
    let linked = |fits: &dyn Fn(&SubnetName) -> bool| {
        server.interfaces.iter().find(|interface| interface.links.iter().any(|link| link.subnet.as_ref().is_some_and(fits)))
    };
    let boot = || {
        let boot = server.interfaces.iter().find(|interface| interface.boot)?;
        let on_top = boot.children.iter().find_map(|child| server.interfaces.iter().find(|interface| interface.name == *child));
        Some(on_top.unwrap_or(boot))
    };
    let named = |subnet: &SubnetName| cidr.is_some_and(|cidr| subnet.is_called(cidr));
    linked(&|subnet| contains(subnet, address)).or_else(|| linked(&named)).or_else(boot)
}

/// The next thing to do to one interface: old connections go first, then the wanted one is made.
fn connect(interface: &NetworkInterface, wish: &Wish) -> Option<Preparation> {
    let fits = |link: &Link| {
        link.mode == wish.mode
            && link.subnet.as_ref().is_some_and(|subnet| subnet.is_called(&wish.subnet))
            && (wish.mode != LinkMode::Static || link.address == wish.address)
    };
    if interface.links.iter().any(fits) {
        return None;
    }
    // MAAS puts a connection that is only up in the place of the last one that is removed, and takes it away itself when another is made.
    let in_the_way = |link: &&Link| link.mode != LinkMode::LinkUp;
    if let Some(link) = interface.links.iter().find(in_the_way) {
        return Some(Preparation::Unlink { interface: interface.id, link: link.id });
    }
    Some(Preparation::Link { interface: interface.id, subnet: wish.subnet.clone(), mode: wish.mode.clone(), address: wish.address })
}
