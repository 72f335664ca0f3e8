//! Machines that another provider allocated, in whatever state it left them.

use std::collections::BTreeMap;

use api::{Intent, MaasMachineStatus};
use decisions::{
    Lookup, Server, ServerStatus,
    machine::{Facts, Step, StepName, decide},
};

use super::facts::{SERVER, annotate, deleting, holding, id, now, provisioned, reason, seconds, server, step, wanted};

/// Its object after it was taken over: the machine is marked and recorded.
fn taken_over(server: Server) -> Facts {
    let mut facts = provisioned(holding(wanted(), Lookup::Found(server)));
    let intent = Intent { adopted: Some(id(SERVER)), ..facts.intent().unwrap() };
    annotate(&mut facts, &intent);
    // MAAS does not know it by our claim.
    facts.claimed = Lookup::Found(Vec::new());
    facts
}

/// An object as another provider leaves it: with the whole identity of its server, and nothing of ours.
pub fn another_providers(facts: Facts) -> Facts {
    let mut facts = provisioned(facts);
    facts.object.metadata.annotations = None;
    facts.object.metadata.finalizers = Some(vec![api::names::LEGACY_MACHINE_FINALIZER.to_owned()]);
    facts.claimed = Lookup::Missing;
    facts.intent_is_fresh = false;
    facts
}

/// Its status says that the server was running.
pub fn ran_before(mut facts: Facts) -> Facts {
    facts.object.status =
        Some(MaasMachineStatus { ready: true, machine_state: Some("Deployed".to_owned()), ..MaasMachineStatus::default() });
    facts
}

#[test]
fn a_machine_that_ran_and_was_allocated_again_by_somebody_is_left_to_them() {
    let unmarked = |status| Lookup::Found(Server { marks: BTreeMap::new(), ..server(status) });
    let left = |status| another_providers(holding(wanted(), unmarked(status)));
    let moved = |mut facts: Facts| {
        facts.machine.as_mut().unwrap().provider_id = Some("maas:///az1/abc123".to_owned());
        facts
    };
    for status in [ServerStatus::Allocated, ServerStatus::Deploying, ServerStatus::FailedDeployment] {
        for facts in [ran_before(left(status)), moved(left(status))] {
            let plan = decide(&facts, now());
            assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineForeign"), "{status}");
        }
        assert_eq!(step(&left(status)), Some(StepName::Intend), "{status}: its deployment was never finished, so that it is taken over");
    }
    assert_eq!(step(&ran_before(left(ServerStatus::Deployed))), Some(StepName::Intend), "it still runs");
}

#[test]
fn where_a_machine_came_from_is_remembered_when_it_is_recorded() {
    let mut facts = taken_over(server(ServerStatus::Deployed));
    let adopting = Intent { adopting: Some(id(SERVER)), adopted: None, ..facts.intent().unwrap() };
    annotate(&mut facts, &adopting);
    let Some(Step::Record { intent, .. }) = decide(&facts, now()).step else { panic!("it is not recorded") };
    assert_eq!((intent.adopting, intent.adopted, intent.wished), (None, Some(id(SERVER)), None));
}

#[test]
fn a_machine_that_was_handed_over_before_it_was_deployed_is_deployed() {
    let deploys = decide(&taken_over(server(ServerStatus::Allocated)), now()).step.map(|step| step.name());
    assert_eq!(deploys, Some(StepName::Deploy));
    let plan = decide(&taken_over(server(ServerStatus::Deploying)), now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineDeploying"));
    let plan = decide(&taken_over(server(ServerStatus::Deployed)), now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineDeployed"));
}

#[test]
fn one_that_fails_is_neither_given_back_nor_replaced_since_its_id_was_told() {
    let plan = decide(&taken_over(server(ServerStatus::FailedDeployment)), now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineDeployFailed"));
    let mut slow = taken_over(server(ServerStatus::Deploying));
    slow.object.status = decide(&slow, now()).status;
    let plan = decide(&slow, seconds(3601));
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineDeployFailed"));
}

#[test]
fn a_machine_of_ours_that_was_never_another_providers_is_not_deployed_twice() {
    for status in [ServerStatus::Allocated, ServerStatus::Deploying] {
        let plan = decide(&provisioned(holding(wanted(), Lookup::Found(server(status)))), now());
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineTakenAway"));
    }
}

#[test]
fn without_its_marks_it_is_neither_released_nor_let_go() {
    let unmarked = Server { marks: BTreeMap::new(), ..server(ServerStatus::Deployed) };
    let mut facts = deleting(taken_over(unmarked));
    for moment in [now(), seconds(2)] {
        let plan = decide(&facts, moment);
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineOwnershipUnclear"));
        facts.object.status = plan.status;
        if let Some(Lookup::Found(server)) = &mut facts.recorded {
            server.read_at = seconds(2);
        }
    }
    // Somebody decided.
    if let Some(Lookup::Found(server)) = &mut facts.recorded {
        server.owner = None;
    }
    assert_eq!(decide(&facts, seconds(2)).step, Some(Step::RemoveFinalizer));
}
