//! A plan in the making: the status as it will be shown, and the ways a decision can end.

use api::{
    ClusterInitialization, ClusterNetworkStatus, FailureDomains, MaasClusterStatus,
    condition::{self, NewCondition, Status},
};
use jiff::Timestamp;

use super::{
    facts::Facts,
    failures,
    plan::{LookAgain, Note, Plan, Step},
    reason,
};
use crate::machine::{AccountFacts, Reason};

pub(super) const READY: &str = "Ready";
pub(super) const LOAD_BALANCER_READY: &str = "LoadBalancerReady";
pub(super) const API_SERVER_AVAILABLE: &str = "APIServerAvailable";
pub(super) const FAILURE_DOMAINS_READY: &str = "FailureDomainsReady";
pub(super) const MAAS_AVAILABLE: &str = "MaasAvailable";
const PAUSED: &str = "Paused";
const DELETING: &str = "Deleting";

/// What the schema allows.
const MOST_ADDRESSES: usize = 64;

/// A plan in the making.
pub(super) struct Draft<'a> {
    pub facts: &'a Facts,
    pub now: Timestamp,
    pub status: MaasClusterStatus,
}

impl Plan {
    /// Nothing to do and nothing to show: the object is not ours to write.
    pub(super) fn nothing() -> Self {
        Self { guard: None, step: None, status: None, look_again: LookAgain::OnChange, notes: Vec::new() }
    }
}

impl<'a> Draft<'a> {
    pub fn new(facts: &'a Facts, now: Timestamp) -> Self {
        let mut status = facts.shown.clone().or_else(|| facts.object.status.clone()).unwrap_or_default();
        if let FailureDomains::Map(zones) = status.failure_domains {
            // An older provider left it so, and Cluster API refuses it now.
            status.failure_domains = FailureDomains::list(zones.into_keys());
        }
        Self { facts, now, status }
    }

    pub fn account(&self) -> Option<&'a AccountFacts> {
        self.facts.account.as_ref().ok()
    }

    // What is shown

    pub fn condition(&mut self, kind: &'static str, is: Option<bool>, reason: Reason, message: impl Into<String>) {
        self.raw_condition(kind, is, reason.name, message.into());
    }

    fn raw_condition(&mut self, kind: &'static str, is: Option<bool>, reason: &str, message: String) {
        let status = is.map_or(Status::Unknown, Status::from);
        let new = NewCondition { kind, status, reason: reason.to_owned(), message };
        let generation = self.facts.object.metadata.generation;
        condition::set(&mut self.status.conditions, new, generation, self.now);
    }

    /// The address of the API server is not there or not right, for this reason.
    pub fn no_endpoint(&mut self, reason: Reason, message: impl Into<String>) {
        self.condition(LOAD_BALANCER_READY, Some(false), reason, message);
    }

    /// The same for something that does not show that an address which was made has gone.
    pub fn no_endpoint_unless_provisioned(&mut self, reason: Reason, message: impl Into<String>) {
        let known = condition::find(&self.status.conditions, LOAD_BALANCER_READY).is_some();
        if !self.facts.is_provisioned() || self.facts.is_deleting() || !known {
            self.no_endpoint(reason, message);
        }
    }

    pub fn endpoint_is_ready(&mut self) {
        self.condition(LOAD_BALANCER_READY, Some(true), reason::LOAD_BALANCER_READY, "");
    }

    pub fn network(&mut self) -> &mut ClusterNetworkStatus {
        self.status.network.get_or_insert_default()
    }

    /// What the name leads to.
    pub fn publishes(&mut self, name: &str, addresses: impl IntoIterator<Item = std::net::IpAddr>) {
        let network = self.network();
        network.dns_name = Some(name.to_owned());
        network.addresses = addresses.into_iter().take(MOST_ADDRESSES).map(|address| address.to_string()).collect();
    }

    /// Machines can be made from now on.
    pub fn provisioned(&mut self) {
        self.status.ready = true;
        self.status.initialization = Some(ClusterInitialization { provisioned: Some(true) });
    }

    // How it ends

    pub fn paused(mut self, by_cluster: bool, by_annotation: bool) -> Plan {
        let mut causes = Vec::new();
        if by_cluster {
            causes.push("Cluster spec.paused is set to true");
        }
        if by_annotation {
            causes.push("MaasCluster has the cluster.x-k8s.io/paused annotation");
        }
        self.raw_condition(PAUSED, Some(true), "Paused", causes.join(", "));
        Plan { guard: None, step: None, status: Some(self.status), look_again: LookAgain::OnChange, notes: Vec::new() }
    }

    pub fn not_paused(&mut self) {
        self.raw_condition(PAUSED, Some(false), "NotPaused", String::new());
    }

    /// A step comes next, unless it has just failed: then the failure is explained.
    pub fn step(self, step: Step) -> Plan {
        match &self.facts.failed {
            Some(failed) if failed.step == step.name() => failures::explain(self, failed),
            _ => self.finish(Some(step), LookAgain::OnChange),
        }
    }

    /// There is nothing to do now.
    pub fn wait(self, look_again: LookAgain) -> Plan {
        self.finish(None, look_again)
    }

    fn finish(mut self, step: Option<Step>, look_again: LookAgain) -> Plan {
        self.summarise();
        let before = self.facts.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        condition::keep_times(&mut self.status.conditions, before);
        let notes = self.notes();
        let guard = self.facts.object.metadata.resource_version.clone();
        Plan { guard, step, status: Some(self.status), look_again, notes }
    }

    fn summarise(&mut self) {
        let find = |status: &MaasClusterStatus, kind| condition::find(&status.conditions, kind).cloned();
        let (endpoint, server) = (find(&self.status, LOAD_BALANCER_READY), find(&self.status, API_SERVER_AVAILABLE));
        if self.facts.is_deleting() {
            let (reason, message) =
                endpoint.map_or(("Deleting".to_owned(), String::new()), |condition| (condition.reason, condition.message));
            self.raw_condition(DELETING, Some(true), &reason, message.clone());
            self.raw_condition(READY, Some(false), "Deleting", message);
            return;
        }
        self.raw_condition(DELETING, Some(false), "NotDeleting", String::new());
        let known = endpoint.is_some();
        let hindrance = [endpoint, server].into_iter().flatten().find(|condition| condition.status != "True");
        match hindrance {
            Some(condition) => {
                let is = (condition.status != "Unknown").then_some(false);
                self.raw_condition(READY, is, &condition.reason, condition.message);
            }
            None if known => self.raw_condition(READY, Some(true), "Ready", String::new()),
            None => self.raw_condition(READY, None, "NotYetKnown", String::new()),
        }
    }

    /// Tells people of every reason that is new.
    fn notes(&self) -> Vec<Note> {
        let before = self.facts.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        [LOAD_BALANCER_READY, API_SERVER_AVAILABLE, FAILURE_DOMAINS_READY, MAAS_AVAILABLE]
            .into_iter()
            .filter_map(|kind| {
                let new = condition::find(&self.status.conditions, kind)?;
                let old = condition::find(before, kind);
                if old.is_some_and(|old| old.reason == new.reason && old.status == new.status) {
                    return None;
                }
                let warning = reason::ALL.iter().chain(Reason::ALL).any(|reason| reason.name == new.reason && reason.trouble);
                Some(Note { warning, reason: new.reason.clone(), message: new.message.clone() })
            })
            .collect()
    }
}
