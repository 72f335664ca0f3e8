//! Rows about machines.

use std::time::Duration;

use api::Intent;
use decisions::{
    Failure, FailureKind, Lookup, Server, ServerStatus,
    machine::{Bootstrap, Facts, LookAgain, NodeFacts, Step, StepName},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Check, REAL, Rules};
use crate::machine::facts::{
    SERVER, annotate, claim, deleting, giving_back, holding, intending, now, provisioned, reason, seconds, server, wanted,
};

pub const CHECKS: [(u32, Check); 14] = [
    (13, row_13),
    (15, row_15),
    (16, row_16),
    (21, row_21),
    (22, row_22),
    (23, row_23),
    (24, row_24),
    (25, row_25),
    (34, row_34),
    (41, row_41),
    (43, row_43),
    (44, row_44),
    (52, row_52),
    (69, row_69),
];

fn step(rules: &Rules, facts: &Facts) -> Option<StepName> {
    step_at(rules, facts, now())
}

fn step_at(rules: &Rules, facts: &Facts, now: Timestamp) -> Option<StepName> {
    rules.machine(facts, now).step.map(|step| step.name())
}

fn held(status: ServerStatus) -> Facts {
    holding(wanted(), Lookup::Found(server(status)))
}

#[test]
fn row_13_an_object_nobody_owns_is_left_alone() {
    row_13(&REAL);
}

fn row_13(rules: &Rules) {
    let facts = Facts { machine: None, ..wanted() };
    let plan = rules.machine(&facts, now());
    assert_eq!((plan.step, plan.status), (None, None));
    assert!(!rules.asks_maas_about_machine(&facts));
}

#[test]
fn row_15_finalizer_and_claim_are_written_before_anything_is_asked_of_maas() {
    row_15(&REAL);
}

fn row_15(rules: &Rules) {
    let plan = rules.machine(&wanted(), now());
    let Some(Step::Intend { intent, with_finalizer }) = plan.step else { panic!("{:?}", plan.step) };
    assert!(with_finalizer);
    assert_eq!((intent.claim, intent.since, intent.object.as_str()), (claim(), Some(now()), "rack/one"));
    assert_eq!(plan.guard.as_deref(), Some("41"));
}

#[test]
fn row_16_an_object_is_let_go_only_when_maas_shows_that_nothing_is_held() {
    row_16(&REAL);
}

fn row_16(rules: &Rules) {
    assert_eq!(step(rules, &giving_back(held(ServerStatus::Deployed))), Some(StepName::Release));
    assert_eq!(step(rules, &deleting(held(ServerStatus::Releasing))), None);
    let gone = deleting(holding(wanted(), Lookup::Missing));
    assert_eq!(step(rules, &gone), Some(StepName::RemoveFinalizer));
    let down = Failure { kind: FailureKind::Unavailable, words: "down".to_owned() };
    let unknown = Facts { claimed: Lookup::Failed(down.clone()), ..deleting(holding(wanted(), Lookup::Failed(down))) };
    assert_eq!(step(rules, &unknown), None);
    let outstanding = Facts { unanswered_until: Some(seconds(60)), ..gone };
    assert_eq!(step(rules, &outstanding), None, "an allocation may still be carried out");
}

#[test]
fn row_21_a_machine_waits_for_the_cluster_and_its_bootstrap_data_without_asking_maas() {
    row_21(&REAL);
}

fn row_21(rules: &Rules) {
    let mut without_cluster = wanted();
    without_cluster.cluster.as_mut().unwrap().infrastructure_provisioned = false;
    let without_data = Facts { bootstrap: Bootstrap::Pending, ..wanted() };
    for (facts, expected) in [(without_cluster, "WaitingForClusterInfrastructure"), (without_data, "WaitingForBootstrapData")] {
        let plan = rules.machine(&facts, now());
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, expected));
        assert!(!rules.asks_maas_about_machine(&facts));
    }
    assert_eq!(step(rules, &Facts { bootstrap: Bootstrap::NotWanted, ..wanted() }), Some(StepName::Intend));
}

#[test]
fn row_22_deletion_asks_nothing_of_the_cluster_or_the_machine() {
    row_22(&REAL);
}

fn row_22(rules: &Rules) {
    let facts = Facts {
        machine: None,
        cluster: None,
        maas_cluster: None,
        bootstrap: Bootstrap::Pending,
        ..giving_back(held(ServerStatus::Deployed))
    };
    assert_eq!(step(rules, &facts), Some(StepName::Release));
}

#[test]
fn row_23_a_machine_has_its_id_before_it_is_provisioned_and_its_node_gets_the_same() {
    row_23(&REAL);
}

fn row_23(rules: &Rules) {
    let is_provisioned = |facts: &Facts| {
        let status = rules.machine(facts, now()).status.unwrap();
        status.initialization.is_some_and(|reached| reached.provisioned == Some(true))
    };
    for status in ServerStatus::all() {
        assert!(!is_provisioned(&held(status)), "{status} without an id");
    }
    let plan = rules.machine(&held(ServerStatus::Deployed), now());
    let Some(Step::Provision { provider_id }) = plan.step else { panic!("{:?}", plan.step) };
    assert_eq!(provider_id.to_string(), format!("maas:///az1/{SERVER}"));
    let facts = provisioned(held(ServerStatus::Deployed));
    assert!(is_provisioned(&facts));
    let node = NodeFacts::Present { name: "node-7".to_owned(), provider_id: None, is_there: true };
    let plan = rules.machine(&Facts { node, ..facts.clone() }, now());
    let Some(Step::NameNode { provider_id, .. }) = plan.step else { panic!("{:?}", plan.step) };
    assert_eq!(Some(provider_id), facts.object.spec.provider_id);
}

#[test]
fn row_24_an_id_once_given_is_never_written_again_whatever_becomes_of_the_machine() {
    row_24(&REAL);
}

fn row_24(rules: &Rules) {
    let elsewhere = Server { zone: "az2".to_owned(), ..server(ServerStatus::Deployed) };
    let states = ServerStatus::all().map(|status| Lookup::Found(server(status)));
    for lookup in states.chain([Lookup::Found(elsewhere), Lookup::Missing, Lookup::Forbidden]) {
        let step = step(rules, &provisioned(holding(wanted(), lookup.clone())));
        let changes = [StepName::Provision, StepName::Record, StepName::Forget, StepName::Allocate];
        assert!(!step.is_some_and(|step| changes.contains(&step)), "{step:?} with {lookup:?}");
    }
}

#[test]
fn s12_s13_row_25_what_is_asked_for_reaches_the_allocation_and_the_zone_of_the_machine_counts_first() {
    row_25(&REAL);
}

fn row_25(rules: &Rules) {
    let mut facts = intending(wanted());
    facts.object.spec.failure_domain = Some("az2".to_owned());
    facts.object.spec.tags = vec!["a".to_owned(), "b".to_owned()];
    facts.object.spec.not_tags = vec!["c".to_owned()];
    facts.object.spec.resource_pool = Some("pool".to_owned());
    facts.object.spec.min_disk_size = Some(100);
    let allocation = |facts: &Facts| {
        let Some(Step::Allocate(allocation)) = rules.machine(facts, now()).step else { panic!("nothing is allocated") };
        allocation
    };
    let asked = allocation(&facts);
    assert_eq!(asked.constraints.zone.as_deref(), Some("az2"));
    assert_eq!((asked.constraints.cpu, asked.constraints.memory), (4, 8192));
    assert_eq!(asked.constraints.tags, ["a", "b"]);
    assert_eq!(asked.constraints.not_tags, ["c"]);
    assert_eq!(asked.constraints.pool.as_deref(), Some("pool"));
    assert_eq!(asked.constraints.storage.as_deref(), Some("root:100"));
    assert_eq!(asked.agent_name, claim().to_string());
    facts.machine.as_mut().unwrap().failure_domain = Some("az3".to_owned());
    assert_eq!(allocation(&facts).constraints.zone.as_deref(), Some("az3"));
}

#[test]
fn row_34_labels_and_annotations_of_others_change_nothing() {
    row_34(&REAL);
}

fn row_34(rules: &Rules) {
    let facts = provisioned(held(ServerStatus::Deployed));
    let mut labelled = facts.clone();
    labelled.object.metadata.labels.get_or_insert_default().insert("team".to_owned(), "blue".to_owned());
    labelled.object.metadata.annotations.get_or_insert_default().insert("note".to_owned(), "x".to_owned());
    assert_eq!(rules.machine(&labelled, now()), rules.machine(&facts, now()));
}

#[test]
fn row_41_a_machine_gets_its_bootstrap_data_and_none_if_none_is_asked_for() {
    row_41(&REAL);
}

fn row_41(rules: &Rules) {
    for (bootstrap, expected) in [(Bootstrap::Present { encoded_bytes: 100 }, true), (Bootstrap::NotWanted, false)] {
        let facts = Facts { bootstrap, ..held(ServerStatus::Allocated) };
        let Some(Step::Deploy(deployment)) = rules.machine(&facts, now()).step else { panic!("it is not deployed") };
        assert_eq!(deployment.with_user_data, expected, "{:?}", facts.bootstrap);
    }
}

#[test]
fn s16_row_43_a_machine_whose_allocation_was_not_answered_is_found_by_its_agent_name_marked_and_recorded() {
    row_43(&REAL);
}

fn row_43(rules: &Rules) {
    let mut facts = intending(wanted());
    let mut unmarked = server(ServerStatus::Allocated);
    unmarked.marks.clear();
    facts.claimed = Lookup::Found(vec![unmarked]);
    assert_eq!(step(rules, &facts), Some(StepName::Mark));
    facts.claimed = Lookup::Found(vec![server(ServerStatus::Allocated)]);
    assert_eq!(step(rules, &facts), Some(StepName::Record));
    let moved = Facts { intent_is_fresh: false, ..provisioned(held(ServerStatus::Deployed)) };
    assert_eq!(moved.object.status, None, "a move leaves the status behind");
    assert_eq!(step(rules, &moved), None, "and nothing has to be done about it");
}

#[test]
fn row_44_an_unanswered_call_is_waited_for_before_the_next_allocation() {
    row_44(&REAL);
}

fn row_44(rules: &Rules) {
    let mut facts = Facts { intent_is_fresh: false, unanswered_until: Some(seconds(90)), ..intending(wanted()) };
    let plan = rules.machine(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MaasAnswerOutstanding"));
    assert_eq!(plan.look_again, LookAgain::After(Duration::from_secs(5)));
    assert_eq!(step_at(rules, &facts, seconds(91)), Some(StepName::Intend));
    let intent = Intent { since: Some(seconds(91)), ..facts.intent().unwrap() };
    annotate(&mut facts, &intent);
    facts.intent_is_fresh = true;
    assert_eq!(step_at(rules, &facts, seconds(92)), Some(StepName::Allocate));
}

#[test]
fn row_52_nothing_is_given_back_while_only_the_machine_of_cluster_api_goes() {
    row_52(&REAL);
}

fn row_52(rules: &Rules) {
    for facts in [held(ServerStatus::Allocated), held(ServerStatus::Deploying), provisioned(held(ServerStatus::Deployed))] {
        let mut facts = facts;
        facts.machine.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(now()));
        let gives_back = |step: &Step| match step {
            Step::Intend { intent, .. } => !intent.releasing.is_empty(),
            other => matches!(other.name(), StepName::Release | StepName::RemoveFinalizer),
        };
        let step = rules.machine(&facts, now()).step;
        assert!(!step.as_ref().is_some_and(gives_back), "{step:?}: a hook may hold the Machine back");
    }
}

#[test]
fn row_69_deleting_gives_a_machine_back_from_every_state_in_which_maas_takes_it() {
    row_69(&REAL);
}

fn row_69(rules: &Rules) {
    for status in
        [ServerStatus::Allocated, ServerStatus::Deploying, ServerStatus::Deployed, ServerStatus::FailedDeployment, ServerStatus::Broken]
    {
        assert_eq!(step(rules, &giving_back(held(status))), Some(StepName::Release), "{status}");
    }
    let locked = Server { locked: true, ..server(ServerStatus::Deployed) };
    let plan = rules.machine(&deleting(holding(wanted(), Lookup::Found(locked))), now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineLocked"));
}
