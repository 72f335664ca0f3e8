//! `/emulator/`: what is not MAAS, for tests and people. Faults are posted here, and the truth about calls and machines is read here.
//!
//! | call | does |
//! |---|---|
//! | `GET /emulator/calls?after=N` | calls after number N with the bodies that are kept, and how many each user and each key made |
//! | `DELETE /emulator/calls` | forgets them |
//! | `POST /emulator/faults` | one fault or a list, as in a fleet file |
//! | `DELETE /emulator/faults` | ends all faults |
//! | `GET /emulator/summary` | machines by state and owner, names and reserved addresses |
//! | `GET /emulator/health` | that it answers, nothing else; whoever watches it leaves no trace |
//!
//! Bodies of calls have user-data in them, with the tokens by which machines join their clusters. So whoever asks must have a key of this
//! MAAS (`Authorization: Bearer` and the key), unless everybody has one: that of [`Fleet::DEFAULT_KEY`]. Only its health is anybody's.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::emulator::Emulator;
use crate::faults::Fault;
use crate::fleet::Fleet;
use crate::http::form::Form;
use crate::journal::Entry;
use crate::world::World;
use crate::world::network::AddressKind;
use crate::world::people::Token;

/// Where it begins.
pub const ROOT: &str = "/emulator/";

/// Answers a request below [`ROOT`].
pub fn answer(emulator: &Emulator, request: &Request<Bytes>) -> Response<Bytes> {
    let path = request.uri().path().strip_prefix(ROOT).unwrap_or_default().trim_end_matches('/');
    if (request.method(), path) == (&Method::GET, "health") {
        return json_answer(StatusCode::OK, &json!({}));
    }
    if !emulator.world(|world| may_ask(world, request)) {
        let words =
            "below /emulator/ this MAAS answers those who have one of its keys: send the header `Authorization: Bearer` with the key";
        let mut refusal = json_answer(StatusCode::UNAUTHORIZED, &json!({"error": words}));
        refusal.headers_mut().insert(http::header::WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer"));
        return refusal;
    }
    match (request.method(), path) {
        (&Method::GET, "calls") => {
            let query = Form::url_encoded(request.uri().query().unwrap_or_default().as_bytes()).unwrap_or_default();
            let after = query.get("after").and_then(|text| text.parse().ok()).unwrap_or(0);
            json_answer(StatusCode::OK, &calls(emulator, after))
        }
        (&Method::DELETE, "calls") => {
            emulator.journal(crate::journal::Journal::clear);
            json_answer(StatusCode::OK, &json!({}))
        }
        (&Method::POST, "faults") => post_faults(emulator, request.body()),
        (&Method::DELETE, "faults") => {
            emulator.clear_faults();
            json_answer(StatusCode::OK, &json!({}))
        }
        (&Method::GET, "summary") => json_answer(StatusCode::OK, &emulator.world(|world| summary(world))),
        _ => json_answer(StatusCode::NOT_FOUND, &json!({"error": "there are calls, faults, health and summary below /emulator/"})),
    }
}

fn may_ask(world: &World, request: &Request<Bytes>) -> bool {
    let header = request.headers().get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = header.and_then(|value| value.strip_prefix("Bearer "));
    world.tokens.iter().map(Token::key).any(|key| key == Fleet::DEFAULT_KEY || given == Some(key.as_str()))
}

fn json_answer(status: StatusCode, value: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

fn calls(emulator: &Emulator, after: u64) -> Value {
    emulator.journal(|journal| {
        let entries: Vec<Value> = journal.entries().filter(|entry| entry.number > after).map(shown).collect();
        json!({"total": journal.total(), "by_user": journal.by_user(), "by_key": journal.by_key(), "calls": entries})
    })
}

/// A call with what is kept of its bodies, as text.
fn shown(entry: &Entry) -> Value {
    let text = |body: &Option<Bytes>| body.as_ref().map(|body| String::from_utf8_lossy(body).into_owned());
    let mut value = json!(entry);
    value["request"] = json!(text(&entry.request));
    value["response"] = json!(text(&entry.response));
    value
}

/// One fault or several; none takes effect when one is not understood or is about something that does not exist.
fn post_faults(emulator: &Emulator, body: &[u8]) -> Response<Bytes> {
    let several = body.trim_ascii_start().starts_with(b"[");
    let read = if several { serde_json::from_slice(body) } else { serde_json::from_slice(body).map(|fault: Fault| vec![fault]) };
    match read {
        Err(error) => json_answer(StatusCode::BAD_REQUEST, &json!({"error": format!("not a fault: {error}")})),
        Ok(faults) => {
            let count = faults.len();
            match emulator.inject_all(faults) {
                Ok(()) => json_answer(StatusCode::OK, &json!({"injected": count})),
                Err(unknown) => json_answer(StatusCode::BAD_REQUEST, &json!({"error": unknown.to_string()})),
            }
        }
    }
}

fn summary(world: &World) -> Value {
    let mut by_status: BTreeMap<&str, usize> = BTreeMap::new();
    let mut owned: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for machine in world.all_machines() {
        *by_status.entry(machine.status.name()).or_default() += 1;
        if let Some(owner) = machine.owner {
            owned.entry(world.user_name(owner)).or_default().push(&machine.hostname);
        }
    }
    let reserved = world.addresses.values().filter(|address| address.kind == AddressKind::UserReserved).filter_map(|address| address.ip);
    let names = world
        .names
        .values()
        .map(|name| json!({"id": name.id, "name": name.name, "domain": world.domains.get(name.domain).map(|domain| domain.name.as_str())}));
    json!({
        "now": world.now.to_string(),
        "machines": by_status,
        "owned": owned,
        "vm_hosts": world.vm_hosts.len(),
        "dns_resources": names.collect::<Vec<Value>>(),
        "reserved_addresses": reserved.map(|ip| ip.to_string()).collect::<Vec<String>>(),
    })
}
