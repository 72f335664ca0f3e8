//! Goes through a recorded exchange and rewrites every id in it, each with its kind. `--rename` gives ids other numbers this way.

use serde_json::{Map, Value};

use super::{
    mapping::Kind,
    places::{Place, kind_of_parameter, parts, place},
    recordings::{Exchange, Request, relative},
};

/// Rewrites the ids of a request and of its answer.
pub fn exchange(exchange: &mut Exchange, rewrite: &mut impl FnMut(Kind, &str) -> String) {
    let mentioned = mentions(&exchange.request, rewrite);
    request(&mut exchange.request, rewrite);
    let collection = relative(&exchange.request.path).trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    body(&collection, &mut exchange.response.body, rewrite);
    for (before, after) in mentioned {
        replace_mentions(&mut exchange.response.body, &before, &after);
    }
}

/// Rewrites the ids in an answer to a request of this collection.
pub fn body(parent: &str, value: &mut Value, rewrite: &mut impl FnMut(Kind, &str) -> String) {
    match value {
        Value::Object(constraints) if parent == "constraints_by_type" => self::constraints(constraints, rewrite),
        Value::Object(object) => {
            let places: Vec<Place> = object.keys().map(|key| place(key, object, parent)).collect();
            for ((key, value), place) in object.iter_mut().zip(places) {
                at(place, key, value, rewrite);
            }
        }
        Value::Array(rows) => rows.iter_mut().for_each(|row| body(parent, row, rewrite)),
        _ => {}
    }
}

fn at(place: Place, key: &str, value: &mut Value, rewrite: &mut impl FnMut(Kind, &str) -> String) {
    match (place, value) {
        (Place::Made(kind), value) => id(kind, value, rewrite),
        (Place::Fqdn, Value::String(text)) => {
            if let Some((host, domain)) = text.split_once('.') {
                *text = format!("{}.{domain}", rewrite(Kind::Hostname, host));
            }
        }
        (Place::Key, Value::String(text)) => {
            *text = text.split(':').map(|part| rewrite(Kind::Token, part)).collect::<Vec<_>>().join(":");
        }
        (Place::Uri, Value::String(text)) => *text = uri(text, rewrite),
        (_, value) => body(key, value, rewrite),
    }
}

fn id(kind: Kind, value: &mut Value, rewrite: &mut impl FnMut(Kind, &str) -> String) {
    match value {
        Value::String(text) => *text = rewrite(kind, text),
        Value::Number(number) => {
            if let Ok(other) = rewrite(kind, &number.to_string()).parse::<i64>() {
                *value = other.into();
            }
        }
        _ => {}
    }
}

fn uri(uri: &str, rewrite: &mut impl FnMut(Kind, &str) -> String) -> String {
    let (path, query) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
    let path = self::path(path, rewrite);
    let parameter = |pair: &str| match pair.split_once('=') {
        Some((key @ ("before" | "after"), number)) => format!("{key}={}", rewrite(Kind::Event, number)),
        _ => pair.to_owned(),
    };
    match query {
        Some(query) => format!("{path}?{}", query.split('&').map(parameter).collect::<Vec<_>>().join("&")),
        None => path,
    }
}

fn path(path: &str, rewrite: &mut impl FnMut(Kind, &str) -> String) -> String {
    let part = |(part, kind): (&str, Option<Kind>)| kind.map_or_else(|| part.to_owned(), |kind| rewrite(kind, part));
    parts(path).into_iter().map(part).collect::<Vec<_>>().join("/")
}

fn request(request: &mut Request, rewrite: &mut impl FnMut(Kind, &str) -> String) {
    let operation = request.operation().map(str::to_owned);
    request.path = path(&request.path, rewrite);
    for (key, value) in request.query.iter_mut().chain(&mut request.form) {
        if let Some(kind) = kind_of_parameter(key, operation.as_deref()) {
            *value = rewrite(kind, value);
        }
    }
}

/// Ids under labels, and ids as keys.
fn constraints(constraints: &mut Map<String, Value>, rewrite: &mut impl FnMut(Kind, &str) -> String) {
    for (key, labels) in constraints.iter_mut() {
        match key.as_str() {
            "storage" => below(labels, |value| devices(Kind::BlockDevice, value, rewrite)),
            "interfaces" => below(labels, |value| devices(Kind::Interface, value, rewrite)),
            "verbose_storage" => {
                below(labels, |value| keys(Kind::BlockDevice, value, rewrite));
                keys(Kind::Node, labels, rewrite);
            }
            "verbose_interfaces" => below(labels, |nodes| {
                below(nodes, |value| devices(Kind::Interface, value, rewrite));
                keys(Kind::Node, nodes, rewrite);
            }),
            _ => {}
        }
    }
}

fn below(object: &mut Value, change: impl FnMut(&mut Value)) {
    if let Value::Object(object) = object {
        object.values_mut().for_each(change);
    }
}

fn keys(kind: Kind, object: &mut Value, rewrite: &mut impl FnMut(Kind, &str) -> String) {
    if let Value::Object(object) = object {
        let entries = std::mem::take(object);
        object.extend(entries.into_iter().map(|(key, value)| (rewrite(kind, &key), value)));
    }
}

fn devices(kind: Kind, list: &mut Value, rewrite: &mut impl FnMut(Kind, &str) -> String) {
    for device in list.as_array_mut().into_iter().flatten() {
        match device.as_str().and_then(|text| text.strip_prefix("partition:")) {
            Some(partition) => *device = format!("partition:{}", rewrite(Kind::Partition, partition)).into(),
            None => id(kind, device, rewrite),
        }
    }
}

/// How MAAS repeats an id of the request in a sentence, before and after.
fn mentions(request: &Request, rewrite: &mut impl FnMut(Kind, &str) -> String) -> Vec<(String, String)> {
    let operation = request.operation();
    let mention = |(key, value): &(String, String)| {
        let other = rewrite(kind_of_parameter(key, operation)?, value);
        (other != *value).then(|| (format!("id={value}."), format!("id={other}.")))
    };
    request.form.iter().filter_map(mention).collect()
}

fn replace_mentions(value: &mut Value, before: &str, after: &str) {
    match value {
        Value::String(text) => *text = text.replace(before, after),
        Value::Array(rows) => rows.iter_mut().for_each(|row| replace_mentions(row, before, after)),
        Value::Object(object) => object.values_mut().for_each(|value| replace_mentions(value, before, after)),
        _ => {}
    }
}
