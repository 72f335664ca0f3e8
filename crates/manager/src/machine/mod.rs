//! The MaasMachine controller's hands: watches, observe, act. The rules are in [`decisions::machine`].

mod act;
mod observe;
mod orders;
mod pass;
mod servers;

use std::{
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
    time::Duration,
};

use api::{
    MaasCluster, MaasMachine,
    cluster_api::{Cluster, Machine},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use tokio::sync::OnceCell;

use orders::Orders;
pub use pass::Rules;
pub use servers::{lookup, power, server};

use crate::{
    Change, Clock, Context, Controller, Controllers, Jitter, ObjectKey, Pokes, Watch, address::RefusedAddresses, events::Events,
    maas::MaasAccounts, workload::Workload, written::Written,
};

/// What passes over MaasMachines work with.
pub struct Hands {
    kubernetes: Client,
    accounts: MaasAccounts,
    clock: Clock,
    jitter: Jitter,
    machines: Watch<Machine>,
    clusters: Watch<Cluster>,
    maas_clusters: Watch<MaasCluster>,
    workload: Workload,
    events: Events,
    written: Written,
    orders: Orders,
    refused_addresses: Arc<RefusedAddresses>,
    pokes: OnceLock<Pokes>,
    management_cluster: OnceCell<String>,
}

/// What the kinds share.
#[derive(Clone)]
pub struct Related {
    /// Machines of Cluster API.
    pub machines: Watch<Machine>,
    /// Clusters of Cluster API.
    pub clusters: Watch<Cluster>,
    /// Infrastructure of clusters.
    pub maas_clusters: Watch<MaasCluster>,
    /// Machines of ours.
    pub maas_machines: Watch<MaasMachine>,
    /// Addresses of pools that cannot be had.
    pub refused_addresses: Arc<RefusedAddresses>,
}

/// Adds the controller of MaasMachines.
pub fn add(
    controllers: &mut Controllers,
    related: &Related,
    accounts: &MaasAccounts,
    workload: &Workload,
    rules: Rules,
    concurrency: NonZeroUsize,
) {
    let (kubernetes, clock, jitter) = controllers.surroundings();
    let hands = Arc::new(Hands {
        events: Events::new(kubernetes.clone(), clock),
        kubernetes,
        accounts: accounts.clone(),
        clock,
        jitter,
        machines: related.machines.clone(),
        clusters: related.clusters.clone(),
        maas_clusters: related.maas_clusters.clone(),
        workload: workload.clone(),
        written: Written::default(),
        orders: Orders::new(clock, jitter),
        refused_addresses: Arc::clone(&related.refused_addresses),
        pokes: OnceLock::new(),
        management_cluster: OnceCell::new(),
    });
    let passing = Arc::clone(&hands);
    let reconcile = move |object: Arc<MaasMachine>, _: Context| {
        let (hands, rules) = (Arc::clone(&passing), rules.clone());
        async move { pass::pass(&hands, &rules, object).await }
    };
    let owned_by_machine = |machine: &Machine| {
        let reference = machine.infrastructure_ref.as_ref().filter(|reference| reference.kind == "MaasMachine");
        reference
            .map(|reference| ObjectKey::namespaced(machine.metadata.namespace.clone().unwrap_or_default(), &reference.name))
            .into_iter()
            .collect()
    };
    let ours = related.maas_machines.clone();
    let of_cluster = move |namespace: Option<String>, name: &str| -> Vec<ObjectKey> {
        let belongs = |machine: &Arc<MaasMachine>| {
            machine.namespace() == namespace && machine.labels().get(api::names::CLUSTER_NAME).is_some_and(|label| label == name)
        };
        ours.cache().all().iter().filter(|machine| belongs(machine)).map(|machine| ObjectKey::of(&**machine)).collect()
    };
    let by_infrastructure = of_cluster.clone();
    let controller = Controller::new("maasmachine", &related.maas_machines, reconcile)
        .concurrency(concurrency)
        // Longer than the client takes for its slowest call: a pass that is cut off does not see the answer.
        .timeout(Duration::from_mins(8))
        .watches_part(
            &related.machines,
            |machine| (machine.data_secret_name.clone(), machine.bootstrap_wanted, machine.failure_domain.clone()),
            owned_by_machine,
        )
        .watches_part(
            &related.clusters,
            |cluster| (cluster.paused, cluster.infrastructure_provisioned),
            move |cluster: &Cluster| of_cluster(cluster.metadata.namespace.clone(), &cluster.name_any()),
        )
        .watches_part(
            &related.maas_clusters,
            |cluster| {
                let published = cluster.status.as_ref().and_then(|status| status.network.as_ref()).map(|network| network.addresses.clone());
                (cluster.spec.clone(), published)
            },
            move |cluster: &MaasCluster| {
                let name = cluster.labels().get(api::names::CLUSTER_NAME).cloned().unwrap_or_default();
                by_infrastructure(cluster.namespace(), &name)
            },
        );
    let pokes = controller.pokes();
    let _ = hands.pokes.set(pokes.clone());
    related.refused_addresses.are_told_to(pokes.clone());
    workload.hear_of(&related.clusters);
    let workload = workload.clone();
    related.maas_machines.subscribe(move |change| {
        if let Change::Removed(object) = change {
            workload.unwatch(&ObjectKey::of(&***object), &pokes);
        }
    });
    controllers.add(controller);
}

impl Hands {
    /// Which management cluster this is, by the uid of a namespace that is never deleted. Empty if nobody says.
    async fn management_cluster(&self) -> String {
        let namespaces: Api<Namespace> = Api::all(self.kubernetes.clone());
        let asked = self
            .management_cluster
            .get_or_try_init(|| async { namespaces.get("kube-system").await.map(|found| found.uid().unwrap_or_default()) });
        asked.await.cloned().unwrap_or_default()
    }
}
