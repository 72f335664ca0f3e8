//! Everything that decisions about one MaasMachine rest on. The manager's `machine/observe.rs` fills it; what a step brought to light is
//! added during a pass, so that the next step is decided on it.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    Claim, Image, Intent, IntentRead, MaasCluster, MaasMachine, MaasMachineStatus, ProviderId, SystemId,
    cluster_api::{Cluster, IpAddress, IpAddressClaim, Machine},
    names,
};
use jiff::Timestamp;

use super::plan::{Preparation, Step, StepName};
use crate::{Failure, Lookup, Power, Server, Stage};

/// What is known of one MaasMachine and everything around it.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The object.
    pub object: MaasMachine,
    /// The Machine that owns it; none until Cluster API has said so.
    pub machine: Option<Machine>,
    /// The Cluster of that Machine.
    pub cluster: Option<Cluster>,
    /// The infrastructure of that Cluster.
    pub maas_cluster: Option<MaasCluster>,
    /// What the machine shall run at its first boot.
    pub bootstrap: Bootstrap,
    /// Who we are to MAAS, or why we are nobody.
    pub account: Result<AccountFacts, Failure>,
    /// Which management cluster this is.
    pub management_cluster: String,
    /// The server the object names; nothing if it names none.
    pub recorded: Option<Lookup<Server>>,
    /// The servers that have our claim as their agent name.
    pub claimed: Lookup<Vec<Server>>,
    /// Servers whose release we began and have not seen the end of.
    pub releasing: BTreeMap<SystemId, Lookup<Server>>,
    /// Whether MAAS has the image.
    pub image: ImageCheck,
    /// Servers that failed to deploy lately, whoever asked, and how.
    pub recent_failures: BTreeMap<SystemId, String>,
    /// Servers that could be allocated; only known in a pass that asked.
    pub candidates: Option<Vec<Candidate>>,
    /// Whether the server has power, asked of its controller; only known in a pass that asked.
    pub power_now: Option<Power>,
    /// Whether the server was switched on in this pass.
    pub powered_on: bool,
    /// The node of the server in the workload cluster.
    pub node: NodeFacts,
    /// The addresses the cluster's endpoint leads to.
    pub published: BTreeSet<String>,
    /// The status as it will be shown, as far as this pass has come.
    pub shown: Option<MaasMachineStatus>,
    /// This process, as intents name it.
    pub writer: String,
    /// A claim nobody has, for an object that needs one.
    pub fresh_claim: Claim,
    /// Whether the intent on the object was written in this pass: then MAAS may be told what follows from it.
    pub intent_is_fresh: bool,
    /// Until when MAAS may still do something that nobody saw the answer to. Until then nothing is allocated, released or let go.
    pub unanswered_until: Option<Timestamp>,
    /// How often servers were looked at in this pass since MAAS last did something for us.
    pub looks_in_vain: u32,
    /// Why the address that is asked of a pool cannot be had, if so.
    pub address_refused: Option<String>,
    /// The claim by which the object asked a pool for its address; only known in a pass that looked.
    pub address_claim: Box<Lookup<IpAddressClaim>>,
    /// Addresses of pools, by name; only known in a pass that looked.
    pub pooled: BTreeMap<String, Lookup<IpAddress>>,
    /// Servers whose interfaces MAAS did not disconnect when it was told to in this pass, and why.
    pub not_unlinked: BTreeMap<SystemId, Failure>,
    /// The step of this pass that did not succeed.
    pub failed: Option<FailedStep>,
}

/// Who we are to MAAS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountFacts {
    /// The host MAAS is at.
    pub host: String,
    /// The user's name.
    pub user: String,
    /// Whether it is an administrator.
    pub administrator: bool,
}

/// What a machine shall run at its first boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bootstrap {
    /// The Machine asks for none.
    NotWanted,
    /// The bootstrap provider has not written it yet.
    Pending,
    /// It is there.
    Present {
        /// How long it is as MAAS gets it.
        encoded_bytes: usize,
    },
    /// The Secret, or the key in it, is not there.
    Unreadable {
        /// Which, and what is wrong.
        words: String,
    },
}

/// Whether MAAS has the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageCheck {
    /// It has.
    Present,
    /// It has not.
    Absent {
        /// What it has.
        available: Vec<String>,
    },
    /// It did not say; deploying will.
    Unclear,
}

impl ImageCheck {
    /// Whether the image is among those that MAAS lists. One that was uploaded is listed without the prefix it is deployed with.
    pub fn of<'a>(wanted: &Image, listed: impl Iterator<Item = &'a str>) -> Self {
        let full = format!("{}/{}", wanted.os, wanted.series);
        let available: BTreeSet<String> = listed.map(str::to_owned).collect();
        let uploaded = wanted.os == UPLOADED && available.contains(&wanted.series);
        if uploaded || available.contains(&full) { Self::Present } else { Self::Absent { available: available.into_iter().collect() } }
    }
}

/// What the operating system of uploaded images is called.
const UPLOADED: &str = "custom";

/// A server that could be allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub system_id: SystemId,
    /// Whether it is a virtual machine of a VM host.
    pub virtual_machine: bool,
}

/// The node of the server in the workload cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeFacts {
    /// The workload cluster does not answer, or there is no way to it yet.
    Unreachable,
    /// It has no such node yet.
    Absent,
    /// It has.
    Present {
        /// The node's name.
        name: String,
        /// What it says its machine is.
        provider_id: Option<String>,
        /// Whether it reports an address of the server. Its name alone may be that of a host in another domain.
        is_there: bool,
    },
}

/// A step that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStep {
    /// Which.
    pub step: StepName,
    /// The server it was about.
    pub server: Option<SystemId>,
    /// Why.
    pub failure: Failure,
    /// Whether the server was looked at since.
    pub looked_since: bool,
}

/// What a step brought to light.
#[derive(Debug, Clone)]
pub enum Learned {
    /// The object as it is now.
    Object(Box<MaasMachine>),
    /// The object as it is now, with an intent that was written a moment ago.
    Intent(Box<MaasMachine>),
    /// MAAS may still do something that nobody saw the answer to.
    Unanswered(Timestamp),
    /// A server as it is now.
    Server(Box<Server>),
    /// A server that was just switched on.
    PoweredOn(Box<Server>),
    /// The servers with our claim, one of which was just allocated.
    Allocated(Box<Server>),
    /// What was looked for again.
    Looked(SystemId, Box<Lookup<Server>>),
    /// A server changed, and its answer does not tell how.
    Changed(SystemId),
    /// What could be allocated.
    Candidates(Vec<Candidate>),
    /// Whether the server has power.
    Power(Power),
    /// The node now says what its machine is.
    Node(String),
    /// The server has no node any more.
    NodeGone,
    /// The claim by which the object asked a pool for its address.
    AddressClaim(Box<Lookup<IpAddressClaim>>),
    /// An address of a pool, by its name.
    Pooled(String, Box<Lookup<IpAddress>>),
    /// The object is free to go.
    ObjectGone,
}

impl Facts {
    /// The intent on the object, if it is this object's own.
    pub fn intent(&self) -> Option<Intent> {
        Intent::of(&self.object.metadata).ours()
    }

    /// The server the object names.
    pub fn recorded_id(&self) -> Option<SystemId> {
        let spec = &self.object.spec;
        let by_provider = || spec.provider_id.as_ref()?.parse::<ProviderId>().ok().map(|id| id.system_id);
        spec.system_id.as_ref().filter(|id| !id.is_empty()).map(|id| SystemId::from(id.as_str())).or_else(by_provider)
    }

    /// Whether the server was handed to Cluster API as the one of this Machine. From then on it never changes.
    pub fn is_provisioned(&self) -> bool {
        self.object.spec.provider_id.as_ref().is_some_and(|id| !id.is_empty())
    }

    /// Whether the object's server was running before: its status says so, or what Cluster API took over from that, which survives a move.
    fn ran_before(&self) -> bool {
        let told = self.object.status.as_ref().is_some_and(|status| {
            let provisioned = status.initialization.as_ref().is_some_and(|initialization| initialization.provisioned == Some(true));
            status.ready || provisioned || status.machine_state.as_deref() == Some("Deployed")
        });
        told || self.machine.as_ref().is_some_and(|machine| machine.node_name.is_some() || machine.provider_id.is_some())
    }

    /// Whether a server that ran for this object has begun anew: it was released since, and somebody of our user has allocated it again.
    pub(super) fn was_taken_again(&self, server: &Server) -> bool {
        self.ran_before() && matches!(server.status.stage(), Stage::Held | Stage::Installing | Stage::InstallFailed)
    }

    /// Whether another provider handed the server over before it deployed it, so that we do. It tells the id of a machine first, and marks
    /// go with every release, so a server that is still held is still that one.
    pub fn is_handed_over_unfinished(&self) -> bool {
        let recorded = self.recorded_id();
        let taken_on = self.intent().is_none_or(|intent| intent.adopting.or(intent.adopted) == recorded);
        let server = self.recorded.as_ref().and_then(Lookup::found);
        let unfinished = |server: &Server| matches!(server.status.stage(), Stage::Held | Stage::Installing);
        self.is_provisioned() && taken_on && server.is_some_and(unfinished)
    }

    /// Whether it was handed over and does not say which server it is.
    pub fn has_unreadable_id(&self) -> bool {
        self.is_provisioned() && self.recorded_id().is_none()
    }

    /// Whether this is a node of the control plane.
    pub fn is_control_plane(&self) -> bool {
        self.object.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(api::names::CONTROL_PLANE))
    }

    /// Whether the object is to be left alone: it is paused, another program's, or nobody's yet.
    pub fn is_left_alone(&self) -> bool {
        let annotated = |name| self.object.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(name));
        let paused = annotated(names::PAUSED) || self.cluster.as_ref().is_some_and(|cluster| cluster.paused);
        let nobodys = self.machine.is_none() && self.object.metadata.deletion_timestamp.is_none();
        paused || nobodys || annotated(names::MANAGED_BY)
    }

    /// Whether decisions about the object rest on what MAAS says. Until something is asked of it, or was, they do not.
    pub fn concerns_maas(&self) -> bool {
        let deleting = self.object.metadata.deletion_timestamp.is_some();
        let asked = self.recorded_id().is_some() || Intent::of(&self.object.metadata) != IntentRead::None;
        !self.is_left_alone() && (asked || (!deleting && super::waits::missing(self).is_none()))
    }

    /// What is known of one server, by whatever trail.
    fn known(&self, id: &SystemId) -> Lookup<Server> {
        let claimed = || self.claimed.found()?.iter().find(|server| server.system_id == *id).cloned().map(Lookup::Found);
        self.releasing.get(id).cloned().or_else(claimed).unwrap_or(Lookup::Outdated)
    }

    /// Takes in what a step brought to light.
    pub fn learn(&mut self, learned: Learned) {
        match learned {
            Learned::Looked(..) => self.looks_in_vain += 1,
            // What Kubernetes keeps for us brings nobody further.
            Learned::Object(_) | Learned::Intent(_) | Learned::AddressClaim(_) | Learned::Pooled(..) => {}
            _ => self.looks_in_vain = 0,
        }
        match learned {
            Learned::Object(object) => self.read_object(*object),
            Learned::Intent(object) => {
                self.read_object(*object);
                self.intent_is_fresh = true;
                // What failed before was another attempt.
                self.failed = None;
            }
            Learned::Allocated(server) => {
                let mut claimed = self.claimed.found().cloned().unwrap_or_default();
                claimed.push((*server).clone());
                self.claimed = Lookup::Found(claimed);
                // It may be one the object named before it was ours.
                self.see(&server.system_id.clone(), &Lookup::Found(*server));
            }
            Learned::Unanswered(until) => self.unanswered_until = self.unanswered_until.max(Some(until)),
            Learned::Server(server) => self.see(&server.system_id.clone(), &Lookup::Found(*server)),
            Learned::Looked(id, lookup) => {
                self.see(&id, &lookup);
                if let Some(failed) = self.failed.as_mut().filter(|failed| failed.server.as_ref() == Some(&id)) {
                    failed.looked_since = true;
                }
            }
            Learned::PoweredOn(server) => {
                self.see(&server.system_id.clone(), &Lookup::Found(*server));
                self.powered_on = true;
            }
            Learned::Changed(id) => self.see(&id, &Lookup::Outdated),
            Learned::Candidates(candidates) => self.candidates = Some(candidates),
            Learned::Power(power) => self.power_now = Some(power),
            Learned::Node(name) => {
                let provider_id = self.object.spec.provider_id.clone();
                let is_there = matches!(self.node, NodeFacts::Present { is_there: true, .. });
                self.node = NodeFacts::Present { name, provider_id, is_there };
            }
            Learned::NodeGone => self.node = NodeFacts::Absent,
            Learned::AddressClaim(claim) => self.address_claim = claim,
            Learned::Pooled(name, address) => drop(self.pooled.insert(name, *address)),
            Learned::ObjectGone => self.object.metadata.finalizers = None,
        }
    }

    /// Takes in that a step did not succeed.
    pub fn fail(&mut self, step: &Step, mut failure: Failure) {
        match step {
            Step::Prepare { server, preparation: Preparation::Unlink { .. }, .. } => {
                self.not_unlinked.insert(server.clone(), failure.clone());
            }
            // MAAS does not say which one it means.
            Step::Prepare { preparation: Preparation::Link { address: Some(address), .. }, .. } => {
                failure.words = format!("{address}: {}", failure.words);
            }
            _ => {}
        }
        self.failed = Some(FailedStep { step: step.name(), server: step.server().cloned(), failure, looked_since: false });
    }

    /// The object may name other servers now: what is known of them moves with it.
    fn read_object(&mut self, object: MaasMachine) {
        let before = self.recorded_id();
        self.object = object;
        let recorded = self.recorded_id();
        if recorded != before {
            self.recorded = recorded.map(|id| self.known(&id));
        }
        let ids = self.intent().map(|intent| intent.releasing).unwrap_or_default();
        self.releasing = ids.into_iter().map(|id| (id.clone(), self.recorded_or_known(&id))).collect();
    }

    fn recorded_or_known(&self, id: &SystemId) -> Lookup<Server> {
        match &self.recorded {
            Some(lookup) if self.recorded_id().as_ref() == Some(id) => lookup.clone(),
            _ => self.known(id),
        }
    }

    /// Everything known of one server is this from now on.
    fn see(&mut self, id: &SystemId, lookup: &Lookup<Server>) {
        if let Some(known) = self.releasing.get_mut(id) {
            known.clone_from(lookup);
        }
        if self.recorded_id().as_ref() == Some(id) {
            self.recorded = Some(lookup.clone());
        }
        if let Lookup::Found(claimed) = &mut self.claimed
            && let Some(index) = claimed.iter().position(|server| server.system_id == *id)
        {
            match lookup {
                Lookup::Found(server) => claimed[index] = server.clone(),
                // Nobody knows, so it is not known either that there is nothing under our claim.
                Lookup::Failed(failure) => self.claimed = Lookup::Failed(failure.clone()),
                // Whatever changed it may have blanked its agent name; another trail leads to it if it is still ours.
                Lookup::Missing | Lookup::Forbidden | Lookup::Outdated => drop(claimed.remove(index)),
            }
        }
    }
}
