//! Everything that decisions about one `MaasRemediation` rest on. The manager's `remediation/observe.rs` fills it; what a step brought to light is
//! added during a pass, so that the next step is decided on it.

use api::{
    Intent, MaasMachine, MaasRemediation, MaasRemediationStatus, ProviderId, RemediationPhase, SystemId,
    cluster_api::{Cluster, Machine},
    condition, names,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::plan::StepName;
use crate::{Failure, Lookup, Power, Server, machine::AccountFacts};

/// What is known of one `MaasRemediation` and everything around it.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The object.
    pub object: MaasRemediation,
    /// The Machine that owns it; none if it has none, or it is gone.
    pub machine: Option<Machine>,
    /// The Cluster of that Machine.
    pub cluster: Option<Cluster>,
    /// The infrastructure of that Machine; none if there is none.
    pub maas_machine: Option<MaasMachine>,
    /// Who we are to MAAS, or why we are nobody.
    pub account: Result<AccountFacts, Failure>,
    /// The server of that infrastructure.
    pub server: Lookup<Server>,
    /// Whether MAAS lists the server under the claim of the MaasMachine.
    pub has_our_agent_name: bool,
    /// Whether the server has power, asked of its controller; only known in a pass that asked.
    pub power_now: Option<Power>,
    /// Whether the intent on the MaasMachine was written in this pass: then MAAS may be told what follows from it.
    pub intent_is_fresh: bool,
    /// What was shown before the attempt that was written down in this pass. Only the pass that wrote it down may carry it out.
    pub before_attempt: Option<MaasRemediationStatus>,
    /// What was told to MAAS in this pass.
    pub ordered: Option<Ordered>,
    /// The status as it will be shown, as far as this pass has come.
    pub shown: Option<MaasRemediationStatus>,
    /// Who writes intents on behalf of remediations: [`super::WRITER`] and this process. It is another than the MaasMachine's own rules, which so
    /// know that there may be an order whose answer they did not see.
    pub writer: String,
    /// The step of this pass that did not succeed.
    pub failed: Option<FailedStep>,
}

/// What was told to MAAS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ordered {
    /// To switch off, and it did.
    Off,
    /// To switch on, and it did.
    On,
    /// To switch off, and it said that only a person can.
    NotSwitchable,
}

/// A step that did not succeed.
pub type FailedStep = crate::FailedStep<StepName>;

/// What a step brought to light.
#[derive(Debug, Clone)]
pub enum Learned {
    /// The object with the attempt written down.
    Begun(Box<MaasRemediation>),
    /// The MaasMachine with an intent that was written a moment ago.
    Intent(Box<MaasMachine>),
    /// The server as it is now.
    Looked(Box<Lookup<Server>>),
    /// Whether the server has power.
    Power(Power),
    /// MAAS did what it was told.
    Ordered(Ordered),
    /// The Machine was left to its owner.
    HandedOver,
}

impl Facts {
    /// Whether the object is another program's, nobody's, or going.
    pub(super) fn is_not_ours(&self) -> bool {
        let metadata = &self.object.metadata;
        self.machine.is_none() || metadata.deletion_timestamp.is_some() || is_annotated(metadata, names::MANAGED_BY)
    }

    /// Why nothing is to be done now, in the words of Cluster API.
    pub(super) fn pauses(&self) -> Vec<&'static str> {
        let machine = self.machine.as_ref().map(|machine| &machine.metadata);
        let ours = self.maas_machine.as_ref().map(|machine| &machine.metadata);
        let paused = |metadata: Option<&ObjectMeta>| metadata.is_some_and(|metadata| is_annotated(metadata, names::PAUSED));
        [
            (self.cluster.as_ref().is_some_and(|cluster| cluster.paused), "Cluster spec.paused is set to true"),
            (paused(Some(&self.object.metadata)), "MaasRemediation has the cluster.x-k8s.io/paused annotation"),
            (paused(machine), "Machine has the cluster.x-k8s.io/paused annotation"),
            (paused(ours), "MaasMachine has the cluster.x-k8s.io/paused annotation"),
        ]
        .into_iter()
        .filter_map(|(is, words)| is.then_some(words))
        .collect()
    }

    /// The status as far as this pass has come.
    pub(super) fn status(&self) -> MaasRemediationStatus {
        self.shown.clone().or_else(|| self.object.status.clone()).unwrap_or_default()
    }

    /// The intent on the MaasMachine, if it is its own.
    pub fn intent(&self) -> Option<Intent> {
        Intent::of(&self.maas_machine.as_ref()?.metadata).ours()
    }

    /// The server that was handed to Cluster API as the one of this Machine.
    pub fn server_id(&self) -> Option<SystemId> {
        let spec = &self.maas_machine.as_ref()?.spec;
        spec.provider_id.as_ref()?.parse::<ProviderId>().ok().map(|id| id.system_id)
    }

    /// Whether decisions rest on what MAAS says.
    pub fn concerns_maas(&self) -> bool {
        let goes = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_some();
        let over = matches!(self.status().phase, Some(RemediationPhase::Failed)) || self.health() == Some(true);
        let machine_goes = self.machine.as_ref().is_some_and(|machine| goes(&machine.metadata));
        let ours_goes = self.maas_machine.as_ref().is_some_and(|machine| goes(&machine.metadata));
        !self.is_not_ours() && self.pauses().is_empty() && !over && !machine_goes && !ours_goes && self.server_id().is_some()
    }

    /// What the Machine's health check says; nothing if there is none or it cannot tell.
    pub(super) fn health(&self) -> Option<bool> {
        self.machine_condition(Machine::HEALTH_CHECK_SUCCEEDED)
    }

    /// A condition of the Machine, if it is True or False.
    pub(super) fn machine_condition(&self, kind: &str) -> Option<bool> {
        let found = condition::find(&self.machine.as_ref()?.conditions, kind)?;
        match found.status.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }

    /// Takes in what a step brought to light.
    pub fn learn(&mut self, learned: Learned) {
        match learned {
            Learned::Begun(object) => {
                self.before_attempt = Some(self.object.status.clone().unwrap_or_default());
                self.object = *object;
            }
            Learned::Intent(machine) => {
                self.maas_machine = Some(*machine);
                self.intent_is_fresh = true;
            }
            Learned::Looked(server) => self.server = *server,
            Learned::Power(power) => self.power_now = Some(power),
            Learned::Ordered(ordered) => self.ordered = Some(ordered),
            Learned::HandedOver => {
                if let Some(machine) = &mut self.machine {
                    machine.conditions.retain(|condition| condition.type_ != Machine::OWNER_REMEDIATED);
                    machine.conditions.push(condition::Condition {
                        type_: Machine::OWNER_REMEDIATED.to_owned(),
                        status: "False".to_owned(),
                        reason: String::new(),
                        message: String::new(),
                        observed_generation: None,
                        last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH),
                    });
                }
            }
        }
    }
}

fn is_annotated(metadata: &ObjectMeta, name: &str) -> bool {
    metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(name))
}
