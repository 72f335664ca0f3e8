//! The Cluster API provider for MAAS as a whole: all its controllers and what they share. `manage` runs it, and so does the simulation.

use crate::{
    Controllers, address, cluster,
    maas::{Connect, MaasAccess, MaasAccounts},
    machine::{self, Related},
    remediation, template,
    workload::{ConnectWorkload, Workload},
};
use std::{num::NonZeroUsize, sync::Arc, time::Duration};

/// What the provider is told, and how it reaches what is outside of the management cluster.
pub struct Provider {
    /// The MAAS of objects that name none, if the environment names one.
    pub environment: Option<MaasAccess>,
    /// How MAAS is reached.
    pub connect_maas: Connect,
    /// How workload clusters are reached.
    pub connect_workload: ConnectWorkload,
    /// How often all our machines are listed, for what no event tells.
    pub sweep_period: Duration,
    /// How many machines are worked on at once.
    pub machine_concurrency: NonZeroUsize,
    /// The rules about machines.
    pub machine_rules: machine::Rules,
    /// The rules about clusters.
    pub cluster_rules: cluster::Rules,
}

impl Provider {
    /// Adds all controllers and tasks.
    pub fn add_to(self, controllers: &mut Controllers) {
        let Self { environment, connect_maas, connect_workload, sweep_period, machine_concurrency, machine_rules, cluster_rules } = self;
        let (client, clock, jitter) = controllers.surroundings();
        let accounts = MaasAccounts::new(client.clone(), environment, connect_maas, clock, jitter, controllers.maas_metrics());
        accounts.sweep_every(sweep_period);
        let workload = Workload::new(client, connect_workload, jitter);
        let related = Related {
            machines: controllers.watch_related(),
            clusters: controllers.watch_related(),
            maas_clusters: controllers.watch_primary(),
            maas_machines: controllers.watch_primary(),
            refused_addresses: Arc::default(),
        };
        template::add(controllers);
        address::add(controllers, &related);
        machine::add(controllers, &related, &accounts, &workload, machine_rules, machine_concurrency);
        cluster::add(controllers, &related, &accounts, &workload, cluster_rules);
        remediation::add(controllers, &related, &accounts, remediation::Rules::default());
        controllers.add_task("the events of MAAS", move |stop| accounts.follow(stop));
        controllers.add_task("the workload clusters", move |stop| workload.follow(stop));
    }
}
