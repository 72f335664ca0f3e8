//! A plan in the making: the status as it will be shown, and the ways a decision can end.

use std::time::Duration;

use api::{
    MaasRemediationStatus, RemediationPhase,
    condition::{self, NewCondition, Status},
};
use jiff::Timestamp;

use super::{
    facts::Facts,
    plan::{LookAgain, Plan, Step},
    reason,
};
use crate::{
    machine::Reason,
    plan::{self, later},
};

const REMEDIATED: &str = "Remediated";
const PAUSED: &str = "Paused";

/// How long after a pause the health check is given to see how the node is now.
const AFTER_PAUSE: Duration = Duration::from_mins(1);

/// A plan in the making.
pub(super) struct Draft<'a> {
    pub facts: &'a Facts,
    pub now: Timestamp,
    pub status: MaasRemediationStatus,
}

impl<'a> Draft<'a> {
    pub fn new(facts: &'a Facts, now: Timestamp) -> Self {
        Self { facts, now, status: facts.status() }
    }

    /// For MAAS's event log.
    pub fn comment(&self, what: &str) -> String {
        let metadata = &self.facts.object.metadata;
        let (namespace, name) = (metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default());
        format!("metalshift: {what} {namespace}/{name}")
    }

    // Time

    pub fn attempts(&self) -> u32 {
        self.status.attempts.unwrap_or_default()
    }

    /// When the last attempt will have had its time; nothing if none was begun.
    pub fn deadline(&self) -> Option<Timestamp> {
        let began = self.status.last_remediated.as_ref()?.0;
        Some(later(began, self.facts.object.spec.timeout()))
    }

    /// Until when the health check is given time after a pause. An object that was never paused says since its beginning that it is not.
    pub fn settles_until(&self) -> Option<Timestamp> {
        let since = condition::find(&self.status.conditions, PAUSED)?.last_transition_time.0;
        let created = self.facts.object.metadata.creation_timestamp.as_ref()?.0;
        (later(created, AFTER_PAUSE) < since).then(|| later(since, AFTER_PAUSE)).filter(|end| self.now < *end)
    }

    // What is shown

    pub fn phase(&mut self, phase: RemediationPhase) {
        self.status.phase = Some(phase);
    }

    /// The node is not back, for this reason.
    pub fn not_remediated(&mut self, reason: Reason, message: impl Into<String>) {
        self.condition(REMEDIATED, false, reason.name, message.into());
    }

    pub fn remediated(&mut self) {
        self.phase(RemediationPhase::Succeeded);
        self.condition(REMEDIATED, true, reason::HEALTHY.name, String::new());
    }

    /// The reason that is shown now.
    pub fn reason(&self) -> Option<&str> {
        condition::find(&self.status.conditions, REMEDIATED).map(|condition| condition.reason.as_str())
    }

    /// The message that is shown now.
    pub fn message(&self) -> &str {
        condition::find(&self.status.conditions, REMEDIATED).map(|condition| condition.message.as_str()).unwrap_or_default()
    }

    fn condition(&mut self, kind: &'static str, is: bool, reason: &str, message: String) {
        let new = NewCondition { kind, status: Status::from(is), reason: reason.to_owned(), message };
        condition::set(&mut self.status.conditions, new, self.facts.object.metadata.generation, self.now);
    }

    // How it ends

    pub fn paused(mut self, causes: &[&str]) -> Plan {
        self.condition(PAUSED, true, "Paused", causes.join(", "));
        if self.status.phase.is_none() {
            self.phase(RemediationPhase::Waiting);
        }
        Plan::show(self.status)
    }

    pub fn not_paused(&mut self) {
        self.condition(PAUSED, false, "NotPaused", String::new());
    }

    /// Nothing is done, and nothing was if nothing was begun; an attempt that is under way goes on.
    pub fn hold(mut self, reason: Reason, message: impl Into<String>, look_again: LookAgain) -> Plan {
        if self.attempts() == 0 {
            self.phase(RemediationPhase::Waiting);
        }
        self.not_remediated(reason, message);
        self.wait(look_again)
    }

    pub fn step(self, step: Step) -> Plan {
        self.finish(Some(step), LookAgain::OnChange)
    }

    /// There is nothing to do now.
    pub fn wait(self, look_again: LookAgain) -> Plan {
        self.finish(None, look_again)
    }

    /// There is nothing to do before this time.
    pub fn wait_until(self, time: Timestamp) -> Plan {
        let left = Duration::try_from(time.duration_since(self.now)).unwrap_or_default();
        self.wait(LookAgain::After(left.max(Duration::from_millis(100))))
    }

    fn finish(mut self, step: Option<Step>, look_again: LookAgain) -> Plan {
        let before = self.facts.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        condition::keep_times(&mut self.status.conditions, before);
        let notes = plan::news(&[REMEDIATED], before, &self.status.conditions, reason::ALL);
        let guard = self.facts.object.metadata.resource_version.clone();
        Plan { guard, step, status: Some(self.status), look_again, notes }
    }
}
