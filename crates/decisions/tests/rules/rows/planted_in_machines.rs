//! Mistakes in the rules about machines, each found by exactly one row.

use api::{Erase, MachineInitialization, ProviderId, cluster_api::Machine};
use decisions::{
    Lookup, Server, ServerStatus,
    machine::{Bootstrap, Facts, Plan, Step},
};

use super::{REAL, Rules, only};

fn seeing(machine_seen: fn(&mut Facts)) -> Rules {
    Rules { machine_seen, ..REAL }
}

fn planning(machine_planned: fn(&Facts, &mut Plan)) -> Rules {
    Rules { machine_planned, ..REAL }
}

fn is_deleting(facts: &Facts) -> bool {
    facts.object.metadata.deletion_timestamp.is_some()
}

fn server(facts: &Facts) -> Option<&Server> {
    facts.recorded.as_ref().and_then(Lookup::found)
}

#[test]
fn planted_row_13_an_orphan_is_worked_on() {
    only(13, &seeing(|facts| facts.machine = facts.machine.take().or_else(|| Some(Machine::default()))));
}

#[test]
fn planted_row_15_the_finalizer_is_forgotten() {
    let mistake = planning(|_, plan| {
        if let Some(Step::Intend { with_finalizer, .. }) = &mut plan.step {
            *with_finalizer = false;
        }
    });
    only(15, &mistake);
}

#[test]
fn planted_row_16_the_object_is_let_go_while_maas_still_releases() {
    let mistake = planning(|facts, plan| {
        if is_deleting(facts) && server(facts).is_some_and(|server| server.status == ServerStatus::Releasing) {
            plan.step = Some(Step::RemoveFinalizer);
        }
    });
    only(16, &mistake);
}

#[test]
fn planted_row_21_bootstrap_data_that_is_not_there_yet_is_not_waited_for() {
    let mistake = seeing(|facts| {
        if facts.bootstrap == Bootstrap::Pending {
            facts.bootstrap = Bootstrap::NotWanted;
        }
    });
    only(21, &mistake);
}

#[test]
fn planted_row_22_deletion_waits_for_a_cluster_that_is_gone() {
    let mistake = planning(|facts, plan| {
        if is_deleting(facts) && facts.cluster.is_none() {
            plan.step = None;
        }
    });
    only(22, &mistake);
}

#[test]
fn planted_row_23_a_machine_is_called_provisioned_before_it_has_its_id() {
    let mistake = planning(|_, plan| {
        if let (Some(Step::Provision { .. }), Some(status)) = (&plan.step, &mut plan.status) {
            status.initialization = Some(MachineInitialization { provisioned: Some(true) });
        }
    });
    only(23, &mistake);
}

#[test]
fn planted_row_24_the_id_follows_a_machine_into_another_zone() {
    let mistake = planning(|facts, plan| {
        let now = server(facts).map(|server| ProviderId { zone: server.zone.clone(), system_id: server.system_id.clone() });
        let given = facts.object.spec.provider_id.as_deref();
        if let (Some(now), Some(given)) = (now, given)
            && now.to_string() != given
        {
            plan.step = Some(Step::Provision { provider_id: now });
        }
    });
    only(24, &mistake);
}

#[test]
fn planted_row_25_the_zone_of_the_object_counts_before_that_of_its_machine() {
    let mistake = seeing(|facts| {
        if let (Some(machine), Some(_)) = (&mut facts.machine, &facts.object.spec.failure_domain) {
            machine.failure_domain = None;
        }
    });
    only(25, &mistake);
}

#[test]
fn planted_row_34_a_machine_whose_labels_change_is_given_back() {
    let mistake = planning(|facts, plan| {
        let labels = facts.object.metadata.labels.as_ref();
        if let Some(server) = server(facts)
            && labels.is_some_and(|labels| labels.keys().any(|name| !name.contains("cluster.x-k8s.io/")))
        {
            let (server, comment) = (server.system_id.clone(), String::new());
            plan.step = Some(Step::Release { server, erase: Erase::None, comment, not_after: jiff::Timestamp::MAX });
        }
    });
    only(34, &mistake);
}

#[test]
fn planted_row_41_a_machine_boots_without_its_bootstrap_data() {
    let mistake = planning(|_, plan| {
        if let Some(Step::Deploy(deployment)) = &mut plan.step {
            deployment.with_user_data = false;
        }
    });
    only(41, &mistake);
}

#[test]
fn planted_row_43_nobody_looks_for_machines_under_the_claim() {
    let mistake = seeing(|facts| {
        if facts.recorded.is_none() {
            facts.claimed = Lookup::Found(Vec::new());
        }
    });
    only(43, &mistake);
}

#[test]
fn planted_row_44_another_machine_is_allocated_although_an_answer_is_due() {
    let mistake = seeing(|facts| {
        if !is_deleting(facts) {
            facts.unanswered_until = None;
        }
    });
    only(44, &mistake);
}

#[test]
fn planted_row_52_a_machine_is_given_back_before_cluster_api_says_so() {
    let mistake = seeing(|facts| {
        let machine = facts.machine.as_ref().and_then(|machine| machine.metadata.deletion_timestamp.clone());
        let going = facts.object.metadata.deletion_timestamp.take();
        facts.object.metadata.deletion_timestamp = going.or(machine);
    });
    only(52, &mistake);
}

#[test]
fn planted_row_69_a_machine_that_is_being_deployed_is_not_given_back() {
    let mistake = planning(|facts, plan| {
        if is_deleting(facts) && server(facts).is_some_and(|server| server.status == ServerStatus::Deploying) {
            plan.step = None;
        }
    });
    only(69, &mistake);
}
