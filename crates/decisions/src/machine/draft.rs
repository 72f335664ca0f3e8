//! A plan in the making: the status as it will be shown, and the ways a decision can end.

use api::{
    AddressType, Attempt, MaasMachineStatus, MachineAddress, MachineInitialization, Phase, ProvisioningMode,
    condition::{self, NewCondition, Status},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    facts::{AccountFacts, Facts},
    plan::{LookAgain, Plan, Step, StepName},
    reason::Reason,
};
use crate::{Marks, Power, Server, plan};

pub(super) const READY: &str = "Ready";
pub(super) const DEPLOYED: &str = "MachineDeployed";
pub(super) const PREPARED: &str = "MachinePrepared";
pub(super) const DNS_ATTACHED: &str = "DNSAttached";
pub(super) const MAAS_AVAILABLE: &str = "MaasAvailable";
pub(super) const NODE_NAMED: &str = "NodeProviderIDSet";
/// Only there once a fixed address stayed on a server that went back.
pub(super) const ADDRESSES_FREED: &str = "FixedAddressesFreed";
/// Only there once the address that a running server has from a pool could not be held.
pub(super) const ADDRESS_HELD: &str = "PooledAddressHeld";
const PAUSED: &str = "Paused";
const DELETING: &str = "Deleting";

/// What a look shows is too old for anything when MAAS takes long for it; another look a moment later is no better.
const MOST_LOOKS_IN_VAIN: u32 = 3;

/// What the schema allows.
const LONGEST_CAUSE: usize = 1000;

/// A plan in the making.
pub(super) struct Draft<'a> {
    pub facts: &'a Facts,
    pub now: Timestamp,
    pub status: MaasMachineStatus,
}

impl<'a> Draft<'a> {
    pub fn new(facts: &'a Facts, now: Timestamp) -> Self {
        let mut status = facts.shown.clone().or_else(|| facts.object.status.clone()).unwrap_or_default();
        let spec = &facts.object.spec;
        status.image = Some(spec.image.clone());
        if !facts.is_provisioned() {
            status.ready = false;
        }
        Self { facts, now, status }
    }

    // Who we are

    pub fn object_name(&self) -> String {
        let metadata = &self.facts.object.metadata;
        format!("{}/{}", metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
    }

    /// For MAAS's event log.
    pub fn comment(&self, what: &str) -> String {
        format!("metalshift: {what} {}", self.object_name())
    }

    pub fn account(&self) -> Option<&'a AccountFacts> {
        self.facts.account.as_ref().ok()
    }

    pub fn marks(&self, claim: api::Claim) -> Marks {
        let metadata = &self.facts.object.metadata;
        let label = |name| metadata.labels.as_ref().and_then(|labels| labels.get(name)).cloned();
        Marks {
            claim,
            management_cluster: self.facts.management_cluster.clone(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            cluster: label(api::names::CLUSTER_NAME).unwrap_or_default(),
            machine: metadata.name.clone().unwrap_or_default(),
        }
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

    /// The machine does not run, for this reason.
    pub fn not_deployed(&mut self, reason: Reason, message: impl Into<String>) {
        self.condition(DEPLOYED, Some(false), reason, message);
    }

    /// The same for something that does not show that a machine which was handed over stopped running.
    pub fn not_deployed_unless_handed_over(&mut self, reason: Reason, message: impl Into<String>) {
        if self.facts.is_provisioned() && self.facts.object.metadata.deletion_timestamp.is_none() {
            self.condition(MAAS_AVAILABLE, Some(false), reason, message);
        } else {
            self.not_deployed(reason, message);
        }
    }

    /// Whether people were told this of the machine.
    pub fn says(&self, reason: Reason) -> bool {
        self.said(reason).is_some()
    }

    /// In which words they were told it.
    pub fn said(&self, reason: Reason) -> Option<&'a str> {
        let shown = self.facts.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        condition::find(shown, DEPLOYED).filter(|deployed| deployed.reason == reason.name).map(|deployed| deployed.message.as_str())
    }

    /// Nobody knows which server the object has.
    pub fn unreadable_id(mut self) -> Plan {
        let id = self.facts.object.spec.provider_id.clone().unwrap_or_default();
        self.not_deployed(Reason::ID_UNREADABLE, format!("spec.providerID is {id:?}. {}", Reason::ID_UNREADABLE.remedy));
        self.wait(LookAgain::OnChange)
    }

    pub fn phase(&mut self, phase: Phase) {
        if self.status.phase != Some(phase) {
            self.status.phase = Some(phase);
            self.status.phase_since = Some(Time(self.now));
            self.status.expected_end = None;
        }
    }

    /// How long the phase has lasted.
    pub fn phase_began(&self) -> Timestamp {
        self.status.phase_since.as_ref().map_or(self.now, |time| time.0)
    }

    pub fn shows(&mut self, server: &Server) {
        let status = &mut self.status;
        status.machine_state = Some(server.status.to_string());
        status.machine_powered = match server.power {
            Power::On => Some(true),
            Power::Off => Some(false),
            Power::Unclear => None,
        };
        status.hostname = Some(server.hostname.clone());
        status.failure_domain = Some(server.zone.clone());
        status.resource_pool = Some(server.pool.clone());
        status.provisioning_mode = Some(if server.vm_host.is_some() { ProvisioningMode::Lxd } else { ProvisioningMode::BareMetal });
        status.addresses = addresses(server);
    }

    pub fn shows_no_server(&mut self) {
        let status = &mut self.status;
        status.machine_state = None;
        status.machine_powered = None;
        status.hostname = None;
        status.failure_domain = None;
        status.addresses = Vec::new();
    }

    /// Notes a machine that failed, once.
    pub fn failed_attempt(&mut self, id: &api::SystemId, hostname: &str, cause: &str) {
        if self.status.attempts.iter().any(|attempt| attempt.system_id == id.as_str()) {
            return;
        }
        let attempt = Attempt {
            system_id: id.to_string(),
            hostname: Some(hostname.to_owned()).filter(|name| !name.is_empty()),
            cause: cause.chars().take(LONGEST_CAUSE).collect(),
            at: Time(self.now),
        };
        self.status.attempts.push(attempt);
        self.status.attempt_count = Some(self.status.attempt_count.unwrap_or_default().saturating_add(1));
        let surplus = self.status.attempts.len().saturating_sub(api::MAX_ATTEMPTS_KEPT);
        self.status.attempts.drain(..surplus);
    }

    // How it ends

    pub fn paused(mut self, by_cluster: bool, by_annotation: bool) -> Plan {
        self.raw_condition(PAUSED, Some(true), "Paused", plan::pause("MaasMachine", by_cluster, by_annotation));
        // Cluster API wants it from the first pass on; what it said before a pause stays said.
        if condition::find(&self.status.conditions, READY).is_none() {
            let (is, reason, message) = plan::ready(&self.status.conditions, [DEPLOYED, DNS_ATTACHED]);
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
            Some(failed) if failed.step == step.name() && failed.server.as_ref() == step.server() => super::failures::explain(self, failed),
            _ if step.name() == StepName::Look && self.facts.looks_in_vain >= MOST_LOOKS_IN_VAIN => super::failures::too_slow(self),
            _ => self.finish(Some(step), LookAgain::OnChange),
        }
    }

    /// There is nothing to do now.
    pub fn wait(self, look_again: LookAgain) -> Plan {
        self.finish(None, look_again)
    }

    fn finish(mut self, step: Option<Step>, look_again: LookAgain) -> Plan {
        let look_again = match super::links::poll(&self) {
            Some(poll) if look_again == LookAgain::OnChange => LookAgain::After(poll),
            _ => look_again,
        };
        self.summarise();
        let before = self.facts.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        condition::keep_times(&mut self.status.conditions, before);
        let kinds = [DEPLOYED, PREPARED, DNS_ATTACHED, MAAS_AVAILABLE, NODE_NAMED, ADDRESSES_FREED, ADDRESS_HELD];
        let notes = plan::news(&kinds, before, &self.status.conditions, &[]);
        let guard = self.facts.object.metadata.resource_version.clone();
        Plan { guard, step, status: Some(self.status), look_again, notes }
    }

    fn summarise(&mut self) {
        let deleting = self.facts.object.metadata.deletion_timestamp.is_some();
        let runs = condition::is_true(&self.status.conditions, DEPLOYED);
        if deleting {
            let (reason, message) = plan::deleting(&self.status.conditions, DEPLOYED);
            self.raw_condition(DELETING, Some(true), &reason, message.clone());
            self.raw_condition(READY, Some(false), &reason, message);
        } else {
            self.raw_condition(DELETING, Some(false), "NotDeleting", String::new());
            let (is, reason, message) = plan::ready(&self.status.conditions, [DEPLOYED, DNS_ATTACHED]);
            self.raw_condition(READY, is, &reason, message);
        }
        if self.facts.is_provisioned() {
            self.status.ready = runs && !deleting;
            if runs {
                self.status.initialization = Some(MachineInitialization { provisioned: Some(true) });
            }
        }
    }
}

/// As Cluster API wants them: names first, then every address once, both as the outside and the inside see it.
fn addresses(server: &Server) -> Vec<MachineAddress> {
    let mut seen = std::collections::BTreeSet::new();
    let address = |kind, address: &str| MachineAddress { kind, address: address.to_owned() };
    let mut list = vec![address(AddressType::Hostname, &server.hostname)];
    if !server.fqdn.is_empty() {
        list.extend([AddressType::ExternalDns, AddressType::InternalDns].map(|kind| address(kind, &server.fqdn)));
    }
    for ip in server.addresses.iter().filter(|ip| seen.insert(**ip)) {
        list.extend([AddressType::ExternalIp, AddressType::InternalIp].map(|kind| address(kind, &ip.to_string())));
    }
    list
}
