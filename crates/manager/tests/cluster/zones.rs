//! The zones that machines are spread over.

use crate::world::{Behaviour, World, quiet};
use serde_json::{Value, json};

fn domains(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name, "controlPlane": true})).collect()
}

#[tokio::test(start_paused = true)]
async fn s35_and_row_11_zones_are_a_list_and_a_map_of_older_providers_is_replaced() {
    let world = World::new();
    world
        .play(async {
            world.cluster(json!({"paused": true}), json!({}), json!({"failureDomains": ["az2", "az1"]})).await;
            world.patch_status("MaasCluster", "one", json!({"failureDomains": {"az1": {"controlPlane": true}}})).await;
            world.patch("Cluster", "one", json!({"spec": {"paused": false}})).await;
            world.until("it is provisioned", World::is_provisioned).await;
            assert_eq!(world.one()["status"]["failureDomains"], domains(&["az1", "az2"]));
            assert_eq!(world.condition("FailureDomainsReady"), "True/FailureDomainsReady");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn row_12_zones_are_shown_only_after_maas_told_them_and_always_in_the_same_order() {
    let world = World::new();
    world
        .play(async {
            world.maas_behaves(Behaviour::Refuses);
            world.cluster(json!({}), json!({}), json!({"failureDomains": ["az2", "az1"]})).await;
            world.until("it is told", |world| world.condition("MaasAvailable") == "False/MaasUnavailable").await;
            assert_eq!(world.one()["status"].get("failureDomains"), None);
            assert!(!world.is_provisioned());
            world.maas_behaves(Behaviour::Answers);
            world.until("it is provisioned", World::is_provisioned).await;
            let first = world.one()["status"]["failureDomains"].clone();
            assert_eq!(first, domains(&["az1", "az2"]));
            world.patch("MaasCluster", "one", json!({"spec": {"failureDomains": ["az1", "az2"]}})).await;
            quiet().await;
            assert_eq!(world.one()["status"]["failureDomains"], first);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_maas_does_not_have_is_told_and_the_others_are_used() {
    let world = World::new();
    world
        .play(async {
            world.cluster(json!({}), json!({}), json!({"failureDomains": ["az1", "moon"]})).await;
            world.until("it is provisioned", World::is_provisioned).await;
            assert_eq!(world.one()["status"]["failureDomains"], domains(&["az1"]));
            assert_eq!(world.condition("FailureDomainsReady"), "False/ZoneNotFound");
            let message = world.message("FailureDomainsReady");
            assert!(message.contains("moon") && message.contains("az1, az2"), "{message}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn without_a_wish_all_zones_with_machines_are_found() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.until("it is provisioned", World::is_provisioned).await;
            assert_eq!(world.one()["status"]["failureDomains"], domains(&["az1", "az2"]), "neither the empty zone nor the default one");
            tokio::time::sleep(std::time::Duration::from_mins(50)).await;
            let lists = world.calls("machines/").len();
            assert!(lists <= 1, "all machines were listed {lists} times");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn however_many_clusters_there_are_all_machines_are_listed_once_and_again_when_zones_come() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            for name in ["two", "three", "four"] {
                world.another_cluster(name, &json!({}), &json!({"dnsDomain": "maas"})).await;
            }
            let found = |world: &World, expected: &Value| {
                let all = world.server.objects("maasclusters");
                all.len() == 4 && all.iter().all(|object| object["status"]["failureDomains"] == *expected)
            };
            world.until("all have zones", |world| found(world, &domains(&["az1", "az2"]))).await;
            tokio::time::sleep(std::time::Duration::from_mins(50)).await;
            assert_eq!(world.calls("machines/").len(), 1, "{:?}", world.calls("machines/"));
            world.forget_calls();
            world.person().zones().create("az3", "").await.unwrap();
            tokio::time::sleep(std::time::Duration::from_mins(8)).await;
            assert_eq!(world.calls("machines/").len(), 1, "{:?}", world.calls("machines/"));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn row_07_both_words_for_provisioned_are_said() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.until("it is provisioned", World::is_provisioned).await;
            let status = &world.one()["status"];
            assert_eq!((&status["ready"], &status["initialization"]["provisioned"]), (&Value::Bool(true), &Value::Bool(true)));
        })
        .await;
}
