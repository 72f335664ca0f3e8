//! What kind of call a request is. The wire asks it of every one.

use bytes::Bytes;
use http::Request;

use super::trouble::CallKind;

pub fn of_kubernetes(place: &str, request: &Request<kube::client::Body>) -> CallKind {
    let path = request.uri().path();
    let watching = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let skip = if parts.first() == Some(&"api") { 2 } else { 3 };
    let rest = parts.get(skip..).unwrap_or_default();
    let rest = if rest.first() == Some(&"namespaces") && rest.len() > 2 { &rest[2..] } else { rest };
    let resource = rest.first().copied().unwrap_or_default();
    let verb = match request.method().as_str() {
        "GET" if watching => "WATCH",
        "GET" if rest.len() < 2 => "LIST",
        verb => verb,
    };
    let part = rest.get(2).map(|part| format!("/{part}")).unwrap_or_default();
    CallKind(format!("{place} {verb} {resource}{part}"))
}

pub fn of_maas(request: &Request<Bytes>) -> CallKind {
    let path = request.uri().path().trim_start_matches("/MAAS/api/2.0/").trim_end_matches('/');
    let mut parts: Vec<&str> = path.split('/').collect();
    // Every second part is the name or number of something.
    parts.iter_mut().skip(1).step_by(2).for_each(|part| *part = "{}");
    let query = request.uri().query().unwrap_or_default();
    let operation =
        form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "op").map(|(_, value)| format!(" {value}")).unwrap_or_default();
    CallKind(format!("maas {} {}{operation}", request.method(), parts.join("/")))
}
