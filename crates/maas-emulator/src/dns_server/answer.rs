//! Answers one packet from the zones. Pure: the server hands it bytes, and so do tests.

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use super::zones::{Found, Zones, renamed};

/// Bytes of a packet's header.
const HEADER: usize = 12;
/// What a client without EDNS takes over UDP, in bytes.
const PLAIN_UDP: u16 = 512;
/// What this server sends and takes over UDP at most: it fits every link's packets.
const LARGEST_UDP: u16 = 1232;
/// How many aliases are followed.
const LONGEST_CHAIN: usize = 8;
/// A question needs no more than an OPT, a signature and the SOA of a zone transfer; the rest is an attack on our memory.
const MOST_EXTRA_RECORDS: u16 = 8;

/// How a packet came, which limits how long its answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// In a datagram.
    Udp,
    /// In a stream.
    Tcp,
}

/// The answer to a packet; none to what is no question at all.
pub fn answer(zones: &Zones, packet: &[u8], transport: Transport) -> Option<Vec<u8>> {
    let header = packet.get(..HEADER)?;
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let is_answer = header[2] & 0x80 != 0;
    if is_answer {
        return None;
    }
    let id = number(0);
    let operation = OpCode::from_u8((header[2] >> 3) & 0x0F);
    if operation != OpCode::Query {
        return refuse(id, operation, ResponseCode::NotImp);
    }
    let extra = number(8).saturating_add(number(10));
    if number(4) != 1 || number(6) != 0 || extra > MOST_EXTRA_RECORDS {
        return refuse(id, operation, ResponseCode::FormErr);
    }
    let Ok(mut question) = Message::from_vec(packet) else { return refuse(id, operation, ResponseCode::FormErr) };
    let Some(query) = question.queries.pop() else { return refuse(id, operation, ResponseCode::FormErr) };
    let mut message = reply(zones, &query, question.edns.as_ref());
    message.metadata.id = id;
    message.metadata.recursion_desired = question.metadata.recursion_desired;
    message.metadata.checking_disabled = question.metadata.checking_disabled;
    message.edns = question.edns.as_ref().map(own_edns);
    message.add_query(query);
    encode(message, largest(transport, question.edns.as_ref()))
}

fn refuse(id: u16, operation: OpCode, code: ResponseCode) -> Option<Vec<u8>> {
    Message::error_msg(id, operation, code).to_vec().ok()
}

fn own_edns(theirs: &Edns) -> Edns {
    let mut edns = Edns::new();
    edns.set_max_payload(LARGEST_UDP).set_version(0).set_dnssec_ok(theirs.flags().dnssec_ok);
    edns
}

fn largest(transport: Transport, edns: Option<&Edns>) -> usize {
    match transport {
        Transport::Tcp => usize::from(u16::MAX),
        Transport::Udp => usize::from(edns.map_or(PLAIN_UDP, Edns::max_payload).clamp(PLAIN_UDP, LARGEST_UDP)),
    }
}

/// Leaves out first what nobody asked for, then everything: the client comes back over TCP.
fn encode(mut message: Message, largest: usize) -> Option<Vec<u8>> {
    let fits = |message: &Message| message.to_vec().ok().filter(|bytes| bytes.len() <= largest);
    if let Some(bytes) = fits(&message) {
        return Some(bytes);
    }
    message.additionals.clear();
    fits(&message).or_else(|| message.truncate().to_vec().ok())
}

fn reply(zones: &Zones, query: &Query, edns: Option<&Edns>) -> Message {
    let refused = |code| Message::error_msg(0, OpCode::Query, code);
    if edns.is_some_and(|edns| edns.version() > 0) {
        return refused(ResponseCode::BADVERS);
    }
    match (query.query_class, query.query_type) {
        (_, RecordType::OPT) => refused(ResponseCode::FormErr),
        (DNSClass::IN, RecordType::AXFR | RecordType::IXFR) => refused(ResponseCode::Refused),
        (DNSClass::IN, kind) if is_obsolete_mail(kind) => refused(ResponseCode::NotImp),
        (DNSClass::IN, kind) => look_up(zones, &query.name, kind),
        _ => refused(ResponseCode::Refused),
    }
}

/// MAILB and MAILA ask for records that no longer exist.
fn is_obsolete_mail(kind: RecordType) -> bool {
    matches!(u16::from(kind), 253 | 254)
}

/// Follows a name through its aliases as far as the zones know it.
fn look_up(zones: &Zones, name: &Name, kind: RecordType) -> Message {
    let mut message = Message::new(0, MessageType::Response, OpCode::Query);
    let mut name = name.clone();
    for step in 0..LONGEST_CHAIN {
        let Some(zone) = zones.zone_of(&name) else {
            if step == 0 {
                message.metadata.response_code = ResponseCode::Refused;
            }
            return message;
        };
        let records = match zone.find(&name) {
            Found::Name(records) => records,
            Found::Elsewhere(servers) => {
                message.add_authorities(servers.into_iter().cloned());
                add_targets(zones, &mut message);
                return message;
            }
            Found::Nothing => {
                message.metadata.authoritative = true;
                message.metadata.response_code = ResponseCode::NXDomain;
                message.add_authority(zone.no());
                return message;
            }
        };
        message.metadata.authoritative = true;
        let wanted: Vec<Record> = records
            .iter()
            .filter(|record| kind == RecordType::ANY || record.record_type() == kind)
            .map(|record| renamed(record, &name))
            .collect();
        if !wanted.is_empty() {
            message.add_answers(wanted);
            add_targets(zones, &mut message);
            return message;
        }
        let alias = records.iter().find_map(|record| match &record.data {
            RData::CNAME(target) => Some((record, target.0.clone())),
            _ => None,
        });
        let Some((record, target)) = alias else {
            message.add_authority(zone.no());
            return message;
        };
        message.add_answer(renamed(record, &name));
        let is_circle = message.answers.iter().any(|answered| answered.name == target);
        if is_circle {
            return message;
        }
        name = target;
    }
    message
}

/// Adds the addresses of the hosts that the records name.
fn add_targets(zones: &Zones, message: &mut Message) {
    let mut targets: Vec<Name> = Vec::new();
    for record in message.answers.iter().chain(&message.authorities) {
        let target = match &record.data {
            RData::NS(server) => &server.0,
            RData::MX(mail) => &mail.exchange,
            RData::SRV(server) => &server.target,
            _ => continue,
        };
        if !targets.contains(target) {
            targets.push(target.clone());
        }
    }
    let addresses: Vec<Record> = targets.iter().flat_map(|target| zones.addresses(target)).collect();
    message.add_additionals(addresses);
}
