//! Whom the name leads to, and what is left behind.

use crate::world::{World, not_running, quiet, running};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn s04_a_second_pass_without_a_change_writes_nothing() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.until("it leads to the machine", |world| world.is_provisioned() && world.addresses() == ["10.20.0.11"]).await;
            quiet().await;
            world.forget_calls();
            let before = world.kubernetes_writes().len();
            for value in 0..10 {
                world.patch("MaasCluster", "one", json!({"metadata": {"annotations": {"example.com/touched": value.to_string()}}})).await;
                sleep(Duration::from_mins(6)).await;
            }
            assert!(world.calls("dnsresources").len() >= 10, "passes were made");
            assert_eq!(world.writes(), Vec::<String>::new());
            assert_eq!(world.kubernetes_writes().len(), before);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_control_plane_makes_no_storm_of_calls() {
    // Seen in another provider: 37,372 calls in 20 seconds while the API server answered before the control plane was initialized.
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            for (name, address) in MACHINES {
                world.control_plane(name, &[address]).await;
                world
                    .patch_status("MaasMachine", name, json!({"phase": "Pending", "machineState": null, "addresses": [], "conditions": []}))
                    .await;
                world.node(name, false, 0).await;
            }
            world.until("it is provisioned", World::is_provisioned).await;
            world.create("Secret", json!({"metadata": {"name": "one-kubeconfig"}, "data": {"value": "YQ=="}})).await;
            world.until("the API server answers", |world| world.condition("APIServerAvailable") == "True/APIServerAvailable").await;
            assert!(world.addresses().is_empty() && world.server.objects("clusters")[0]["status"]["initialization"].is_null());
            quiet().await;
            world.forget_calls();
            for beat in 0..200_usize {
                for (number, (name, address)) in MACHINES.into_iter().enumerate() {
                    // Each changes its phase or its address every two seconds, and between that only what concerns nobody.
                    if let Some(change) = beat.checked_sub(5 * number).filter(|beat| beat.is_multiple_of(20)) {
                        world.patch_status("MaasMachine", name, lives(change / 20, address)).await;
                    }
                    world.patch_status("MaasMachine", name, json!({"hostname": format!("host-{beat}")})).await;
                    world.node(name, true, beat).await;
                    world.patch("Cluster", "one", json!({"metadata": {"annotations": {"example.com/beat": beat.to_string()}}})).await;
                }
                sleep(Duration::from_millis(100)).await;
            }
            let (calls, writes) = (world.calls(""), world.writes());
            assert_eq!(world.addresses(), MACHINES.map(|(_, address)| address.to_owned()));
            // One look for each of the 30 changes; for each machine that comes to serve what is reserved is read, and the record is written.
            assert!(calls.len() <= 30 + 2 * MACHINES.len(), "{} calls in 20 s: {calls:#?}", calls.len());
            assert_eq!(writes.len(), MACHINES.len(), "{writes:?}");
            world.forget_calls();
            quiet().await;
            assert_eq!(world.writes(), Vec::<String>::new(), "and then it is over");
        })
        .await;
}

const MACHINES: [(&str, &str); 3] = [("a", "10.20.0.51"), ("b", "10.20.0.52"), ("c", "10.20.0.53")];

/// The status of a machine on its way from nothing to being deployed, by how often it has changed.
fn lives(changes: usize, address: &str) -> Value {
    let not_yet = |phase: &str, state: &str, addresses: &[&str]| {
        let mut status = not_running(addresses, "MachineDeploying");
        (status["phase"], status["machineState"]) = (json!(phase), json!(state));
        status
    };
    match changes {
        0 => not_yet("Allocating", "Ready", &[]),
        1 => not_yet("Allocated", "Allocated", &[]),
        2 => not_yet("Allocated", "Allocated", &[address]),
        3 => not_yet("Deploying", "Deploying", &[]),
        4 => not_yet("Deploying", "Deploying", &[address]),
        5 => not_yet("Deploying", "Deploying", &[address, "192.168.122.1"]),
        6 => not_yet("Deploying", "Deployed", &[address]),
        8 => running(&[address, "192.168.122.1"]),
        7 | 9.. => running(&[address]),
    }
}

#[tokio::test(start_paused = true)]
async fn s05_a_control_plane_without_power_keeps_its_name() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.control_plane("b", &["10.20.0.12"]).await;
            world.until("it leads to both", |world| world.is_provisioned() && world.addresses() == ["10.20.0.11", "10.20.0.12"]).await;
            quiet().await;
            world.patch_status("MaasMachine", "a", not_running(&["10.20.0.11"], "MachinePoweredOff")).await;
            world.until("it leads to one", |world| world.addresses() == ["10.20.0.12"]).await;
            world.forget_calls();
            world.patch_status("MaasMachine", "b", not_running(&["10.20.0.12"], "MachinePoweredOff")).await;
            sleep(Duration::from_mins(20)).await;
            assert_eq!((world.addresses(), world.writes()), (vec!["10.20.0.12".to_owned()], vec![]));
            world.patch_status("MaasMachine", "a", running(&["10.20.0.11"])).await;
            world.until("it leads to the one that is back", |world| world.addresses() == ["10.20.0.11"]).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s06_a_name_is_emptied_when_no_machine_of_the_control_plane_remains() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.until("it leads to the machine", |world| world.is_provisioned() && world.addresses() == ["10.20.0.11"]).await;
            world.delete("MaasMachine", "a").await;
            world.until("it leads nowhere", |world| world.addresses().is_empty()).await;
            quiet().await;
            assert_eq!(world.one()["status"]["network"].get("addresses"), None);
            assert_eq!(world.condition("LoadBalancerReady"), "True/LoadBalancerReady");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_goes_leaves_the_name_first() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.control_plane("b", &["10.20.0.12"]).await;
            world.until("it leads to both", |world| world.is_provisioned() && world.addresses().len() == 2).await;
            world.patch("MaasMachine", "a", json!({"metadata": {"finalizers": ["example.com/held"]}})).await;
            world.delete("MaasMachine", "a").await;
            world.until("it leads to the other", |world| world.addresses() == ["10.20.0.12"]).await;
            quiet().await;
            assert_eq!(world.one()["status"]["network"]["addresses"], json!(["10.20.0.12"]));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s07_what_somebody_changes_in_maas_is_mended() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.until("it leads to the machine", |world| world.is_provisioned() && world.addresses() == ["10.20.0.11"]).await;
            quiet().await;
            let person = world.person();
            let names = person.dns_resources();
            let id = names.list(&maas_client::DnsFilter::default()).await.unwrap()[0].id;
            names.update(id, Some(maas_client::TimeToLive(300)), &["10.20.0.66".parse().unwrap()]).await.unwrap();
            world.until("it leads to the machine again", |world| world.addresses() == ["10.20.0.11"]).await;
            quiet().await;
            assert!(world.reserved().is_empty(), "what was reserved by it is freed: {:?}", world.reserved());
            names.delete(id).await.unwrap();
            world.until("it is made again", |world| world.names().len() == 1 && world.addresses() == ["10.20.0.11"]).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s08_only_an_address_in_a_preferred_subnet_is_published() {
    let world = World::new();
    world
        .play(async {
            world
                .create(
                    "ConfigMap",
                    json!({"metadata": {"name": "maas-preferred-subnet"}, "data": {"preferredSubnets": "10.99.0.0/16, 10.20.0.64/26"}}),
                )
                .await;
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.11", "10.20.0.111"]).await;
            world.until("it leads to that address", |world| world.is_provisioned() && world.addresses() == ["10.20.0.111"]).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s08_without_an_address_that_fits_it_is_told_and_nothing_is_published() {
    let world = World::new();
    world
        .play(async {
            world.cluster(json!({}), json!({}), json!({"endpoint": {"addresses": {"subnets": ["192.0.2.0/24"]}}})).await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.until("it is told", |world| world.condition("LoadBalancerReady") == "False/NoMatchingAddress").await;
            assert!(world.message("LoadBalancerReady").contains("no address of a fits"), "{}", world.message("LoadBalancerReady"));
            assert!(world.addresses().is_empty() && world.is_provisioned());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_address_is_chosen_by_the_name_or_the_tag_of_its_interface() {
    for (choice, expected) in [
        (json!({"interface": "eth1"}), "10.20.0.111"),
        (json!({"tag": "api"}), "10.20.0.111"),
        (json!({"interface": "eth0"}), "10.20.0.11"),
    ] {
        let world = World::new();
        world
            .play(async {
                world.cluster(json!({}), json!({}), json!({"endpoint": {"addresses": choice}})).await;
                let id =
                    world.emulator.world(|world| world.all_machines().find(|machine| machine.hostname == "m1").unwrap().system_id.clone());
                world.control_plane(&id, &["10.20.0.11", "10.20.0.111"]).await;
                world.until("it leads to that address", |world| world.is_provisioned() && world.addresses() == [expected]).await;
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_machine_is_there_while_it_is_deployed_and_others_only_when_their_node_has_joined() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.11"]).await;
            let mut deploying = not_running(&["10.20.0.11"], "MachineDeploying");
            (deploying["phase"], deploying["machineState"]) = (json!("Deploying"), json!("Deploying"));
            world.patch_status("MaasMachine", "a", deploying).await;
            world.until("it leads to the machine", |world| world.is_provisioned() && world.addresses() == ["10.20.0.11"]).await;
            world.patch_status("MaasMachine", "a", running(&["10.20.0.11"])).await;
            world.patch_status("Cluster", "one", json!({"initialization": {"controlPlaneInitialized": true}})).await;
            let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "b", "uid": "u"}]);
            let reference = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasMachine", "name": "b"});
            world
                .create(
                    "Machine",
                    json!({"metadata": {"name": "b"}, "spec": {"clusterName": "one", "bootstrap": {}, "infrastructureRef": reference}}),
                )
                .await;
            world.control_plane("b", &["10.20.0.12"]).await;
            world.patch("MaasMachine", "b", json!({"metadata": {"ownerReferences": owner}})).await;
            quiet().await;
            assert_eq!(world.addresses(), ["10.20.0.11"]);
            world.patch_status("Machine", "b", json!({"nodeRef": {"name": "b"}})).await;
            world.until("it leads to both", |world| world.addresses() == ["10.20.0.11", "10.20.0.12"]).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn addresses_that_maas_reserved_for_the_record_are_freed_when_they_leave_it() {
    let world = World::new();
    world
        .play(async {
            let theirs = maas_client::Reserve { ip: Some("10.20.0.81".parse().unwrap()), ..maas_client::Reserve::default() };
            world.person().ip_addresses().reserve(&theirs).await.unwrap();
            world.plain_cluster().await;
            world.control_plane("a", &["10.20.0.80"]).await;
            world.control_plane("b", &["10.20.0.81"]).await;
            world.control_plane("c", &["10.20.0.12"]).await;
            world.until("it leads to all", |world| world.is_provisioned() && world.addresses().len() == 3).await;
            quiet().await;
            assert_eq!(world.reserved().len(), 2);
            for name in ["a", "b"] {
                world.delete("MaasMachine", name).await;
            }
            world.until("it leads to the last", |world| world.addresses() == ["10.20.0.12"]).await;
            quiet().await;
            let left: Vec<String> = world.reserved().into_iter().collect();
            assert_eq!(left, ["10.20.0.81"], "what a person reserved stays reserved");
        })
        .await;
}
