//! What a decision comes to, whatever the kind: at most one step, the status to show, when to look again, and what to tell people. `act.rs`
//! of the manager carries it out and holds no rule. After a step the facts are richer and the next one is decided on them, so that each step
//! rests on the outcome of the one before.

use std::time::Duration;

use api::condition::{self, Condition};
use jiff::Timestamp;

use crate::machine::Reason;

/// What to do about one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<Step, Status> {
    /// The version of the object all this was decided on. Kubernetes refuses steps on another one.
    pub guard: Option<String>,
    /// The next step; none if there is nothing to do now.
    pub step: Option<Step>,
    /// What to show. Nothing if the object is not ours to write.
    pub status: Option<Status>,
    /// When to look again, if nothing happens before.
    pub look_again: LookAgain,
    /// What to tell people, once.
    pub notes: Vec<Note>,
}

impl<Step, Status> Plan<Step, Status> {
    /// Nothing to do and nothing to show: the object is not ours to write.
    pub(crate) fn nothing() -> Self {
        Self { guard: None, step: None, status: None, look_again: LookAgain::OnChange, notes: Vec::new() }
    }

    /// Nothing to do but to show this, until something changes.
    pub(crate) fn show(status: Status) -> Self {
        Self { status: Some(status), ..Self::nothing() }
    }
}

/// When to look at an object again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookAgain {
    /// When something changes.
    OnChange,
    /// After this time, or when something changes.
    After(Duration),
    /// After a time that grows with every failure in a row, or when something changes.
    AfterBackoff,
}

/// Something to tell people: an event of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether it is bad.
    pub warning: bool,
    /// What happened, in one word.
    pub reason: String,
    /// What happened.
    pub message: String,
}

/// Tells people of every reason that is new in these conditions, and whether it is bad. `reasons` are those of the kind itself besides those
/// of machines.
pub(crate) fn news(kinds: &[&str], before: &[Condition], after: &[Condition], reasons: &[Reason]) -> Vec<Note> {
    let told = |new: &Condition| {
        let old = condition::find(before, &new.type_);
        old.is_some_and(|old| old.reason == new.reason && old.status == new.status)
    };
    let note = |new: &Condition| {
        let warning = reasons.iter().chain(Reason::ALL).any(|reason| reason.name == new.reason && reason.trouble);
        Note { warning, reason: new.reason.clone(), message: new.message.clone() }
    };
    kinds.iter().filter_map(|kind| condition::find(after, kind)).filter(|new| !told(new)).map(note).collect()
}

/// Why an object of this kind is paused, in Cluster API's words.
pub(crate) fn pause(kind: &str, by_cluster: bool, by_annotation: bool) -> String {
    let cluster = by_cluster.then(|| "Cluster spec.paused is set to true".to_owned());
    let annotation = by_annotation.then(|| format!("{kind} has the cluster.x-k8s.io/paused annotation"));
    cluster.into_iter().chain(annotation).collect::<Vec<_>>().join(", ")
}

/// What a summary of conditions says: whether it holds, the reason and the message.
pub(crate) type Summary = (Option<bool>, String, String);

/// Whether an object that stays is ready: the first of these conditions that does not hold says why not, and without the first of them nobody
/// knows yet.
pub(crate) fn ready(conditions: &[Condition], kinds: [&str; 2]) -> Summary {
    let found = kinds.map(|kind| condition::find(conditions, kind));
    match found.into_iter().flatten().find(|condition| condition.status != "True") {
        Some(hindrance) => ((hindrance.status != "Unknown").then_some(false), hindrance.reason.clone(), hindrance.message.clone()),
        None if found[0].is_some() => (Some(true), "Ready".to_owned(), String::new()),
        None => (None, "NotYetKnown".to_owned(), String::new()),
    }
}

/// What keeps an object that goes: what this condition says, unless it is as it was before.
pub(crate) fn deleting(conditions: &[Condition], kind: &str) -> (String, String) {
    let found = condition::find(conditions, kind).filter(|condition| condition.status != "True");
    found.map_or(("Deleting".to_owned(), String::new()), |condition| (condition.reason.clone(), condition.message.clone()))
}

/// A time so much later.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}
