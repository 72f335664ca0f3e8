//! Addresses of pools: who claims, who waits, what is written.

use api::{
    AddressPool, MaasMachine,
    cluster_api::{Cluster, IpAddress, IpAddressClaim},
    names,
};
use decisions::address::{Facts, Plan, concerns, decide};
use serde_json::json;

fn facts() -> Facts {
    let object: MaasMachine = serde_json::from_value(json!({
        "apiVersion": names::API_VERSION, "kind": "MaasMachine",
        "metadata": {"name": "m1", "namespace": "racks", "uid": "u1", "labels": {names::CLUSTER_NAME: "c1", "other": "x"}},
        "spec": {"image": "ubuntu/noble", "staticIP": {"poolRef": pool()}},
    }))
    .unwrap();
    let cluster: Cluster = serde_json::from_value(json!({"metadata": {"name": "c1", "namespace": "racks"}})).unwrap();
    Facts { object, cluster: Some(cluster), claim: None, address: None }
}

fn pool() -> AddressPool {
    AddressPool { api_group: "ipam.cluster.x-k8s.io".to_owned(), kind: "InClusterIPPool".to_owned(), name: "rack".to_owned() }
}

fn claimed() -> Facts {
    let Plan::Claim(claim) = decide(&facts()) else { panic!("it is claimed") };
    Facts { claim: Some(*claim), ..facts() }
}

fn given(address: &str, prefix: Option<u8>) -> Facts {
    let address: IpAddress =
        serde_json::from_value(json!({"metadata": {}, "spec": {"address": address, "prefix": prefix, "claimRef": {"name": "m1"}}}))
            .unwrap();
    Facts { address: Some(address), ..claimed() }
}

#[test]
fn what_waits_for_an_address_of_a_pool_claims_it_once_and_for_itself() {
    let Plan::Claim(claim) = decide(&facts()) else { panic!("it is claimed") };
    let IpAddressClaim { metadata, spec, .. } = &*claim;
    assert_eq!((metadata.name.as_deref(), metadata.namespace.as_deref()), (Some("m1"), Some("racks")));
    assert_eq!(metadata.labels.as_ref().unwrap().keys().collect::<Vec<_>>(), [names::CLUSTER_NAME]);
    assert_eq!(metadata.owner_references.as_ref().unwrap()[0].uid, "u1");
    assert_eq!((&spec.pool_ref, spec.cluster_name.as_str()), (&pool(), "c1"));
    assert_eq!(decide(&claimed()), Plan::Wait);
}

#[test]
fn what_was_given_is_written_with_its_subnet_unless_that_is_said() {
    let write = |ip: &str, cidr: Option<&str>| Plan::Write { ip: ip.parse().unwrap(), cidr: cidr.map(|cidr| cidr.parse().unwrap()) };
    assert_eq!(decide(&given("10.0.3.9", Some(22))), write("10.0.3.9", Some("10.0.0.0/22")));
    assert_eq!(decide(&given("fd00::9", Some(64))), write("fd00::9", Some("fd00::/64")));
    assert_eq!(decide(&given("10.0.3.9", None)), write("10.0.3.9", None));
    let mut said = given("10.0.3.9", Some(22));
    said.object.spec.static_ip.as_mut().unwrap().cidr = Some("10.0.3.0/24".to_owned());
    assert_eq!(decide(&said), write("10.0.3.9", None));
}

#[test]
fn what_is_paused_going_without_a_pool_or_has_its_address_is_left_alone() {
    type Change = fn(&mut Facts);
    let changes: [(&str, Change); 6] = [
        ("its Cluster is paused", |facts| facts.cluster.as_mut().unwrap().paused = true),
        ("its Cluster is not known", |facts| facts.cluster = None),
        ("it is paused", |facts| {
            facts.object.metadata.annotations = Some([(names::PAUSED.to_owned(), String::new())].into());
        }),
        ("it is going", |facts| {
            facts.object.metadata.deletion_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        }),
        ("it names no pool", |facts| facts.object.spec.static_ip.as_mut().unwrap().pool_ref = None),
        ("it has its address", |facts| facts.object.spec.static_ip.as_mut().unwrap().ip = Some("10.0.0.1".to_owned())),
    ];
    for (what, change) in changes {
        let mut facts = given("10.0.3.9", Some(22));
        change(&mut facts);
        assert_eq!(decide(&facts), Plan::Nothing, "{what}");
        assert!(!concerns(&facts.object, facts.cluster.as_ref()), "{what}");
    }
}

#[test]
fn an_address_that_goes_back_to_its_pool_is_not_written_and_another_is_claimed_once_it_is_back() {
    let ending = || Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
    let mut going = given("10.0.3.9", Some(22));
    going.claim.as_mut().unwrap().metadata.deletion_timestamp = ending();
    assert_eq!(decide(&going), Plan::Wait, "somebody removed the claim, and its provider holds it until the address is back");
    let mut of_a_predecessor = going.clone();
    of_a_predecessor.claim.as_mut().unwrap().metadata.owner_references = None;
    assert_eq!(decide(&of_a_predecessor), Plan::Wait, "nobody has to be told of what goes by itself");
    let mut taken_back = given("10.0.3.9", Some(22));
    taken_back.address.as_mut().unwrap().metadata.deletion_timestamp = ending();
    assert_eq!(decide(&taken_back), Plan::Wait);
    going.claim = None;
    assert!(matches!(decide(&going), Plan::Claim(_)));
}

#[test]
fn what_is_not_ours_or_makes_no_sense_is_refused_with_what_to_do() {
    let mut foreign = given("10.0.3.9", Some(22));
    foreign.claim.as_mut().unwrap().metadata.owner_references = None;
    let mut elsewhere = given("10.0.3.9", Some(22));
    elsewhere.claim.as_mut().unwrap().spec.pool_ref.name = "other".to_owned();
    let mut others = given("10.0.3.9", Some(22));
    others.address.as_mut().unwrap().spec.claim_ref.name = "m2".to_owned();
    for (facts, expected) in [
        (foreign, "belongs to another object: remove it"),
        (elsewhere, "remove the claim to let it ask there"),
        (others, "was given to claim m2"),
        (given("ten", None), "\"ten\", which is no address"),
    ] {
        let Plan::Refuse { words } = decide(&facts) else { panic!("{expected}") };
        assert!(words.contains(expected), "{words}");
    }
}
