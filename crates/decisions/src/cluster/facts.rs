//! Everything that decisions about one MaasCluster rest on. The manager's `cluster/observe.rs` fills it; what a step brought to light is
//! added during a pass, so that the next step is decided on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    EndpointIntent, EndpointIntentRead, EndpointOrderKind, MaasCluster, MaasClusterStatus, MaasMachine,
    cluster_api::{self, Cluster},
    names,
};

use jiff::Timestamp;

use super::{
    others::HeldByOther,
    plan::{Step, StepName},
};
use crate::{Failure, FailureKind, Lookup, NetworkInterface, machine::AccountFacts};

/// What is known of one MaasCluster and everything around it.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The object.
    pub object: MaasCluster,
    /// The Cluster that owns it; none until Cluster API has said so.
    pub cluster: Option<Cluster>,
    /// All MaasMachines of the cluster, as far as their watch has brought them.
    pub machines: Vec<Member>,
    /// Whether Kubernetes itself was asked for them in this pass: a watch that hangs shows what was.
    pub machines_are_confirmed: bool,
    /// The subnets an endpoint's addresses may come from, of the namespace's `ConfigMap`; none if all may.
    pub preferred_subnets: Lookup<Vec<String>>,
    /// Who we are to MAAS, or why we are nobody.
    pub account: Result<AccountFacts, Failure>,
    /// The zones of MAAS.
    pub zones: Lookup<Vec<Zone>>,
    /// The records of the endpoint's name, by id.
    pub records: Lookup<Vec<Record>>,
    /// The network interfaces of control-plane machines by system id, where one of them was asked for.
    pub interfaces: Lookup<BTreeMap<String, Vec<NetworkInterface>>>,
    /// The addresses our user has reserved; only known in a pass that asked.
    pub reservations: Option<Vec<Reservation>>,
    /// When MAAS was asked for them.
    pub reservations_as_of: Option<Timestamp>,
    /// What is free in the subnet of the reserved address, from and to; only known in a pass that asked.
    pub free: Option<Vec<(IpAddr, IpAddr)>>,
    /// Names and addresses that other clusters have or ask for, as far as the watch has brought them.
    pub held_by_others: Vec<HeldByOther>,
    /// Whether Kubernetes itself was asked for them since this object was last written: then of two that wrote the same down at the same time
    /// one at least knows.
    pub others_are_confirmed: bool,
    /// Whether the cluster's API server answers.
    pub api_server: ApiServer,
    /// The status as it will be shown, as far as this pass has come.
    pub shown: Option<MaasClusterStatus>,
    /// What became of the order on the object.
    pub order: OrderState,
    /// When this process first saw an order that it did not write in this pass: its time is that of another computer's clock.
    pub order_seen_at: Option<Timestamp>,
    /// Until when MAAS is told nothing, because it failed at what it was told before.
    pub hold_until: Option<Timestamp>,
    /// The step of this pass that did not succeed.
    pub failed: Option<FailedStep>,
}

/// A MaasMachine of the cluster.
#[derive(Debug, Clone)]
pub struct Member {
    /// The object.
    pub object: MaasMachine,
    /// Whether its node has joined the cluster.
    pub joined: bool,
}

impl Member {
    /// Whether it is of the control plane.
    pub fn is_control_plane(&self) -> bool {
        self.object.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(names::CONTROL_PLANE))
    }

    /// Whether MAAS has shown its machine to us. What it showed is in the status, which is lost when the object is moved.
    pub fn is_seen(&self) -> bool {
        self.object.status.as_ref().is_some_and(|status| status.machine_state.is_some())
    }

    /// Whether it is going for good.
    pub fn is_going(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }
}

/// A zone of MAAS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Its name.
    pub name: String,
    /// Whether there are machines in it; true if nobody asked.
    pub has_machines: bool,
}

/// A DNS record of MAAS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: i64,
    /// Seconds that name servers may keep it.
    pub time_to_live: Option<u32>,
    /// Its addresses.
    pub addresses: Vec<RecordAddress>,
}

impl Record {
    /// Its addresses as such.
    pub fn set(&self) -> BTreeSet<IpAddr> {
        self.addresses.iter().map(|address| address.ip).collect()
    }
}

/// An address of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordAddress {
    /// The address.
    pub ip: IpAddr,
    /// Whether it is reserved by our user and on no machine.
    pub is_our_reservation: bool,
}

/// An address our user has reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The address.
    pub ip: IpAddr,
    /// Whether a machine has it.
    pub on_machine: bool,
}

/// Whether the cluster's API server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiServer {
    /// It never has.
    NotYet,
    /// It does.
    Answers,
    /// It did.
    Silent {
        /// What came instead.
        words: String,
    },
}

/// What became of the order on the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderState {
    /// It was there when the pass began: nobody knows.
    Found,
    /// It was written in this pass, and MAAS has not been told yet.
    Written,
    /// MAAS answered, or was not told after all.
    Answered,
    /// MAAS was told and did not answer.
    Unanswered,
}

/// A step that did not succeed.
pub type FailedStep = crate::FailedStep<StepName>;

/// What a step brought to light.
#[derive(Debug, Clone)]
pub enum Learned {
    /// The object as it is now.
    Object(Box<MaasCluster>),
    /// The object as it is now, with an order that was written a moment ago.
    Order(Box<MaasCluster>),
    /// The machines of the cluster, as Kubernetes has them now.
    Machines(Vec<Member>),
    /// The records of the name, as they are now.
    Records(Lookup<Vec<Record>>),
    /// A record was made; whether it is the only one of the name has to be looked at.
    Created,
    /// The record as it is now.
    Record(Record),
    /// A record is gone; what is left has to be looked at.
    Removed,
    /// What other clusters have or ask for, as Kubernetes has them now.
    Others(Vec<HeldByOther>),
    /// What our user has reserved, and when MAAS was asked.
    Reservations(Timestamp, Vec<Reservation>),
    /// What is free in a subnet.
    Free(Vec<(IpAddr, IpAddr)>),
    /// This address is reserved for us now.
    Reserved(IpAddr),
    /// This address is free now.
    Freed(IpAddr),
    /// The object is free to go.
    ObjectGone,
}

impl Facts {
    /// What the object means to have in MAAS, if that is its own.
    pub fn intent(&self) -> Option<EndpointIntent> {
        EndpointIntent::of(&self.object.metadata).ours()
    }

    /// Whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// The name of the Cluster.
    pub fn cluster_name(&self) -> Option<&str> {
        let metadata = &self.object.metadata;
        let labelled = || metadata.labels.as_ref()?.get(names::CLUSTER_NAME).map(String::as_str);
        cluster_api::owner(metadata, "Cluster").map(|owner| owner.name.as_str()).or_else(labelled)
    }

    /// Whether an annotation is there, whatever it says.
    pub fn is_annotated(&self, name: &str) -> bool {
        self.object.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(name))
    }

    /// Whether another program reconciles the object, or it is nobody's yet: then it is not even written to.
    pub fn is_not_ours(&self) -> bool {
        let labelled = self.object.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(names::MANAGED_BY));
        let nobodys = self.cluster.is_none() && !self.is_deleting();
        self.is_annotated(names::MANAGED_BY) || labelled || nobodys
    }

    /// Whether the object is to be left alone: it is paused or not ours.
    pub fn is_left_alone(&self) -> bool {
        let paused = self.is_annotated(names::PAUSED) || self.cluster.as_ref().is_some_and(|cluster| cluster.paused);
        paused || self.is_not_ours()
    }

    /// Whether a finalizer keeps the object for us, ours or that of the Go provider.
    pub fn is_held(&self) -> bool {
        let ours = [names::FINALIZER_CLUSTER, names::LEGACY_CLUSTER_FINALIZER];
        self.object.metadata.finalizers.as_ref().is_some_and(|held| held.iter().any(|name| ours.contains(&name.as_str())))
    }

    /// Whether decisions about the object rest on what MAAS says.
    pub fn concerns_maas(&self) -> bool {
        let has_something = EndpointIntent::of(&self.object.metadata) != EndpointIntentRead::None || self.name_of_go_provider().is_some();
        !self.is_left_alone() && (!self.is_deleting() || (self.is_held() && has_something))
    }

    /// Whether machines can be made: reached once, it stays so.
    pub fn is_provisioned(&self) -> bool {
        let status = self.object.status.as_ref();
        status.and_then(|status| status.initialization.as_ref()?.provisioned).unwrap_or_default()
    }

    /// Whether the order is a list for a record that others write too. MAAS takes whole lists only, so what they added since it was read would
    /// be lost: it is read once more, at the last moment.
    fn is_about_to_write_what_was_given(&self) -> bool {
        let intent = self.intent().filter(|intent| intent.given);
        intent.and_then(|intent| intent.order).is_some_and(|order| matches!(order.what, EndpointOrderKind::Write(_)))
    }

    /// Takes in what a step brought to light.
    pub fn learn(&mut self, learned: Learned) {
        match learned {
            Learned::Object(object) => {
                self.object = *object;
                self.others_are_confirmed = false;
            }
            Learned::Order(object) => {
                self.object = *object;
                self.others_are_confirmed = false;
                self.order = OrderState::Written;
                self.order_seen_at = None;
                // What failed before was another attempt.
                self.failed = None;
                if self.is_about_to_write_what_was_given() {
                    self.records = Lookup::Outdated;
                }
            }
            Learned::Machines(machines) => {
                self.machines = machines;
                self.machines_are_confirmed = true;
            }
            Learned::Records(records) => self.records = records,
            Learned::Created => {
                self.order = OrderState::Answered;
                self.records = Lookup::Outdated;
            }
            Learned::Record(record) => {
                self.order = OrderState::Answered;
                if let Lookup::Found(records) = &mut self.records
                    && let Some(known) = records.iter_mut().find(|known| known.id == record.id)
                {
                    *known = record;
                }
                // What left it may have become a reservation of ours alone.
                self.reservations = None;
            }
            Learned::Removed => {
                self.records = Lookup::Outdated;
                self.reservations = None;
            }
            Learned::Others(held) => {
                self.held_by_others = held;
                self.others_are_confirmed = true;
            }
            Learned::Reservations(as_of, reservations) => {
                self.reservations = Some(reservations);
                self.reservations_as_of = Some(as_of);
            }
            Learned::Free(free) => self.free = Some(free),
            Learned::Reserved(ip) => {
                self.order = OrderState::Answered;
                self.reservations.get_or_insert_default().push(Reservation { ip, on_machine: false });
            }
            Learned::Freed(ip) => {
                self.order = OrderState::Answered;
                self.reservations.get_or_insert_default().retain(|reservation| reservation.ip != ip);
            }
            Learned::ObjectGone => self.object.metadata.finalizers = None,
        }
    }

    /// Takes in that a step did not succeed.
    pub fn fail(&mut self, step: &Step, failure: Failure) {
        if step.is_order() {
            let unknown = failure.kind == FailureKind::Unknown;
            self.order = if unknown { OrderState::Unanswered } else { OrderState::Answered };
            if !unknown && failure.kind.may_have_changed_something() {
                self.records = Lookup::Outdated;
                self.reservations = None;
            }
        }
        self.failed = Some(FailedStep { step: step.name(), failure });
    }
}
