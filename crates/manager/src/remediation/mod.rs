//! The `MaasRemediation` controller's hands: watches, observe, act. The rules are in [`decisions::remediation`].

mod act;
mod hand_over;
mod observe;
mod pass;

use std::{sync::Arc, time::Duration};

use api::{
    MaasCluster, MaasMachine, MaasRemediation,
    cluster_api::{self, Cluster, Machine},
    condition, names,
};
use kube::{Client, Resource, ResourceExt};

pub use pass::{Decide, Rules};

use crate::{
    Change, Clock, Context, Controller, Controllers, ObjectKey, Watch, events::Events, maas::MaasAccounts, machine::Related,
    written::Written,
};

/// What passes over `MaasRemediation`s work with.
pub struct Hands {
    kubernetes: Client,
    accounts: MaasAccounts,
    clock: Clock,
    machines: Watch<Machine>,
    clusters: Watch<Cluster>,
    maas_clusters: Watch<MaasCluster>,
    maas_machines: Watch<MaasMachine>,
    events: Events,
    written: Written,
    /// Who writes intents here; another than whoever writes those of the MaasMachine controller.
    writer: String,
}

/// Adds the controller of `MaasRemediation`s. What MAAS tells of a server reaches it by what the MaasMachine shows: an object of the same name
/// that wanted to hear of the same server itself could not be told apart from that.
pub fn add(controllers: &mut Controllers, related: &Related, accounts: &MaasAccounts, rules: Rules) {
    let (kubernetes, clock, jitter) = controllers.surroundings();
    let remediations = controllers.watch_primary::<MaasRemediation>();
    let hands = Arc::new(Hands {
        events: Events::new(kubernetes.clone(), clock),
        kubernetes,
        accounts: accounts.clone(),
        clock,
        machines: related.machines.clone(),
        clusters: related.clusters.clone(),
        maas_clusters: related.maas_clusters.clone(),
        maas_machines: related.maas_machines.clone(),
        written: Written::default(),
        writer: format!("{}{:016x}", decisions::remediation::WRITER, jitter.draw("writer of remediations", 0)),
    });
    let passing = Arc::clone(&hands);
    let reconcile = move |object: Arc<MaasRemediation>, _: Context| {
        let (hands, rules) = (Arc::clone(&passing), rules.clone());
        async move { pass::pass(&hands, &rules, object).await }
    };
    let controller = Controller::new("maasremediation", &remediations, reconcile)
        // Longer than the client takes for its slowest calls, one for each direction of a switch: a pass that is cut off does not see the answer.
        .timeout(Duration::from_mins(8))
        .watches_part(&related.machines, part_of_machine, of_machine(&remediations))
        .watches_part(&related.maas_machines, part_of_maas_machine, of_maas_machine(&related.machines, &remediations))
        .watches_part(&related.clusters, |cluster| cluster.paused, of_cluster(&remediations));
    remediations.subscribe(move |change| {
        if let Change::Removed(object) = change {
            hands.written.forget(&ObjectKey::of(&***object));
        }
    });
    controllers.add(controller);
}

/// What a remediation reads of its Machine.
fn part_of_machine(machine: &Machine) -> impl PartialEq + use<> {
    let status = |kind| condition::find(&machine.conditions, kind).map(|condition| condition.status.clone());
    (
        machine.metadata.deletion_timestamp.is_some(),
        machine.annotations().contains_key(names::PAUSED),
        status(Machine::HEALTH_CHECK_SUCCEEDED),
        status(Machine::OWNER_REMEDIATED),
        status(Machine::NODE_READY),
    )
}

/// What it reads of the machine's infrastructure.
fn part_of_maas_machine(machine: &MaasMachine) -> impl PartialEq + use<> {
    let status = machine.status.as_ref();
    (
        machine.metadata.deletion_timestamp.is_some(),
        machine.annotations().contains_key(names::PAUSED),
        machine.spec.provider_id.clone(),
        status.map(|status| (status.phase, status.machine_state.clone(), status.machine_powered)),
    )
}

/// The remediations that a Machine owns.
fn of_machine(remediations: &Watch<MaasRemediation>) -> impl Fn(&Machine) -> Vec<ObjectKey> + Clone + Send + Sync + use<> {
    let remediations = remediations.clone();
    move |machine| {
        let owned = |object: &Arc<MaasRemediation>| {
            let owner = cluster_api::owner(object.meta(), "Machine");
            object.namespace() == machine.namespace() && owner.is_some_and(|owner| owner.name == machine.name_any())
        };
        remediations.cache().all().iter().filter(|object| owned(object)).map(|object| ObjectKey::of(&**object)).collect()
    }
}

/// The remediations of the Machine whose infrastructure this is.
fn of_maas_machine(
    machines: &Watch<Machine>,
    remediations: &Watch<MaasRemediation>,
) -> impl Fn(&MaasMachine) -> Vec<ObjectKey> + Send + Sync + use<> {
    let (machines, of_machine) = (machines.clone(), of_machine(remediations));
    move |ours| {
        let owner = cluster_api::owner(ours.meta(), "Machine");
        let key = owner.map(|owner| ObjectKey::namespaced(ours.namespace().unwrap_or_default(), &owner.name));
        key.and_then(|key| machines.cache().get(&key)).map(|machine| of_machine(&machine)).unwrap_or_default()
    }
}

/// All remediations of a Cluster.
fn of_cluster(remediations: &Watch<MaasRemediation>) -> impl Fn(&Cluster) -> Vec<ObjectKey> + Send + Sync + use<> {
    let remediations = remediations.clone();
    move |cluster| {
        let belongs = |object: &Arc<MaasRemediation>| {
            // The label may be missing on one that a person made; it is then due once for nothing.
            let label = object.labels().get(names::CLUSTER_NAME).cloned();
            object.namespace() == cluster.namespace() && label.is_none_or(|label| label == cluster.name_any())
        };
        remediations.cache().all().iter().filter(|object| belongs(object)).map(|object| ObjectKey::of(&**object)).collect()
    }
}
