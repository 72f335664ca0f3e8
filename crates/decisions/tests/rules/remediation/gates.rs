//! What has to hold before anything is done, and what ends it at once.

use api::{cluster_api::Machine, names};
use decisions::{
    Failure, FailureKind, Lookup, Server, ServerStatus,
    remediation::{Facts, LookAgain, REASONS, StepName},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::json;

use super::facts::{does_it, is, machine_server, message, now, pass, says, seconds, server, shown, unhealthy};

/// A case: what it is called, what differs, and what is shown then.
type Case = (&'static str, fn(&mut Facts), (&'static str, &'static str));

fn found(facts: &mut Facts, change: impl Fn(&mut Server)) {
    let mut server = server();
    change(&mut server);
    facts.server = Lookup::Found(server);
}

fn deleting(metadata: &mut ObjectMeta) {
    metadata.deletion_timestamp = Some(Time(now()));
}

fn ours(facts: &mut Facts) -> &mut api::MaasMachine {
    facts.maas_machine.as_mut().unwrap()
}

#[test]
fn nothing_is_done_to_what_is_not_ours_to_touch_now() {
    let cases: [Case; 14] = [
        ("the Machine goes", |facts| deleting(&mut facts.machine.as_mut().unwrap().metadata), ("Waiting", "MachineDeleting")),
        ("the MaasMachine goes", |facts| deleting(&mut ours(facts).metadata), ("Waiting", "MachineDeleting")),
        ("it is healthy", |facts| says(facts, Machine::HEALTH_CHECK_SUCCEEDED, "True", -5), ("Waiting", "WaitingForHealthCheck")),
        ("another provider's", |facts| facts.machine.as_mut().unwrap().infrastructure_ref = None, ("Waiting", "NotAMaasMachine")),
        ("not handed over", |facts| ours(facts).spec.provider_id = None, ("Waiting", "WaitingForDeployment")),
        ("no key", |facts| facts.account = Err(failure(FailureKind::NoAccess)), ("Waiting", "MaasAccessMissing")),
        ("MAAS is away", |facts| facts.server = Lookup::Failed(failure(FailureKind::Unavailable)), ("Waiting", "MaasUnavailable")),
        ("another MAAS", |facts| facts.account.as_mut().unwrap().host = "elsewhere".to_owned(), ("Waiting", "OtherMaas")),
        ("no marks", |facts| found(facts, |server| server.marks.clear()), ("Waiting", "WaitingForMarks")),
        ("locked", |facts| found(facts, |server| server.locked = true), ("Waiting", "MachineLocked")),
        ("rescued", |facts| facts.server = Lookup::Found(machine_server(ServerStatus::RescueMode)), ("Waiting", "MachineUnderRepair")),
        ("tested", |facts| facts.server = Lookup::Found(machine_server(ServerStatus::Testing)), ("Waiting", "MachineUnderRepair")),
        ("unknown", |facts| facts.server = Lookup::Found(machine_server(ServerStatus::Other(99))), ("Waiting", "MachineUnderRepair")),
        ("our user changed", |facts| found(facts, |server| server.owner = Some("other".to_owned())), ("Waiting", "OtherMaas")),
    ];
    for (name, change, (phase, reason)) in cases {
        let mut facts = unhealthy();
        if name == "another MAAS" {
            with_maas(&mut facts, "maas");
        }
        change(&mut facts);
        let (steps, plan) = pass(&mut facts, now(), |step| panic!("{name}: {step:?}"));
        assert_eq!((steps, shown(&plan)), (vec![], is(phase, 0, reason)), "{name}");
        assert!(!message(&plan).is_empty(), "{name}");
    }
}

fn failure(kind: FailureKind) -> Failure {
    Failure { kind, words: "no luck".to_owned() }
}

fn with_maas(facts: &mut Facts, maas: &str) {
    let intent = api::Intent { maas: Some(maas.to_owned()), ..facts.intent().unwrap() };
    ours(facts).metadata.annotations.get_or_insert_default().insert(names::CLAIM.to_owned(), intent.to_annotation());
}

#[test]
fn a_machine_that_cannot_come_back_is_left_to_its_owner_at_once_and_not_touched() {
    let cases: [Case; 11] = [
        ("gone from MAAS", |facts| facts.server = Lookup::Missing, ("was deleted from MAAS", "MachineLost")),
        ("hidden", |facts| facts.server = Lookup::Forbidden, ("is not shown to our MAAS user", "MachineLost")),
        ("released", |facts| found(facts, |server| (server.owner, server.marks) = (None, [].into())), ("was released", "MachineLost")),
        (
            "taken",
            |facts| found(facts, |server| (server.owner, server.marks) = (Some("eve".to_owned()), [].into())),
            ("eve", "MachineLost"),
        ),
        (
            "held for another",
            |facts| found(facts, |server| drop(server.marks.insert("metalshift-claim".to_owned(), "ms-other".to_owned()))),
            ("held for another object", "MachineLost"),
        ),
        ("no MaasMachine", |facts| facts.maas_machine = None, ("MaasMachine of the Machine is gone", "MachineLost")),
        ("on its way back", |facts| facts.server = Lookup::Found(machine_server(ServerStatus::Releasing)), ("Releasing", "MachineFailed")),
        ("broken", |facts| facts.server = Lookup::Found(machine_server(ServerStatus::Broken)), ("Broken", "MachineFailed")),
        ("deployed anew", |facts| facts.server = Lookup::Found(machine_server(ServerStatus::Deploying)), ("Deploying", "MachineFailed")),
        ("in memory", |facts| found(facts, |server| server.in_memory = true), ("lose everything", "MachineRunsInMemory")),
        (
            "never brought up",
            |facts| {
                ours(facts).spec.provider_id = None;
                let ready =
                    json!({"type": "Ready", "status": "False", "reason": "R", "message": "3 of 3 failed", "lastTransitionTime": now()});
                ours(facts).status = serde_json::from_value(json!({"phase": "Failed", "conditions": [ready]})).unwrap();
            },
            ("3 of 3 failed", "MachineFailed"),
        ),
    ];
    for (name, change, (words, reason)) in cases {
        let mut facts = unhealthy();
        change(&mut facts);
        let (steps, plan) = pass(&mut facts, now(), |step| panic!("{name}: {step:?}"));
        assert_eq!((steps, shown(&plan)), (vec![StepName::HandOver], is("Failed", 0, reason)), "{name}");
        assert!(message(&plan).contains(words), "{name}: {}", message(&plan));
    }
}

#[test]
fn a_machine_that_is_lost_while_its_node_is_waited_for_is_given_up_before_the_time_is_up() {
    let mut facts = unhealthy();
    pass(&mut facts, now(), does_it);
    found(&mut facts, |server| (server.owner, server.marks) = (None, [].into()));
    let (steps, plan) = pass(&mut facts, seconds(10), does_it);
    assert_eq!((steps, shown(&plan)), (vec![StepName::HandOver], is("Failed", 1, "MachineLost")));
}

#[test]
fn that_maas_is_away_when_the_time_is_up_is_no_reason_to_give_up() {
    let mut facts = unhealthy();
    pass(&mut facts, now(), does_it);
    facts.server = Lookup::Failed(failure(FailureKind::Unavailable));
    let (steps, plan) = pass(&mut facts, seconds(700), does_it);
    assert_eq!((steps, shown(&plan)), (vec![], is("Running", 1, "MaasUnavailable")));
}

#[test]
fn a_pause_of_anything_around_it_stops_everything_and_is_told() {
    let annotate =
        |metadata: &mut ObjectMeta| drop(metadata.annotations.get_or_insert_default().insert(names::PAUSED.to_owned(), String::new()));
    for by in ["Cluster", "MaasRemediation", "Machine", "MaasMachine"] {
        let mut facts = unhealthy();
        match by {
            "Cluster" => facts.cluster.as_mut().unwrap().paused = true,
            "MaasRemediation" => annotate(&mut facts.object.metadata),
            "Machine" => annotate(&mut facts.machine.as_mut().unwrap().metadata),
            _ => annotate(&mut ours(&mut facts).metadata),
        }
        assert!(!facts.concerns_maas());
        let (steps, plan) = pass(&mut facts, now(), |step| panic!("{step:?}"));
        let paused = api::condition::find(&plan.status.as_ref().unwrap().conditions, "Paused").unwrap().clone();
        assert_eq!((steps, paused.status.as_str(), plan.look_again), (vec![], "True", LookAgain::OnChange), "{by}");
        assert!(paused.message.starts_with(by), "{by}: {}", paused.message);
    }
}

#[test]
fn after_a_pause_the_health_check_is_given_a_minute() {
    let mut facts = unhealthy();
    facts.cluster.as_mut().unwrap().paused = true;
    pass(&mut facts, seconds(10), does_it);
    facts.cluster.as_mut().unwrap().paused = false;
    let (steps, plan) = pass(&mut facts, seconds(3600), does_it);
    assert_eq!((steps, shown(&plan)), (vec![], is("Waiting", 0, "WaitingAfterPause")));
    assert!(pass(&mut facts, seconds(3660), does_it).0.contains(&StepName::PowerOff));
}

#[test]
fn what_is_nobodys_anothers_or_going_is_not_written() {
    let cases: [fn(&mut Facts); 3] = [
        |facts| facts.machine = None,
        |facts| deleting(&mut facts.object.metadata),
        |facts| facts.object.metadata.annotations = Some([(names::MANAGED_BY.to_owned(), "x".to_owned())].into()),
    ];
    for change in cases {
        let mut facts = unhealthy();
        change(&mut facts);
        let plan = decisions::remediation::decide(&facts, now());
        assert_eq!((plan.step, plan.status), (None, None));
    }
}

#[test]
fn reasons_are_words_of_programs_and_each_is_there_once() {
    let mut names: Vec<&str> = REASONS.iter().map(|reason| reason.name).collect();
    assert!(names.iter().all(|name| api::condition::is_reason(name)), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), REASONS.len());
}
