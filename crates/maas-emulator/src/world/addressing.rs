//! Which addresses are free, and which one MAAS takes: the first of the smallest free stretch.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::World;
use super::id::Id;
use super::machine::Machine;
use super::network::{Address, AddressKind, Interface, Subnet};
use super::people::User;
use crate::fleet::RangeKind;

/// First and last address of a stretch, as numbers.
pub type Stretch = (u128, u128);

/// What a new address is like.
#[derive(Debug, Clone, Copy)]
pub struct NewAddress {
    /// The address; none for a link that waits.
    pub ip: Option<IpAddr>,
    /// Its kind.
    pub kind: AddressKind,
    /// The subnet; found by the address when absent.
    pub subnet: Option<Id<Subnet>>,
    /// Who reserves it.
    pub user: Option<Id<User>>,
    /// The interface that gets it.
    pub interface: Option<Id<Interface>>,
}

impl World {
    /// The subnet an address lies in; the narrowest when several do.
    pub fn subnet_of(&self, ip: IpAddr) -> Option<Id<Subnet>> {
        self.subnets
            .iter()
            .filter(|(_, subnet)| subnet.cidr.contains(&ip))
            .max_by_key(|(_, subnet)| subnet.cidr.prefix_len())
            .map(|(id, _)| id)
    }

    /// Lets the gateway of a link's subnet lead out of a machine, instead of another one of its family.
    pub fn lead_by(&mut self, machine: Id<Machine>, link: Id<Address>) {
        let is_v4 = |link: &Id<Address>| Some(self.gateway_of(*link)?.is_ipv4());
        let Some(family) = is_v4(&link) else { return };
        let mut links = self.machines.get(machine).map(|machine| machine.gateway_links.clone()).unwrap_or_default();
        links.retain(|other| is_v4(other) == Some(!family));
        links.push(link);
        if let Some(machine) = self.machines.get_mut(machine) {
            machine.gateway_links = links;
        }
    }

    /// The gateway out of a machine, and the link somebody chose it by; the first one there is unless somebody did.
    pub fn way_out(&self, machine: &Machine, is_v4: bool) -> Option<(IpAddr, Option<Id<Address>>)> {
        let of_family = |link: &Id<Address>| self.gateway_of(*link).filter(|gateway| gateway.is_ipv4() == is_v4);
        let chosen = machine.gateway_links.iter().find_map(|link| Some((of_family(link)?, Some(*link))));
        chosen.or_else(|| {
            let rows = machine.interfaces.iter().filter_map(|id| self.interfaces.get(*id));
            let seen = |link: &&Id<Address>| self.addresses.get(**link).is_some_and(|address| address.kind != AddressKind::Discovered);
            rows.flat_map(|row| &row.addresses).filter(seen).find_map(of_family).map(|gateway| (gateway, None))
        })
    }

    fn gateway_of(&self, link: Id<Address>) -> Option<IpAddr> {
        self.subnets.get(self.addresses.get(link)?.subnet?)?.gateway.address()
    }

    /// Adds an address and notes that it is in use.
    pub fn add_address(&mut self, new: NewAddress) -> Id<Address> {
        self.add_address_as(None, new)
    }

    /// Adds an address with a wished id.
    pub fn add_address_as(&mut self, wished: Option<u32>, new: NewAddress) -> Id<Address> {
        let subnet = new.subnet.or_else(|| new.ip.and_then(|ip| self.subnet_of(ip)));
        let created = self.now;
        let id = self.addresses.add(wished, |id| Address {
            id,
            ip: new.ip,
            kind: new.kind,
            subnet,
            user: new.user,
            interfaces: new.interface.into_iter().collect(),
            names: Vec::new(),
            created,
            temporary: false,
        });
        if let Some(ip) = new.ip {
            self.in_use.entry(ip).or_default().push(id);
        }
        if let Some(interface) = new.interface.and_then(|interface| self.interfaces.get_mut(interface)) {
            interface.addresses.push(id);
        }
        self.dns_changes += 1;
        id
    }

    /// Notes an address that was seen on a machine's first interface in place of those seen before.
    pub fn observe_address(&mut self, machine: Id<Machine>, ip: IpAddr) {
        let Some(interface) = self.machines.get(machine).and_then(|machine| machine.interfaces.first().copied()) else { return };
        let rows = self.interfaces.get(interface).map(|row| row.addresses.clone()).unwrap_or_default();
        let is_seen = |id: &Id<Address>| self.addresses.get(*id).is_some_and(|address| address.kind == AddressKind::Discovered);
        for id in rows.into_iter().filter(is_seen).collect::<Vec<_>>() {
            self.remove_address(id);
        }
        self.add_address(NewAddress { ip: Some(ip), kind: AddressKind::Discovered, subnet: None, user: None, interface: Some(interface) });
    }

    /// Gives an address row another address, or none.
    pub fn set_ip(&mut self, id: Id<Address>, ip: Option<IpAddr>) {
        let Some(address) = self.addresses.get_mut(id) else { return };
        let before = std::mem::replace(&mut address.ip, ip);
        if let Some(before) = before {
            self.forget_use(before, id);
        }
        if let Some(ip) = ip {
            self.in_use.entry(ip).or_default().push(id);
        }
        self.dns_changes += 1;
    }

    /// Takes an address out, also of the interfaces and names that had it.
    pub fn remove_address(&mut self, id: Id<Address>) -> Option<Address> {
        let address = self.addresses.remove(id)?;
        if let Some(ip) = address.ip {
            self.forget_use(ip, id);
        }
        for interface in &address.interfaces {
            if let Some(interface) = self.interfaces.get_mut(*interface) {
                interface.addresses.retain(|other| *other != id);
            }
        }
        for name in &address.names {
            if let Some(name) = self.names.get_mut(*name) {
                name.addresses.retain(|other| *other != id);
            }
        }
        self.dns_changes += 1;
        Some(address)
    }

    fn forget_use(&mut self, ip: IpAddr, id: Id<Address>) {
        if let Some(rows) = self.in_use.get_mut(&ip) {
            rows.retain(|other| *other != id);
            if rows.is_empty() {
                self.in_use.remove(&ip);
            }
        }
    }

    /// The row that holds an address for good: discovered ones do not count.
    pub fn address_in_use(&self, ip: IpAddr) -> Option<&Address> {
        self.in_use.get(&ip)?.iter().filter_map(|id| self.addresses.get(*id)).find(|address| address.kind != AddressKind::Discovered)
    }

    /// Whether an address from here to there is held for good.
    pub fn uses_between(&self, first: IpAddr, last: IpAddr) -> bool {
        first <= last && self.in_use.range(first..=last).any(|(ip, _)| self.address_in_use(*ip).is_some())
    }

    /// All rows of an address.
    pub fn addresses_at(&self, ip: IpAddr) -> impl Iterator<Item = &Address> {
        self.in_use.get(&ip).into_iter().flatten().filter_map(|id| self.addresses.get(*id))
    }

    /// The range of this kind an address lies in.
    pub fn in_range(&self, subnet: Id<Subnet>, ip: IpAddr, kind: RangeKind) -> bool {
        self.ranges.values().any(|range| range.subnet == subnet && range.kind == kind && range.start <= ip && ip <= range.end)
    }

    /// The stretches MAAS may choose from, in order: what is left of the network after its ends, gateway, name servers, ranges and
    /// addresses in use.
    pub fn free_stretches(&self, id: Id<Subnet>) -> Vec<Stretch> {
        let Some(subnet) = self.subnets.get(id) else { return Vec::new() };
        let (first, last) = usable(subnet);
        let mut taken: Vec<Stretch> = Vec::new();
        taken.extend(self.ranges.values().filter(|range| range.subnet == id).map(|range| (number(range.start), number(range.end))));
        let singles = subnet.gateway.address().into_iter().chain(subnet.dns_servers.iter().filter_map(|text| text.parse().ok()));
        taken.extend(singles.map(|ip: IpAddr| (number(ip), number(ip))));
        let network = subnet.cidr;
        taken.extend(
            self.in_use
                .range(network.network()..=network.broadcast())
                .filter(|(ip, _)| network.contains(*ip))
                .map(|(ip, _)| (number(*ip), number(*ip))),
        );
        taken.sort_unstable();
        let mut free = Vec::new();
        let mut at = first;
        for (start, end) in taken {
            if start > at && at <= last {
                free.push((at, (start - 1).min(last)));
            }
            at = at.max(end.saturating_add(1));
        }
        if at <= last {
            free.push((at, last));
        }
        free
    }

    /// The address MAAS takes next, if one is left.
    pub fn next_free(&self, id: Id<Subnet>) -> Option<IpAddr> {
        let subnet = self.subnets.get(id)?;
        let stretch = self.free_stretches(id).into_iter().min_by_key(|(start, end)| end - start)?;
        Some(address(stretch.0, subnet.cidr.addr().is_ipv4()))
    }
}

/// First and last address that hosts can have.
fn usable(subnet: &Subnet) -> Stretch {
    let (network, broadcast) = (number(subnet.cidr.network()), number(subnet.cidr.broadcast()));
    let is_v4 = subnet.cidr.addr().is_ipv4();
    if is_v4 && subnet.cidr.prefix_len() >= 31 {
        (network, broadcast)
    } else {
        (network.saturating_add(1), if is_v4 { broadcast - 1 } else { broadcast })
    }
}

/// An address as a number.
pub fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

/// A number as an address of the family.
pub fn address(number: u128, is_v4: bool) -> IpAddr {
    if is_v4 { IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap_or(0))) } else { IpAddr::V6(Ipv6Addr::from(number)) }
}
