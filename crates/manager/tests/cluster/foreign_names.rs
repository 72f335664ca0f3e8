//! Names that are somebody else's: another cluster's, or a person's.

use crate::world::{World, quiet};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

fn second(world: &World) -> Value {
    world.server.objects("maasclusters").into_iter().find(|object| object["metadata"]["name"] == "two").unwrap_or_default()
}

/// Reason and message.
fn why_second_is_not_ready(world: &World) -> (String, String) {
    let conditions = second(world)["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
    (ready["reason"].as_str().unwrap_or_default().to_owned(), ready["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_asks_for_the_name_of_another_one_does_not_get_it_and_changes_nothing() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.until("it leads to the machine", |world| world.is_provisioned() && world.addresses() == ["10.20.0.11"]).await;
            quiet().await;
            world.forget_calls();
            let name = world.names()[0].0.clone();
            world
                .another_cluster("two", &json!({}), &json!({"dnsDomain": "maas", "controlPlaneEndpoint": {"host": name, "port": 6443}}))
                .await;
            world.until("it is told", |world| why_second_is_not_ready(world).0 == "DNSNameTaken").await;
            let message = why_second_is_not_ready(&world).1;
            assert!(message.contains("is that of the MaasCluster rack/one"), "{message}");
            sleep(Duration::from_mins(30)).await;
            assert!(second(&world)["metadata"]["annotations"]["metalshift.io/endpoint"].is_null(), "nothing is on record");
            world.delete("MaasCluster", "two").await;
            world.until("it is gone", |world| second(world).is_null()).await;
            assert_eq!((world.addresses(), world.writes()), (vec!["10.20.0.11".to_owned()], vec![]));
            assert_eq!(world.condition("LoadBalancerReady"), "True/LoadBalancerReady");
        })
        .await;
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
            world.until("it is told", |world| why_second_is_not_ready(world).0 == "DNSNameTaken").await;
            world.delete("MaasCluster", "one").await;
            world.until("the other has it", |world| second(world)["status"]["initialization"]["provisioned"] == Value::Bool(true)).await;
            assert_eq!(world.names(), [("api.maas".to_owned(), vec![])]);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_person_has_in_a_record_that_was_asked_for_stays_there() {
    let world = World::new();
    world
        .play(async {
            let theirs = ["10.20.0.200", "10.20.0.201"];
            let addresses = theirs.map(|ip| ip.parse().unwrap());
            let ttl = Some(maas_client::TimeToLive(300));
            world.person().dns_resources().create("api.maas", ttl, &addresses).await.unwrap();
            world.forget_calls();
            world.cluster(json!({"controlPlaneEndpoint": {"host": "api.maas", "port": 6443}}), json!({}), json!({})).await;
            world.until("it is provisioned", World::is_provisioned).await;
            quiet().await;
            assert_eq!((world.addresses(), world.writes()), (theirs.map(str::to_owned).into(), vec![]), "nobody serves yet");
            world.control_plane("a", &["10.20.0.11"]).await;
            world.control_plane("b", &["10.20.0.80"]).await;
            let all = ["10.20.0.11", "10.20.0.200", "10.20.0.201", "10.20.0.80"];
            world.until("it leads to the machines too", |world| world.addresses() == all).await;
            quiet().await;
            assert_eq!(world.one()["status"]["network"]["addresses"], json!(["10.20.0.11", "10.20.0.80"]));
            world.delete("MaasMachine", "a").await;
            world.until("the machine has left it", |world| world.addresses() == all[1..]).await;
            world.delete("MaasMachine", "b").await;
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert_eq!(world.names(), [("api.maas".to_owned(), theirs.map(str::to_owned).into())]);
            assert_eq!(world.reserved(), theirs.map(str::to_owned).into(), "what they had reserved stays reserved, and nothing else");
            assert_eq!(world.emulator.world(|world| world.names.values().next().unwrap().address_ttl), Some(300));
        })
        .await;
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

#[tokio::test(start_paused = true)]
async fn a_name_that_was_asked_for_and_was_there_is_used_and_stays_without_addresses() {
    let world = World::new();
    world
        .play(async {
            world.person().dns_resources().create("api.maas", None, &[]).await.unwrap();
            world.cluster(json!({"controlPlaneEndpoint": {"host": "api.maas", "port": 6443}}), json!({}), json!({})).await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.until("it leads to the machine", |world| world.addresses() == ["10.20.0.11"]).await;
            world.delete("MaasMachine", "a").await;
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert_eq!(world.names(), [("api.maas".to_owned(), vec![])]);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_copied_manifest_does_not_get_the_name_of_the_original() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.until("it is provisioned", World::is_provisioned).await;
            let one = world.one();
            world.forget_calls();
            world.another_cluster("two", &one["metadata"]["annotations"], &one["spec"]).await;
            quiet().await;
            assert_eq!((why_second_is_not_ready(&world).0, world.writes()), ("DNSNameTaken".to_owned(), vec![]));
        })
        .await;
}
