//! Mistakes in the rules about clusters, each found by exactly one row.

use api::{ClusterInitialization, FailureDomains, cluster_api::Cluster, names};
use decisions::cluster::{Facts, Plan, Step};

use super::{REAL, Rules, only};

fn seeing(cluster_seen: fn(&mut Facts)) -> Rules {
    Rules { cluster_seen, ..REAL }
}

fn planning(cluster_planned: fn(&Facts, &mut Plan)) -> Rules {
    Rules { cluster_planned, ..REAL }
}

#[test]
fn planted_row_07_only_the_newer_word_for_provisioned_is_said() {
    let mistake = planning(|_, plan| {
        if let Some(status) = &mut plan.status {
            status.ready = false;
        }
    });
    only(7, &mistake);
}

#[test]
fn planted_row_08_a_cluster_is_provisioned_as_soon_as_its_name_is_known() {
    let mistake = planning(|facts, plan| {
        if let Some(status) = plan.status.as_mut().filter(|_| facts.intent().is_some()) {
            status.ready = true;
            status.initialization = Some(ClusterInitialization { provisioned: Some(true) });
        }
    });
    only(8, &mistake);
}

#[test]
fn planted_row_09_an_endpoint_is_written_without_its_host() {
    let mistake = planning(|_, plan| {
        if let Some(Step::WriteEndpoint { host, .. }) = &mut plan.step {
            host.clear();
        }
    });
    only(9, &mistake);
}

#[test]
fn planted_row_10_a_hosted_cluster_makes_a_name_of_its_own() {
    only(10, &seeing(|facts| facts.object.spec.endpoint = None));
}

#[test]
fn planted_row_12_zones_are_shown_in_whatever_order_maas_tells_them() {
    let mistake = planning(|_, plan| {
        if let Some(FailureDomains::List(zones)) = plan.status.as_mut().map(|status| &mut status.failure_domains) {
            zones.reverse();
        }
    });
    only(12, &mistake);
}

#[test]
fn planted_row_13_a_cluster_that_nobody_owns_is_worked_on() {
    only(13, &seeing(|facts| facts.cluster = facts.cluster.take().or_else(|| Some(Cluster::default()))));
}

#[test]
fn planted_row_15_the_finalizer_of_a_cluster_is_forgotten() {
    only(15, &seeing(|facts| facts.object.metadata.finalizers.get_or_insert_default().push(names::FINALIZER_CLUSTER.to_owned())));
}

#[test]
fn planted_row_16_a_cluster_is_let_go_while_maas_is_away() {
    let mistake = planning(|facts, plan| {
        if facts.is_deleting() && facts.account.is_err() {
            plan.step = Some(Step::RemoveFinalizer);
        }
    });
    only(16, &mistake);
}
