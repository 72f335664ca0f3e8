//! The contract with the real MAAS: every recorded exchange of what the client covers, done again through its typed calls. Requests must be
//! the recorded ones, answers must lose no value, and refusals must be what they were.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "support/recordings.rs"]
mod recordings;
mod reenact;
mod support;

use std::collections::{BTreeMap, BTreeSet};

use maas_client::{Client, Error};
use recordings::{Exchange, Pairs};
use serde_json::Value;

/// Keys of answers that the client does not read, and why.
const NOT_READ: [(&str, &str); 3] = [
    ("owner_data", "the second name of workload_annotations"),
    ("physicalblockdevice_set", "the physical ones of blockdevice_set again"),
    ("virtualblockdevice_set", "the virtual ones of blockdevice_set again"),
];

/// Successful requests that the client says differently, and why.
const SAID_DIFFERENTLY: [(u32, &str); 13] = [
    (168, "the client always says how to power off"),
    (179, "there is no third way to power off"),
    (183, "the client always says how to power off"),
    (185, "the client always says how to power off"),
    (188, "the client always says how to power off"),
    (241, "a field MAAS ignores"),
    (364, "without the list of addresses MAAS forgets all but one"),
    (369, "records are made by their whole name"),
    (370, "records are made by their whole name"),
    (422, "the client always says where an address comes from"),
    (553, "the client always says how to power off"),
    (559, "erase is said with true or not at all"),
    (577, "the client does not ask for XML"),
];

/// Operations of paths the client covers that it does not have, and why.
const NOT_COVERED: [(&str, &str); 8] = [
    ("get_token", "the installer's own key"),
    ("details", "BSON for the page of MAAS"),
    ("get_curtin_config", "the installer's configuration"),
    ("set_owner_data", "the old name of set_workload_annotations"),
    ("set_storage_layout", "storage is set up in MAAS itself"),
    ("restore_default_configuration", "storage is set up in MAAS itself"),
    ("set_zone", "machines are updated one by one"),
    ("nodes", "machines are what the client knows of nodes"),
];

async fn again(exchange: &Exchange) -> (Option<reenact::Reenacted>, support::Sent) {
    // What is retryable is to be seen as it came.
    let (transport, sent) = support::always(exchange.response());
    let once = maas_client::Limit { attempt: std::time::Duration::from_millis(1), total: std::time::Duration::from_millis(1) };
    let client = support::builder().limits(maas_client::Limits { read: once, write: once, slow: once }).build_on(transport);
    (reenact::again(&client, exchange).await, sent)
}

#[tokio::test(start_paused = true)]
async fn no_value_of_a_recorded_answer_gets_lost() {
    let Some(exchanges) = recordings::all() else { return };
    let mut decoded = 0;
    let mut wrong = Vec::new();
    for exchange in exchanges.iter().filter(|exchange| exchange.succeeded()) {
        let (Some(reenacted), _) = again(exchange).await else { continue };
        decoded += 1;
        match reenacted.result {
            Ok(value) if exchange.is_json() => lost(&exchange.body, &value, &exchange.number.to_string(), &mut wrong),
            Ok(_) => {}
            Err(error) => wrong.push(format!("{}: {error}", exchange.number)),
        }
    }
    assert!(wrong.is_empty(), "{} values got lost:\n{}", wrong.len(), wrong.join("\n"));
    assert!(decoded >= 300, "only {decoded} answers were read");
    eprintln!("{decoded} recorded answers read without loss");
}

/// What of the recorded answer is not in ours. A null may be missing: it is no value.
fn lost(recorded: &Value, ours: &Value, place: &str, wrong: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(ours)) => {
            for (key, value) in recorded.iter().filter(|(key, _)| !NOT_READ.iter().any(|(name, _)| name == key)) {
                lost(value, ours.get(key).unwrap_or(&Value::Null), &format!("{place}.{key}"), wrong);
            }
        }
        (Value::Array(recorded), Value::Array(ours)) if recorded.len() == ours.len() => {
            for (index, (recorded, ours)) in recorded.iter().zip(ours).enumerate() {
                lost(recorded, ours, &format!("{place}[{index}]"), wrong);
            }
        }
        // An empty map is left out as a missing one is.
        (Value::Object(recorded), Value::Null) if recorded.is_empty() => {}
        (Value::Array(recorded), Value::Null) if recorded.is_empty() => {}
        (Value::Number(recorded), Value::Number(ours)) if recorded.as_f64() == ours.as_f64() => {}
        (recorded, ours) if recorded == ours => {}
        (recorded, ours) => wrong.push(format!("{place}: {recorded} became {ours}")),
    }
}

#[test]
fn a_single_changed_value_counts_as_lost() {
    let recorded = serde_json::json!({ "a": [{ "b": 1, "c": null, "d": "x" }], "e": false, "owner_data": { "f": 1 } });
    let ours = |b: i64, d: &str, e: bool| serde_json::json!({ "a": [{ "b": b, "d": d }], "e": e });
    let count = |ours: &Value| {
        let mut wrong = Vec::new();
        lost(&recorded, ours, "", &mut wrong);
        wrong.len()
    };
    assert_eq!(count(&ours(1, "x", false)), 0);
    for changed in [ours(2, "x", false), ours(1, "", false), ours(1, "x", true), serde_json::json!({ "a": [], "e": false })] {
        assert_eq!(count(&changed), 1, "{changed}");
    }
}

#[tokio::test(start_paused = true)]
async fn typed_calls_send_what_was_recorded() {
    let Some(exchanges) = recordings::all() else { return };
    let mut same = 0;
    let mut wrong = Vec::new();
    for exchange in &exchanges {
        let (Some(reenacted), sent) = again(exchange).await else { continue };
        let differently = SAID_DIFFERENTLY.iter().any(|(number, _)| *number == exchange.number);
        if !reenacted.sayable || differently {
            if exchange.succeeded() && !differently && !exchange.odd {
                wrong.push(format!("{}: cannot be said: {:?} {:?}", exchange.number, exchange.query, exchange.form));
            }
            continue;
        }
        if matches!(reenacted.result, Err(Error::Invalid { .. })) {
            continue;
        }
        let request = sent.last();
        let path = request.uri().path().strip_prefix("/MAAS/api/2.0/").unwrap_or_default();
        let ours = (request.method().as_str(), path.to_owned(), pairs(request.uri().query().unwrap_or_default()), pairs(&body(&request)));
        let recorded = (exchange.method.as_str(), exchange.path.clone().unwrap(), sorted(&exchange.query), sorted(&exchange.form));
        if ours == recorded {
            same += 1;
        } else {
            wrong.push(format!("{}: {recorded:?} became {ours:?}", exchange.number));
        }
    }
    assert!(wrong.is_empty(), "{} requests differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(same >= 300, "only {same} requests were compared");
    eprintln!("{same} requests as recorded");
}

fn body(request: &http::Request<bytes::Bytes>) -> String {
    String::from_utf8(request.body().to_vec()).unwrap()
}

fn pairs(text: &str) -> Pairs {
    sorted(&form_urlencoded::parse(text.as_bytes()).into_owned().collect())
}

fn sorted(pairs: &Pairs) -> Pairs {
    let mut pairs = pairs.clone();
    pairs.sort();
    pairs
}

#[tokio::test(start_paused = true)]
async fn what_is_not_covered_is_known() {
    let Some(exchanges) = recordings::all() else { return };
    let covered = [
        "version",
        "users",
        "account",
        "machines",
        "tags",
        "zones",
        "resourcepools",
        "resourcepool",
        "domains",
        "dnsresources",
        "dnsresourcerecords",
        "ipaddresses",
        "subnets",
        "fabrics",
        "ipranges",
        "vm-hosts",
        "vm-clusters",
        "events",
        "boot-resources",
        "nodes",
    ];
    let mut unknown = BTreeSet::new();
    for exchange in exchanges.iter().filter(|exchange| exchange.succeeded() && !exchange.odd) {
        let Some(path) = &exchange.path else { continue };
        let collection = path.split('/').next().unwrap_or_default();
        let known = NOT_COVERED.iter().any(|(operation, _)| *operation == exchange.operation())
            || path.contains("/op-")
            || path.contains("/results/");
        if covered.contains(&collection) && !known && again(exchange).await.0.is_none() {
            unknown.insert(format!("{} {} {}", exchange.number, path, exchange.operation()));
        }
    }
    assert!(unknown.is_empty(), "neither covered nor known as not covered: {unknown:#?}");
}

/// The class of an error, as callers tell them apart.
fn class(error: &Error) -> &'static str {
    match error {
        Error::Invalid { .. } => "invalid",
        Error::Refused { .. } => "refused",
        Error::NotFound { .. } => "not found",
        Error::NotPermitted { .. } => "not permitted",
        Error::Unauthenticated { .. } => "unauthenticated",
        Error::Conflict { retry_after: Some(_), .. } => "conflict, try again",
        Error::Conflict { retry_after: None, .. } => "conflict",
        Error::Unavailable { retry_after: Some(_), .. } => "unavailable, try again",
        Error::Unavailable { retry_after: None, .. } => "unavailable",
        Error::Failed { .. } => "failed",
        Error::OutcomeUnknown { .. } => "outcome unknown",
        Error::Gone { .. } => "gone",
        Error::NotMaas { .. } => "not MAAS",
        _ => "another",
    }
}

/// The recorded answers without any header of MAAS's own: what is said after the transaction, and the page of a conflict.
const UNMARKED: [(u32, &str); 5] =
    [(10, "conflict, try again"), (185, "failed"), (188, "unavailable, try again"), (225, "failed"), (514, "unavailable")];

#[tokio::test(start_paused = true)]
async fn what_maas_says_without_its_headers_is_known_by_its_words_and_nobody_elses() {
    let Some(exchanges) = recordings::all() else { return };
    let marked = |exchange: &Exchange| {
        let marks = ["x-frame-options", "x-maas-api-hash", "www-authenticate"];
        exchange.headers.iter().any(|(name, _)| marks.iter().any(|mark| name.eq_ignore_ascii_case(mark)))
    };
    let unmarked: Vec<&Exchange> = exchanges.iter().filter(|exchange| !exchange.succeeded() && !marked(exchange)).collect();
    assert_eq!(unmarked.iter().map(|exchange| exchange.number).collect::<Vec<_>>(), UNMARKED.map(|(number, _)| number));
    for (exchange, (number, expected)) in unmarked.into_iter().zip(UNMARKED) {
        // The web server in front of MAAS's own puts its name there.
        let mut behind = exchange.clone();
        behind.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("server"));
        for exchange in [exchange, &behind] {
            let (transport, sent) = support::always(exchange.response());
            let error = any_call(&support::builder().build_on(transport), "POST").await.unwrap_err();
            assert_eq!((class(&error), sent.count()), (expected, 1), "{number}: {error:?}");
            assert!(!matches!(error, Error::Unavailable { answered: false, .. }), "{number}: {error:?}");
        }
        let foreign = Exchange { body: Value::String("an upstream server failed".to_owned()), ..behind };
        let (transport, _) = support::always(foreign.response());
        let error = any_call(&support::builder().build_on(transport), "POST").await.unwrap_err();
        assert_eq!(class(&error), "outcome unknown", "{number}: {error:?}");
    }
}

/// A call of the same method, for exchanges the client does not cover.
async fn any_call(client: &Client, method: &str) -> Result<(), Error> {
    match method {
        "POST" => client.zones().create("z", "").await.map(drop),
        "PUT" => client.zones().update("z", None, None).await.map(drop),
        "DELETE" => client.zones().delete("z").await,
        _ => client.version().await.map(drop),
    }
}

/// Every recorded exchange that did not succeed, by what it has to be. An address that is taken is a conflict, although MAAS answers 404.
#[rustfmt::skip]
const CLASSES: &[(&str, &[u32])] = &[
    ("conflict", &[
        114, 115, 116, 118, 137, 156, 158, 173, 174, 182, 216, 247, 263, 267, 271, 294, 295, 378, 379, 381, 382, 417, 504, 505,
    ]),
    ("conflict, try again", &[10]),
    ("failed", &[184, 185, 225, 274, 349]),
    ("gone", &[573]),
    ("invalid", &[195]),
    ("not found", &[7, 38, 49, 86, 152, 281, 299, 346, 358, 374, 500]),
    ("not permitted", &[
        8, 42, 90, 140, 141, 142, 164, 167, 168, 169, 170, 193, 255, 259, 265, 319, 353, 366, 390, 437, 438, 440, 451, 459, 483,
    ]),
    ("refused", &[
        26, 27, 28, 30, 31, 32, 35, 41, 46, 51, 54, 57, 64, 66, 69, 74, 76, 80, 81, 93, 119, 120, 121, 123, 124, 125, 126, 128, 129,
        130, 131, 145, 146, 147, 148, 150, 151, 163, 191, 236, 238, 239, 240, 254, 277, 278, 291, 292, 302, 305, 313, 318, 325,
        327, 332, 335, 336, 340, 344, 385, 386, 394, 408, 421, 422, 423, 424, 430, 431, 432, 447, 448, 449, 472, 473, 475, 476,
        477, 478, 480, 481, 482, 507, 517, 518, 528, 542, 558, 560, 569, 575, 576, 578,
    ]),
    ("unauthenticated", &[4, 13, 14, 15, 16, 19, 21, 22, 524]),
    ("unavailable", &[461, 487, 512, 514]),
    ("unavailable, try again", &[187, 188, 488]),
];

#[tokio::test(start_paused = true)]
async fn every_recorded_refusal_is_of_its_class_and_keeps_the_words_of_maas() {
    let Some(exchanges) = recordings::all() else { return };
    let expected: BTreeMap<u32, &str> =
        CLASSES.iter().flat_map(|(class, numbers)| numbers.iter().map(move |number| (*number, *class))).collect();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for exchange in exchanges.iter().filter(|exchange| !exchange.succeeded()) {
        seen.insert(exchange.number);
        let (reenacted, _) = again(exchange).await;
        let (transport, _) = support::always(exchange.response());
        let error = match reenacted {
            Some(reenacted) => reenacted.result.expect_err("it did not succeed"),
            None => any_call(&support::builder().build_on(transport), &exchange.method).await.expect_err("it did not succeed"),
        };
        if Some(&class(&error)) != expected.get(&exchange.number) {
            wrong.push(format!("{}: {} instead of {:?}", exchange.number, class(&error), expected.get(&exchange.number)));
        }
        let words = match &exchange.body {
            Value::Object(fields) => fields.values().filter_map(|list| list[0].as_str()).map(str::to_owned).collect(),
            Value::String(text) if !text.starts_with('<') && !matches!(exchange.status, 401) => vec![text.trim_end_matches('.').to_owned()],
            _ => Vec::new(),
        };
        let shown = error.to_string();
        if !matches!(error, Error::Invalid { .. }) && !words.iter().all(|words| shown.contains(words)) {
            wrong.push(format!("{}: {words:?} are not in: {shown}", exchange.number));
        }
        if !shown.starts_with(&error.call().to_string()) {
            wrong.push(format!("{}: the call is not in: {shown}", exchange.number));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(expected.keys().all(|number| seen.contains(number)), "the table knows exchanges that are not there");
    eprintln!("{} recorded refusals classified", seen.len());
}
