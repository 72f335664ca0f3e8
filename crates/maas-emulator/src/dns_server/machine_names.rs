//! The names machines have by themselves. `host.domain` stands for one address a family: that of the interface the machine boots
//! from, or of what is built on it. Every other address is found under the name of its interface, `eth1.host.domain`.

use std::net::IpAddr;

use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{AddressKind, Interface, InterfaceKind};

/// One address of a machine, with what decides whether the machine's own name stands for it.
struct Candidate<'a> {
    interface: &'a Interface,
    boots: bool,
    kind: AddressKind,
    address: IpAddr,
}

/// The names of a machine's addresses; none when it has no address.
pub fn of(world: &World, machine: &Machine) -> Vec<(String, IpAddr)> {
    let mut candidates = candidates(world, machine);
    candidates.sort_by_key(|candidate| {
        (!candidate.boots, interface_rank(candidate.interface.kind), address_rank(candidate.kind), candidate.interface.id)
    });
    let any_boots = candidates.iter().any(|candidate| candidate.boots);
    let fqdn = world.fqdn(machine);
    let mut names: Vec<(String, IpAddr)> = Vec::new();
    for candidate in &candidates {
        let family_is_known = names.iter().any(|(name, known)| *name == fqdn && known.is_ipv4() == candidate.address.is_ipv4());
        if candidate.boots == any_boots && !family_is_known {
            names.push((fqdn.clone(), candidate.address));
        } else if !names.iter().any(|(_, known)| *known == candidate.address) {
            names.push((format!("{}.{fqdn}", candidate.interface.name), candidate.address));
        }
    }
    names
}

/// The addresses that count: those seen while commissioning only as long as there are no others.
fn candidates<'a>(world: &'a World, machine: &'a Machine) -> Vec<Candidate<'a>> {
    let interfaces = machine.interfaces.iter().filter_map(|id| world.interfaces.get(*id));
    let all = interfaces.flat_map(|interface| {
        let boots = machine.boot_interface.is_some_and(|boot| stands_on(world, interface, boot));
        interface
            .addresses
            .iter()
            .filter_map(|id| world.addresses.get(*id))
            .filter_map(move |row| Some(Candidate { interface, boots, kind: row.kind, address: row.ip? }))
    });
    let (seen, given): (Vec<_>, Vec<_>) = all.partition(|candidate| candidate.kind == AddressKind::Discovered);
    if given.is_empty() { seen } else { given }
}

/// Whether an interface is this one, or is made of it directly or over one more, such as a bridge on a bond.
fn stands_on(world: &World, interface: &Interface, base: Id<Interface>) -> bool {
    let parents = || interface.parents.iter().filter_map(|id| world.interfaces.get(*id));
    interface.id == base || interface.parents.contains(&base) || parents().any(|parent| parent.parents.contains(&base))
}

fn interface_rank(kind: InterfaceKind) -> u8 {
    match kind {
        InterfaceKind::Bridge => 0,
        InterfaceKind::Bond => 1,
        InterfaceKind::Physical => 2,
        InterfaceKind::Vlan => 3,
        InterfaceKind::Unknown => 4,
    }
}

fn address_rank(kind: AddressKind) -> u8 {
    match kind {
        AddressKind::Sticky => 0,
        AddressKind::Auto => 1,
        AddressKind::UserReserved => 2,
        AddressKind::Dhcp => 3,
        AddressKind::Discovered => 4,
    }
}
