//! What this process told MAAS to do and saw no answer to. An intent that another process wrote may be unanswered for all we know.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use api::{Intent, MaasMachine};
use decisions::machine::answer_is_due;
use jiff::Timestamp;

use crate::{Jitter, ObjectKey};

/// The intents of this process.
#[derive(Debug)]
pub struct Orders {
    writer: String,
    /// By object, until when MAAS may still do something that nobody here saw the answer to.
    unanswered: Mutex<BTreeMap<ObjectKey, Timestamp>>,
}

impl Orders {
    /// Nothing told yet.
    pub fn new(jitter: Jitter) -> Self {
        Self { writer: format!("{:016x}", jitter.draw("writer of intents", 0)), unanswered: Mutex::default() }
    }

    /// This process, as its intents name it.
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// The object's intent is about to be written over. What another process left unanswered stays so.
    pub fn intends(&self, object: &MaasMachine) {
        if let Some(until) = self.outstanding(object) {
            self.note(object, until);
        }
    }

    /// A call that follows from the object's intent is about to be sent. Until it is answered it counts as unanswered, whatever becomes of
    /// the pass. Says what counted before, and until when it may be carried out.
    pub fn sends(&self, object: &MaasMachine) -> (Option<Timestamp>, Option<Timestamp>) {
        let before = self.lock().get(&ObjectKey::of(object)).copied();
        let until = intent(object).and_then(|intent| intent.since).map(answer_is_due);
        if let Some(until) = until {
            self.note(object, until);
        }
        (before, until)
    }

    /// The call was answered: what counted before it counts again.
    pub fn answered(&self, object: &MaasMachine, before: Option<Timestamp>) {
        let mut unanswered = self.lock();
        match before {
            Some(until) => drop(unanswered.insert(ObjectKey::of(object), until)),
            None => drop(unanswered.remove(&ObjectKey::of(object))),
        }
    }

    /// Until when MAAS may still do something for the object that nobody here saw the answer to.
    pub fn outstanding(&self, object: &MaasMachine) -> Option<Timestamp> {
        let of_others = intent(object).filter(|intent| intent.writer.as_ref() != Some(&self.writer));
        let of_others = of_others.and_then(|intent| intent.since).map(answer_is_due);
        self.lock().get(&ObjectKey::of(object)).copied().max(of_others)
    }

    /// The object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn note(&self, object: &MaasMachine, until: Timestamp) {
        let mut unanswered = self.lock();
        let noted = unanswered.entry(ObjectKey::of(object)).or_insert(until);
        *noted = until.max(*noted);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Timestamp>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn intent(object: &MaasMachine) -> Option<Intent> {
    Intent::of(&object.metadata).ours()
}
