//! Where the API server is reached: every way the address comes to be.

use crate::world::{World, quiet};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn s01_a_cluster_gets_one_name_with_a_short_life_and_the_port_of_its_api_server() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.until("it is provisioned", World::is_provisioned).await;
            quiet().await;
            let names = world.names();
            let [(name, addresses)] = names.as_slice() else { panic!("{names:?}") };
            let suffix = name.strip_prefix("one-").and_then(|rest| rest.strip_suffix(".maas")).unwrap();
            assert!(suffix.len() == 6 && suffix.chars().all(|digit| digit.is_ascii_hexdigit()), "{name}");
            assert!(addresses.is_empty());
            let endpoint = &world.one()["spec"]["controlPlaneEndpoint"];
            assert_eq!(*endpoint, json!({"host": name, "port": 6443}));
            assert_eq!(world.one()["status"]["network"]["dnsName"], *name);
            let ttl = world.emulator.world(|world| world.names.values().next().unwrap().address_ttl);
            assert_eq!(ttl, Some(10));
            assert_eq!(world.condition("LoadBalancerReady"), "True/LoadBalancerReady");
            assert_eq!(world.condition("APIServerAvailable"), "False/APIServerNotReady");
            assert_eq!(world.condition("Ready"), "False/APIServerNotReady");
            assert_eq!(world.one()["status"]["ready"], Value::Bool(true));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s02_an_endpoint_given_on_the_cluster_is_kept_and_its_name_is_made_if_it_lies_in_the_domain() {
    for (host, made) in [("api.maas", true), ("api.elsewhere.example", false), ("deep.api.maas", false), ("192.0.2.9", false)] {
        let world = World::new();
        world
            .play(async {
                let given = json!({"controlPlaneEndpoint": {"host": host, "port": 7443}});
                world.cluster(given, json!({}), json!({})).await;
                world.until("it is provisioned", World::is_provisioned).await;
                quiet().await;
                assert_eq!(world.one()["spec"]["controlPlaneEndpoint"], json!({"host": host, "port": 7443}));
                let names: Vec<String> = world.names().into_iter().map(|(name, _)| name).collect();
                assert_eq!(names, if made { vec![host.to_owned()] } else { Vec::new() });
                assert_eq!(world.condition("LoadBalancerReady"), "True/LoadBalancerReady");
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn s02_an_endpoint_given_on_the_infrastructure_gets_the_port_of_the_cluster() {
    let world = World::new();
    world
        .play(async {
            let network = json!({"clusterNetwork": {"apiServerPort": 8443}});
            world.cluster(network, json!({}), json!({"controlPlaneEndpoint": {"host": "api.maas"}})).await;
            world.until("it is provisioned", World::is_provisioned).await;
            assert_eq!(world.one()["spec"]["controlPlaneEndpoint"], json!({"host": "api.maas", "port": 8443}));
            assert_eq!(world.names()[0].0, "api.maas");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s03_a_custom_endpoint_needs_no_call_about_dns_at_all() {
    let world = World::new();
    world
        .play(async {
            let custom = json!({"annotations": {"spectrocloud.com/custom-dns-provided": ""}});
            world.cluster(json!({}), custom, json!({"controlPlaneEndpoint": {"host": "api.corp.example"}})).await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.until("it is provisioned", World::is_provisioned).await;
            quiet().await;
            assert_eq!(world.one()["spec"]["controlPlaneEndpoint"], json!({"host": "api.corp.example", "port": 6443}));
            assert_eq!((world.calls("dnsresources"), world.writes()), (vec![], vec![]));
            world.delete("MaasMachine", "a").await;
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert_eq!((world.calls("dnsresources"), world.writes()), (vec![], vec![]));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s03_a_custom_endpoint_that_nobody_gave_yet_is_awaited() {
    let world = World::new();
    world
        .play(async {
            world.cluster(json!({}), json!({"annotations": {"spectrocloud.com/custom-dns-provided": ""}}), json!({})).await;
            world.until("it waits", |world| world.condition("LoadBalancerReady") == "False/WaitForEndpoint").await;
            assert!(!world.is_provisioned());
            world.patch("MaasCluster", "one", json!({"spec": {"controlPlaneEndpoint": {"host": "api.corp.example", "port": 443}}})).await;
            world.until("it is provisioned", World::is_provisioned).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn row_10_a_hosted_cluster_invents_no_endpoint_and_waits_for_that_of_the_cluster() {
    let world = World::new();
    world
        .play(async {
            world.cluster(json!({}), json!({}), json!({"endpoint": {"mode": "Hosted"}})).await;
            world.until("it waits", |world| world.condition("LoadBalancerReady") == "False/WaitForEndpoint").await;
            quiet().await;
            assert!(!world.is_provisioned() && world.one()["spec"].get("controlPlaneEndpoint").is_none());
            world.patch("Cluster", "one", json!({"spec": {"controlPlaneEndpoint": {"host": "hosted.example", "port": 443}}})).await;
            world.until("it is provisioned", World::is_provisioned).await;
            quiet().await;
            assert!(world.one()["spec"].get("controlPlaneEndpoint").is_none());
            assert_eq!((world.calls("dnsresources"), world.writes()), (vec![], vec![]));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_plain_user_gets_an_address_reserved_and_it_is_freed_with_the_cluster() {
    let world = World::of_user(crate::world::PLAIN);
    world
        .play(async {
            world.cluster(json!({}), json!({}), json!({"endpoint": {"mode": "VIP", "vip": {"subnet": "10.20.0.0/24"}}})).await;
            world.until("it is provisioned", World::is_provisioned).await;
            quiet().await;
            let reserved: Vec<String> = world.reserved().into_iter().collect();
            let endpoint = world.one()["spec"]["controlPlaneEndpoint"].clone();
            assert_eq!(endpoint, json!({"host": reserved[0], "port": 6443}));
            assert_eq!(world.one()["status"]["network"]["reservedAddress"], reserved[0]);
            assert_eq!((reserved.len(), world.names()), (1, vec![]));
            world.control_plane("a", &["10.20.0.11"]).await;
            quiet().await;
            assert_eq!((world.names(), world.writes().len()), (vec![], 1), "only the address was reserved: {:?}", world.writes());
            world.delete("MaasMachine", "a").await;
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert!(world.reserved().is_empty());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_asked_for_is_reserved_and_one_that_somebody_has_is_not_taken() {
    for (address, reason) in [("10.20.0.77", "True/LoadBalancerReady"), ("10.20.0.11", "False/AddressTaken")] {
        let world = World::of_user(crate::world::PLAIN);
        world
            .play(async {
                world
                    .cluster(json!({}), json!({}), json!({"endpoint": {"mode": "VIP", "vip": {"subnet": "racks", "address": address}}}))
                    .await;
                world.until("the address is judged", |world| world.condition("LoadBalancerReady") == reason).await;
                quiet().await;
                assert_eq!(world.is_provisioned(), reason.starts_with("True"));
                assert!(world.writes().len() < 8, "{:?}", world.writes());
                world.delete("MaasCluster", "one").await;
                world.until("it is gone", |world| world.one().is_null()).await;
                assert!(world.reserved().is_empty());
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_a_person_reserved_for_it_is_used_and_stays() {
    let world = World::new();
    world
        .play(async {
            let wish = maas_client::Reserve { ip: Some("10.20.0.78".parse().unwrap()), ..maas_client::Reserve::default() };
            world.person().ip_addresses().reserve(&wish).await.unwrap();
            world
                .cluster(json!({}), json!({}), json!({"endpoint": {"mode": "VIP", "vip": {"subnet": "racks", "address": "10.20.0.78"}}}))
                .await;
            world.until("it is provisioned", World::is_provisioned).await;
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert_eq!(world.reserved().len(), 1);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_a_person_reserved_and_freed_is_ours_once_we_reserve_it_again() {
    let world = World::new();
    world
        .play(async {
            let address = "10.20.0.78".parse().unwrap();
            let wish = maas_client::Reserve { ip: Some(address), ..maas_client::Reserve::default() };
            world.person().ip_addresses().reserve(&wish).await.unwrap();
            world
                .cluster(json!({}), json!({}), json!({"endpoint": {"mode": "VIP", "vip": {"subnet": "racks", "address": "10.20.0.78"}}}))
                .await;
            world.until("it is provisioned", World::is_provisioned).await;
            world.person().ip_addresses().release(address, false).await.unwrap();
            world.until("it is reserved again", |world| world.reserved().len() == 1).await;
            quiet().await;
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            assert!(world.reserved().is_empty());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_plain_user_without_a_way_to_write_dns_is_told_what_to_do() {
    let world = World::of_user(crate::world::PLAIN);
    world
        .play(async {
            world.plain_cluster().await;
            world.until("it is told", |world| world.condition("LoadBalancerReady") == "False/DNSRightsMissing").await;
            assert!(world.message("LoadBalancerReady").contains("VIP"), "{}", world.message("LoadBalancerReady"));
            quiet().await;
            assert_eq!((world.is_provisioned(), world.writes()), (false, vec![]));
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn row_08_and_row_09_the_endpoint_is_complete_before_anybody_hears_that_it_is_provisioned() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.until("it is provisioned", World::is_provisioned).await;
            let writes = world.kubernetes_writes();
            let endpoint = writes.iter().position(|write| write.contains("controlPlaneEndpoint") && !write.contains("/status")).unwrap();
            let provisioned = writes.iter().position(|write| write.contains("\"provisioned\":true")).unwrap();
            assert!(endpoint < provisioned, "{writes:#?}");
            assert!(writes.iter().all(|write| !write.contains("\"host\":\"\"") && !write.contains("\"port\":0")), "{writes:#?}");
            assert!(writes.iter().all(|write| write.starts_with("PATCH ")), "{writes:#?}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn row_15_the_finalizer_and_the_name_are_on_the_object_before_maas_is_told_anything() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.until("the first write arrives", |world| !world.writes().is_empty()).await;
            let one = world.one();
            assert!(one["metadata"]["finalizers"].as_array().unwrap().contains(&json!("infrastructure.cluster.x-k8s.io/maascluster")));
            assert!(one["metadata"]["annotations"]["metalshift.io/endpoint"].as_str().unwrap().contains("\"name\":\"one-"));
        })
        .await;
}
