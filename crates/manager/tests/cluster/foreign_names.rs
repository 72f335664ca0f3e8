//! Names that are somebody else's: another cluster's, or a person's.

use crate::world::{World, condition, quiet};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

fn second(world: &World) -> Value {
    world.seen("maasclusters", "two")
}

fn second_is_told(world: &World) -> bool {
    condition(&second(world), "Ready")["reason"] == "DNSNameTaken"
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_asks_for_the_name_of_another_one_or_was_copied_from_it_does_not_get_it_and_changes_nothing() {
    for copied in [false, true] {
        let world = World::new();
        world
            .play(async {
                world.plain_cluster().await;
                world.control_plane("a", &["10.20.0.11"]).await;
                world.until("it leads to the machine", |world| world.is_provisioned() && world.addresses() == ["10.20.0.11"]).await;
                quiet().await;
                world.forget_calls();
                let one = world.one();
                let asking = json!({"dnsDomain": "maas", "controlPlaneEndpoint": one["spec"]["controlPlaneEndpoint"]});
                let (annotations, spec) =
                    if copied { (one["metadata"]["annotations"].clone(), one["spec"].clone()) } else { (json!({}), asking) };
                world.another_cluster("two", &annotations, &spec).await;
                world.until("it is told", second_is_told).await;
                let message = condition(&second(&world), "Ready")["message"].as_str().unwrap().to_owned();
                let whose = if copied { "was copied from another one" } else { "is that of the MaasCluster rack/one" };
                assert!(message.contains(whose), "{message}");
                sleep(Duration::from_mins(30)).await;
                let on_record = &second(&world)["metadata"]["annotations"]["metalshift.io/endpoint"];
                assert_eq!(*on_record, annotations["metalshift.io/endpoint"], "nothing new is on record");
                world.delete("MaasCluster", "two").await;
                world.until("it is gone", |world| second(world).is_null()).await;
                assert_eq!((world.addresses(), world.writes()), (vec!["10.20.0.11".to_owned()], vec![]));
                assert_eq!(world.condition("LoadBalancerReady"), "True/LoadBalancerReady");
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_is_free_for_another_cluster_when_the_one_that_had_it_is_gone() {
    let world = World::new();
    world
        .play(async {
            let asked = json!({"dnsDomain": "maas", "controlPlaneEndpoint": {"host": "api.maas", "port": 6443}});
            world.cluster(json!({}), json!({}), asked.clone()).await;
            world.until("it is provisioned", World::is_provisioned).await;
            world.another_cluster("two", &json!({}), &asked).await;
            world.until("it is told", second_is_told).await;
            world.delete("MaasCluster", "one").await;
            world.until("the other has it", |world| second(world)["status"]["initialization"]["provisioned"] == Value::Bool(true)).await;
            assert_eq!(world.names(), [("api.maas".to_owned(), vec![])]);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_was_asked_for_and_was_there_is_used_and_stays_with_what_people_have_in_it() {
    for theirs in [vec![], vec!["10.20.0.200", "10.20.0.201"]] {
        let world = World::new();
        world
            .play(async {
                let addresses: Vec<_> = theirs.iter().map(|ip| ip.parse().unwrap()).collect();
                let ttl = Some(maas_client::TimeToLive(300));
                world.person().dns_resources().create("api.maas", ttl, &addresses).await.unwrap();
                world.forget_calls();
                world.cluster(json!({"controlPlaneEndpoint": {"host": "api.maas", "port": 6443}}), json!({}), json!({})).await;
                world.until("it is provisioned", World::is_provisioned).await;
                quiet().await;
                assert_eq!((world.addresses(), world.writes()), (owned(&theirs), vec![]), "nobody serves yet");
                world.control_plane("a", &["10.20.0.11"]).await;
                world.control_plane("b", &["10.20.0.80"]).await;
                let all = [vec!["10.20.0.11"], theirs.clone(), vec!["10.20.0.80"]].concat();
                world.until("it leads to the machines too", |world| world.addresses() == all).await;
                quiet().await;
                assert_eq!(world.one()["status"]["network"]["addresses"], json!(["10.20.0.11", "10.20.0.80"]));
                world.delete("MaasMachine", "a").await;
                world.until("the machine has left it", |world| world.addresses() == all[1..]).await;
                world.delete("MaasMachine", "b").await;
                world.delete("MaasCluster", "one").await;
                world.until("it is gone", |world| world.one().is_null()).await;
                assert_eq!(world.names(), [("api.maas".to_owned(), owned(&theirs))]);
                assert_eq!(world.reserved(), owned(&theirs).into_iter().collect(), "what they had reserved, and nothing else");
                assert_eq!(world.emulator.world(|world| world.names.values().next().unwrap().address_ttl), Some(300));
            })
            .await;
    }
}

fn owned(addresses: &[&str]) -> Vec<String> {
    addresses.iter().map(|&address| address.to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_there_already_is_not_touched_unless_somebody_asked_for_it() {
    // The name does not depend on chance, so it can be known beforehand.
    let first = World::new();
    first
        .play(async {
            first.plain_cluster().await;
            first.until("it is provisioned", World::is_provisioned).await;
        })
        .await;
    let name = first.names()[0].0.clone();
    let world = World::new();
    world
        .play(async {
            let address = "10.20.0.200".parse().unwrap();
            world.person().dns_resources().create(&name, None, &[address]).await.unwrap();
            world.forget_calls();
            world.plain_cluster().await;
            world.until("it is told", |world| world.condition("LoadBalancerReady") == "False/DNSNameTaken").await;
            quiet().await;
            assert_eq!((world.is_provisioned(), world.writes()), (false, vec![]));
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert_eq!(world.names(), [(name.clone(), vec!["10.20.0.200".to_owned()])]);
        })
        .await;
}
