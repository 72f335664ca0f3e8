//! Tables over the pure function: a world in, packets in, answers out.

mod packets;
mod publishing;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};

use super::contents;
use super::{Transport, Zones, answer};
use crate::world::addressing::NewAddress;
use crate::world::dns::{DnsRecord, DnsResource};
use crate::world::network::AddressKind;
use crate::{Emulator, Fleet, Options};

const FLEET: &str = "
domains:
  - {name: maas}
  - {name: k8s.example, ttl: 60}
  - {name: elsewhere.example, authoritative: false}
subnets:
  - {id: 1, cidr: 10.20.0.0/24}
  - {id: 2, cidr: 2001:db8::/64}
machines:
  - hostname: node
    interfaces:
      - {name: eth0, links: [{mode: static, subnet: 1, address: 10.20.0.11}, {mode: static, subnet: 2, address: '2001:db8::11'}]}
      - {name: eth1, links: [{mode: static, subnet: 1, address: 10.20.0.12}]}
  - {hostname: idle, interfaces: [{name: eth0, links: [{mode: auto, subnet: 1}]}]}
  - {hostname: fresh, interfaces: [{name: eth0, links: [{mode: auto, subnet: 1}], discovered: 10.20.0.150}]}
  - {hostname: far, domain: elsewhere.example, interfaces: [{name: eth0, links: [{mode: static, subnet: 1, address: 10.20.0.13}]}]}
";

/// Names with their domain, their addresses and their time to live.
const NAMES: [(&str, &str, &[&str], Option<u32>); 9] = [
    ("api", "k8s.example", &["10.20.0.21", "10.20.0.22"], None),
    ("api", "k8s.example", &["10.20.0.22", "10.20.0.23"], Some(10)),
    ("*", "k8s.example", &["10.20.0.24"], Some(5)),
    ("@", "k8s.example", &["10.20.0.25"], None),
    ("node", "maas", &["10.20.0.26"], None),
    ("deep.below", "maas", &["10.20.0.27"], None),
    ("bare", "maas", &[], None),
    ("outside", "maas", &["192.0.2.1"], None),
    ("ns.sub", "maas", &["10.20.0.28"], None),
];

/// Records: name, domain, type, data.
const RECORDS: [(&str, &str, &str, &str); 14] = [
    ("alias", "maas", "CNAME", "node"),
    ("far-alias", "maas", "CNAME", "www.example.org."),
    ("lost-alias", "maas", "CNAME", "nobody.maas"),
    ("circle", "maas", "CNAME", "circle-too"),
    ("circle-too", "maas", "CNAME", "circle"),
    ("_etcd._tcp", "maas", "SRV", "0 10 2380 api.k8s.example"),
    ("words", "maas", "TXT", "\"two words\" more"),
    (
        "long-words",
        "maas",
        "TXT",
        concat!(
            "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
            "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
        ),
    ),
    ("mail", "maas", "MX", "10 node.maas."),
    ("keys", "maas", "SSHFP", "4 2 123456789abcdef67890123456789abcdef67890123456789abcdef123456789"),
    ("broken", "maas", "MX", "ten node"),
    ("sub", "maas", "NS", "ns.sub.maas."),
    ("sub", "maas", "TXT", "not ours"),
    ("loose", "maas", "NS", "ns.example.org."),
];

fn emulator() -> Emulator {
    let emulator = Emulator::new(Fleet::from_yaml(FLEET).unwrap(), Options::default()).unwrap();
    emulator.world(|world| {
        let domain_of = |world: &crate::world::World, name: &str| world.domains.values().find(|domain| domain.name == name).unwrap().id;
        for (name, domain, addresses, address_ttl) in NAMES {
            let domain = domain_of(world, domain);
            let addresses = addresses
                .iter()
                .map(|ip| {
                    let ip = Some(ip.parse().unwrap());
                    world.add_address(NewAddress { ip, kind: AddressKind::UserReserved, subnet: None, user: None, interface: None })
                })
                .collect();
            world.names.add(None, |id| DnsResource { id, name: name.into(), domain, address_ttl, addresses, made_in: 0 });
        }
        for (name, domain, rrtype, rrdata) in RECORDS {
            let domain = domain_of(world, domain);
            let resource = world.names.add(None, |id| DnsResource {
                id,
                name: name.into(),
                domain,
                address_ttl: None,
                addresses: Vec::new(),
                made_in: 0,
            });
            world.records.add(None, |id| DnsRecord { id, resource, rrtype: rrtype.into(), rrdata: rrdata.into(), ttl: None });
        }
    });
    emulator
}

fn zones() -> Zones {
    emulator().world(|world| contents::build(world))
}

fn question(name: &str, kind: RecordType) -> Message {
    let mut message = Message::new(7, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(format!("{name}.")).unwrap(), kind));
    message
}

fn ask_with(zones: &Zones, question: &Message, transport: Transport) -> Message {
    Message::from_vec(&answer(zones, &question.to_vec().unwrap(), transport).expect("an answer")).unwrap()
}

fn ask(zones: &Zones, name: &str, kind: RecordType) -> Message {
    ask_with(zones, &question(name, kind), Transport::Udp)
}

/// The data of all answers, each with its time to live.
fn answers(message: &Message) -> Vec<String> {
    message.answers.iter().map(|record| format!("{} {}", record.ttl, record.data)).collect()
}

#[test]
fn names_have_the_addresses_maas_gives_them() {
    let zones = zones();
    let table: [(&str, RecordType, &[&str]); 16] = [
        ("node.maas", RecordType::A, &["30 10.20.0.11", "30 10.20.0.26"]),
        ("NoDe.MAAS", RecordType::A, &["30 10.20.0.11", "30 10.20.0.26"]),
        ("node.maas", RecordType::AAAA, &["30 2001:db8::11"]),
        ("eth1.node.maas", RecordType::A, &["30 10.20.0.12"]),
        ("fresh.maas", RecordType::A, &["30 10.20.0.150"]),
        ("api.k8s.example", RecordType::A, &["10 10.20.0.21", "10 10.20.0.22", "10 10.20.0.23"]),
        ("any.k8s.example", RecordType::A, &["5 10.20.0.24"]),
        ("any.thing.k8s.example", RecordType::A, &["5 10.20.0.24"]),
        ("k8s.example", RecordType::A, &["60 10.20.0.25"]),
        ("deep.below.maas", RecordType::A, &["30 10.20.0.27"]),
        ("outside.maas", RecordType::A, &["30 192.0.2.1"]),
        ("11.0.20.10.in-addr.arpa", RecordType::PTR, &["30 node.maas."]),
        ("12.0.20.10.in-addr.arpa", RecordType::PTR, &["30 eth1.node.maas."]),
        ("22.0.20.10.in-addr.arpa", RecordType::PTR, &["10 api.k8s.example."]),
        ("25.0.20.10.in-addr.arpa", RecordType::PTR, &["60 k8s.example."]),
        ("1.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", RecordType::PTR, &["30 node.maas."]),
    ];
    for (name, kind, expected) in table {
        let message = ask(&zones, name, kind);
        assert_eq!(answers(&message), expected, "{name} {kind}");
        assert_eq!(message.metadata.response_code, ResponseCode::NoError, "{name} {kind}");
        assert!(message.metadata.authoritative && message.metadata.recursion_desired && !message.metadata.recursion_available);
        assert!(message.answers.iter().all(|record| record.name.to_ascii().eq_ignore_ascii_case(&format!("{name}."))), "{name} {kind}");
    }
}

#[test]
fn a_name_that_is_not_there_is_told_from_one_without_such_data() {
    let zones = zones();
    let (missing, empty) = (ResponseCode::NXDomain, ResponseCode::NoError);
    let table = [
        ("nobody.maas", RecordType::A, missing),
        ("idle.maas", RecordType::A, missing),
        ("bare.maas", RecordType::A, missing),
        ("eth0.node.maas", RecordType::A, missing),
        ("broken.maas", RecordType::MX, missing),
        ("long-words.maas", RecordType::TXT, missing),
        ("99.0.20.10.in-addr.arpa", RecordType::PTR, missing),
        ("24.0.20.10.in-addr.arpa", RecordType::PTR, missing),
        ("x.api.k8s.example", RecordType::A, missing),
        ("eth1.node.maas", RecordType::AAAA, empty),
        ("node.maas", RecordType::TXT, empty),
        ("node.maas", RecordType::Unknown(65_280), empty),
        ("below.maas", RecordType::A, empty),
        ("any.k8s.example", RecordType::AAAA, empty),
        ("_tcp.maas", RecordType::A, empty),
        ("maas", RecordType::MX, empty),
    ];
    for (name, kind, code) in table {
        let message = ask(&zones, name, kind);
        assert_eq!(message.metadata.response_code, code, "{name} {kind}");
        assert!(message.answers.is_empty() && message.metadata.authoritative, "{name} {kind}");
        let authority: Vec<RecordType> = message.authorities.iter().map(hickory_proto::rr::Record::record_type).collect();
        assert_eq!(authority, [RecordType::SOA], "{name} {kind}: how long `no` may be remembered");
    }
}

#[test]
fn names_of_other_domains_are_refused() {
    let zones = zones();
    for name in ["example.org", "far.elsewhere.example", "example", "1.0.21.10.in-addr.arpa", "in-addr.arpa", ""] {
        let message = ask(&zones, name, RecordType::A);
        assert_eq!(message.metadata.response_code, ResponseCode::Refused, "{name}");
        assert!(!message.metadata.authoritative && message.answers.is_empty());
    }
}

#[test]
fn records_are_read_as_written() {
    let zones = zones();
    let table: [(&str, RecordType, &[&str]); 8] = [
        ("alias.maas", RecordType::CNAME, &["30 node.maas."]),
        ("alias.maas", RecordType::A, &["30 node.maas.", "30 10.20.0.11", "30 10.20.0.26"]),
        ("far-alias.maas", RecordType::A, &["30 www.example.org."]),
        ("circle.maas", RecordType::A, &["30 circle-too.maas.", "30 circle.maas."]),
        ("_etcd._tcp.maas", RecordType::SRV, &["30 0 10 2380 api.k8s.example."]),
        ("mail.maas", RecordType::MX, &["30 10 node.maas."]),
        ("keys.maas", RecordType::SSHFP, &["30 4 2 123456789abcdef67890123456789abcdef67890123456789abcdef123456789"]),
        ("maas", RecordType::NS, &["30 maas."]),
    ];
    for (name, kind, expected) in table {
        assert_eq!(answers(&ask(&zones, name, kind)), expected, "{name} {kind}");
    }
    let RData::TXT(words) = &ask(&zones, "words.maas", RecordType::TXT).answers[0].data else { panic!("no words") };
    assert_eq!(words.txt_data.iter().map(|text| &text[..]).collect::<Vec<_>>(), [&b"two words"[..], b"more"]);
    let lost = ask(&zones, "lost-alias.maas", RecordType::A);
    assert_eq!((lost.metadata.response_code, answers(&lost)), (ResponseCode::NXDomain, vec!["30 nobody.maas.".to_owned()]));
    let service = ask(&zones, "_etcd._tcp.maas", RecordType::SRV);
    assert_eq!(service.additionals.len(), 3, "the addresses of the host a service names come along");
    let everything = ask(&zones, "node.maas", RecordType::ANY);
    assert_eq!(answers(&everything).len(), 3);
}

#[test]
fn zones_begin_with_their_authority_and_end_where_somebody_elses_begin() {
    let zones = zones();
    for origin in ["maas", "k8s.example", "0.20.10.in-addr.arpa"] {
        let message = ask(&zones, origin, RecordType::SOA);
        assert!(answers(&message)[0].contains("nobody.example.com. "), "{origin}: {:?}", answers(&message));
    }
    for (name, glue) in [("sub.maas", 1), ("www.sub.maas", 1), ("loose.maas", 0)] {
        let message = ask(&zones, name, RecordType::A);
        assert_eq!(message.metadata.response_code, ResponseCode::NoError, "{name}");
        assert!(message.answers.is_empty() && !message.metadata.authoritative, "{name}");
        assert_eq!((message.authorities.len(), message.authorities[0].record_type()), (1, RecordType::NS), "{name}");
        assert_eq!(message.additionals.len(), glue, "{name}: addresses of servers below the delegation");
    }
}
