//! A plan in the making: the status as it will be shown, and the ways a decision can end.

use std::{collections::BTreeSet, net::IpAddr};

use api::{
    ClusterInitialization, ClusterNetworkStatus, FailureDomains, MaasClusterStatus,
    condition::{self, NewCondition, Status},
};
use jiff::Timestamp;

use super::{
    facts::Facts,
    failures,
    plan::{LookAgain, Plan, Step},
    reason,
};
use crate::{
    machine::{AccountFacts, Reason},
    plan,
};

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

    /// Which machines the name leads to.
    pub fn publishes(&mut self, name: &str, addresses: BTreeSet<IpAddr>) {
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
        self.raw_condition(PAUSED, Some(true), "Paused", plan::pause("MaasCluster", by_cluster, by_annotation));
        // Cluster API wants it from the first pass on; what it said before a pause stays said.
        if condition::find(&self.status.conditions, READY).is_none() {
            let (is, reason, message) = plan::ready(&self.status.conditions, [LOAD_BALANCER_READY, API_SERVER_AVAILABLE]);
            self.raw_condition(READY, is, &reason, message);
        }
        Plan::show(self.status)
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
        let kinds = [LOAD_BALANCER_READY, API_SERVER_AVAILABLE, FAILURE_DOMAINS_READY, MAAS_AVAILABLE];
        let notes = plan::news(&kinds, before, &self.status.conditions, reason::ALL);
        let guard = self.facts.object.metadata.resource_version.clone();
        Plan { guard, step, status: Some(self.status), look_again, notes }
    }

    fn summarise(&mut self) {
        if self.facts.is_deleting() {
            let (reason, message) = plan::deleting(&self.status.conditions, LOAD_BALANCER_READY);
            self.raw_condition(DELETING, Some(true), &reason, message.clone());
            self.raw_condition(READY, Some(false), &reason, message);
        } else {
            self.raw_condition(DELETING, Some(false), "NotDeleting", String::new());
            let (is, reason, message) = plan::ready(&self.status.conditions, [LOAD_BALANCER_READY, API_SERVER_AVAILABLE]);
            self.raw_condition(READY, is, &reason, message);
        }
    }
}
