//! The controllers of clusters and machines together.

use crate::world::{World, quiet};
use api::names;
use kube::api::{Patch, PatchParams};
use maas_client::Upload;
use serde_json::{Value, json};
use std::{io::Cursor, time::Duration};
use tokio::time::Instant;

fn machine(world: &World, name: &str) -> Value {
    world.seen("maasmachines", name)
}

fn condition(object: &Value, kind: &str) -> Value {
    crate::world::condition(object, kind)["status"].clone()
}

async fn control_plane(world: &World, name: &str, change: Value) {
    world.machine(name, json!({names::CONTROL_PLANE: ""}), change).await;
}

/// A cluster with a machine `a` of its control plane, to which its name leads.
async fn with_control_plane(world: &World) {
    world.plain_cluster().await;
    world.takes_machines().await;
    control_plane(world, "a", json!({})).await;
    world.until("the machine is being deployed", |world| machine(world, "a")["status"]["machineState"] == "Deploying").await;
    world.until("the name leads to it", |world| world.addresses().len() == 1).await;
    assert_eq!(machine(world, "a")["status"]["machineState"], "Deploying", "before it is deployed");
    world.until("the machine is ready", |world| condition(&machine(world, "a"), "Ready") == "True").await;
    assert_eq!(condition(&machine(world, "a"), "DNSAttached"), "True");
    quiet().await;
    world.forget_calls();
}

fn assert_it_left_the_name_before_it_was_released(world: &World) {
    let writes = world.writes();
    let detached = writes.iter().position(|call| call.starts_with("PUT dnsresources")).unwrap_or_else(|| panic!("{writes:?}"));
    let released = writes.iter().position(|call| call.contains("op=release") && call.contains("machines/")).unwrap();
    assert!(detached < released, "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn s23_a_machine_is_attached_to_the_name_and_leaves_it_before_it_is_released() {
    let world = World::new();
    world
        .play_with_machines(async {
            with_control_plane(&world).await;
            world.delete("MaasMachine", "a").await;
            world.until("the machine is gone", |world| machine(world, "a").is_null()).await;
            assert_it_left_the_name_before_it_was_released(&world);
            assert!(world.addresses().is_empty() && world.reserved().is_empty());
            world.delete("MaasCluster", "one").await;
            world.until("the cluster is gone", |world| world.one().is_null()).await;
            assert_eq!((world.names(), world.reserved().len()), (vec![], 0));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_leaves_the_name_before_it_is_released_also_when_the_cluster_was_deleted_first() {
    let world = World::new();
    world
        .play_with_machines(async {
            with_control_plane(&world).await;
            world.delete("MaasCluster", "one").await;
            quiet().await;
            assert_eq!((world.addresses().len(), world.writes()), (1, vec![]), "it serves for as long as it is there");
            assert_eq!(condition(&machine(&world, "a"), "DNSAttached"), "True");
            world.delete("MaasMachine", "a").await;
            world.until("both are gone", |world| machine(world, "a").is_null() && world.one().is_null()).await;
            assert_it_left_the_name_before_it_was_released(&world);
            assert_eq!((world.names(), world.reserved().len()), (vec![], 0));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_another_provider_allocated_and_told_the_id_of_is_deployed_with_its_bootstrap_data() {
    let world = World::new();
    world
        .play_with_machines(async {
            world.plain_cluster().await;
            world.takes_machines().await;
            let allocated = world.person().machines().allocate(&maas_client::Allocate::new()).await.unwrap();
            let provider_id = format!("maas:///az1/{}", allocated.system_id);
            world.forget_calls();
            control_plane(&world, "a", json!({"systemID": allocated.system_id, "providerID": provider_id})).await;
            world.until("the machine is ready", |world| condition(&machine(world, "a"), "Ready") == "True").await;
            assert_eq!(machine(&world, "a")["spec"]["providerID"], json!(provider_id));
            let orders = |operation: &str| world.writes().iter().filter(|call| call.contains(operation)).count();
            assert_eq!((orders("op=allocate"), orders("op=deploy"), orders("op=release")), (0, 1, 0), "{:?}", world.writes());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn machines_that_lost_their_status_stay_in_the_name_and_that_is_said_until_maas_has_shown_them() {
    let world = World::new();
    world
        .play_with_machines(async {
            with_control_plane(&world).await;
            control_plane(&world, "b", json!({})).await;
            world.until("the name leads to both", |world| world.addresses().len() == 2).await;
            world.until("both are ready", |world| condition(&machine(world, "b"), "Ready") == "True").await;
            quiet().await;
            world.forget_calls();
            for name in ["a", "b"] {
                world.api("MaasMachine").patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": null}))).await.unwrap();
            }
            world.patch("MaasMachine", "a", json!({"metadata": {"labels": {"somebody": "looks"}}})).await;
            world.until("one is shown again", |world| condition(&machine(world, "a"), "Ready") == "True").await;
            quiet().await;
            assert_eq!((world.addresses().len(), world.writes()), (2, vec![]), "the other one is there all the same");
            assert_eq!(world.condition("LoadBalancerReady"), "Unknown/MachinesNotSeen");
            assert!(world.message("LoadBalancerReady").contains("the machine of b yet"), "{}", world.message("LoadBalancerReady"));
            world.patch("MaasMachine", "b", json!({"metadata": {"labels": {"somebody": "looks"}}})).await;
            world.until("both are known", |world| world.condition("LoadBalancerReady") == "True/LoadBalancerReady").await;
            assert_eq!((world.addresses().len(), world.writes()), (2, vec![]));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_person_puts_right_in_our_annotations_is_seen_within_minutes() {
    let world = World::new();
    world
        .play_with_machines(async {
            with_control_plane(&world).await;
            let annotated = |name: &str, text: &Value| json!({"metadata": {"annotations": {name: text}}});
            let said = |object: &Value, name: &str| object["metadata"]["annotations"][name].clone();
            let (endpoint, claim) = (said(&world.one(), names::ENDPOINT), said(&machine(&world, "a"), names::CLAIM));
            assert!(endpoint.is_string() && claim.is_string());
            world.patch("MaasCluster", "one", annotated(names::ENDPOINT, &json!("{"))).await;
            world.patch("MaasMachine", "a", annotated(names::CLAIM, &json!("{"))).await;
            world.delete("MaasMachine", "a").await;
            world.delete("MaasCluster", "one").await;
            let unreadable = |world: &World| condition(&machine(world, "a"), "MachineDeployed") == "False";
            world.until("it is told", unreadable).await;
            quiet().await;
            world.patch("MaasMachine", "a", annotated(names::CLAIM, &claim)).await;
            world.until("the machine is gone", |world| machine(world, "a").is_null()).await;
            quiet().await;
            assert!(!world.one().is_null(), "its record is not known");
            world.patch("MaasCluster", "one", annotated(names::ENDPOINT, &endpoint)).await;
            world.until("the cluster is gone", |world| world.one().is_null()).await;
            assert_eq!((world.names(), world.reserved().len()), (vec![], 0));
        })
        .await;
}

/// A worker of this image, which MAAS does not have, and what it says. Nothing was allocated.
async fn without_its_image(world: &World, image: &str) -> Value {
    world.plain_cluster().await;
    world.takes_machines().await;
    world.machine("a", json!({}), json!({"image": image})).await;
    let reason = |world: &World| crate::world::condition(&machine(world, "a"), "Ready")["reason"].clone();
    world.until("the image is missed", |world| reason(world) == "ImageNotFound").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let ready = crate::world::condition(&machine(world, "a"), "Ready");
    assert_eq!((ready["status"].as_str(), ready["reason"].as_str()), (Some("False"), Some("ImageNotFound")));
    let message = ready["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("MAAS does not have image {image}; it has ubuntu/jammy")), "{message}");
    assert!(message.contains("Import or upload it in MAAS"), "{message}");
    assert_eq!(world.calls("op=allocate"), Vec::<String>::new());
    machine(world, "a")
}

/// The machine that waited is deployed, that very object, with one server, and without anybody's help.
async fn goes_on_by_itself(world: &World, waited: &Value) {
    let began = Instant::now();
    world.until("the machine is ready", |world| condition(&machine(world, "a"), "Ready") == "True").await;
    assert!(began.elapsed() < Duration::from_mins(10), "{:?}", began.elapsed());
    assert_eq!(machine(world, "a")["metadata"]["uid"], waited["metadata"]["uid"]);
    assert_eq!(machine(world, "a")["spec"]["image"], waited["spec"]["image"]);
    assert_eq!((world.calls("op=allocate").len(), world.calls("op=release").len()), (1, 0), "{:?}", world.writes());
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_image_is_not_imported_says_so_and_goes_on_by_itself_when_it_is() {
    let world = World::new();
    world
        .play_with_machines(async {
            let waited = without_its_image(&world, "ubuntu/questing").await;
            world.emulator.world(|world| {
                let like = world.images.values().find(|image| image.name == "ubuntu/jammy").cloned().unwrap();
                world.images.add(None, |id| maas_emulator::world::image::Image { id, name: "ubuntu/questing".to_owned(), ..like });
            });
            goes_on_by_itself(&world, &waited).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_image_is_not_uploaded_says_so_and_goes_on_by_itself_when_it_is() {
    let world = World::new();
    world
        .play_with_machines(async {
            let waited = without_its_image(&world, "custom/edge-node").await;
            let upload = Upload {
                name: "custom/edge-node".to_owned(),
                architecture: "amd64/generic".to_owned(),
                base_image: Some("ubuntu/jammy".to_owned()),
                ..Upload::default()
            };
            world.person().boot_resources().upload(&upload, &mut Cursor::new(b"an image".to_vec()), |_, _| {}).await.unwrap();
            goes_on_by_itself(&world, &waited).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_listed_before_all_of_it_has_arrived_takes_one_server_and_no_more_until_it_has() {
    let world = World::new();
    world
        .play_with_machines(async {
            let waited = without_its_image(&world, "ubuntu/questing").await;
            let id = world.emulator.world(|world| {
                let mut image = world.images.values().find(|image| image.name == "ubuntu/jammy").cloned().unwrap();
                image.sets[0].files[0].received = 0;
                world.images.add(None, |id| maas_emulator::world::image::Image { id, name: "ubuntu/questing".to_owned(), ..image })
            });
            tokio::time::sleep(Duration::from_mins(10)).await;
            let ready = crate::world::condition(&machine(&world, "a"), "Ready");
            assert_eq!(ready["reason"], "DeploymentRefused");
            assert!(ready["message"].as_str().unwrap().contains("'ubuntu/questing' is not a valid distro_series"), "{ready}");
            world.emulator.world(|world| {
                let file = &mut world.images.get_mut(id).unwrap().sets[0].files[0];
                file.received = file.size;
            });
            goes_on_by_itself(&world, &waited).await;
        })
        .await;
}
