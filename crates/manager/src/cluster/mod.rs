//! The MaasCluster controller's hands: watches, observe, act. The rules are in [`decisions::cluster`].

mod act;
mod observe;
mod pass;
mod restraint;

use std::sync::{Arc, OnceLock};

use api::{
    EndpointOrder, MaasCluster, MaasMachine,
    cluster_api::{Cluster, Machine},
    names,
};
use kube::{Client, ResourceExt};

pub use pass::{Decide, Rules};
use restraint::Restraint;

use crate::{
    Change, Clock, Context, Controller, Controllers, ObjectKey, Pokes, Watch, controllers::Listing, events::Events, first_seen::FirstSeen,
    maas::MaasAccounts, machine::Related, workload::Workload, written::Written,
};

/// What passes over MaasClusters work with.
pub struct Hands {
    kubernetes: Client,
    accounts: MaasAccounts,
    clock: Clock,
    machines: Watch<Machine>,
    clusters: Watch<Cluster>,
    maas_clusters: Watch<MaasCluster>,
    everybody: Listing<MaasCluster>,
    maas_machines: Watch<MaasMachine>,
    workload: Workload,
    events: Events,
    written: Written,
    restraint: Restraint,
    orders: FirstSeen<EndpointOrder>,
    pokes: OnceLock<Pokes>,
}

/// Adds the controller of MaasClusters.
pub fn add(controllers: &mut Controllers, related: &Related, accounts: &MaasAccounts, workload: &Workload, rules: Rules) {
    let (kubernetes, clock, _) = controllers.surroundings();
    let hands = Arc::new(Hands {
        events: Events::new(kubernetes.clone(), clock),
        kubernetes,
        accounts: accounts.clone(),
        clock,
        machines: related.machines.clone(),
        clusters: related.clusters.clone(),
        maas_clusters: related.maas_clusters.clone(),
        everybody: controllers.listing_of_primary(),
        maas_machines: related.maas_machines.clone(),
        workload: workload.clone(),
        written: Written::default(),
        restraint: Restraint::default(),
        orders: FirstSeen::new(clock),
        pokes: OnceLock::new(),
    });
    let passing = Arc::clone(&hands);
    let reconcile = move |object: Arc<MaasCluster>, _: Context| {
        let (hands, rules) = (Arc::clone(&passing), rules.clone());
        async move { pass::pass(&hands, &rules, object).await }
    };
    let controller = Controller::new("maascluster", &related.maas_clusters, reconcile)
        .watches_part(&related.clusters, part_of_cluster, |cluster: &Cluster| {
            let reference = cluster.infrastructure_ref.as_ref().filter(|reference| reference.kind == "MaasCluster");
            let key = |name: &String| ObjectKey::namespaced(cluster.metadata.namespace.clone().unwrap_or_default(), name);
            reference.map(|reference| key(&reference.name)).into_iter().collect()
        })
        .watches_part(&related.maas_machines, part_of_machine, by_machine(related))
        .watches_part(&related.machines, |machine| machine.node_name.is_some(), by_owner(related));
    let pokes = controller.pokes();
    let _ = hands.pokes.set(pokes.clone());
    related.maas_clusters.subscribe(move |change| {
        if let Change::Removed(object) = change {
            hands.workload.unwatch(&ObjectKey::of(&***object), &pokes);
            hands.forget(&ObjectKey::of(&***object));
        }
    });
    controllers.add(controller);
}

/// What a MaasCluster reads of its Cluster.
fn part_of_cluster(cluster: &Cluster) -> impl PartialEq + use<> {
    (cluster.paused, cluster.control_plane_initialized, cluster.control_plane_endpoint.clone(), cluster.api_server_port)
}

/// What a MaasCluster reads of a machine of its control plane.
fn part_of_machine(machine: &MaasMachine) -> impl PartialEq + use<> {
    let status = machine.status.as_ref();
    let deployed = status.and_then(|status| api::condition::find(&status.conditions, "MachineDeployed"));
    (
        machine.metadata.deletion_timestamp.is_some(),
        machine.labels().contains_key(names::CONTROL_PLANE),
        status.map(|status| (status.phase, status.machine_state.clone(), status.addresses.clone())),
        deployed.map(|condition| (condition.status.clone(), condition.reason.clone())),
    )
}

/// The infrastructure of the cluster a machine belongs to. Other machines than those of the control plane concern it only when it goes.
fn by_machine(related: &Related) -> impl Fn(&MaasMachine) -> Vec<ObjectKey> + Send + Sync + use<> {
    let (clusters, maas_clusters) = (related.clusters.clone(), related.maas_clusters.clone());
    move |machine| {
        let Some(name) = machine.labels().get(names::CLUSTER_NAME) else { return Vec::new() };
        let namespace = machine.namespace().unwrap_or_default();
        let referred = clusters.cache().get(&ObjectKey::namespaced(&namespace, name)).and_then(|cluster| {
            let reference = cluster.infrastructure_ref.clone().filter(|reference| reference.kind == "MaasCluster")?;
            Some(ObjectKey::namespaced(&namespace, reference.name))
        });
        // The Cluster may be gone before its parts are.
        let key = referred.unwrap_or_else(|| ObjectKey::namespaced(&namespace, name));
        let goes = || maas_clusters.cache().get(&key).is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some());
        if machine.labels().contains_key(names::CONTROL_PLANE) || goes() { vec![key] } else { Vec::new() }
    }
}

/// The same for the Machine of a machine.
fn by_owner(related: &Related) -> impl Fn(&Machine) -> Vec<ObjectKey> + Send + Sync + use<> {
    let (machines, map) = (related.maas_machines.clone(), by_machine(related));
    move |machine| {
        let namespace = machine.metadata.namespace.clone().unwrap_or_default();
        let reference = machine.infrastructure_ref.as_ref().filter(|reference| reference.kind == "MaasMachine");
        let ours = reference.and_then(|reference| machines.cache().get(&ObjectKey::namespaced(&namespace, &reference.name)));
        ours.map(|ours| map(&ours)).unwrap_or_default()
    }
}

impl Hands {
    fn forget(&self, key: &ObjectKey) {
        self.written.forget(key);
        self.restraint.forget(key);
        self.orders.forget(key);
    }
}
