//! Whom the name leads to.

use std::net::IpAddr;

use super::*;
use decisions::{
    LinkMode, NetworkInterface,
    cluster::{Learned, Membership, membership},
};
use proptest::prelude::*;

fn set(addresses: &[&str]) -> BTreeSet<IpAddr> {
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

fn wanted(machines: Vec<Member>, published: &[&str], initialized: bool) -> Option<BTreeSet<IpAddr>> {
    let cluster = cluster(json!({"status": {"initialization": {"controlPlaneInitialized": initialized}}}));
    membership(&Facts { machines, cluster: Some(cluster), ..facts() }, &set(published)).wanted
}

fn with_reason(name: &str, address: &str, phase: &str, reason: &str) -> Member {
    let status = if reason == "MachineDeployed" { "True" } else { "False" };
    let condition = json!([{"type": "MachineDeployed", "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-11-16T00:00:00Z"}]);
    let status =
        json!({"phase": phase, "machineState": phase, "addresses": [{"type": "ExternalIP", "address": address}], "conditions": condition});
    member(name, json!({"status": status}))
}

#[test]
fn which_machines_are_there() {
    let one =
        |phase, reason| vec![with_reason("a", "10.0.0.1", phase, reason), with_reason("b", "10.0.0.2", "Deployed", "MachineDeployed")];
    let rows: [(&str, &str, bool, bool); 10] = [
        // phase, reason, there if it was published, there if it was not
        ("Deployed", "MachineDeployed", true, true),
        ("Deploying", "MachineDeploying", true, true),
        ("Deployed", "MaasUnavailable", true, false),
        ("Deployed", "MachinePowerUnclear", true, false),
        ("Deployed", "MachinePoweredOff", false, false),
        ("Failed", "MachineTakenAway", false, false),
        ("Failed", "MachineDeployFailed", false, false),
        ("Failed", "MachineStateUndefined", true, false),
        ("Releasing", "MachineReleasing", false, false),
        ("Allocated", "MachineDeployStartedReason", false, false),
    ];
    for (phase, reason, if_published, if_not) in rows {
        let both = |there: bool| Some(if there { set(&["10.0.0.1", "10.0.0.2"]) } else { set(&["10.0.0.2"]) });
        assert_eq!(wanted(one(phase, reason), &["10.0.0.1"], false), both(if_published), "{reason} of one that is there");
        assert_eq!(wanted(one(phase, reason), &[], false), both(if_not), "{reason} of one that is not");
    }
}

#[test]
fn once_the_control_plane_is_initialized_a_machine_has_to_have_joined() {
    let machines = |joined: bool| {
        vec![
            with_reason("a", "10.0.0.1", "Deployed", "MachineDeployed"),
            Member { joined, ..with_reason("b", "10.0.0.2", "Deployed", "MachineDeployed") },
        ]
    };
    assert_eq!(wanted(machines(false), &["10.0.0.1"], true), Some(set(&["10.0.0.1"])));
    assert_eq!(wanted(machines(true), &["10.0.0.1"], true), Some(set(&["10.0.0.1", "10.0.0.2"])));
    assert_eq!(wanted(machines(false), &[], true), Some(set(&["10.0.0.1", "10.0.0.2"])), "somebody is better than nobody");
}

#[test]
fn s06_only_without_any_machine_that_stays_the_name_leads_nowhere() {
    let going = |name: &str| {
        let mut member = with_reason(name, "10.0.0.1", "Deployed", "MachineDeployed");
        member.object.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
        member
    };
    let empty = member("b", json!({"status": {"phase": "Pending", "addresses": [], "conditions": []}}));
    assert_eq!(wanted(vec![], &["10.0.0.1"], true), Some(set(&[])));
    assert_eq!(wanted(vec![worker("w")], &["10.0.0.1"], true), Some(set(&[])));
    assert_eq!(wanted(vec![going("a")], &["10.0.0.1"], true), Some(set(&[])), "what goes does not come back");
    assert_eq!(wanted(vec![going("a"), empty], &["10.0.0.1"], true), None, "its successor is on the way");
}

/// One that was handed over, with this status.
fn moved(name: &str, status: serde_json::Value) -> Member {
    let mut member = member(name, json!({"spec": {"providerID": format!("maas:///az1/{name}")}}));
    member.object.status = serde_json::from_value(status).unwrap();
    Member { joined: true, ..member }
}

#[test]
fn after_a_move_nobody_leaves_the_name_before_every_machine_has_been_seen() {
    let seen = || Member { joined: true, ..with_reason("a", "10.0.0.1", "Deployed", "MachineDeployed") };
    let (all, all_but_one) = (["10.0.0.1", "10.0.0.2", "10.0.0.3"], ["10.0.0.1", "10.0.0.3"]);
    for status in [json!(null), json!({"ready": false})] {
        let unseen = || moved("c", status.clone());
        assert_eq!(wanted(vec![seen(), moved("b", status.clone()), unseen()], &all, true), Some(set(&all)), "{status}");
        let off = with_reason("b", "10.0.0.2", "Deployed", "MachinePoweredOff");
        assert_eq!(wanted(vec![seen(), off, unseen()], &all, true), Some(set(&all_but_one)), "what does not serve leaves: {status}");
        let never = member("c", json!({"status": {"phase": "Pending", "addresses": [], "conditions": []}}));
        assert_eq!(wanted(vec![seen(), never], &all, true), Some(set(&["10.0.0.1"])), "one that was never handed over keeps nobody");
    }
}

/// In doubt for ever, and without an address although MAAS shows it.
fn seen_without_address(name: &str) -> Member {
    let condition = json!([{"type": "MachineDeployed", "status": "False", "reason": "MachinePowerUnclear", "message": "", "lastTransitionTime": "2026-11-16T00:00:00Z"}]);
    moved(name, json!({"phase": "Deployed", "machineState": "Deployed", "addresses": [], "conditions": condition}))
}

#[test]
fn a_machine_that_maas_shows_without_an_address_holds_nobody_elses() {
    let serving = || Member { joined: true, ..with_reason("a", "10.0.0.1", "Deployed", "MachineDeployed") };
    let found = wanted(vec![serving(), seen_without_address("b")], &["10.0.0.1", "10.0.0.3"], true);
    assert_eq!(found, Some(set(&["10.0.0.1"])));
    assert_eq!(wanted(vec![seen_without_address("b")], &["10.0.0.3"], true), None, "a name is not emptied for that");
}

#[test]
fn a_machine_that_is_being_installed_may_have_no_address_yet() {
    let installing = |addresses: Value| {
        let condition = json!([{"type": "MachineDeployed", "status": "False", "reason": "MachineDeploying", "message": "", "lastTransitionTime": "2026-11-16T00:00:00Z"}]);
        member("a", json!({"status": {"phase": "Deploying", "machineState": "Deploying", "addresses": addresses, "conditions": condition}}))
    };
    let spec = json!({"endpoint": {"addresses": {"subnets": ["10.0.0.0/24"]}}});
    let unfit = |addresses| {
        let facts = Facts { machines: vec![installing(addresses)], object: object(json!({"spec": spec})), ..facts() };
        membership(&facts, &set(&[])).without_address
    };
    assert_eq!(unfit(json!([])), Vec::<String>::new(), "MAAS gives them later");
    assert_eq!(unfit(json!([{"type": "ExternalIP", "address": "10.9.0.1"}])), ["a"], "none of those it has fits");
}

#[test]
fn what_is_held_for_a_machine_that_maas_has_not_shown_is_said() {
    let led_to = |machines| {
        let records = Lookup::Found(vec![record(1, &[("10.0.0.1", false), ("10.0.0.3", false)])]);
        decide(&Facts { records, machines, ..named(json!({})) }, now())
    };
    let serving = || with_reason("a", "10.0.0.1", "Deployed", "MachineDeployed");
    let plan = led_to(vec![serving(), moved("b", json!(null))]);
    assert_eq!((plan.step.clone(), shown(&plan, "LoadBalancerReady")), (None, "Unknown/MachinesNotSeen".to_owned()));
    assert_eq!(shown(&plan, "Ready"), "Unknown/MachinesNotSeen");
    let status = plan.status.unwrap();
    let said = &condition::find(&status.conditions, "LoadBalancerReady").unwrap().message;
    assert!(
        said.contains("10.0.0.3") && !said.contains("10.0.0.1") && said.contains("the machine of b ") && said.contains("delete"),
        "{said}"
    );
    let plan = led_to(vec![serving(), with_reason("c", "10.0.0.3", "Deployed", "MachineDeployed"), moved("b", json!(null))]);
    assert_eq!(shown(&plan, "LoadBalancerReady"), "True/LoadBalancerReady", "nothing is held");
    let plan = led_to(vec![seen_without_address("b")]);
    assert_eq!((plan.step.clone(), shown(&plan, "LoadBalancerReady")), (None, "False/NoMatchingAddress".to_owned()));
}

#[test]
fn s06_before_a_name_leads_nowhere_kubernetes_itself_is_asked_for_machines() {
    let mut facts = Facts { records: Lookup::Found(vec![record(1, &[("10.0.0.1", true)])]), ..named(json!({"reserved": ["10.0.0.1"]})) };
    assert_eq!(decide(&facts, now()).step, Some(Step::ListMachines));
    let mut with_machine = facts.clone();
    with_machine.learn(Learned::Machines(vec![member("a", json!({}))]));
    assert_eq!(decide(&with_machine, now()).step, None, "a watch that hangs does not know of it");
    facts.learn(Learned::Machines(Vec::new()));
    assert!(matches!(decide(&facts, now()).step, Some(Step::Intend(_))), "{:?}", decide(&facts, now()).step);
}

#[test]
fn s08_the_choice_of_an_address() {
    let several = json!({"status": {"addresses": [{"type": "Hostname", "address": "a"}, {"type": "ExternalIP", "address": "10.0.0.1"},
        {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "10.1.0.1"}, {"type": "ExternalIP", "address": "fd00::1"}]}});
    let interface = |name: &str, tag: &str, address: &str| NetworkInterface {
        id: 1,
        name: name.to_owned(),
        tags: vec![tag.to_owned()],
        boot: false,
        children: Vec::new(),
        links: vec![decisions::Link { id: 1, mode: LinkMode::Auto, subnet: None, address: Some(address.parse().unwrap()) }],
    };
    let interfaces =
        Lookup::Found([("a".to_owned(), vec![interface("eth0", "slow", "10.0.0.1"), interface("eth1", "fast", "10.1.0.1")])].into());
    let rows = [
        (json!({}), vec![], Some("10.0.0.1")),
        (json!({"subnets": ["10.1.0.0/16", "10.0.0.0/16"]}), vec![], Some("10.1.0.1")),
        (json!({"subnets": ["fd00::/8"]}), vec![], Some("fd00::1")),
        (json!({"subnets": ["192.0.2.0/24"]}), vec![], None),
        (json!({"interface": "eth1"}), vec![], Some("10.1.0.1")),
        (json!({"tag": "slow"}), vec![], Some("10.0.0.1")),
        (json!({"interface": "eth1", "tag": "slow"}), vec![], None),
        (json!({"interface": "eth0", "subnets": ["10.1.0.0/16"]}), vec![], None),
        (json!({}), vec!["10.1.0.0/16"], Some("10.1.0.1")),
        (json!({}), vec!["192.0.2.0/24", " 10.0.0.0/24 "], Some("10.0.0.1")),
        (json!({"subnets": ["10.0.0.0/16"]}), vec!["10.1.0.0/16"], None),
        (json!({}), vec!["nonsense"], None),
    ];
    for (number, (choice, preferred, expected)) in rows.into_iter().enumerate() {
        let facts = Facts {
            object: object(json!({"spec": {"endpoint": {"addresses": choice}}})),
            machines: vec![member("a", several.clone())],
            preferred_subnets: if preferred.is_empty() {
                Lookup::Missing
            } else {
                Lookup::Found(preferred.into_iter().map(str::to_owned).collect())
            },
            interfaces: interfaces.clone(),
            ..facts()
        };
        let Membership { wanted, without_address, .. } = membership(&facts, &set(&[]));
        assert_eq!(wanted, expected.map(|address| set(&[address])), "row {number}");
        assert_eq!(without_address.is_empty(), expected.is_some(), "row {number}");
    }
}

#[test]
fn a_choice_that_cannot_be_looked_up_changes_nothing() {
    let failed = || Failure { kind: FailureKind::Unavailable, words: "no".to_owned() };
    let rows = [
        Facts { preferred_subnets: Lookup::Failed(failed()), ..facts() },
        Facts {
            object: object(json!({"spec": {"endpoint": {"addresses": {"tag": "x"}}}})),
            interfaces: Lookup::Failed(failed()),
            ..facts()
        },
    ];
    for facts in rows {
        let facts = Facts { machines: vec![member("a", json!({}))], ..facts };
        assert_eq!(membership(&facts, &set(&["10.0.0.1"])).wanted, Some(set(&["10.0.0.1"])));
        assert_eq!(membership(&facts, &set(&[])).wanted, None);
    }
}

const PHASES: [&str; 7] = ["Pending", "Allocated", "Deploying", "Deployed", "Failed", "Releasing", "Released"];
const REASONS: [&str; 7] = [
    "MachineDeployed",
    "MachineDeploying",
    "MachinePoweredOff",
    "MaasUnavailable",
    "MachineTakenAway",
    "MachinePowerUnclear",
    "MachineStateUndefined",
];

proptest! {
    #[test]
    fn a_name_is_never_emptied_while_a_machine_of_the_control_plane_stays(
        machines in proptest::collection::vec((0..7_usize, 0..7_usize, 1..5_u8, any::<bool>(), any::<bool>()), 1..5),
        published in proptest::collection::btree_set(1..9_u8, 1..5),
        initialized: bool,
    ) {
        let members: Vec<Member> = machines.iter().enumerate().map(|(number, (phase, reason, address, joined, going))| {
            let mut member = with_reason(&number.to_string(), &format!("10.0.0.{address}"), PHASES[*phase], REASONS[*reason]);
            member.joined = *joined;
            member.object.metadata.deletion_timestamp = going.then(|| k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
            member
        }).collect();
        let stays = members.iter().any(|member| !member.is_going());
        let published: Vec<String> = published.iter().map(|address| format!("10.0.0.{address}")).collect();
        let published: Vec<&str> = published.iter().map(String::as_str).collect();
        let wanted = wanted(members, &published, initialized);
        prop_assert!(!stays || wanted.is_none_or(|wanted| !wanted.is_empty()));
    }
}
