//! Tests of what is free: answers in which everything MAAS made up is called otherwise agree as long as it is called the same
//! everywhere, and what the seed named must be itself.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    compare::{About, compare},
    mapping::{Kind, Mapping, replace_words},
    oauth::{self, Key},
    places::has_form,
    planted::{answer, recorded, seed_mapping},
    recordings::{Recording, Response, relative},
    rename::Rename,
    walk,
};

/// Another name for everything made up.
struct Renumbering<'a> {
    mapping: &'a Mapping,
    words: BTreeMap<String, String>,
}

impl Renumbering<'_> {
    /// The other name of a made-up value; numbers get larger, letters and digits are mirrored.
    fn other(&mut self, kind: Kind, value: &str) -> String {
        if !has_form(kind, value) || self.mapping.is_fixed(kind, value) {
            return value.to_owned();
        }
        if let Ok(number) = value.parse::<u32>()
            && !matches!(kind, Kind::Machine | Kind::Token)
        {
            return (number + 1000).to_string();
        }
        let hexadecimal = matches!(kind, Kind::Uuid | Kind::Mac);
        let mirrored = |character: char| match character {
            '0'..='9' => char::from(b'9' - (character as u8 - b'0')),
            'a'..='f' if hexadecimal => char::from(b'f' - (character as u8 - b'a')),
            'a'..='z' => char::from(b'z' - (character as u8 - b'a')),
            'A'..='Z' => char::from(b'Z' - (character as u8 - b'A')),
            other => other,
        };
        let other: String = value.chars().map(mirrored).collect();
        self.words.insert(value.to_owned(), other.clone());
        other
    }

    /// Sentences name things, too.
    fn sentences(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = replace_words(text, |word| self.words.get(word).cloned()),
            Value::Array(rows) => rows.iter_mut().for_each(|row| self.sentences(row)),
            Value::Object(object) => {
                for (key, value) in object.iter_mut() {
                    // What has been renumbered is not renumbered again.
                    let done = matches!(key.as_str(), "system_id" | "node" | "hostname" | "fqdn" | "uuid" | "mac_address" | "resource_uri");
                    if !done && !key.ends_with("_uri") && !key.ends_with("_rack") && !key.starts_with("token") && key != "consumer_key" {
                        self.sentences(value);
                    }
                }
            }
            _ => {}
        }
    }
}

fn collection(path: &str) -> &str {
    relative(path).trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// All answers with other names, in their order.
fn renumbered(recordings: &[Recording], mapping: &Mapping) -> Vec<Response> {
    let mut renumbering = Renumbering { mapping, words: BTreeMap::new() };
    let singles = recordings.iter().filter(|recording| !recording.race).map(|recording| &recording.exchanges[0]);
    let mut responses: Vec<Response> = singles
        .map(|exchange| {
            let mut response = exchange.response.clone();
            walk::body(collection(&exchange.request.path), &mut response.body, &mut |kind, value| renumbering.other(kind, value));
            response
        })
        .collect();
    for response in &mut responses {
        renumbering.sentences(&mut response.body);
        if let Value::String(text) = &mut response.body
            && let Some(at) = text.find("Pod ")
        {
            let digits: String = text[at + 4..].chars().take_while(char::is_ascii_digit).collect();
            if !digits.is_empty() {
                *text = text.replacen(&digits, &(digits.parse::<u32>().unwrap() + 1000).to_string(), 1);
            }
        }
    }
    responses
}

#[test]
fn what_maas_made_up_may_be_called_otherwise_if_it_is_so_everywhere() {
    let Some(mut recordings) = recorded() else { return };
    recordings.retain(|recording| recording.number < 525 && !recording.race);
    let fixed = seed_mapping(&recordings);
    let responses = renumbered(&recordings, &fixed);
    let mut mapping = fixed.clone();
    let mut changed = 0;
    for (recording, response) in recordings.iter().zip(&responses) {
        let exchange = &recording.exchanges[0];
        changed += usize::from(exchange.response.body != response.body);
        let about = About { path: &exchange.request.path, ..About::default() };
        let differences = compare(&exchange.response, &answer(response), about, &mut mapping);
        assert_eq!(differences, [], "{:03} {}", recording.number, recording.name);
    }
    assert!(changed > 100, "only {changed} answers hold something made up");
}

#[test]
fn a_made_up_value_that_is_called_otherwise_only_once_is_flagged() {
    let Some(mut recordings) = recorded() else { return };
    recordings.retain(|recording| recording.number < 525 && !recording.race);
    let mut mapping = seed_mapping(&recordings);
    let responses = renumbered(&recordings, &mapping);
    let mut flagged = 0;
    let mut seen = 0;
    for (recording, response) in recordings.iter().zip(&responses) {
        let exchange = &recording.exchanges[0];
        let about = About { path: &exchange.request.path, ..About::default() };
        // A second time with names from somewhere else, against what the first time taught.
        compare(&exchange.response, &answer(&exchange.response), about, &mut mapping);
        if exchange.response.body != response.body {
            seen += 1;
            flagged += usize::from(!compare(&exchange.response, &answer(response), about, &mut mapping).is_empty());
        }
    }
    assert_eq!(flagged, seen);
}

#[test]
fn ids_of_the_seed_are_themselves() {
    let Some(recordings) = recorded() else { return };
    let mapping = seed_mapping(&recordings);
    let list = recordings.iter().find(|recording| recording.exchanges[0].request.lists("zones/")).unwrap();
    let exchange = &list.exchanges[0];
    let mut changed = exchange.response.clone();
    changed.body[0]["id"] = 77.into();
    let about = About { path: &exchange.request.path, ..About::default() };
    assert_eq!(compare(&exchange.response, &answer(&changed), about, &mut mapping.clone()).len(), 1);
}

#[test]
fn renamed_recordings_agree_with_themselves_and_hold_no_old_name() {
    let Some(recordings) = recorded() else { return };
    let mut renamed = recordings.clone();
    Rename::new(&recordings, 7).recordings(&mut renamed);
    let mut mapping = seed_mapping(&renamed);
    for recording in renamed.iter().filter(|recording| !recording.race) {
        let exchange = &recording.exchanges[0];
        let about = About { path: &exchange.request.path, ..About::default() };
        assert_eq!(compare(&exchange.response, &answer(&exchange.response), about, &mut mapping), [], "{:03}", recording.number);
    }
    let machines = recordings.iter().find(|recording| recording.exchanges[0].request.lists("machines/")).unwrap();
    let text = renamed
        .iter()
        .flat_map(|recording| &recording.exchanges)
        .map(|exchange| format!("{:?} {}", exchange.request, exchange.response.body));
    let text: String = text.collect();
    for machine in machines.exchanges[0].response.body.as_array().unwrap() {
        for key in ["system_id", "hostname"] {
            let name = machine[key].as_str().unwrap();
            assert!(!text.contains(name), "{name} is still there");
        }
    }
    for name in ["great-skunk", "immune-kid", "renamed-while-allocated", "lxd1", "lxd-dead", "203.0.113.9", "192.0.2.", "172.31."] {
        assert!(!text.contains(name), "{name} is still there");
    }
    assert!(!text.contains("alice") && !text.contains("\"admin\"") && !text.contains("10.20.0."));
}

#[test]
fn renamed_numbers_are_others_and_agree_nowhere_with_the_old() {
    let Some(recordings) = recorded() else { return };
    let mut renamed = recordings.clone();
    Rename::new(&recordings, 7).recordings(&mut renamed);
    let fixed = seed_mapping(&recordings);
    let zones =
        |recordings: &[Recording]| recordings.iter().find(|recording| recording.exchanges[0].request.lists("zones/")).unwrap().clone();
    let (before, after) = (zones(&recordings), zones(&renamed));
    let about = About { path: &before.exchanges[0].request.path, ..About::default() };
    assert!(!compare(&before.exchanges[0].response, &answer(&after.exchanges[0].response), about, &mut fixed.clone()).is_empty());
}

#[test]
fn the_recorded_hmac_signature_is_the_one_that_is_made_again() {
    let Some(recordings) = recorded() else { return };
    let secret_of = |token: &str| {
        let lists = recordings.iter().filter(|recording| recording.exchanges[0].request.operation() == Some("list_authorisation_tokens"));
        let keys = lists.filter_map(|recording| recording.exchanges[0].response.body.as_array()).flatten();
        keys.filter_map(|key| Key::parse(key["token"].as_str()?)).find(|key| key.token == token).map(|key| key.secret)
    };
    let requests = recordings.iter().map(|recording| &recording.exchanges[0].request);
    let signed = requests.filter_map(|request| Some((request, request.auth.as_deref()?, oauth::hmac_token(request.auth.as_deref()?)?)));
    for (request, header, token) in signed {
        let again = oauth::sign_hmac(header, &secret_of(&token).unwrap(), &request.method, &request.path, &request.query).unwrap();
        assert_eq!(header, again);
    }
}
