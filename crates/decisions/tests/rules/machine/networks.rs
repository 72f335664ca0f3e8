//! How interfaces are connected before a machine is deployed.

use std::collections::BTreeMap;

use decisions::{
    Failure, FailureKind, Link, LinkMode, Lookup, NetworkInterface, Server, ServerStatus, SubnetName,
    machine::{Facts, FailedStep, Learned, LookAgain, Preparation, Step, StepName, decide},
};

use super::facts::{SERVER, annotate, deleting, holding, id, message, now, reason, seconds, server, wanted};

fn link(id: i64, mode: LinkMode, cidr: &str, address: Option<&str>) -> Link {
    let subnet = Some(SubnetName { cidr: cidr.to_owned(), name: format!("net-{cidr}") });
    Link { id, mode, subnet, address: address.map(|address| address.parse().unwrap()) }
}

fn interface(id: i64, links: Vec<Link>) -> NetworkInterface {
    NetworkInterface { id, name: format!("eth{id}"), tags: Vec::new(), boot: id == 0, children: Vec::new(), links }
}

/// An allocated machine with these interfaces that shall have an address.
fn asking(ip: &str, cidr: Option<&str>, interfaces: Vec<NetworkInterface>) -> Facts {
    let mut facts = holding(wanted(), Lookup::Found(Server { interfaces, ..server(ServerStatus::Allocated) }));
    let cidr = cidr.map(str::to_owned);
    facts.object.spec.static_ip = Some(api::StaticIp { ip: Some(ip.to_owned()), cidr, ..api::StaticIp::default() });
    facts
}

/// What is done next to the interfaces; nothing if the machine is deployed. A fixed address is written down before it is given.
fn next(facts: &Facts) -> Option<Preparation> {
    let mut facts = facts.clone();
    let mut written = Vec::new();
    if let Some(Step::Intend { intent, .. }) = decide(&facts, now()).step {
        written = intent.linked.iter().map(|linked| linked.address).collect();
        annotate(&mut facts, &intent);
    }
    match decide(&facts, now()).step {
        Some(Step::Prepare { preparation, .. }) => {
            let given = if let Preparation::Link { address, .. } = &preparation { *address } else { None };
            assert_eq!(written, Vec::from_iter(given), "{preparation:?}");
            Some(preparation)
        }
        Some(Step::Deploy(_)) => None,
        other => panic!("{other:?}"),
    }
}

fn static_link(interface: i64, subnet: &str, address: &str) -> Preparation {
    Preparation::Link { interface, subnet: subnet.to_owned(), mode: LinkMode::Static, address: Some(address.parse().unwrap()) }
}

#[test]
fn what_is_in_the_way_goes_first_then_the_address_is_given_and_then_it_is_deployed() {
    let with = |links| asking("10.0.0.9", None, vec![interface(0, links)]);
    let auto = link(7, LinkMode::Auto, "10.0.0.0/24", None);
    assert_eq!(next(&with(vec![auto])), Some(Preparation::Unlink { interface: 0, link: 7 }));
    let only_up = link(8, LinkMode::LinkUp, "10.0.0.0/24", None);
    assert_eq!(next(&with(vec![only_up])), Some(static_link(0, "10.0.0.0/24", "10.0.0.9")), "MAAS takes that away itself");
    assert_eq!(next(&with(vec![link(9, LinkMode::Static, "10.0.0.0/24", Some("10.0.0.9"))])), None);
    let other = link(9, LinkMode::Static, "10.0.0.0/24", Some("10.0.0.8"));
    assert_eq!(next(&with(vec![other])), Some(Preparation::Unlink { interface: 0, link: 9 }));
}

#[test]
fn the_address_goes_to_the_interface_of_its_subnet_and_otherwise_to_the_one_it_boots_from() {
    let up = |id, cidr: &str| interface(id, vec![link(id, LinkMode::LinkUp, cidr, None)]);
    let two = || vec![up(0, "10.0.0.0/24"), up(1, "10.0.1.0/24")];
    assert_eq!(next(&asking("10.0.1.9", None, two())), Some(static_link(1, "10.0.1.0/24", "10.0.1.9")));
    assert_eq!(next(&asking("10.0.1.9", Some("10.0.1.0/24"), two())), Some(static_link(1, "10.0.1.0/24", "10.0.1.9")));
    assert_eq!(next(&asking("10.9.0.9", Some("10.9.0.0/24"), two())), Some(static_link(0, "10.9.0.0/24", "10.9.0.9")));
    let bare = asking("10.0.0.9", None, vec![interface(0, Vec::new())]);
    assert_eq!(reason(&decide(&bare, now())), "MachinePreparationFailed", "nobody says which subnet it is");
}

#[test]
fn interfaces_are_connected_as_they_are_asked_for() {
    let mut facts = asking("10.0.0.9", None, vec![interface(0, vec![link(1, LinkMode::Dhcp, "10.0.0.0/24", None)])]);
    facts.object.spec.static_ip = None;
    let wish = api::NetworkInterface { name: "eth0".to_owned(), subnet: "10.0.0.0/24".to_owned(), mode: api::LinkMode::Dhcp, ip: None };
    facts.object.spec.network_interfaces = vec![wish.clone()];
    assert_eq!(next(&facts), None);
    facts.object.spec.network_interfaces = vec![api::NetworkInterface { name: "eth5".to_owned(), ..wish }];
    assert_eq!(reason(&decide(&facts, now())), "MachinePreparationFailed");
}

const FIXED: &str = "10.0.0.9";

/// A free machine with a fixed address, of which this object's annotation says that it was given there.
fn back(facts: Facts, given_by_us: bool) -> Facts {
    let free = Server {
        owner: None,
        marks: BTreeMap::new(),
        interfaces: vec![interface(0, vec![link(9, LinkMode::Static, "10.0.0.0/24", Some(FIXED))])],
        ..server(ServerStatus::Ready)
    };
    let mut facts = holding(facts, Lookup::Found(free.clone()));
    facts.claimed = Lookup::Found(Vec::new());
    let mut intent = facts.intent().unwrap();
    intent.releasing = vec![id(SERVER)];
    if given_by_us {
        intent.linked = vec![api::LinkedAddress { server: id(SERVER), address: FIXED.parse().unwrap() }];
    }
    annotate(&mut facts, &intent);
    facts.releasing = [(id(SERVER), Lookup::Found(free))].into();
    facts
}

#[test]
fn a_fixed_address_is_taken_off_a_machine_that_went_back_before_the_object_goes_or_tries_another() {
    for facts in [back(wanted(), true), deleting(back(wanted(), true))] {
        let Some(Step::Prepare { preparation, .. }) = decide(&facts, now()).step else { panic!("{:?}", decide(&facts, now())) };
        assert_eq!(preparation, Preparation::Unlink { interface: 0, link: 9 });
        let mut unlinked = facts;
        unlinked.learn(Learned::Changed(id(SERVER)));
        assert_eq!(decide(&unlinked, now()).step, Some(Step::Look { server: id(SERVER) }), "it is looked whether it is off");
        let bare = Server { owner: None, marks: BTreeMap::new(), ..server(ServerStatus::Ready) };
        unlinked.learn(Learned::Looked(id(SERVER), Box::new(Lookup::Found(bare))));
        match decide(&unlinked, now()).step {
            Some(Step::Forget { intent, .. }) => assert_eq!((intent.releasing, intent.linked), (Vec::new(), Vec::new())),
            Some(Step::RemoveFinalizer) => assert!(unlinked.object.metadata.deletion_timestamp.is_some()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_fixed_address_is_taken_off_a_machine_that_somebody_released_before_another_one_is_tried() {
    let mut facts = back(wanted(), true);
    annotate(&mut facts, &api::Intent { releasing: Vec::new(), ..back(wanted(), true).intent().unwrap() });
    facts.releasing.clear();
    let plan = decide(&facts, now());
    assert!(matches!(&plan.step, Some(Step::Prepare { preparation: Preparation::Unlink { link: 9, .. }, .. })), "{plan:?}");
    facts.recorded = Some(Lookup::Found(Server { owner: None, marks: BTreeMap::new(), ..server(ServerStatus::Ready) }));
    let plan = decide(&facts, now());
    assert!(matches!(plan.step, Some(Step::Forget { .. })), "{plan:?}");
    assert_eq!(reason(&plan), "TryingAnotherMachine");
    let handed_over = decide(&super::facts::provisioned(back(wanted(), true)), now());
    assert_eq!(
        (handed_over.step.clone(), reason(&handed_over).as_str()),
        (None, "MachineTakenAway"),
        "it stays on record until the object goes"
    );
}

#[test]
fn an_address_that_somebody_else_gave_stays_on_the_machine() {
    assert!(matches!(decide(&back(wanted(), false), now()).step, Some(Step::Forget { .. })));
    assert_eq!(decide(&deleting(back(wanted(), false)), now()).step, Some(Step::RemoveFinalizer));
}

/// Somebody else has the machine that went back, and MAAS shows it so.
fn taken(facts: &mut Facts, now_is: Server) {
    if facts.recorded.is_some() {
        facts.recorded = Some(Lookup::Found(now_is.clone()));
    }
    facts.releasing = [(id(SERVER), Lookup::Found(now_is))].into();
}

/// The machine with our address on it, as somebody else has it: another MAAS user, and somebody who shares ours.
fn with_others() -> [Server; 2] {
    let Some(Lookup::Found(free)) = back(wanted(), true).recorded else { panic!() };
    let shared = Server { owner: Some(super::facts::US.to_owned()), status: ServerStatus::Allocated, ..free.clone() };
    [Server { owner: Some("somebody".to_owned()), ..shared.clone() }, shared]
}

/// What the object says of the addresses that it gave to machines.
fn freed(plan: &decisions::machine::Plan) -> Option<(String, String, String)> {
    let said = api::condition::find(&plan.status.as_ref()?.conditions, "FixedAddressesFreed")?;
    Some((said.status.clone(), said.reason.clone(), said.message.clone()))
}

#[test]
fn an_object_that_goes_names_the_address_and_the_machine_that_somebody_else_has_with_it_and_goes() {
    for (surplus, other) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let mut facts = deleting(back(wanted(), true));
        if surplus {
            facts.object.spec.system_id = None;
            facts.recorded = None;
        }
        taken(&mut facts, with_others()[other].clone());
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "FixedAddressLeft"), "{surplus} {other}");
        let told = plan.notes.iter().find(|note| note.warning && note.reason == "FixedAddressLeft").unwrap();
        assert!(told.message.contains("node-7 (abc123)") && told.message.contains(FIXED), "{}", told.message);
        assert!(!told.message.contains("release it there"), "we did: {}", told.message);
        facts.object.status = plan.status;
        assert_eq!(decide(&facts, seconds(1)).step, Some(Step::RemoveFinalizer), "{surplus} {other}");
    }
}

#[test]
fn an_object_that_goes_asks_to_look_at_a_machine_that_it_did_not_release_and_that_may_have_its_address() {
    for seen in [Lookup::Found(with_others()[1].clone()), Lookup::Forbidden] {
        let mut facts = super::facts::provisioned(deleting(back(wanted(), true)));
        annotate(&mut facts, &api::Intent { releasing: Vec::new(), ..back(wanted(), true).intent().unwrap() });
        facts.releasing.clear();
        facts.recorded = Some(seen);
        let plan = decide(&facts, now());
        let told = super::facts::message(&plan);
        assert_eq!(reason(&plan), "FixedAddressLeft");
        assert!(told.contains("abc123") && told.contains(FIXED) && told.contains("release it there"), "{told}");
        facts.object.status = plan.status;
        assert_eq!(decide(&facts, seconds(1)).step, Some(Step::RemoveFinalizer));
    }
}

#[test]
fn an_object_that_goes_does_not_ask_to_release_what_it_released_itself() {
    for other in with_others() {
        let mut facts = deleting(back(wanted(), true));
        taken(&mut facts, Server { interfaces: Vec::new(), ..other });
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (Some(Step::RemoveFinalizer), "Deleted"));
    }
}

#[test]
fn an_object_that_goes_writes_down_that_it_releases_its_machine() {
    let mut facts = deleting(super::facts::held(ServerStatus::Deployed));
    facts.intent_is_fresh = false;
    let Some(Step::Intend { intent, .. }) = decide(&facts, now()).step else { panic!("{:?}", decide(&facts, now()).step) };
    assert_eq!(intent.releasing, [id(SERVER)]);
    annotate(&mut facts, &intent);
    facts.intent_is_fresh = true;
    assert!(matches!(decide(&facts, now()).step, Some(Step::Release { .. })));
}

#[test]
fn an_address_on_a_machine_that_somebody_else_has_is_told_and_stays_on_record_until_it_is_off() {
    for other in with_others() {
        let mut facts = back(wanted(), true);
        not_taken_off(&mut facts, FailureKind::Refused);
        let Some(Step::Forget { intent, .. }) = decide(&facts, now()).step else { panic!() };
        facts.object.spec.system_id = None;
        facts.recorded = None;
        annotate(&mut facts, &intent);
        facts.object.status = decide(&facts, now()).status;
        (facts.failed, facts.not_unlinked, facts.intent_is_fresh) = (None, BTreeMap::new(), false);
        facts.bootstrap = decisions::machine::Bootstrap::Pending;
        taken(&mut facts, other);
        let plan = decide(&facts, seconds(600));
        assert_eq!(plan.step, None, "nothing is forgotten, and nothing of somebody else's is touched");
        let (status, reason, message) = freed(&plan).unwrap();
        assert_eq!((status.as_str(), reason.as_str()), ("False", "FixedAddressLeft"));
        assert!(message.contains("node-7 (abc123)") && message.contains(FIXED), "{message}");
        assert_eq!(plan.look_again, LookAgain::After(std::time::Duration::from_mins(5)));
        facts.object.status = plan.status;

        let mut hidden = facts.clone();
        hidden.releasing = [(id(SERVER), Lookup::Forbidden)].into();
        let plan = decide(&hidden, seconds(700));
        assert_eq!((plan.step.clone(), freed(&plan).unwrap().0.as_str()), (None, "False"), "nobody saw that it is off");

        let mut free = facts.clone();
        free.releasing = back(wanted(), true).releasing;
        let plan = decide(&free, seconds(700));
        assert!(matches!(plan.step, Some(Step::Intend { .. })), "it is tried again: {plan:?}");
        assert_eq!(freed(&plan).unwrap().0, "False");

        let bare = Server { interfaces: Vec::new(), ..with_others()[0].clone() };
        for gone in [Lookup::Found(bare), Lookup::Missing] {
            facts.releasing = [(id(SERVER), gone)].into();
            let plan = decide(&facts, seconds(700));
            let Some(Step::Forget { intent, .. }) = &plan.step else { panic!("{plan:?}") };
            assert_eq!((&intent.releasing, &intent.linked), (&Vec::new(), &Vec::new()));
            assert_eq!(freed(&plan).unwrap().0, "True");
        }
    }
}

#[test]
fn a_machine_that_somebody_else_got_with_our_address_before_it_was_handed_over_stays_on_record_while_another_one_is_tried() {
    for (begun_by_us, other) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let mut facts = back(wanted(), true);
        taken(&mut facts, with_others()[other].clone());
        if !begun_by_us {
            annotate(&mut facts, &api::Intent { releasing: Vec::new(), ..back(wanted(), true).intent().unwrap() });
            facts.releasing.clear();
        }
        let plan = decide(&facts, now());
        let Some(Step::Forget { intent, .. }) = &plan.step else { panic!("{plan:?}") };
        assert_eq!((&intent.releasing, intent.linked.len()), (&vec![id(SERVER)], 1), "{begun_by_us} {other}");
        assert_eq!(freed(&plan).unwrap().1, "FixedAddressLeft");
    }
}

#[test]
fn a_link_that_cannot_be_removed_before_a_deployment_is_no_address_that_was_left() {
    let links = vec![link(7, LinkMode::Auto, "10.0.0.0/24", None)];
    let mut facts = asking(FIXED, None, vec![interface(0, links)]);
    let left = id("left01");
    let Some(Lookup::Found(free)) = back(wanted(), true).recorded else { panic!() };
    let mut intent = facts.intent().unwrap();
    intent.releasing = vec![left.clone()];
    intent.linked = vec![api::LinkedAddress { server: left.clone(), address: FIXED.parse().unwrap() }];
    annotate(&mut facts, &intent);
    facts.releasing = [(left.clone(), Lookup::Found(Server { system_id: left.clone(), hostname: "left".to_owned(), ..free }))].into();
    let refused = |words: &str| Failure { kind: FailureKind::Refused, words: words.to_owned() };
    not_taken_off(&mut facts, FailureKind::Refused);
    let step = decide(&facts, now()).step.unwrap();
    assert_eq!(step.server(), Some(&id(SERVER)), "{step:?}");
    facts.fail(&step, refused("not this one"));
    let (_, _, message) = freed(&decide(&facts, now())).unwrap();
    assert!(message.contains("left (left01)") && message.contains(": no.") && !message.contains("not this one"), "{message}");
}

#[test]
fn an_address_that_stays_on_another_machine_is_no_fault_of_the_one_that_is_prepared() {
    let mut facts = asking(FIXED, None, vec![interface(0, vec![link(8, LinkMode::LinkUp, "10.0.0.0/24", None)])]);
    let failure = Failure { kind: FailureKind::Refused, words: "no".to_owned() };
    facts.object.status = decide(&facts, now()).status;
    facts.failed = Some(FailedStep { step: StepName::Prepare, server: Some(id("left01")), failure, looked_since: false });
    let plan = decide(&facts, seconds(3601));
    assert!(plan.status.unwrap().attempts.is_empty());
}

/// MAAS answers so when it is told to take the address off.
fn not_taken_off(facts: &mut Facts, kind: FailureKind) {
    let step = decide(facts, now()).step.unwrap();
    assert!(matches!(step, Step::Prepare { preparation: Preparation::Unlink { .. }, .. }), "{step:?}");
    facts.fail(&step, Failure { kind, words: "no.".to_owned() });
}

#[test]
fn an_address_that_maas_does_not_let_us_take_off_is_told_and_keeps_no_object_that_goes() {
    for surplus in [false, true] {
        let mut facts = deleting(back(wanted(), true));
        if surplus {
            facts.object.spec.system_id = None;
            facts.recorded = None;
        }
        not_taken_off(&mut facts, FailureKind::NotPermitted);
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "FixedAddressLeft"), "{surplus}");
        (facts.failed, facts.not_unlinked) = (None, BTreeMap::new());
        facts.object.status = plan.status;
        if let Some(Step::Forget { intent, .. }) = decide(&facts, seconds(1)).step {
            annotate(&mut facts, &intent);
            facts.releasing.clear();
        }
        assert_eq!(decide(&facts, seconds(1)).step, Some(Step::RemoveFinalizer), "{surplus}");
    }
}

#[test]
fn an_address_that_maas_does_not_let_us_take_off_stays_on_record_while_another_machine_is_tried() {
    for kind in [FailureKind::Refused, FailureKind::NotPermitted, FailureKind::HalfDone] {
        let mut facts = back(wanted(), true);
        not_taken_off(&mut facts, kind);
        let plan = decide(&facts, now());
        let Some(Step::Forget { server, intent }) = &plan.step else { panic!("{plan:?}") };
        assert_eq!((server, &intent.releasing, intent.linked.len()), (&id(SERVER), &vec![id(SERVER)], 1), "{kind:?}");
        let status = plan.status.unwrap();
        let said = api::condition::find(&status.conditions, "FixedAddressesFreed").unwrap();
        assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", "FixedAddressLeft"));
        assert!(said.message.contains("keeps the fixed address 10.0.0.9: no. It is tried again by itself"), "{}", said.message);
        assert!(plan.notes.iter().any(|note| note.warning && note.reason == "FixedAddressLeft"), "{:?}", plan.notes);
    }
}

#[test]
fn an_address_that_was_left_is_taken_off_again_and_again_ever_more_rarely_until_it_is_off() {
    let mut facts = back(wanted(), true);
    not_taken_off(&mut facts, FailureKind::Refused);
    let Some(Step::Forget { intent, .. }) = decide(&facts, now()).step else { panic!() };
    facts.object.spec.system_id = None;
    facts.recorded = None;
    annotate(&mut facts, &intent);
    let plan = decide(&facts, now());
    assert!(matches!(plan.step, Some(Step::Allocate(_))), "{plan:?}");
    facts.object.status = plan.status;
    // The object waits for something else meanwhile.
    facts.bootstrap = decisions::machine::Bootstrap::Pending;
    let (mut waits, mut time) = (Vec::new(), 0);
    for _ in 0..8 {
        (facts.failed, facts.not_unlinked, facts.intent_is_fresh) = (None, BTreeMap::new(), false);
        let plan = decide(&facts, seconds(time));
        let LookAgain::After(wait) = plan.look_again else { panic!("{plan:?}") };
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "WaitingForBootstrapData"));
        waits.push(wait.as_secs());
        time += i64::try_from(wait.as_secs()).unwrap();
        let Some(Step::Intend { intent, .. }) = decide(&facts, seconds(time)).step else { panic!("after {time} s") };
        annotate(&mut facts, &intent);
        facts.intent_is_fresh = true;
        let Some(Lookup::Found(left)) = facts.releasing.get_mut(&id(SERVER)) else { panic!() };
        left.read_at = seconds(time);
        let step = decide(&facts, seconds(time)).step.unwrap();
        assert!(matches!(step, Step::Prepare { .. }), "{step:?}");
        facts.fail(&step, Failure { kind: FailureKind::Refused, words: "still no".to_owned() });
        facts.object.status = decide(&facts, seconds(time)).status;
    }
    assert_eq!(waits, [15, 15, 30, 60, 120, 240, 300, 300]);
    (facts.failed, facts.not_unlinked) = (None, BTreeMap::new());
    let Some(Lookup::Found(left)) = facts.releasing.get_mut(&id(SERVER)) else { panic!() };
    left.interfaces.clear();
    let plan = decide(&facts, seconds(time));
    let Some(Step::Forget { intent, .. }) = &plan.step else { panic!("{plan:?}") };
    assert_eq!((&intent.releasing, &intent.linked), (&Vec::new(), &Vec::new()));
    let status = plan.status.unwrap();
    let said = api::condition::find(&status.conditions, "FixedAddressesFreed").unwrap();
    assert_eq!((said.status.as_str(), said.reason.as_str()), ("True", "FixedAddressesFreed"));
}

#[test]
fn what_cannot_be_prepared_goes_back_after_as_long_as_a_deployment_may_take() {
    let mut facts = asking(FIXED, None, vec![interface(0, vec![link(8, LinkMode::LinkUp, "10.0.0.0/24", None)])]);
    let failure = Failure { kind: FailureKind::Refused, words: "IP address is already in use.".to_owned() };
    facts.failed = Some(FailedStep { step: StepName::Prepare, server: Some(id(SERVER)), failure, looked_since: false });
    let mut intent = facts.intent().unwrap();
    intent.linked = vec![api::LinkedAddress { server: id(SERVER), address: FIXED.parse().unwrap() }];
    annotate(&mut facts, &intent);
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachinePreparationFailed"));
    facts.object.status = plan.status;
    let plan = decide(&facts, seconds(3601));
    let Some(Step::Intend { intent, .. }) = plan.step.clone() else { panic!("{plan:?}") };
    assert_eq!((intent.releasing, reason(&plan).as_str()), (vec![id(SERVER)], "TryingAnotherMachine"));
    assert!(plan.status.unwrap().attempts[0].cause.contains("already in use"));
}

#[test]
fn an_address_that_a_pool_will_not_give_is_trouble_and_one_it_has_not_given_yet_is_not() {
    let pool = api::AddressPool { name: "rack".to_owned(), ..api::AddressPool::default() };
    let mut facts = wanted();
    facts.object.spec.static_ip = Some(api::StaticIp { pool_ref: Some(pool), ..api::StaticIp::default() });
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "WaitingForStaticIP"));
    facts.address_refused = Some("IPAddressClaim one belongs to another object".to_owned());
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "AddressNotClaimed"));
    assert!(message(&plan).starts_with("IPAddressClaim one belongs to another object"), "{}", message(&plan));
}
