//! The end of a machine: what has to happen before its object is let go.

use api::names;
use decisions::{
    Failure, FailureKind, Lookup, Server, ServerStatus,
    machine::{FailedStep, Learned, LookAgain, Step, StepName, decide},
};

use super::facts::{
    SERVER, annotate, deleting, giving_back, held, holding, id, message, now, provisioned, reason, seconds, server, step, wanted,
};

#[test]
fn a_release_that_maas_failed_at_is_ordered_again_after_as_long_as_it_was_tried() {
    let mut facts = deleting(held(ServerStatus::ReleasingFailed));
    let Some(Lookup::Found(server)) = &mut facts.recorded else { panic!() };
    server.error = "no route to host".to_owned();
    // The first order of its phase was a moment ago.
    facts.intent_is_fresh = false;
    let plan = decide(&facts, seconds(1));
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineReleaseFailed"));
    assert!(message(&plan).contains("no route to host") && message(&plan).contains("told again by itself"), "{}", message(&plan));
    assert_eq!(plan.look_again, LookAgain::After(std::time::Duration::from_secs(14)));
    assert_eq!(decide(&facts, seconds(15)).step.map(|step| step.name()), Some(StepName::Intend));
    // The same order at the end of a minute of them.
    facts.object.status = plan.status;
    facts.object.status.as_mut().unwrap().phase_since = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(seconds(-60)));
    assert_eq!(decide(&facts, seconds(59)).step, None);
    assert_eq!(decide(&facts, seconds(60)).step.map(|step| step.name()), Some(StepName::Intend));
}

#[test]
fn a_machine_that_is_not_ours_to_release_is_told_before_the_object_goes() {
    let unmarked = Server { marks: std::collections::BTreeMap::new(), ..server(ServerStatus::Deployed) };
    let mut facts = deleting(provisioned(holding(wanted(), Lookup::Found(unmarked))));
    facts.claimed = Lookup::Found(Vec::new());
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineLeftAlone"));
    assert!(plan.notes.iter().any(|note| note.warning && note.message.contains(SERVER)), "{:?}", plan.notes);
    facts.object.status = plan.status;
    assert_eq!(step(&facts), Some(StepName::RemoveFinalizer));
}

#[test]
fn a_machine_that_was_marked_in_the_pass_that_gives_it_back_is_on_record_first_and_never_said_to_be_left_alone() {
    let unmarked = Server { marks: std::collections::BTreeMap::new(), ..server(ServerStatus::Deployed) };
    let mut facts = deleting(provisioned(holding(wanted(), Lookup::Found(unmarked))));
    assert_eq!(step(&facts), Some(StepName::Mark), "its agent name is ours");
    facts.learn(Learned::Server(Box::new(server(ServerStatus::Deployed))));
    let Some(Step::Intend { intent, .. }) = decide(&facts, now()).step else { panic!("the intent to mark it is none to release it") };
    assert_eq!(intent.releasing, [id(SERVER)]);
    annotate(&mut facts, &intent);
    facts.learn(Learned::Intent(Box::new(facts.object.clone())));
    assert_eq!(step(&facts), Some(StepName::Release));
    // The process ends, and the next one finds that another user was quick to get it.
    let taken = Server { owner: Some("somebody".to_owned()), marks: std::collections::BTreeMap::new(), ..server(ServerStatus::Deployed) };
    facts.learn(Learned::Looked(id(SERVER), Box::new(Lookup::Found(taken))));
    assert_eq!(step(&facts), Some(StepName::RemoveFinalizer));
}

#[test]
fn a_virtual_machine_that_was_composed_by_another_provider_is_not_released() {
    let mut facts = giving_back(provisioned(held(ServerStatus::Deployed)));
    facts.object.spec.lxd = Some(api::Lxd { enabled: Some(true), ..api::Lxd::default() });
    assert_eq!(step(&facts), Some(StepName::Release), "metal goes back, whatever the object says by now");
    let Some(Lookup::Found(server)) = &mut facts.recorded else { panic!("it is held") };
    server.vm_host = Some("host".to_owned());
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "LXDNotSupported"));
    (facts.recorded, facts.claimed) = (Some(Lookup::Missing), Lookup::Found(Vec::new()));
    assert_eq!(step(&facts), Some(StepName::RemoveFinalizer), "it was deleted in MAAS");
}

#[test]
fn s24_deleting_what_was_never_asked_for_is_instant() {
    let mut facts = deleting(wanted());
    facts.object.metadata.finalizers = Some(vec![names::FINALIZER_MACHINE.to_owned()]);
    assert!(!facts.concerns_maas());
    assert_eq!(step(&facts), Some(StepName::RemoveFinalizer));
}

#[test]
fn s23_a_control_plane_address_leaves_the_endpoint_before_the_machine_is_released() {
    let mut facts = giving_back(held(ServerStatus::Deployed));
    facts.object.metadata.labels.get_or_insert_default().insert(names::CONTROL_PLANE.to_owned(), String::new());
    let network = api::ClusterNetworkStatus { dns_name: Some("c1.maas".to_owned()), ..api::ClusterNetworkStatus::default() };
    let status = api::MaasClusterStatus { network: Some(network), ..api::MaasClusterStatus::default() };
    facts.maas_cluster = Some(api::MaasCluster { status: Some(status), ..api::MaasCluster::default() });
    facts.published.insert("10.0.0.7".to_owned());
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "DNSDetachPending"));
    facts.published.clear();
    assert_eq!(step(&facts), Some(StepName::Release));
}

#[test]
fn a_machine_that_could_not_be_marked_keeps_its_object() {
    let mut facts = deleting(holding(wanted(), Lookup::Missing));
    let mut extra = Server { system_id: id("zzz999"), ..server(ServerStatus::Allocated) };
    extra.marks.clear();
    facts.claimed = Lookup::Found(vec![extra]);
    let failure = Failure { kind: FailureKind::NotPermitted, words: "locked".to_owned() };
    facts.failed = Some(FailedStep { step: StepName::Mark, server: Some(id("zzz999")), failure, looked_since: false });
    assert_eq!(step(&facts), None);
}
