//! What people are told where nothing else shows it.

use api::{Phase, names};
use decisions::{
    FailureKind, Lookup, Power, Server, ServerStatus,
    machine::{Facts, FailedStep, LookAgain, NodeFacts, StepName, decide},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::facts::{
    SERVER, deleting, failing, giving_back, held, holding, id, intending, message, now, provisioned, reason, seconds, server, wanted,
};

/// The same when this step about the server was refused.
fn refused(facts: Facts, step: StepName) -> Facts {
    let mut facts = failing(facts, step, FailureKind::Refused, "MAAS says no");
    facts.failed = facts.failed.map(|failed| FailedStep { server: Some(id(SERVER)), ..failed });
    facts
}

fn unreadable(mut facts: Facts) -> Facts {
    facts.object.metadata.annotations.get_or_insert_default().insert(names::CLAIM.to_owned(), "yes".to_owned());
    facts.object.metadata.finalizers = Some(vec![names::FINALIZER_MACHINE.to_owned()]);
    facts
}

/// A server that goes back, and began to long ago.
fn slow() -> Facts {
    let mut facts = giving_back(held(ServerStatus::Releasing));
    let since = Some(Time(seconds(-3600)));
    facts.object.status =
        Some(api::MaasMachineStatus { phase: Some(Phase::Releasing), phase_since: since, ..api::MaasMachineStatus::default() });
    facts.object.spec.provisioning = Some(serde_json::from_value(json!({"releaseTimeout": "30m"})).unwrap());
    facts
}

fn switched_on() -> Facts {
    let dark = Server { power: Power::Off, ..server(ServerStatus::Deployed) };
    Facts { powered_on: true, ..provisioned(holding(wanted(), Lookup::Found(dark))) }
}

#[test]
fn what_is_in_the_way_is_told_and_looked_at_again() {
    let unmarked = || holding(wanted(), Lookup::Found(Server { marks: [].into(), ..server(ServerStatus::Allocated) }));
    let mut impatient = failing(intending(wanted()), StepName::Allocate, FailureKind::Conflict, "none");
    impatient.object.spec.provisioning_mode = Some(api::ProvisioningMode::BareMetal);
    impatient.object.spec.provisioning = Some(serde_json::from_value(json!({"allocateTimeout": "0s"})).unwrap());
    let bootstrap = machine_without_bootstrap();
    let rows = vec![
        ("ClaimUnreadable", unreadable(wanted()), "annotation metalshift.io/claim cannot be read"),
        ("ClaimUnreadable", deleting(unreadable(wanted())), "annotation metalshift.io/claim cannot be read"),
        ("MachineMarkFailed", refused(unmarked(), StepName::Mark), "the machine could not be marked: MAAS says no"),
        ("MachineReleaseSlow", slow(), "is Releasing for longer than 1800s"),
        ("MachinePoweringOn", switched_on(), "had no power and was switched on"),
        ("AllocationRefused", failing(intending(wanted()), StepName::Allocate, FailureKind::Refused, "No such pool(s)"), "No such pool(s)"),
        ("NoMachineInTime", impatient, "no machine with 4 CPUs"),
        ("BootstrapDataUnreadable", bootstrap, "Secret data is not there"),
        ("DeploymentRefused", refused(held(ServerStatus::Allocated), StepName::Deploy), "MAAS did not start the deployment: MAAS says no"),
    ];
    for (expected, facts, words) in rows {
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, expected));
        assert!(message(&plan).contains(words), "{expected}: {}", message(&plan));
        assert_ne!(plan.look_again, LookAgain::OnChange, "{expected}");
    }
}

fn machine_without_bootstrap() -> Facts {
    Facts { bootstrap: decisions::machine::Bootstrap::Unreadable { words: "Secret data is not there".to_owned() }, ..wanted() }
}

#[test]
fn while_maas_is_asked_for_a_machine_that_is_told() {
    assert_eq!(reason(&decide(&wanted(), now())), "MachineAllocating");
}

#[test]
fn a_node_that_says_it_is_another_machine_is_told_by_both_names() {
    let mut facts = provisioned(held(ServerStatus::Deployed));
    facts.node = NodeFacts::Present { name: "node-7".to_owned(), provider_id: Some("maas:///az1/other".to_owned()), is_there: true };
    let plan = decide(&facts, now());
    let named = api::condition::find(&plan.status.as_ref().unwrap().conditions, "NodeProviderIDSet").unwrap();
    assert_eq!((plan.step.clone(), named.reason.as_str()), (None, "NodeHasOtherProviderID"));
    assert!(named.message.contains("has provider id maas:///az1/other, expected maas:///az1/abc123"), "{}", named.message);
}

#[test]
fn a_machine_of_the_control_plane_says_whether_the_name_of_the_cluster_leads_to_it() {
    let mut facts = provisioned(held(ServerStatus::Deployed));
    facts.object.metadata.labels.get_or_insert_default().insert(names::CONTROL_PLANE.to_owned(), String::new());
    let cluster = json!({"apiVersion": names::API_VERSION, "kind": "MaasCluster", "metadata": {"name": "c1"}, "spec": {"dnsDomain": "maas"},
        "status": {"network": {"dnsName": "c1.maas"}}});
    facts.maas_cluster = Some(serde_json::from_value(cluster).unwrap());
    let attached = |facts: &Facts| {
        let status = decide(facts, now()).status.unwrap();
        let found = api::condition::find(&status.conditions, "DNSAttached").unwrap();
        (found.status.clone(), found.reason.clone(), status.dns_attached)
    };
    assert_eq!(attached(&facts), ("False".to_owned(), "DNSAttachPending".to_owned(), Some(false)));
    facts.published.insert("10.0.0.7".to_owned());
    assert_eq!(attached(&facts), ("True".to_owned(), "DNSAttached".to_owned(), Some(true)));
}
