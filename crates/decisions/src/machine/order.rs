//! When MAAS may be told to do something. The intent is on record first, with its time, and what follows from it is sent soon after or
//! not at all. So whoever finds the intent later, after a crash or in another process, knows until when MAAS may still act on it. Until
//! then no other server is asked for, none goes back to where somebody else could get it, and the object is not let go.

use api::{Intent, SystemId};
use jiff::Timestamp;
use std::time::Duration;

use super::{
    LATE_COMMIT, SEND_WITHIN,
    draft::Draft,
    plan::{LookAgain, Plan, Step},
    reason::Reason,
};
use crate::{Server, plan::later};

/// How often it is looked whether something unanswered was done.
const LOOK_FOR_LATE_COMMIT: Duration = Duration::from_secs(5);

impl Draft<'_> {
    /// Until when MAAS may be told what follows from the intent on record; nothing if it has to be written first.
    pub(super) fn may_send_until(&self) -> Option<Timestamp> {
        let since = self.facts.intent()?.since?;
        Some(later(since, SEND_WITHIN)).filter(|end| self.facts.intent_is_fresh && self.now < *end)
    }

    /// The same for something that is done to a server as it was last seen.
    pub(super) fn may_touch_until(&self, server: &Server) -> Option<Timestamp> {
        self.may_send_until().map(|end| end.min(fresh_until(server)))
    }

    /// Writes the intent down, with whatever changes in it.
    pub(super) fn intend(&self, change: impl FnOnce(&mut Intent)) -> Step {
        let facts = self.facts;
        let mut intent = facts.intent().unwrap_or_else(|| Intent::new(facts.fresh_claim.clone(), &facts.object.metadata));
        intent.since = Some(self.now);
        intent.writer = Some(facts.writer.clone());
        intent.user = intent.user.or_else(|| self.account().map(|account| account.user.clone()));
        intent.maas = intent.maas.or_else(|| self.account().map(|account| account.host.clone()));
        change(&mut intent);
        Step::Intend { intent, with_finalizer: facts.object.metadata.deletion_timestamp.is_none() }
    }

    /// Writes down that a server goes back, before that blanks what shows that it is ours.
    pub(super) fn intend_to_release(&self, id: &SystemId) -> Step {
        self.intend(|intent| {
            if !intent.releasing.contains(id) {
                intent.releasing.push(id.clone());
            }
        })
    }

    /// Whether MAAS may still do something that nobody saw the answer to.
    pub(super) fn is_unanswered(&self) -> bool {
        self.facts.unanswered_until.is_some_and(|until| self.now < until)
    }

    pub(super) fn wait_for_answer(mut self) -> Plan {
        let until = self.facts.unanswered_until.unwrap_or(self.now);
        self.not_deployed(Reason::UNANSWERED, Reason::UNANSWERED.meaning);
        let left = Duration::try_from(until.duration_since(self.now)).unwrap_or_default();
        self.wait(LookAgain::After(left.min(LOOK_FOR_LATE_COMMIT).max(Duration::from_secs(1))))
    }
}

/// Until when what was seen of a server may be acted upon.
pub(super) fn fresh_until(server: &Server) -> Timestamp {
    later(server.read_at, super::FRESH_FOR)
}

/// An intent that is so old is over: no clock of a cluster is so wrong. Every object whose intent is younger waits after a restart.
const LARGEST_SKEW: Duration = Duration::from_mins(10);

/// Until when MAAS may still do what followed from an intent that another process wrote. Its time is that of another computer's clock, so the
/// two minutes are counted from when we first saw it: it was written before that.
pub fn answer_to_another_is_due(since: Timestamp, first_seen: Timestamp) -> Timestamp {
    let is_over = later(since, LARGEST_SKEW) < first_seen;
    answer_is_due(if is_over { since } else { first_seen })
}

/// Until when MAAS may still do what followed from an intent of this time.
pub fn answer_is_due(since: Timestamp) -> Timestamp {
    later(since, LATE_COMMIT)
}
