//! What this process told MAAS to do and saw no answer to. An intent that another process wrote may be unanswered for all we know, and its
//! time is that of another computer's clock.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use api::{Intent, MaasMachine};
use decisions::machine::{answer_is_due, answer_to_another_is_due};
use jiff::Timestamp;

use crate::{Clock, Jitter, ObjectKey, first_seen::FirstSeen};

/// The intents of this process.
#[derive(Debug)]
pub struct Orders {
    writer: String,
    /// By object, until when MAAS may still do something that nobody here saw the answer to.
    unanswered: Mutex<BTreeMap<ObjectKey, Timestamp>>,
    /// Intents of other processes: whose, and their times.
    of_others: FirstSeen<(Option<String>, Timestamp)>,
}

impl Orders {
    /// Nothing told yet.
    pub fn new(clock: Clock, jitter: Jitter) -> Self {
        let writer = format!("{:016x}", jitter.draw("writer of intents", 0));
        Self { writer, unanswered: Mutex::default(), of_others: FirstSeen::new(clock) }
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
        let of_others = of_others.and_then(|intent| {
            let since = intent.since?;
            Some(answer_to_another_is_due(since, self.of_others.at(&ObjectKey::of(object), (intent.writer, since))))
        });
        self.lock().get(&ObjectKey::of(object)).copied().max(of_others)
    }

    /// The object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
        self.of_others.forget(key);
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

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use serde_json::json;
    use std::time::Duration;

    /// An object with the intent of another process, written at this time by the clock of that.
    fn written(since: Timestamp) -> MaasMachine {
        let intent = json!({"object": "rack/one", "claim": format!("ms-{:032x}", 7), "since": since, "writer": "another"});
        let metadata = json!({"name": "one", "namespace": "rack", "annotations": {api::names::CLAIM: intent.to_string()}});
        let spec = json!({"minCPU": 1, "minMemory": 1024, "image": "ubuntu/jammy"});
        let object = json!({"apiVersion": api::names::API_VERSION, "kind": "MaasMachine", "metadata": metadata, "spec": spec});
        serde_json::from_value(object).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn two_minutes_of_another_process_are_counted_from_when_it_was_seen_too_whatever_its_clock_said() {
        let clock = Clock::starting_at("2026-01-02T00:00:00Z".parse().unwrap());
        let rows = [
            // by how many seconds its clock was ahead, and how long is waited
            (0, 120),
            (-30, 120),
            (-500, 120),
            (600, 120),
            (-3_600, 0),
        ];
        for (ahead, expected) in rows {
            let orders = Orders::new(clock, Jitter::seeded(1));
            let now = clock.now();
            let object = written(now + SignedDuration::from_secs(ahead));
            for waited in [0, 40] {
                tokio::time::sleep(Duration::from_secs(waited)).await;
                let until = orders.outstanding(&object).unwrap();
                assert_eq!(until.duration_since(now).as_secs().max(0), expected, "ahead by {ahead} s, after {waited} s");
            }
            let again = written(clock.now());
            assert_eq!(orders.outstanding(&again).unwrap().duration_since(clock.now()).as_secs(), 120, "another intent counts anew");
        }
    }
}
