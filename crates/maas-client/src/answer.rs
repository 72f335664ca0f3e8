//! What an answer means: the value asked for, or which [`Error`]. Used by the client after every attempt.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    call::Call,
    error::{Error, Refusal},
    named::Named,
    tolerant::Tolerant,
};

/// What MAAS asks to wait after a conflict of the moment where it says so.
const CONFLICT_WAIT: Duration = Duration::from_secs(5);

/// Longer words are cut: they are for people.
const MOST_WORDS: usize = 2_000;

/// The body's kind, as far as errors differ by it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Text,
    Other,
}

fn kind(headers: &HeaderMap) -> Kind {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match text.split(';').next().unwrap_or_default().trim() {
        "application/json" => Kind::Json,
        "text/plain" => Kind::Text,
        _ => Kind::Other,
    }
}

/// How long the answer asks to wait, now being so many seconds since 1970. MAAS says it in seconds, of which more than fit are as many as
/// fit; a gateway may name the time instead, and one that is over means at once.
pub(crate) fn retry_after(headers: &HeaderMap, now: u64) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let moment = |text: &str| u64::try_from(jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_second()).ok();
    // Whoever names a time goes by his own clock.
    let theirs = headers.get(header::DATE).and_then(|date| moment(date.to_str().ok()?.trim()));
    Some(Duration::from_secs(moment(text)?.saturating_sub(theirs.unwrap_or(now))))
}

/// The value in a successful answer.
pub(crate) fn value<T: DeserializeOwned>(call: &Call, response: &Response<Bytes>) -> Result<T, Error> {
    let headers = response.headers();
    if kind(headers) != Kind::Json {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("without a content type");
        return Err(unreadable(call, format!("it answers {} {kind} instead of JSON", response.status().as_u16())));
    }
    if is_null(response) {
        return Err(unreadable(call, "its answer is null".to_owned()));
    }
    decode(response.body()).map_err(|place| unreadable(call, format!("its JSON could not be read at `{place}`")))
}

/// The one object in a successful answer.
pub(crate) fn object<T: DeserializeOwned + Named>(call: &Call, response: &Response<Bytes>) -> Result<T, Error> {
    let object: T = value(call, response)?;
    if object.is_named() { Ok(object) } else { Err(unreadable(call, format!("the answer names no {}", T::KIND))) }
}

/// Whether the answer is JSON's null, which MAAS gives in one place only.
pub(crate) fn is_null(response: &Response<Bytes>) -> bool {
    kind(response.headers()) == Kind::Json && response.body().trim_ascii() == b"null"
}

/// Reads JSON as MAAS writes it. The error is the place only: what stands there may be a secret.
pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_slice(body);
    match T::deserialize(Tolerant(&mut json)) {
        Ok(value) => json.end().map(|()| value).map_err(|_| "the end".to_owned()),
        Err(_) => Err(place::<T>(body)),
    }
}

/// Where reading fails. Watching the place costs time, so it is done only after a failure.
fn place<T: DeserializeOwned>(body: &[u8]) -> String {
    let mut json = serde_json::Deserializer::from_slice(body);
    let result: Result<T, _> = serde_path_to_error::deserialize(Tolerant(&mut json));
    result.err().map_or_else(String::new, |error| error.path().to_string())
}

/// Whether a call without a value was done. A page in HTML is what a stranger answers to anything.
pub(crate) fn done(call: &Call, response: &Response<Bytes>) -> Result<(), Error> {
    if kind(response.headers()) == Kind::Other && !response.body().is_empty() {
        return Err(unreadable(call, format!("it answers {} with a page", response.status().as_u16())));
    }
    Ok(())
}

/// An answer that no MAAS gives: whoever answered a read is none, but a write may have been done by somebody.
fn unreadable(call: &Call, reason: String) -> Error {
    let name = Box::new(call.name.clone());
    if call.name.method == Method::GET {
        Error::NotMaas { call: name, reason }
    } else {
        Error::OutcomeUnknown { call: name, words: reason }
    }
}

/// Whether a gateway answered that it could not serve the call now. Other strangers answer the same to every attempt.
pub(crate) fn is_of_the_moment(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}

/// Which error an answer is, or the answer again if it is none. `retry_after` is how long it asks to wait.
pub(crate) fn check(
    call: &Call,
    response: Response<Bytes>,
    retry_after: Option<Duration>,
    attempts: u32,
) -> Result<Response<Bytes>, Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let name = Box::new(call.name.clone());
    let kind = kind(response.headers());
    // Read in these arms only: the answer to a bad key holds the good one.
    let words = || words(kind, response.body());
    Err(match status {
        StatusCode::UNAUTHORIZED if asks_for_key(kind, response.headers()) => Error::Unauthenticated { call: name },
        StatusCode::FORBIDDEN if kind == Kind::Text && is_of_maas(response.headers()) => Error::NotPermitted { call: name, words: words() },
        StatusCode::NOT_FOUND => missing(call, kind, response.headers(), words()),
        // Before 3.2 a conflict of the moment came without the header; its page tells it apart all the same.
        StatusCode::CONFLICT if is_page_of_conflict(kind, response.body()) => {
            Error::Conflict { call: name, words: String::new(), retry_after: Some(retry_after.unwrap_or(CONFLICT_WAIT)) }
        }
        StatusCode::CONFLICT if kind != Kind::Other && is_of_maas(response.headers()) => {
            Error::Conflict { call: name, words: words(), retry_after }
        }
        StatusCode::GONE if kind == Kind::Text && is_of_maas(response.headers()) => Error::Gone { call: name, words: words() },
        StatusCode::INTERNAL_SERVER_ERROR if is_of_maas(response.headers()) || is_said_after_transaction(kind, &words()) => {
            Error::Failed { call: name, words: words() }
        }
        // Somebody in between failed, or the web server below MAAS: neither says anything of the call.
        StatusCode::INTERNAL_SERVER_ERROR if call.name.method == Method::GET => {
            let words = "somebody in front of MAAS answers 500".to_owned();
            Error::Unavailable { call: name, words, retry_after, attempts, answered: false }
        }
        // It may be MAAS all the same, in words of a driver that nobody knows: they are all a person has.
        StatusCode::INTERNAL_SERVER_ERROR if kind == Kind::Text => {
            Error::OutcomeUnknown { call: name, words: format!("it answers 500: {}", words()) }
        }
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT if call.name.method != Method::GET => {
            let words = format!("the gateway in front of MAAS gave up ({})", status.as_u16());
            Error::OutcomeUnknown { call: name, words }
        }
        // What is a gateway's may have been passed on before it gave up.
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            if call.name.method != Method::GET && !is_maas_unavailable(kind, response.headers(), &words()) =>
        {
            let words = format!("a gateway in front of MAAS answers {}", status.as_u16());
            Error::OutcomeUnknown { call: name, words }
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            let words = words();
            let answered = is_maas_unavailable(kind, response.headers(), &words);
            let words = if words.is_empty() { format!("it answers {}", status.as_u16()) } else { words };
            Error::Unavailable { call: name, words, retry_after, attempts, answered }
        }
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            Error::NotMaas { call: name, reason: "a proxy in between asks who is calling".to_owned() }
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::CONFLICT | StatusCode::GONE => {
            unreadable(call, format!("its {} is not one of MAAS", status.as_u16()))
        }
        status if status.is_client_error() && is_refusal(kind, response.headers()) => {
            Error::Refused { call: name, status: status.as_u16(), refusal: refusal(kind, status, response.body()) }
        }
        status => unreadable(call, format!("it answers {}{}", status.as_u16(), elsewhere(status, response.headers()))),
    })
}

/// What answers that the view of an object gives always carry; a view that was left by way of an error drops it.
const API_HASH: &str = "x-maas-api-hash";

/// Whether it bears what MAAS's own web framework gives to every refusal: `DENY` since 3.3. Before, it was the `SAMEORIGIN` that gateways like
/// to give to what they answer too, so there the word that answers differ by cookie has to stand beside it, which is nothing a gateway
/// without sessions says. One that adds its own mark leaves MAAS's.
fn is_of_maas(headers: &HeaderMap) -> bool {
    let marked =
        |mark: &[u8]| headers.get_all(header::X_FRAME_OPTIONS).iter().any(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(mark));
    headers.contains_key(API_HASH) || marked(b"DENY") || (marked(b"SAMEORIGIN") && differs_by_cookie(headers))
}

fn differs_by_cookie(headers: &HeaderMap) -> bool {
    let names = headers.get_all(header::VARY).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    names.map(<[u8]>::trim_ascii).any(|name| name.eq_ignore_ascii_case(b"Cookie"))
}

/// How MAAS begins to say that it cannot do what is left to do after its transaction. What it says then comes past its usual headers. With
/// the latter six it passes on what a power driver says.
const SAID_AFTER_TRANSACTION: [&str; 9] = [
    "Unable to connect to any rack controller",
    "Unable to change power state",
    "No more IPs available in subnet",
    "Could not contact node's BMC",
    "Could not authenticate to node's BMC",
    "Failed talking to node's BMC",
    "Failed to complete power action",
    "Missing or invalid power setting",
    "Missing power tool",
];

fn is_said_after_transaction(kind: Kind, words: &str) -> bool {
    kind == Kind::Text && SAID_AFTER_TRANSACTION.iter().any(|beginning| words.starts_with(beginning))
}

/// Where a redirect leads: mostly from `http://` to the `https://` that should have been given. Without its query, which may repeat ours.
fn elsewhere(status: StatusCode, headers: &HeaderMap) -> String {
    let place = headers.get(header::LOCATION).and_then(|value| value.to_str().ok()).filter(|_| status.is_redirection());
    let place = place.and_then(|place| place.split(['?', '#']).next()).map(str::trim).filter(|place| !place.is_empty());
    place.map_or_else(String::new, |place| format!(" and leads to {place}, where the call was not sent"))
}

/// Whether it is MAAS itself that is not available, and not a gateway before it: those say so in pages, in JSON and in words of their own.
fn is_maas_unavailable(kind: Kind, headers: &HeaderMap, words: &str) -> bool {
    match kind {
        Kind::Other => false,
        Kind::Json => is_of_maas(headers),
        Kind::Text => is_of_maas(headers) || is_said_after_transaction(kind, words),
    }
}

/// Whether MAAS's views refused the call: in words or by field; what they say of a method they do not know is an empty page.
fn is_refusal(kind: Kind, headers: &HeaderMap) -> bool {
    headers.contains_key(API_HASH) || (kind != Kind::Other && is_of_maas(headers))
}

/// Whether a 401 is about the API key. A proxy that wants a password asks for another scheme.
fn asks_for_key(kind: Kind, headers: &HeaderMap) -> bool {
    match headers.get(header::WWW_AUTHENTICATE) {
        Some(scheme) => scheme.as_bytes().get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"OAuth")),
        None => kind == Kind::Text && is_of_maas(headers),
    }
}

/// Whether a 409 is the page of a conflict that outlasted MAAS's own retries. It bears none of MAAS's headers, but its words.
fn is_page_of_conflict(kind: Kind, body: &[u8]) -> bool {
    kind == Kind::Other && String::from_utf8_lossy(body).contains("Conflict error. Try your request again")
}

/// What a 404 is. An object is missing only if MAAS itself says so: a load balancer without a MAAS behind it answers 404 to anything, and
/// callers take a missing machine for a deleted one.
fn missing(call: &Call, kind: Kind, headers: &HeaderMap, words: String) -> Error {
    let name = Box::new(call.name.clone());
    if kind != Kind::Text {
        return unreadable(call, "it has no API below this address".to_owned());
    }
    // Before 3.3 the words are any web server's.
    let says_so = words.ends_with(" matches the given query.") || (words == "Not Found" && headers.contains_key(API_HASH));
    if says_so {
        return Error::NotFound { call: name, words };
    }
    if call.taken_is_not_found && (words.contains("already in use") || words.contains("within the reserved range")) {
        return Error::Conflict { call: name, words, retry_after: None };
    }
    // A path that something on the way changed, or that this version does not have, says nothing about the object; nor do other words of
    // MAAS.
    let of_maas = is_of_maas(headers) && !words.is_empty() && words != "Not Found";
    if of_maas || words.starts_with("Unknown API endpoint: ") {
        let refusal = Refusal { words, fields: BTreeMap::new() };
        return Error::Refused { call: name, status: StatusCode::NOT_FOUND.as_u16(), refusal };
    }
    unreadable(call, "its 404 is not one of MAAS".to_owned())
}

/// What MAAS said, as text. Pages in HTML are for browsers and say nothing.
fn words(kind: Kind, body: &[u8]) -> String {
    let text = match kind {
        Kind::Text => String::from_utf8_lossy(body).into_owned(),
        Kind::Json => match serde_json::from_slice(body) {
            Ok(Value::String(text)) => text,
            Ok(value) => Refusal { fields: fields(value), words: String::new() }.to_string(),
            Err(_) => String::new(),
        },
        Kind::Other => String::new(),
    };
    text.trim().chars().filter(|character| !character.is_control() || *character == '\n').collect()
}

/// The first words of many.
pub(crate) fn cut(mut words: String) -> String {
    if let Some((end, _)) = words.char_indices().nth(MOST_WORDS) {
        words.truncate(end);
    }
    words
}

fn refusal(kind: Kind, status: StatusCode, body: &[u8]) -> Refusal {
    if kind == Kind::Json
        && let Ok(value @ Value::Object(_)) = serde_json::from_slice(body)
    {
        return Refusal { fields: fields(value), words: String::new() };
    }
    let words = words(kind, body);
    let words = if words.is_empty() { status.canonical_reason().unwrap_or_default().to_owned() } else { words };
    Refusal { fields: BTreeMap::new(), words }
}

/// Complaints by field; a complaint that is no list counts as a list of one.
fn fields(value: Value) -> BTreeMap<String, Vec<String>> {
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let list = |value: Value| match value {
        Value::Array(values) => values.into_iter().map(text).collect(),
        other => vec![text(other)],
    };
    match value {
        Value::Object(map) => map.into_iter().map(|(field, value)| (field, list(value))).collect(),
        other => BTreeMap::from([("__all__".to_owned(), list(other))]),
    }
}
