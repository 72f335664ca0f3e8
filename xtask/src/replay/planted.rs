//! Tests of the comparison on the recordings themselves: what is equal agrees, what is only named otherwise agrees, and each of 50
//! planted single-value changes is flagged. They need no emulator's answers, only the recordings.

use std::path::PathBuf;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fastrand::Rng;
use serde_json::{Value, json};

use super::{
    compare::{About, Answer, compare},
    mapping::Mapping,
    places::{Place, place},
    races,
    recordings::{self, BodyKind, Exchange, Recording, Response},
    script::Script,
    seed,
};

/// The recordings, or nothing where they are not at hand.
pub fn recorded() -> Option<Vec<Recording>> {
    Some(recordings::read(&[directory()?]).unwrap())
}

/// Where the recordings are, beside the repository. Continuous integration has them.
pub fn directory() -> Option<PathBuf> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/maas-recordings");
    if directory.is_dir() {
        return Some(directory);
    }
    let continuous_integration = std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
    assert!(!continuous_integration, "there are no recordings at {}", directory.display());
    crate::output::say(format!("left out, because there are no recordings at {}", directory.display()));
    None
}

pub fn seed_mapping(recordings: &[Recording]) -> Mapping {
    seed::derive(recordings, &Script::read().unwrap()).unwrap().mapping
}

/// A recorded answer as the emulator would give it.
pub fn answer(response: &Response) -> Answer {
    let text = || response.body.as_str().unwrap_or_default();
    let body = match response.kind() {
        BodyKind::Json => response.body.to_string().into_bytes(),
        BodyKind::Text => text().as_bytes().to_vec(),
        BodyKind::Base64 => STANDARD.decode(text()).unwrap(),
    };
    let headers = response.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    Answer { status: response.status, headers: headers.collect(), body }
}

fn about(exchange: &Exchange) -> About<'_> {
    About { path: &exchange.request.path, ..About::default() }
}

#[test]
fn every_recording_agrees_with_itself() {
    let Some(recordings) = recorded() else { return };
    let mut mapping = seed_mapping(&recordings);
    for recording in &recordings {
        let answers: Vec<Answer> = recording.exchanges.iter().map(|exchange| answer(&exchange.response)).rev().collect();
        let differences = if recording.race {
            races::compare(recording, &answers, &[], &mut mapping)
        } else {
            compare(&recording.exchanges[0].response, &answers[0], about(&recording.exchanges[0]), &mut mapping)
        };
        assert_eq!(differences, [], "{:03} {}", recording.number, recording.name);
    }
}

/// What is changed in an answer.
const PLANTS: [Plant; 15] = [
    Plant::Number,
    Plant::Text,
    Plant::Boolean,
    Plant::BecomesNull,
    Plant::WasNull,
    Plant::MissingKey,
    Plant::ExtraKey,
    Plant::Order,
    Plant::Shorter,
    Plant::Longer,
    Plant::Status,
    Plant::ContentType,
    Plant::RetryAfter,
    Plant::Allow,
    Plant::Authenticate,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plant {
    Number,
    Text,
    Boolean,
    BecomesNull,
    WasNull,
    MissingKey,
    ExtraKey,
    Order,
    Shorter,
    Longer,
    Status,
    ContentType,
    RetryAfter,
    Allow,
    Authenticate,
}

impl Plant {
    /// Changes one value of the answer; says where, or nothing if there is no place for such a change.
    fn change(self, response: &mut Response, parent: &str, random: &mut Rng) -> Option<String> {
        let header = match self {
            Self::Status => {
                response.status += 1;
                return Some("status".to_owned());
            }
            Self::ContentType => "Content-Type",
            Self::RetryAfter => "Retry-After",
            Self::Allow => "Allow",
            Self::Authenticate => "WWW-Authenticate",
            Self::Text => return self.change_body(response, parent, random).filter(|_| response.kind() != BodyKind::Base64),
            _ if response.kind() == BodyKind::Json => return self.change_body(response, parent, random),
            _ => return None,
        };
        // Taken away where it was, or else given where it was not.
        if response.headers.remove(header).is_none() {
            response.headers.insert(header.to_owned(), "7".to_owned());
        }
        Some(header.to_owned())
    }

    fn change_body(self, response: &mut Response, parent: &str, random: &mut Rng) -> Option<String> {
        let mut places = Vec::new();
        collect(&response.body, parent, String::new(), &mut places);
        places.retain(|pointer| response.body.pointer(pointer).is_some_and(|value| self.fits(value)));
        let pointer = random.choice(places)?;
        let value = response.body.pointer_mut(&pointer)?;
        match (self, value) {
            (Self::Number, value) => *value = value.as_i64().map_or(json!(0.5), |number| json!(number + 1)),
            (Self::Text, Value::String(text)) => text.push('x'),
            (Self::Boolean, Value::Bool(value)) => *value = !*value,
            (Self::BecomesNull, value) => *value = Value::Null,
            (Self::WasNull, value) => *value = json!(""),
            (Self::MissingKey, Value::Object(object)) => {
                let key = random.choice(object.keys().cloned().collect::<Vec<_>>())?;
                object.remove(&key);
            }
            (Self::ExtraKey, Value::Object(object)) => drop(object.insert("planted".to_owned(), Value::Null)),
            (Self::Order, Value::Array(rows)) => rows.swap(0, 1),
            (Self::Shorter, Value::Array(rows)) => drop(rows.pop()),
            (Self::Longer, Value::Array(rows)) => rows.push(rows.last().cloned().unwrap_or(Value::Null)),
            _ => return None,
        }
        Some(pointer)
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Number => value.is_number(),
            Self::Text => value.is_string(),
            Self::Boolean => value.is_boolean(),
            Self::BecomesNull => !value.is_null(),
            Self::WasNull => value.is_null(),
            Self::MissingKey => value.as_object().is_some_and(|object| !object.is_empty()),
            Self::ExtraKey => value.is_object(),
            Self::Order => value.as_array().is_some_and(|rows| rows.len() > 1 && rows[0] != rows[1]),
            Self::Shorter => value.as_array().is_some_and(|rows| !rows.is_empty()),
            Self::Longer => value.is_array(),
            _ => false,
        }
    }
}

/// Pointers to all values whose very value counts.
fn collect(value: &Value, parent: &str, pointer: String, places: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, below) in object {
                // The rules for what is free below this are its own; whether it is there counts like everything.
                if place(key, object, parent) == Place::Equal && key != "constraints_by_type" {
                    collect(below, key, format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), places);
                }
            }
        }
        Value::Array(rows) => rows.iter().enumerate().for_each(|(index, row)| collect(row, parent, format!("{pointer}/{index}"), places)),
        _ => {}
    }
    places.push(pointer);
}

#[test]
fn fifty_planted_changes_are_all_flagged() {
    let Some(recordings) = recorded() else { return };
    let mapping = seed_mapping(&recordings);
    let single: Vec<&Recording> = recordings.iter().filter(|recording| !recording.race).collect();
    let mut random = Rng::with_seed(4);
    let mut planted = 0;
    while planted < 50 {
        let plant = PLANTS[planted % PLANTS.len()];
        let exchange = &random.choice(&single).unwrap().exchanges[0];
        let mut changed = exchange.response.clone();
        // A changed kind of body is another matter.
        changed.body_kind = Some(exchange.response.kind());
        let collection = exchange.request.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let Some(place) = plant.change(&mut changed, collection, &mut random) else { continue };
        planted += 1;
        let differences = compare(&exchange.response, &answer(&changed), about(exchange), &mut mapping.clone());
        assert!(!differences.is_empty(), "{plant:?} at {place} of {} {} was not flagged", exchange.request.method, exchange.request.path);
        let reverse = compare(&changed, &answer(&exchange.response), about(exchange), &mut mapping.clone());
        assert!(
            !reverse.is_empty(),
            "{plant:?} at {place} of {} {} was not flagged the other way",
            exchange.request.method,
            exchange.request.path
        );
    }
}
