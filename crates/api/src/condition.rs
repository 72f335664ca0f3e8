//! Conditions of our kinds: one entry for each type, sorted, with a time that only moves when the status does. Used by everybody who writes a
//! status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{Schema, SchemaGenerator, json_schema};

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It does.
    True,
    /// It does not.
    False,
    /// Nobody can tell.
    Unknown,
}

impl Status {
    /// The status as Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// What a condition is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// Its type, such as `Ready`.
    pub kind: &'static str,
    /// Whether it holds.
    pub status: Status,
    /// Why, in one word that programs may compare.
    pub reason: String,
    /// Why, in words for people: cause, what MAAS said, next step. Without times and counters, so that the same news is the same text.
    pub message: String,
}

/// Says something new of a condition, or the same again. `generation` is that of the object it was judged by.
pub fn set(conditions: &mut Vec<Condition>, new: NewCondition, generation: Option<i64>, now: Timestamp) {
    let before = conditions.iter().position(|condition| condition.type_ == new.kind).map(|place| conditions.remove(place));
    let since = before.filter(|before| before.status == new.status.as_str()).map_or_else(
        // Kubernetes keeps whole seconds.
        || Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
        |before| before.last_transition_time,
    );
    conditions.push(Condition {
        type_: new.kind.to_owned(),
        status: new.status.as_str().to_owned(),
        reason: new.reason,
        message: new.message,
        observed_generation: generation,
        last_transition_time: since,
    });
    conditions.sort_by(|one, other| one.type_.cmp(&other.type_));
}

/// Takes the times of conditions that say what they said before, whatever was thought of them in between.
pub fn keep_times(conditions: &mut [Condition], before: &[Condition]) {
    for condition in conditions {
        if let Some(same) = find(before, &condition.type_).filter(|before| before.status == condition.status) {
            condition.last_transition_time = same.last_transition_time.clone();
        }
    }
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether a condition is there and holds.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == Status::True.as_str())
}

/// Whether Kubernetes would take this as the reason of a condition.
pub fn is_reason(text: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.len() <= 1024
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.ends_with(is_word)
        && text.chars().all(|letter| is_word(letter) || letter == ',' || letter == ':')
}

/// The schema of a list of conditions. Only what an older provider may have left out is not asked for: a reason.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One thing that holds or does not.",
            "required": ["lastTransitionTime", "status", "type"],
            "properties": {
                "type": {
                    "description": "What it is about, such as `Ready`.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
                "status": {
                    "description": "Whether it holds: `True`, `False`, or `Unknown` if nobody can tell.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": "Why, in one word that programs may compare.",
                    "type": "string",
                    "maxLength": 1024,
                    "pattern": "^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$",
                },
                "message": {
                    "description": "Why, in words: the cause, what MAAS said, and what to do.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "lastTransitionTime": {
                    "description": "Since when the status is what it is.",
                    "type": "string",
                    "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The generation of the object by which this was judged.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*, sample::select};

    fn news() -> impl Strategy<Value = NewCondition> {
        let statuses = select(vec![Status::True, Status::False, Status::Unknown]);
        let reasons = select(vec!["Deployed", "Deploying", "MachineGone"]);
        (select(vec!["Ready", "Paused", "MachineDeployed"]), statuses, reasons, "[a-z]{0,8}")
            .prop_map(|(kind, status, reason, message)| NewCondition { kind, status, reason: reason.to_owned(), message })
    }

    proptest! {
        #[test]
        fn row_30_the_time_moves_only_with_the_status_and_the_last_news_is_what_stands(all in vec((news(), 1..9_i64, 0..999_i64), 1..40)) {
            let mut conditions = Vec::new();
            for (step, (new, generation, milliseconds)) in all.iter().enumerate() {
                let now = Timestamp::from_millisecond(i64::try_from(step).unwrap() * 60_000 + milliseconds).unwrap();
                let before = conditions.clone();
                set(&mut conditions, new.clone(), Some(*generation), now);

                let stands = find(&conditions, new.kind).unwrap();
                prop_assert!(is_reason(&stands.reason));
                prop_assert_eq!(stands.observed_generation, Some(*generation));
                prop_assert_eq!((stands.status.as_str(), &*stands.reason, &stands.message), (new.status.as_str(), new.reason.as_str(), &new.message));
                let same = find(&before, new.kind).filter(|old| old.status == stands.status).map(|old| old.last_transition_time.0);
                prop_assert_eq!(stands.last_transition_time.0, same.unwrap_or_else(|| Timestamp::from_second(now.as_second()).unwrap()));
                prop_assert_eq!(is_true(&conditions, new.kind), new.status == Status::True);
                prop_assert!(conditions.windows(2).all(|pair| pair[0].type_ < pair[1].type_), "sorted, one for each type");
                let others = |conditions: &[Condition]| conditions.iter().filter(|other| other.type_ != new.kind).cloned().collect::<Vec<_>>();
                prop_assert_eq!(others(&conditions), others(&before));
            }
        }
    }

    #[test]
    fn the_same_news_again_changes_nothing() {
        let new =
            || NewCondition { kind: "Ready", status: false.into(), reason: "WaitingForBootstrapData".to_owned(), message: String::new() };
        let mut conditions = Vec::new();
        set(&mut conditions, new(), Some(1), Timestamp::from_millisecond(1_700).unwrap());
        let before = conditions.clone();
        set(&mut conditions, new(), Some(1), Timestamp::from_millisecond(9_000).unwrap());
        assert_eq!(conditions, before);
    }

    #[test]
    fn reasons_are_words_of_programs() {
        for (text, is) in
            [("Deployed", true), ("a", true), ("A:b,c_1", true), ("", false), ("1A", false), ("not a word", false), ("A:", false)]
        {
            assert_eq!(is_reason(text), is, "{text}");
        }
    }
}
