//! What this process told MAAS to do and saw no answer to. An intent that another process wrote may be unanswered for all we know.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use api::{Intent, IntentRead, MaasMachine};
use decisions::machine::answer_is_due;
use jiff::Timestamp;

use crate::ObjectKey;

/// The intents of this process, by object.
#[derive(Debug, Default)]
pub struct Orders {
    objects: Mutex<BTreeMap<ObjectKey, Order>>,
}

#[derive(Debug, Clone, Default)]
struct Order {
    /// The times of the intents this process wrote, or tried to.
    intended: BTreeSet<Timestamp>,
    /// Until when MAAS may still do something that we saw no answer to.
    unanswered_until: Option<Timestamp>,
}

impl Orders {
    /// This process is about to write this intent. Noted first, since the answer to the write may get lost.
    pub fn intends(&self, object: &MaasMachine, since: Option<Timestamp>) {
        // What another process left unanswered stays so when its intent is written over.
        let outstanding = self.outstanding(object);
        let mut objects = self.lock();
        let order = objects.entry(ObjectKey::of(object)).or_default();
        order.unanswered_until = outstanding;
        if let Some(since) = since {
            order.intended.retain(|earlier| answer_is_due(*earlier) > since);
            order.intended.insert(since);
        }
    }

    /// A call that followed from the object's intent was not answered. Says until when it may still be carried out.
    pub fn unanswered(&self, object: &MaasMachine) -> Option<Timestamp> {
        let until = since(object).map(answer_is_due)?;
        let mut objects = self.lock();
        let order = objects.entry(ObjectKey::of(object)).or_default();
        order.unanswered_until = order.unanswered_until.max(Some(until));
        Some(until)
    }

    /// Until when MAAS may still do something for the object that nobody here saw the answer to.
    pub fn outstanding(&self, object: &MaasMachine) -> Option<Timestamp> {
        let order = self.lock().get(&ObjectKey::of(object)).cloned().unwrap_or_default();
        let of_others = since(object).filter(|since| !order.intended.contains(since)).map(answer_is_due);
        order.unanswered_until.max(of_others)
    }

    /// The object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Order>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn since(object: &MaasMachine) -> Option<Timestamp> {
    match Intent::of(&object.metadata) {
        IntentRead::Ours(intent) => intent.since,
        IntentRead::None | IntentRead::Copied(_) | IntentRead::Unreadable(_) => None,
    }
}
