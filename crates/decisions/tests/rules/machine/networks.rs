//! How interfaces are connected before a machine is deployed.

use decisions::{
    Link, LinkMode, Lookup, NetworkInterface, Server, ServerStatus, SubnetName,
    machine::{Facts, Preparation, Step, decide},
};

use super::facts::{holding, now, reason, server, wanted};

fn link(id: i64, mode: LinkMode, cidr: &str, address: Option<&str>) -> Link {
    let subnet = Some(SubnetName { cidr: cidr.to_owned(), name: format!("net-{cidr}") });
    Link { id, mode, subnet, address: address.map(|address| address.parse().unwrap()) }
}

fn interface(id: i64, links: Vec<Link>) -> NetworkInterface {
    NetworkInterface { id, name: format!("eth{id}"), tags: Vec::new(), boot: id == 0, children: Vec::new(), links }
}

/// An allocated machine with these interfaces that shall have an address.
fn asking(ip: &str, cidr: Option<&str>, interfaces: Vec<NetworkInterface>) -> Facts {
    let mut facts = holding(wanted(), Lookup::Found(Server { interfaces, ..server(ServerStatus::Allocated) }));
    let cidr = cidr.map(str::to_owned);
    facts.object.spec.static_ip = Some(api::StaticIp { ip: Some(ip.to_owned()), cidr, ..api::StaticIp::default() });
    facts
}

/// What is done next to the interfaces; nothing if the machine is deployed.
fn next(facts: &Facts) -> Option<Preparation> {
    match decide(facts, now()).step {
        Some(Step::Prepare { preparation, .. }) => Some(preparation),
        Some(Step::Deploy(_)) => None,
        other => panic!("{other:?}"),
    }
}

fn static_link(interface: i64, subnet: &str, address: &str) -> Preparation {
    Preparation::Link { interface, subnet: subnet.to_owned(), mode: LinkMode::Static, address: Some(address.parse().unwrap()) }
}

#[test]
fn what_is_in_the_way_goes_first_then_the_address_is_given_and_then_it_is_deployed() {
    let with = |links| asking("10.0.0.9", None, vec![interface(0, links)]);
    let auto = link(7, LinkMode::Auto, "10.0.0.0/24", None);
    assert_eq!(next(&with(vec![auto])), Some(Preparation::Unlink { interface: 0, link: 7 }));
    let only_up = link(8, LinkMode::LinkUp, "10.0.0.0/24", None);
    assert_eq!(next(&with(vec![only_up])), Some(static_link(0, "10.0.0.0/24", "10.0.0.9")), "MAAS takes that away itself");
    assert_eq!(next(&with(vec![link(9, LinkMode::Static, "10.0.0.0/24", Some("10.0.0.9"))])), None);
    let other = link(9, LinkMode::Static, "10.0.0.0/24", Some("10.0.0.8"));
    assert_eq!(next(&with(vec![other])), Some(Preparation::Unlink { interface: 0, link: 9 }));
}

#[test]
fn the_address_goes_to_the_interface_of_its_subnet_and_otherwise_to_the_one_it_boots_from() {
    let up = |id, cidr: &str| interface(id, vec![link(id, LinkMode::LinkUp, cidr, None)]);
    let two = || vec![up(0, "10.0.0.0/24"), up(1, "10.0.1.0/24")];
    assert_eq!(next(&asking("10.0.1.9", None, two())), Some(static_link(1, "10.0.1.0/24", "10.0.1.9")));
    assert_eq!(next(&asking("10.0.1.9", Some("10.0.1.0/24"), two())), Some(static_link(1, "10.0.1.0/24", "10.0.1.9")));
    assert_eq!(next(&asking("10.9.0.9", Some("10.9.0.0/24"), two())), Some(static_link(0, "10.9.0.0/24", "10.9.0.9")));
    let bare = asking("10.0.0.9", None, vec![interface(0, Vec::new())]);
    assert_eq!(reason(&decide(&bare, now())), "MachinePreparationFailed", "nobody says which subnet it is");
}

#[test]
fn interfaces_are_connected_as_they_are_asked_for() {
    let mut facts = asking("10.0.0.9", None, vec![interface(0, vec![link(1, LinkMode::Dhcp, "10.0.0.0/24", None)])]);
    facts.object.spec.static_ip = None;
    let wish = api::NetworkInterface { name: "eth0".to_owned(), subnet: "10.0.0.0/24".to_owned(), mode: api::LinkMode::Dhcp, ip: None };
    facts.object.spec.network_interfaces = vec![wish.clone()];
    assert_eq!(next(&facts), None);
    facts.object.spec.network_interfaces = vec![api::NetworkInterface { name: "eth5".to_owned(), ..wish }];
    assert_eq!(reason(&decide(&facts, now())), "MachinePreparationFailed");
}
