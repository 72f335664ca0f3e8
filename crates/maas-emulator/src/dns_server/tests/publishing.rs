//! What becomes visible when, under a clock that only the test moves.

use std::time::Duration;

use hickory_proto::rr::RecordType;

use super::super::Publication;
use super::{answers, ask, emulator};
use crate::timings::Between;
use crate::world::addressing::NewAddress;
use crate::world::network::AddressKind;
use crate::{Emulator, world::World};

fn give_api_an_address(world: &mut World, last: u8) {
    let ip = Some([10, 20, 0, last].into());
    let address = world.add_address(NewAddress { ip, kind: AddressKind::UserReserved, subnet: None, user: None, interface: None });
    let name = world.names.values_mut().find(|name| name.name == "deep.below").unwrap();
    name.addresses = vec![address];
}

fn published(publication: &mut Publication) -> Vec<String> {
    answers(&ask(&publication.zones(), "deep.below.maas", RecordType::A))
}

fn with_delay(from: f64, to: f64) -> (Emulator, Publication) {
    let emulator = emulator();
    emulator.world(|world| world.timings.dns_publication = Between(from, to));
    let publication = Publication::of(emulator.clone());
    (emulator, publication)
}

#[test]
fn a_change_is_seen_after_the_delay_and_what_came_meanwhile_after_another() {
    let (emulator, mut publication) = with_delay(2.0, 2.0);
    emulator.world(|world| give_api_an_address(world, 31));
    assert_eq!(published(&mut publication), ["30 10.20.0.27"], "the change is being written");
    emulator.clock().advance(Duration::from_millis(1999));
    emulator.world(|world| give_api_an_address(world, 32));
    assert_eq!(published(&mut publication), ["30 10.20.0.27"]);
    emulator.clock().advance(Duration::from_millis(1));
    assert_eq!(published(&mut publication), ["30 10.20.0.31"], "the first change, not yet the second");
    emulator.clock().advance(Duration::from_millis(1999));
    assert_eq!(published(&mut publication), ["30 10.20.0.31"]);
    emulator.clock().advance(Duration::from_millis(1));
    assert_eq!(published(&mut publication), ["30 10.20.0.32"]);
}

#[test]
fn without_a_delay_changes_are_seen_at_once() {
    let (emulator, mut publication) = with_delay(0.0, 0.0);
    emulator.world(|world| give_api_an_address(world, 31));
    assert_eq!(published(&mut publication), ["30 10.20.0.31"]);
}

#[test]
fn the_delay_lies_between_its_bounds_and_queries_leave_the_worlds_chance_alone() {
    let (emulator, mut publication) = with_delay(1.0, 3.0);
    let next = emulator.world(|world| world.random.clone().bits());
    emulator.world(|world| give_api_an_address(world, 31));
    published(&mut publication);
    emulator.clock().advance(Duration::from_millis(999));
    assert_eq!(published(&mut publication), ["30 10.20.0.27"]);
    emulator.clock().advance(Duration::from_millis(2001));
    assert_eq!(published(&mut publication), ["30 10.20.0.31"]);
    assert_eq!(emulator.world(|world| world.random.clone().bits()), next);
}

#[test]
fn a_new_subnet_gets_its_reverse_zone() {
    let (emulator, mut publication) = with_delay(0.0, 0.0);
    let refused =
        |publication: &mut Publication| ask(&publication.zones(), "1.0.21.10.in-addr.arpa", RecordType::PTR).metadata.response_code;
    assert_eq!(refused(&mut publication), hickory_proto::op::ResponseCode::Refused);
    emulator.world(|world| {
        let mut subnet = world.subnets.values().next().unwrap().clone();
        subnet.cidr = "10.21.0.0/24".parse().unwrap();
        world.subnets.add(None, |id| crate::world::network::Subnet { id, ..subnet });
    });
    assert_eq!(refused(&mut publication), hickory_proto::op::ResponseCode::NXDomain);
}
