//! Packets of every kind: long answers, options, other classes and operations, and bytes that are no packet.

use hickory_proto::op::{Edns, Message, OpCode, ResponseCode};
use hickory_proto::rr::{DNSClass, RecordType};
use proptest::prelude::*;

use super::super::zones::{Zones, absolute, address_record};
use super::{Transport, answer, answers, ask, ask_with, question, zones};

fn zones_with_a_long_answer() -> Zones {
    let mut zones = zones();
    for last in 0..=255 {
        zones.add_record(address_record(absolute("many.maas").unwrap(), 30, [10, 20, 1, last].into()));
    }
    for last in 0..40 {
        zones.add_record(address_record(absolute("some.maas").unwrap(), 30, [10, 20, 1, last].into()));
    }
    zones
}

fn with_edns(mut message: Message, payload: u16, version: u8) -> Message {
    let mut edns = Edns::new();
    edns.set_max_payload(payload).set_version(version);
    message.set_edns(edns);
    message
}

#[test]
fn what_does_not_fit_a_datagram_is_truncated_and_comes_whole_over_tcp() {
    let zones = zones_with_a_long_answer();
    let table = [
        ("some.maas", None, Transport::Udp, None),
        ("some.maas", Some(100), Transport::Udp, None),
        ("some.maas", Some(1232), Transport::Udp, Some(40)),
        ("many.maas", Some(65_535), Transport::Udp, None),
        ("many.maas", None, Transport::Tcp, Some(256)),
    ];
    for (name, payload, transport, expected) in table {
        let plain = question(name, RecordType::A);
        let asked = payload.map_or_else(|| plain.clone(), |payload| with_edns(plain.clone(), payload, 0));
        let bytes = answer(&zones, &asked.to_vec().unwrap(), transport).unwrap();
        let message = Message::from_vec(&bytes).unwrap();
        assert_eq!(message.metadata.truncation, expected.is_none(), "{name} {payload:?} {transport:?}");
        assert_eq!(message.answers.len(), expected.unwrap_or(0), "{name} {payload:?} {transport:?}");
        assert_eq!(message.edns.is_some(), payload.is_some(), "options are answered with options only");
        assert!(transport == Transport::Tcp || bytes.len() <= 1232);
    }
}

#[test]
fn options_are_tolerated_and_unknown_versions_of_them_named() {
    let zones = zones();
    let fine = ask_with(&zones, &with_edns(question("node.maas", RecordType::AAAA), 4096, 0), Transport::Udp);
    assert_eq!(answers(&fine), ["30 2001:db8::11"]);
    let newer = ask_with(&zones, &with_edns(question("node.maas", RecordType::A), 4096, 1), Transport::Udp);
    assert_eq!(u16::from(newer.metadata.response_code), 16);
    assert!(newer.answers.is_empty());
}

#[test]
fn other_classes_operations_and_transfers_are_declined() {
    let zones = zones();
    let mut chaos = question("version.bind", RecordType::TXT);
    chaos.queries[0].query_class = DNSClass::CH;
    assert_eq!(ask_with(&zones, &chaos, Transport::Udp).metadata.response_code, ResponseCode::Refused);
    for operation in [OpCode::Status, OpCode::Notify, OpCode::Update] {
        let mut other = question("node.maas", RecordType::A);
        other.metadata.op_code = operation;
        let message = ask_with(&zones, &other, Transport::Udp);
        assert_eq!((message.metadata.response_code, message.metadata.id), (ResponseCode::NotImp, 7), "{operation:?}");
    }
    let table = [
        (RecordType::AXFR, ResponseCode::Refused),
        (RecordType::IXFR, ResponseCode::Refused),
        (RecordType::OPT, ResponseCode::FormErr),
        (RecordType::Unknown(253), ResponseCode::NotImp),
    ];
    for (kind, code) in table {
        assert_eq!(ask(&zones, "maas", kind).metadata.response_code, code, "{kind}");
    }
}

#[test]
fn what_is_no_question_gets_an_error_or_nothing() {
    let zones = zones();
    let good = question("node.maas", RecordType::A).to_vec().unwrap();
    let code = |packet: &[u8]| {
        let bytes = answer(&zones, packet, Transport::Udp)?;
        assert_eq!(bytes[..2], good[..2], "the id is that of the question");
        Some(Message::from_vec(&bytes).unwrap().metadata.response_code)
    };
    assert_eq!(code(&good), Some(ResponseCode::NoError));
    assert_eq!(code(&good[..11]), None, "too short to be answered");
    assert_eq!(code(&good[..good.len() - 1]), Some(ResponseCode::FormErr));
    let changed = |at: usize, value: u8| {
        let mut packet = good.clone();
        packet[at] = value;
        packet
    };
    assert_eq!(code(&changed(2, 0x80)), None, "two servers must not answer each other for ever");
    assert_eq!(code(&changed(5, 0)), Some(ResponseCode::FormErr), "no question");
    assert_eq!(code(&changed(5, 2)), Some(ResponseCode::FormErr), "two questions");
    assert_eq!(code(&changed(7, 1)), Some(ResponseCode::FormErr), "an answer in a question");
    assert_eq!(code(&changed(10, 0xFF)), Some(ResponseCode::FormErr), "more extra records than a question has");
    assert_eq!(code(&changed(12, 0xC0)), Some(ResponseCode::FormErr), "a name that points nowhere");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn no_bytes_make_it_panic(packet in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = answer(&Zones::default(), &packet, Transport::Udp);
    }
}

/// One server's worth of zones is enough for all the damaged questions.
#[test]
fn no_damage_to_a_question_makes_it_panic_or_answer_too_long() {
    let zones = zones_with_a_long_answer();
    let questions: Vec<Vec<u8>> = ["many.maas", "some.maas", "alias.maas", "_etcd._tcp.maas", "x.sub.maas", "a.b.k8s.example"]
        .into_iter()
        .map(|name| with_edns(question(name, RecordType::ANY), 1232, 0).to_vec().unwrap())
        .collect();
    let mut random = crate::random::Random::new(1);
    for _ in 0..20_000 {
        let mut packet = questions[random.below(questions.len())].clone();
        for _ in 0..=random.below(4) {
            let at = random.below(packet.len());
            packet[at] = u8::try_from(random.below(256)).unwrap();
        }
        packet.truncate(packet.len() - random.below(4));
        let length = answer(&zones, &packet, Transport::Udp).map_or(0, |bytes| bytes.len());
        assert!(length <= 1232, "{length} bytes to {packet:?}");
    }
}
