//! Addresses of pools: held before a server gets one, and freed when no server has it any more.

use std::{collections::BTreeMap, time::Duration};

use api::{
    AddressPool, LinkedAddress, MaasMachineStatus, Phase, StaticIp,
    cluster_api::{IpAddress, IpAddressClaim},
    condition::Condition,
    names,
};
use decisions::{
    FailureKind, Link, LinkMode, Lookup, NetworkInterface, Server, ServerStatus, SubnetName,
    machine::{Facts, Learned, LookAgain, NodeFacts, Plan, Preparation, Step, StepName, decide},
};
use serde_json::json;

use super::facts::{
    SERVER, annotate, deleting, failing, held, holding, id, message, now, provisioned, reason, seconds, server, step, wanted,
};

const IP: &str = "10.0.0.9";
const GIVEN: &str = "rack-10-0-0-9";

fn pooled(mut facts: Facts) -> Facts {
    facts.object.metadata.uid = Some("u1".to_owned());
    let pool = AddressPool { name: "rack".to_owned(), ..AddressPool::default() };
    let (ip, cidr) = (Some(IP.to_owned()), Some("10.0.0.0/24".to_owned()));
    facts.object.spec.static_ip = Some(StaticIp { ip, cidr, pool_ref: Some(pool), ..StaticIp::default() });
    facts
}

/// A server that is about to get the address, which is on record.
fn about_to_get_it() -> Facts {
    let interface =
        NetworkInterface { id: 0, name: "eth0".to_owned(), tags: Vec::new(), boot: true, children: Vec::new(), links: Vec::new() };
    let server = Server { interfaces: vec![interface], ..server(ServerStatus::Allocated) };
    let mut facts = pooled(holding(wanted(), Lookup::Found(server)));
    let mut intent = facts.intent().unwrap();
    intent.linked = vec![LinkedAddress { server: id(SERVER), address: IP.parse().unwrap() }];
    annotate(&mut facts, &intent);
    facts
}

fn recorded(mut facts: Facts) -> Facts {
    let mut intent = facts.intent().unwrap();
    intent.pooled = vec![GIVEN.to_owned()];
    annotate(&mut facts, &intent);
    facts
}

fn claim(owner: &str) -> IpAddressClaim {
    let owner = json!([{"apiVersion": names::API_VERSION, "kind": "MaasMachine", "name": "one", "uid": owner}]);
    serde_json::from_value(json!({"metadata": {"name": "one", "ownerReferences": owner}, "spec": {"poolRef": AddressPool::default()},
        "status": {"addressRef": {"name": GIVEN}}}))
    .unwrap()
}

fn address(claim: &str, is_held: bool, goes: bool) -> IpAddress {
    let mut address: IpAddress = serde_json::from_value(json!({
        "metadata": {"name": GIVEN, "resourceVersion": "7", "finalizers": ["ipam.cluster.x-k8s.io/ProtectAddress"]},
        "spec": {"address": IP, "claimRef": {"name": claim}},
    }))
    .unwrap();
    if is_held {
        address.metadata.finalizers.as_mut().unwrap().push(names::FINALIZER_ADDRESS.to_owned());
    }
    if goes {
        address.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    }
    address
}

/// The same when the claim and the address were looked at.
fn looked(mut facts: Facts, claim: Lookup<IpAddressClaim>, found: Lookup<IpAddress>) -> Facts {
    facts.learn(Learned::AddressClaim(Box::new(claim)));
    facts.learn(Learned::Pooled(GIVEN.to_owned(), Box::new(found)));
    facts
}

fn links(facts: &Facts) -> bool {
    matches!(decide(facts, now()).step, Some(Step::Prepare { preparation: Preparation::Link { address: Some(_), .. }, .. }))
}

#[test]
fn an_address_of_a_pool_is_looked_at_written_down_and_held_before_a_server_gets_it() {
    let mut facts = about_to_get_it();
    assert_eq!(decide(&facts, now()).step, Some(Step::LookForClaim));
    facts.learn(Learned::AddressClaim(Box::new(Lookup::Found(claim("u1")))));
    assert_eq!(decide(&facts, now()).step, Some(Step::LookForAddress { address: GIVEN.to_owned() }));
    facts.learn(Learned::Pooled(GIVEN.to_owned(), Box::new(Lookup::Found(address("one", false, false)))));
    let Some(Step::Intend { intent, .. }) = decide(&facts, now()).step else { panic!("{:?}", decide(&facts, now())) };
    assert_eq!(intent.pooled, [GIVEN]);
    annotate(&mut facts, &intent);
    assert_eq!(decide(&facts, now()).step, Some(Step::HoldAddress(Box::new(address("one", false, false)))));
    facts.learn(Learned::Pooled(GIVEN.to_owned(), Box::new(Lookup::Found(address("one", true, false)))));
    assert!(links(&facts), "{:?}", decide(&facts, now()).step);
    let hold = Step::HoldAddress(Box::new(address("one", false, false)));
    assert!(hold.may_be_done_late(), "until it is known what came of it the object is not let go");
}

#[test]
fn what_is_not_from_a_claim_of_this_object_is_not_held_and_what_went_back_is_given_to_no_server() {
    let (ours, other) = (Lookup::Found(claim("u1")), Lookup::Found(claim("u2")));
    let found = |claim, is_held, goes| Lookup::Found(address(claim, is_held, goes));
    let rows = vec![
        ("somebody else's claim", looked(about_to_get_it(), other, found("one", false, false)), false),
        ("it went back with its claim long ago", looked(about_to_get_it(), Lookup::Missing, Lookup::Missing), false),
        ("it is held", looked(about_to_get_it(), ours.clone(), found("one", true, false)), true),
        ("it is held and may be there", looked(unanswered(recorded(about_to_get_it())), Lookup::Missing, found("one", true, true)), true),
        ("it goes back", looked(about_to_get_it(), ours.clone(), found("one", false, true)), false),
        ("it is back", looked(about_to_get_it(), ours.clone(), Lookup::Missing), false),
        ("it is back with its claim", looked(recorded(about_to_get_it()), Lookup::Missing, Lookup::Missing), false),
        ("somebody wrote another one", looked(wishes_another(about_to_get_it()), ours.clone(), found("one", false, false)), false),
        ("another claim has it", looked(about_to_get_it(), ours, found("two", true, false)), false),
    ];
    for (what, facts, is_given) in rows {
        let plan = decide(&facts, now());
        assert_eq!(links(&facts), is_given, "{what}: {:?}", plan.step);
        if !is_given {
            assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "AddressNotClaimed"), "{what}");
            assert!(message(&plan).contains("went back to its pool"), "{what}: {}", message(&plan));
        }
    }
}

#[test]
fn a_server_whose_address_went_back_is_not_kept_for_longer_than_a_deployment_may_take() {
    let with_phase_since = |since| {
        let mut facts = looked(recorded(about_to_get_it()), Lookup::Missing, Lookup::Missing);
        let phase_since = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(since));
        facts.object.status = Some(MaasMachineStatus { phase: Some(Phase::Allocated), phase_since, ..MaasMachineStatus::default() });
        facts
    };
    assert_eq!(reason(&decide(&with_phase_since(seconds(-60)), now())), "AddressNotClaimed");
    let plan = decide(&with_phase_since(seconds(-86_400)), now());
    assert_eq!(reason(&plan), "TryingAnotherMachine");
    let Some(Step::Intend { intent, .. }) = plan.step.clone() else { panic!("{:?}", plan.step) };
    assert_eq!(intent.releasing, [id(SERVER)]);
    let cause = plan.status.unwrap().attempts[0].cause.clone();
    assert!(cause.contains("it could not be deployed within") && cause.contains("went back to its pool"), "{cause}");
}

#[test]
fn a_machine_from_before_gets_its_address_held_too_and_runs_on_if_that_fails() {
    let running = || pooled(provisioned(held(ServerStatus::Deployed)));
    assert_eq!(step(&running()), Some(StepName::LookForClaim));
    let found = || looked(running(), Lookup::Found(claim("u1")), Lookup::Found(address("one", false, false)));
    assert_eq!(step(&found()), Some(StepName::Intend), "it is written down first");
    assert_eq!(step(&recorded(found())), Some(StepName::HoldAddress));
    for failed in [StepName::LookForClaim, StepName::LookForAddress, StepName::HoldAddress] {
        let facts = if failed == StepName::LookForClaim { running() } else { recorded(found()) };
        let plan = decide(&failing(facts, failed, FailureKind::Kubernetes, "forbidden"), now());
        let rest = (plan.step.clone(), plan.look_again, reason(&plan));
        assert_eq!(rest, (None, LookAgain::AfterBackoff, "MachineDeployed".to_owned()), "{failed:?}");
        let told = is_held(&plan).unwrap();
        assert_eq!((told.status.as_str(), told.reason.as_str()), ("False", "KubernetesWriteFailed"), "{failed:?}");
        assert!(told.message.contains("the address that it has from a pool could not be held: forbidden"), "{}", told.message);
        assert!(plan.notes.iter().any(|note| note.warning && note.reason == "KubernetesWriteFailed"), "{:?}", plan.notes);
    }
    let gone = decide(&looked(recorded(running()), Lookup::Missing, Lookup::Missing), now());
    let told = is_held(&gone).unwrap();
    assert_eq!((gone.step, told.status.as_str(), told.reason.as_str()), (None, "False", "AddressNotClaimed"));
    assert!(told.message.contains("went back to its pool while the machine has it"), "{}", told.message);
    let crossed = failing(recorded(found()), StepName::HoldAddress, FailureKind::Stale, "somebody was faster");
    assert_eq!((is_held(&decide(&crossed, now())), decide(&crossed, now()).look_again), (None, LookAgain::AfterBackoff));
    let mut nameless = failing(recorded(found()), StepName::NameNode, FailureKind::Kubernetes, "no");
    nameless.node = NodeFacts::Present { name: "node-7".to_owned(), provider_id: None, is_there: true };
    assert_eq!((step(&nameless), decide(&nameless, now()).look_again), (None, LookAgain::AfterBackoff), "not twice in one pass");
}

fn is_held(plan: &Plan) -> Option<Condition> {
    api::condition::find(&plan.status.as_ref()?.conditions, "PooledAddressHeld").cloned()
}

#[test]
fn an_address_that_could_not_be_held_is_tried_again_after_longer_and_longer_waits_until_it_is() {
    let running = || pooled(provisioned(held(ServerStatus::Deployed)));
    let found = |held| looked(running(), Lookup::Found(claim("u1")), Lookup::Found(address("one", held, false)));
    let failed = failing(recorded(found(false)), StepName::HoldAddress, FailureKind::Kubernetes, "forbidden");
    let shown = decide(&failed, now()).status;
    let attempt = |since: i64, at: i64| {
        let mut facts = recorded(found(false));
        let mut intent = facts.intent().unwrap();
        intent.since = Some(seconds(since));
        annotate(&mut facts, &intent);
        (facts.object.status, facts.intent_is_fresh) = (shown.clone(), false);
        let plan = decide(&facts, seconds(at));
        (plan.step.map(|step| step.name()), plan.look_again)
    };
    let waits = |seconds| (None, LookAgain::After(Duration::from_secs(seconds)));
    let again = (Some(StepName::Intend), LookAgain::OnChange);
    // When it was tried last, when it is looked, what is done.
    let rows = [(0, 2, waits(13)), (0, 15, again), (15, 17, waits(13)), (60, 62, waits(58)), (60, 120, again), (9_000, 9_002, waits(298))];
    for (last, at, expected) in rows {
        assert_eq!(attempt(last, at), expected, "tried after {last} s, looked at after {at} s");
    }
    let mut held = recorded(found(true));
    held.object.status = shown;
    let told = is_held(&decide(&held, seconds(20))).unwrap();
    assert_eq!((told.status.as_str(), told.reason.as_str()), ("True", "PooledAddressHeld"));
    assert_eq!(is_held(&decide(&recorded(found(true)), now())), None, "nobody has to know of what went well");
}

fn unanswered(mut facts: Facts) -> Facts {
    facts.unanswered_until = Some(seconds(60));
    facts
}

/// The server of these facts has the address.
fn with_link(mut facts: Facts) -> Facts {
    let subnet = Some(SubnetName { cidr: "10.0.0.0/24".to_owned(), name: "rack".to_owned() });
    let Some(Lookup::Found(server)) = &mut facts.recorded else { panic!("there is no server") };
    server.interfaces[0].links = vec![Link { id: 1, mode: LinkMode::Static, subnet, address: Some(IP.parse().unwrap()) }];
    facts
}

/// The object does not ask for the address any more.
fn not_wished(mut facts: Facts) -> Facts {
    facts.object.spec.static_ip = None;
    facts
}

/// The object asks its pool for whatever address there is.
fn wishes_any(mut facts: Facts) -> Facts {
    facts.object.spec.static_ip.as_mut().unwrap().ip = None;
    facts
}

fn wishes_another(mut facts: Facts) -> Facts {
    let another = "10.0.0.10";
    facts.object.spec.static_ip.as_mut().unwrap().ip = Some(another.to_owned());
    let mut intent = facts.intent().unwrap();
    intent.linked.push(LinkedAddress { server: id(SERVER), address: another.parse().unwrap() });
    annotate(&mut facts, &intent);
    facts
}

/// The object has no server now; those that went back, and what is known of them.
fn without_server(gone_back: Option<Lookup<Server>>) -> Facts {
    let mut facts = about_to_get_it();
    (facts.object.spec.system_id, facts.recorded, facts.claimed) = (None, None, Lookup::Found(Vec::new()));
    let mut intent = facts.intent().unwrap();
    intent.releasing = gone_back.iter().map(|_| id(SERVER)).collect();
    intent.linked.retain(|_| gone_back.is_some());
    annotate(&mut facts, &intent);
    facts.releasing = gone_back.into_iter().map(|lookup| (id(SERVER), lookup)).collect();
    recorded(facts)
}

#[test]
fn what_is_held_of_a_pool_and_no_server_has_goes_back_when_its_claim_is_gone_or_nobody_asks_for_it() {
    let begun = || recorded(about_to_get_it());
    let with = |facts, goes| looked(facts, Lookup::Missing, Lookup::Found(address("one", true, goes)));
    let stale = || {
        let mut facts = begun();
        let Some(Lookup::Found(server)) = &mut facts.recorded else { panic!("there is no server") };
        server.read_at = seconds(-11);
        facts
    };
    let rows = vec![
        ("its claim is gone", with(begun(), true), true),
        ("it is not asked for any more", with(not_wished(begun()), false), true),
        ("another address is asked for", with(wishes_another(begun()), false), true),
        ("its claim is gone and any other is asked for", with(wishes_any(begun()), true), true),
        ("any other is asked for and the server has it", with(wishes_any(with_link(begun())), true), false),
        ("it is asked for and stays", with(begun(), false), false),
        ("MAAS may still give it to the server", with(unanswered(begun()), true), false),
        ("the server has it", with(with_link(begun()), true), false),
        ("the server has it and it is not asked for", with(not_wished(with_link(begun())), false), false),
        ("the server was seen too long ago", with(stale(), true), false),
        ("the server went back without it", with(without_server(None), true), true),
        ("nobody knows whether the server that went back has it", with(without_server(Some(Lookup::Forbidden)), true), false),
        ("another object's", looked(not_wished(begun()), Lookup::Missing, Lookup::Found(address("two", true, true))), false),
    ];
    for (what, facts, is_freed) in rows {
        let found = step(&facts);
        assert_eq!(found == Some(StepName::FreeAddress), is_freed, "{what}: {found:?}");
    }
    let mut freed = with(begun(), true);
    freed.learn(Learned::Pooled(GIVEN.to_owned(), Box::new(Lookup::Missing)));
    let plan = decide(&freed, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "AddressNotClaimed"), "it is given to no server after that");
    let refused = failing(with(begun(), true), StepName::FreeAddress, FailureKind::Kubernetes, "no");
    assert_eq!(reason(&decide(&refused, now())), "KubernetesWriteFailed");
}

/// An object that goes, its server in this state and owned by this user.
fn going(status: ServerStatus, owner: Option<&str>) -> Facts {
    let marks = owner.map(|_| server(ServerStatus::Deployed).marks).unwrap_or_default();
    let server = Server { owner: owner.map(str::to_owned), marks, ..server(status) };
    let mut facts = pooled(deleting(holding(wanted(), Lookup::Found(server))));
    facts.claimed = Lookup::Found(Vec::new());
    let mut intent = facts.intent().unwrap();
    intent.releasing = vec![id(SERVER)];
    annotate(&mut facts, &intent);
    facts.releasing = facts.recorded.iter().map(|lookup| (id(SERVER), lookup.clone())).collect();
    recorded(facts)
}

#[test]
fn an_address_of_a_pool_is_freed_when_no_server_has_it_and_before_the_object_goes() {
    let us = Some(super::facts::US);
    for status in [ServerStatus::Deployed, ServerStatus::Releasing, ServerStatus::ReleasingFailed] {
        let facts = looked(going(status, us), Lookup::Missing, Lookup::Found(address("one", true, true)));
        let step = step(&facts);
        let touches = [Some(StepName::LookForAddress), Some(StepName::FreeAddress), Some(StepName::RemoveFinalizer)];
        assert!(!touches.contains(&step), "{status:?}: {step:?}");
    }
    let mut facts = going(ServerStatus::Ready, None);
    assert_eq!(decide(&facts, now()).step, Some(Step::LookForAddress { address: GIVEN.to_owned() }));
    facts.learn(Learned::Pooled(GIVEN.to_owned(), Box::new(Lookup::Found(address("one", true, true)))));
    assert_eq!(decide(&facts, now()).step, Some(Step::FreeAddress(Box::new(address("one", true, true)))));
    facts.learn(Learned::Pooled(GIVEN.to_owned(), Box::new(Lookup::Missing)));
    assert_eq!(decide(&facts, now()).step, Some(Step::RemoveFinalizer));
}

#[test]
fn an_object_that_goes_leaves_addresses_of_others_alone_and_stays_while_nobody_knows() {
    let rows = [
        ("it was never held", Lookup::Found(address("one", false, false))),
        ("another object has it", Lookup::Found(address("two", true, false))),
        ("it is gone", Lookup::Missing),
    ];
    for (what, found) in rows {
        let facts = looked(going(ServerStatus::Ready, None), Lookup::Missing, found);
        assert_eq!(decide(&facts, now()).step, Some(Step::RemoveFinalizer), "{what}");
    }
    for failed in [StepName::LookForAddress, StepName::FreeAddress] {
        let mut facts = failing(going(ServerStatus::Ready, None), failed, FailureKind::Kubernetes, "no");
        if failed == StepName::FreeAddress {
            facts = looked(facts, Lookup::Missing, Lookup::Found(address("one", true, true)));
        }
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), plan.look_again, reason(&plan).as_str()), (None, LookAgain::AfterBackoff, "KubernetesWriteFailed"));
        assert!(message(&plan).contains("its address of a pool could not be read or changed: no"), "{}", message(&plan));
    }
    let mut unanswered = going(ServerStatus::Ready, None);
    unanswered.unanswered_until = Some(seconds(60));
    assert_eq!(decide(&unanswered, now()).step, None, "the address may still come to be held");
    let mut paused = going(ServerStatus::Ready, None);
    paused.object.metadata.annotations.as_mut().unwrap().insert(names::PAUSED.to_owned(), String::new());
    assert_eq!(decide(&paused, now()).step, None, "it may live on elsewhere");
    let several = going(ServerStatus::Ready, None);
    let mut intent = several.intent().unwrap();
    intent.pooled.push("another".to_owned());
    let mut several = Facts { pooled: BTreeMap::from([(GIVEN.to_owned(), Lookup::Missing)]), ..several };
    annotate(&mut several, &intent);
    assert_eq!(decide(&several, now()).step, Some(Step::LookForAddress { address: "another".to_owned() }));
}
