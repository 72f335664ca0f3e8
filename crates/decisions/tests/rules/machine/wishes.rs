//! Objects that name the machine they want before they have one.

use std::collections::BTreeMap;

use decisions::{
    Failure, FailureKind, Lookup, Server, ServerStatus,
    machine::{Bootstrap, Facts, FailedStep, Learned, Step, StepName, decide},
};

use super::facts::{SERVER, US, annotate, deleting, id, now, reason, server, wanted};

fn free(status: ServerStatus) -> Server {
    Server { owner: None, marks: BTreeMap::new(), ..server(status) }
}

/// An object that asks for exactly this machine.
fn wishing(machine: Server) -> Facts {
    let mut facts = wanted();
    facts.object.spec.system_id = Some(SERVER.to_owned());
    facts.recorded = Some(Lookup::Found(machine));
    facts
}

/// The same after its intent was written.
fn claimed(mut facts: Facts) -> Facts {
    let Some(Step::Intend { intent, with_finalizer: true }) = decide(&facts, now()).step else { panic!("nothing is intended") };
    assert_eq!(intent.adopting, Some(id(SERVER)), "what it asked for is remembered");
    annotate(&mut facts, &intent);
    facts.intent_is_fresh = true;
    facts
}

fn step(facts: &Facts) -> Option<StepName> {
    decide(facts, now()).step.map(|step| step.name())
}

#[test]
fn a_free_machine_that_was_asked_for_is_allocated_marked_and_deployed_and_no_other() {
    let mut facts = claimed(wishing(free(ServerStatus::Ready)));
    facts.recent_failures.insert(id(SERVER), "bad".to_owned());
    let Some(Step::Allocate(allocation)) = decide(&facts, now()).step else { panic!("nothing is allocated") };
    assert_eq!((allocation.servers, allocation.constraints.cpu), (vec![id(SERVER)], 4), "what else is asked for counts as well");
    let unmarked = Server { marks: BTreeMap::new(), ..server(ServerStatus::Allocated) };
    facts.learn(Learned::Allocated(Box::new(unmarked)));
    assert_eq!(step(&facts), Some(StepName::Mark));
    facts.learn(Learned::Server(Box::new(server(ServerStatus::Allocated))));
    let Some(Step::Record { intent, .. }) = decide(&facts, now()).step else { panic!("it is not recorded") };
    assert_eq!((intent.adopting.clone(), intent.wished.clone()), (None, Some(id(SERVER))));
    annotate(&mut facts, &intent);
    assert_eq!(step(&facts), Some(StepName::Deploy));

    facts.learn(Learned::Server(Box::new(server(ServerStatus::FailedDeployment))));
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineDeployFailed"), "no other one is tried in its place");
}

#[test]
fn a_machine_that_was_asked_for_and_cannot_be_had_is_told_and_not_replaced() {
    let others = Server { owner: Some("somebody".to_owned()), ..free(ServerStatus::Deployed) };
    let unmarked = Server { owner: Some(US.to_owned()), ..free(ServerStatus::Allocated) };
    let marked = Server { marks: BTreeMap::from([("metalshift-claim".to_owned(), "ms-other".to_owned())]), ..unmarked.clone() };
    for machine in [free(ServerStatus::Commissioning), others, unmarked, marked] {
        let mut afterwards = claimed(wishing(free(ServerStatus::Ready)));
        afterwards.recorded = Some(Lookup::Found(machine.clone()));
        for facts in [wishing(machine), afterwards] {
            let plan = decide(&facts, now());
            assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "NoMatchingMachine"), "{:?}", facts.recorded);
            assert_eq!(plan.status.unwrap().attempts, [], "it is no failed attempt");
        }
    }
    let gone = Facts { recorded: Some(Lookup::Missing), ..wishing(free(ServerStatus::Ready)) };
    assert_eq!(step(&gone), None);
}

#[test]
fn what_maas_says_about_a_machine_that_was_asked_for_is_told() {
    let mut facts = claimed(wishing(free(ServerStatus::Ready)));
    let failure = Failure { kind: FailureKind::Conflict, words: "No available machine matches".to_owned() };
    facts.failed = Some(FailedStep { step: StepName::Allocate, server: Some(id(SERVER)), failure, looked_since: false });
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "NoMatchingMachine"));
}

#[test]
fn a_wish_waits_for_the_same_as_any_machine_and_costs_nothing_to_delete() {
    let facts = Facts { bootstrap: Bootstrap::Pending, ..wishing(free(ServerStatus::Ready)) };
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "WaitingForBootstrapData"));
    assert_eq!(step(&deleting(claimed(wishing(free(ServerStatus::Ready))))), Some(StepName::RemoveFinalizer));
    let unmarked = Server { owner: Some(US.to_owned()), ..free(ServerStatus::Deployed) };
    let mut taken = claimed(wishing(free(ServerStatus::Ready)));
    taken.recorded = Some(Lookup::Found(unmarked));
    assert_eq!(step(&deleting(taken)), Some(StepName::RemoveFinalizer), "what it never had is not released");
}

#[test]
fn an_unanswered_allocation_of_a_machine_that_was_asked_for_is_waited_for() {
    let facts = Facts { unanswered_until: Some(super::facts::seconds(60)), ..claimed(wishing(free(ServerStatus::Ready))) };
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MaasAnswerOutstanding"));
}
