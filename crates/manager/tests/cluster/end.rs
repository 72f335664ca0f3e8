//! The end of a cluster, and what keeps it from being touched at all.

use crate::world::{Behaviour, World, quiet};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn s09_a_cluster_that_goes_leaves_no_name_and_no_address() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.80"]).await;
            world.until("it leads to the machine", |world| world.is_provisioned() && world.addresses() == ["10.20.0.80"]).await;
            quiet().await;
            world.delete("MaasCluster", "one").await;
            quiet().await;
            assert_eq!(world.condition("Deleting"), "True/WaitingForMachines");
            assert_eq!((world.names().len(), world.one()["metadata"]["finalizers"].as_array().unwrap().len()), (1, 1));
            world.delete("MaasMachine", "a").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert_eq!((world.names(), world.reserved().len()), (vec![], 0));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_never_asked_maas_for_anything_goes_although_maas_is_away() {
    let world = World::new();
    world
        .play(async {
            world.maas_behaves(Behaviour::Refuses);
            world.plain_cluster().await;
            world.until("it is told", |world| world.condition("MaasAvailable") == "False/MaasUnavailable").await;
            assert_eq!(world.condition("LoadBalancerReady"), "False/MaasUnavailable");
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn row_16_nothing_is_let_go_while_maas_is_away_or_is_none() {
    for (behaviour, reason) in [(Behaviour::Refuses, "MaasUnavailable"), (Behaviour::IsAnotherProgram, "NotMaas")] {
        let world = World::new();
        world
            .play(async {
                world.plain_cluster().await;
                world.until("it is provisioned", World::is_provisioned).await;
                world.maas_behaves(behaviour);
                world.delete("MaasCluster", "one").await;
                world.until("it is told", |world| world.condition("MaasAvailable") == format!("False/{reason}")).await;
                let before = world.attempts();
                sleep(Duration::from_mins(30)).await;
                assert!(world.attempts() - before < 100, "{} attempts in half an hour", world.attempts() - before);
                assert_eq!((world.names().len(), world.one().is_null()), (1, false));
                world.maas_behaves(Behaviour::Answers);
                world.until("it is gone", |world| world.one().is_null()).await;
                assert!(world.names().is_empty());
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_flaps_while_maas_is_away() {
    for behaviour in [Behaviour::Refuses, Behaviour::IsAnotherProgram] {
        let world = World::new();
        world
            .play(async {
                world.plain_cluster().await;
                world.control_plane("a", &["10.20.0.11"]).await;
                world.until("it leads to the machine", |world| world.is_provisioned() && world.addresses() == ["10.20.0.11"]).await;
                quiet().await;
                let before = world.one()["status"].clone();
                world.maas_behaves(behaviour);
                world.until("it is told", |world| world.condition("MaasAvailable").starts_with("False/")).await;
                let writes = world.kubernetes_writes().len();
                sleep(Duration::from_hours(1)).await;
                let now = world.one()["status"].clone();
                for part in ["network", "failureDomains", "initialization", "ready"] {
                    assert_eq!(now[part], before[part], "{part}");
                }
                assert_eq!(world.condition("LoadBalancerReady"), "True/LoadBalancerReady");
                assert!(world.kubernetes_writes().len() - writes <= 1, "{} writes in an hour", world.kubernetes_writes().len() - writes);
                world.maas_behaves(Behaviour::Answers);
                world.until("it is told", |world| world.condition("MaasAvailable") == "True/MaasAvailable").await;
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn s36_and_row_19_a_paused_cluster_is_not_touched_also_when_it_goes() {
    for (cluster, infrastructure) in
        [(json!({"paused": true}), json!({})), (json!({}), json!({"annotations": {"cluster.x-k8s.io/paused": ""}}))]
    {
        let world = World::new();
        world
            .play(async {
                world.cluster(cluster, infrastructure, json!({})).await;
                world.until("it is told", |world| world.condition("Paused") == "True/Paused").await;
                quiet().await;
                assert_eq!(world.calls(""), Vec::<String>::new());
                assert_eq!(world.one()["metadata"].get("finalizers"), None);
                world
                    .patch("MaasCluster", "one", json!({"metadata": {"finalizers": ["infrastructure.cluster.x-k8s.io/maascluster"]}}))
                    .await;
                world.delete("MaasCluster", "one").await;
                quiet().await;
                assert_eq!((world.calls("").len(), world.one().is_null()), (0, false));
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn row_20_it_goes_on_when_only_the_cluster_is_not_paused_any_more() {
    let world = World::new();
    world
        .play(async {
            world.cluster(json!({"paused": true}), json!({}), json!({})).await;
            world.until("it is told", |world| world.condition("Paused") == "True/Paused").await;
            world.patch("Cluster", "one", json!({"spec": {"paused": false}})).await;
            world.until("it is provisioned", World::is_provisioned).await;
            assert_eq!(world.condition("Paused"), "False/NotPaused");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn row_18_what_another_program_reconciles_is_never_written() {
    for metadata in
        [json!({"annotations": {"cluster.x-k8s.io/managed-by": ""}}), json!({"labels": {"cluster.x-k8s.io/managed-by": "other"}})]
    {
        let world = World::new();
        world
            .play(async {
                world.cluster(json!({}), metadata, json!({})).await;
                let before = world.one()["metadata"]["resourceVersion"].clone();
                sleep(Duration::from_mins(30)).await;
                assert_eq!((world.one()["metadata"]["resourceVersion"].clone(), world.calls("").len()), (before, 0));
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn row_13_without_an_owner_nothing_happens() {
    let world = World::new();
    world
        .play(async {
            world.create("MaasCluster", json!({"metadata": {"name": "one"}, "spec": {"dnsDomain": "maas"}})).await;
            sleep(Duration::from_mins(30)).await;
            assert_eq!((world.kubernetes_writes().len(), world.attempts()), (0, 0));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_go_provider_is_taken_over_with_its_name_and_leaves_nothing() {
    let world = World::new();
    world
        .play(async {
            let person = world.person();
            let name = "one-abcdef.maas";
            let addresses = ["10.20.0.11".parse().unwrap(), "10.20.0.90".parse().unwrap()];
            person.dns_resources().create(name, Some(maas_client::TimeToLive(10)), &addresses).await.unwrap();
            world.forget_calls();
            let endpoint = json!({"host": name, "port": 6443});
            let cluster = json!({"controlPlaneEndpoint": endpoint, "paused": true});
            let finalizers = json!({"finalizers": ["maascluster.infrastructure.cluster.x-k8s.io"]});
            world.cluster(cluster, finalizers, json!({"controlPlaneEndpoint": endpoint, "failureDomains": ["az1"]})).await;
            let status = json!({"ready": true, "initialization": {"provisioned": true}, "network": {"dnsName": name}, "failureDomains": {"az1": {"controlPlane": true}}});
            world.patch_status("MaasCluster", "one", status).await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.control_plane("b", &["10.20.0.90"]).await;
            world.patch("Cluster", "one", json!({"spec": {"paused": false}})).await;
            quiet().await;
            assert_eq!(world.writes(), Vec::<String>::new(), "taken over without a write");
            assert_eq!(world.one()["status"]["failureDomains"], json!([{"name": "az1", "controlPlane": true}]));
            assert_eq!(world.one()["status"]["network"]["addresses"], json!(["10.20.0.11", "10.20.0.90"]));
            for machine in ["a", "b"] {
                world.delete("MaasMachine", machine).await;
            }
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert_eq!((world.names(), world.reserved().len()), (vec![], 0));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_go_provider_that_goes_at_once_leaves_nothing_either() {
    let world = World::new();
    world
        .play(async {
            let name = "one-abcdef.maas";
            world.person().dns_resources().create(name, None, &["10.20.0.90".parse().unwrap()]).await.unwrap();
            let finalizers = json!({"finalizers": ["maascluster.infrastructure.cluster.x-k8s.io"]});
            world.cluster(json!({"paused": true}), finalizers, json!({"controlPlaneEndpoint": {"host": name, "port": 6443}})).await;
            world.delete("MaasCluster", "one").await;
            world.patch("Cluster", "one", json!({"spec": {"paused": false}})).await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert_eq!((world.names(), world.reserved().len()), (vec![], 0));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_status_that_was_lost_in_a_move_is_found_again_without_making_anything() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.until("it leads to the machine", |world| world.is_provisioned() && world.addresses() == ["10.20.0.11"]).await;
            quiet().await;
        })
        .await;
    let before = world.one();
    world.forget_calls();
    world.patch_status("MaasCluster", "one", Value::Null).await;
    world
        .play(async {
            world.until("it is provisioned again", World::is_provisioned).await;
            quiet().await;
            assert_eq!(world.writes(), Vec::<String>::new());
            for part in ["network", "failureDomains", "initialization"] {
                assert_eq!(world.one()["status"][part], before["status"][part]);
            }
        })
        .await;
}
