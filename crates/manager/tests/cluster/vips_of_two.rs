//! One address that two clusters want.

use crate::world::{World, condition, quiet};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const ADDRESS: &str = "10.20.0.77";

fn asking() -> Value {
    json!({"dnsDomain": "maas", "endpoint": {"mode": "VIP", "vip": {"subnet": "racks", "address": ADDRESS}}})
}

fn second(world: &World) -> Value {
    world.seen("maasclusters", "two")
}

fn is_told(object: &Value) -> bool {
    condition(object, "LoadBalancerReady")["reason"] == "AddressTaken"
}

fn is_provisioned(object: &Value) -> bool {
    object["status"]["initialization"]["provisioned"] == Value::Bool(true)
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_asks_for_the_address_of_another_one_or_was_copied_from_it_does_not_get_it_and_does_not_free_it() {
    for copied in [false, true] {
        let world = World::of_user(crate::world::PLAIN);
        world
            .play(async {
                world.cluster(json!({}), json!({}), asking()).await;
                world.until("it is provisioned", World::is_provisioned).await;
                quiet().await;
                world.forget_calls();
                let one = world.one();
                let (annotations, spec) =
                    if copied { (one["metadata"]["annotations"].clone(), one["spec"].clone()) } else { (json!({}), asking()) };
                world.another_cluster("two", &annotations, &spec).await;
                world.until("it is told", |world| is_told(&second(world))).await;
                let message = condition(&second(&world), "Ready")["message"].as_str().unwrap().to_owned();
                let whose = if copied { "was copied from another one" } else { "is that of the MaasCluster rack/one" };
                assert!(message.contains(whose), "{message}");
                sleep(Duration::from_mins(30)).await;
                assert!(!is_provisioned(&second(&world)));
                let on_record = &second(&world)["metadata"]["annotations"]["metalshift.io/endpoint"];
                assert_eq!(*on_record, annotations["metalshift.io/endpoint"], "nothing new is on record");
                world.delete("MaasCluster", "two").await;
                world.until("it is gone", |world| second(world).is_null()).await;
                assert_eq!((world.reserved(), world.writes()), ([ADDRESS.to_owned()].into(), vec![]));
                assert_eq!(world.condition("LoadBalancerReady"), "True/LoadBalancerReady");
            })
            .await;
    }
}

/// Of two that come at the same time one gets the address, and the other gets it when that one is gone. `stays` if a person reserved it.
async fn one_after_the_other(world: &World, stays: bool) {
    world.cluster(json!({}), json!({}), asking()).await;
    world.another_cluster("two", &json!({}), &asking()).await;
    let both = |world: &World| [("one", world.one()), ("two", second(world))];
    world.until("one of them has it", |world| both(world).iter().any(|(_, object)| is_provisioned(object))).await;
    world.until("the other is told", |world| both(world).iter().any(|(_, object)| is_told(object))).await;
    sleep(Duration::from_mins(10)).await;
    let winners: Vec<&str> = both(world).iter().filter(|(_, object)| is_provisioned(object)).map(|(name, _)| *name).collect();
    assert_eq!(winners, ["one"], "the older one");
    let hosts: Vec<Value> = both(world).iter().map(|(_, object)| object["spec"]["controlPlaneEndpoint"]["host"].clone()).collect();
    assert_eq!(hosts, [json!(ADDRESS), Value::Null]);
    world.delete("MaasCluster", "one").await;
    world.until("the other has it", |world| world.one().is_null() && is_provisioned(&second(world))).await;
    quiet().await;
    assert_eq!(world.reserved(), [ADDRESS.to_owned()].into());
    world.delete("MaasCluster", "two").await;
    world.until("it is gone", |world| second(world).is_null()).await;
    assert_eq!(world.reserved().len(), usize::from(stays));
}

#[tokio::test(start_paused = true)]
async fn of_two_that_want_the_same_address_one_gets_it_and_the_other_when_that_one_is_gone() {
    let world = World::of_user(crate::world::PLAIN);
    world.play(one_after_the_other(&world, false)).await;
}

#[tokio::test(start_paused = true)]
async fn of_two_that_want_what_a_person_reserved_one_gets_it_and_the_other_when_that_one_is_gone() {
    let world = World::new();
    let living = async {
        let wish = maas_client::Reserve { ip: Some(ADDRESS.parse().unwrap()), ..maas_client::Reserve::default() };
        world.person().ip_addresses().reserve(&wish).await.unwrap();
        one_after_the_other(&world, true).await;
    };
    world.play(living).await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_another_user_reserved_is_not_taken_and_stays() {
    let world = World::of_user(crate::world::PLAIN);
    world
        .play(async {
            let wish = maas_client::Reserve { ip: Some(ADDRESS.parse().unwrap()), ..maas_client::Reserve::default() };
            world.person().ip_addresses().reserve(&wish).await.unwrap();
            world.cluster(json!({}), json!({}), asking()).await;
            world.until("it is told", |world| is_told(&world.one())).await;
            quiet().await;
            assert!(!world.is_provisioned());
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert_eq!(world.reserved(), [ADDRESS.to_owned()].into());
        })
        .await;
}
