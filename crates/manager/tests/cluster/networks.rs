//! How machines are connected to networks before they are deployed, with the answers of an emulated MAAS.

use crate::world::{PLAIN, World, condition};
use serde_json::{Value, json};

/// A provisioned cluster, and a machine with this spec in it.
pub async fn machine(world: &World, spec: Value) {
    // A custom endpoint, so that plain users can have it and nothing here depends on DNS.
    let custom = json!({"annotations": {"spectrocloud.com/custom-dns-provided": ""}});
    world.cluster(json!({}), custom, json!({"controlPlaneEndpoint": {"host": "api.corp.example"}})).await;
    world.takes_machines().await;
    world.machine("a", json!({}), spec).await;
}

pub fn seen(world: &World) -> Value {
    world.seen("maasmachines", "a")
}

fn deployed(world: &World) -> Value {
    condition(&seen(world), "MachineDeployed")
}

pub fn is_deployed(world: &World) -> bool {
    deployed(world)["status"] == "True"
}

pub fn has_address(world: &World, address: &str) -> bool {
    let addresses = seen(world)["status"]["addresses"].as_array().cloned().unwrap_or_default();
    addresses.iter().any(|found| found["type"] == "InternalIP" && found["address"] == address)
}

/// Where in what MAAS was told this comes first.
fn place(world: &World, part: &str) -> Option<usize> {
    world.writes().iter().position(|call| call.contains(part))
}

/// Machines that somebody has, but for those that were deployed from the beginning.
fn allocated(world: &World) -> Vec<String> {
    let held = |machine: &&maas_emulator::world::machine::Machine| machine.owner.is_some() && machine.hostname.starts_with("free-");
    world.emulator.world(|world| world.all_machines().filter(held).map(|machine| machine.hostname.clone()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_static_address_takes_the_place_of_what_maas_would_have_chosen_before_the_deployment() {
    for spec in [
        json!({"staticIP": {"ip": "10.20.0.50"}}),
        json!({"staticIP": {"ip": "10.20.0.50", "cidr": "10.20.0.0/24"}}),
        json!({"networkInterfaces": [{"name": "eth0", "subnet": "racks", "mode": "static", "ip": "10.20.0.50"}]}),
    ] {
        let world = World::new();
        world
            .play_with_machines(async {
                machine(&world, spec.clone()).await;
                world.until("it is deployed", is_deployed).await;
                assert!(has_address(&world, "10.20.0.50"), "{spec}: {:#}", seen(&world));
                let order = ["op=unlink_subnet", "op=link_subnet", "op=deploy"].map(|part| place(&world, part));
                assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{spec}: {:?}", world.writes());
                assert_eq!(world.calls("op=link_subnet").len(), 1, "{:?}", world.writes());
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_interface_is_connected_as_it_was_asked_for() {
    let world = World::new();
    world
        .play_with_machines(async {
            machine(&world, json!({"networkInterfaces": [{"name": "eth0", "subnet": "10.20.0.0/24", "mode": "dhcp"}]})).await;
            world.until("it is deployed", is_deployed).await;
            assert_eq!(world.calls("op=link_subnet").len(), 1, "{:?}", world.writes());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_another_machine_has_is_told_in_the_words_of_maas_and_nothing_is_deployed() {
    let world = World::new();
    world
        .play_with_machines(async {
            machine(&world, json!({"staticIP": {"ip": "10.20.0.11"}})).await;
            world.until("it is told", |world| deployed(world)["reason"] == "MachinePreparationFailed").await;
            assert!(
                deployed(&world)["message"].as_str().unwrap().contains("10.20.0.11: MAAS says: IP address is already in use."),
                "{}",
                deployed(&world)
            );
            assert_eq!(place(&world, "op=deploy"), None);
            world.delete("MaasMachine", "a").await;
            world.until("it is gone", |world| seen(world).is_null()).await;
            assert_eq!(allocated(&world), Vec::<String>::new());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_not_given_yet_is_waited_for_without_a_machine() {
    let world = World::new();
    world
        .play_with_machines(async {
            machine(&world, json!({"staticIP": {"cidr": "10.20.0.0/24"}})).await;
            world.until("it waits", |world| deployed(world)["reason"] == "WaitingForStaticIP").await;
            assert_eq!(allocated(&world), Vec::<String>::new());
            world.patch("MaasMachine", "a", json!({"spec": {"staticIP": {"ip": "10.20.0.60"}}})).await;
            world.until("it is deployed", is_deployed).await;
            assert!(has_address(&world, "10.20.0.60"));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_plain_user_is_told_that_addresses_need_an_administrator_before_anything_is_allocated() {
    let world = World::of_user(PLAIN);
    world
        .play_with_machines(async {
            machine(&world, json!({"staticIP": {"ip": "10.20.0.50"}})).await;
            world.until("it is told", |world| deployed(world)["reason"] == "RightsMissing").await;
            assert_eq!(allocated(&world), Vec::<String>::new());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_asked_for_by_its_id_is_the_one_that_is_allocated() {
    let world = World::new();
    let id = world.emulator.world(|world| {
        world.all_machines().find(|machine| machine.hostname == "free-02").map(|machine| machine.system_id.clone()).unwrap()
    });
    world
        .play_with_machines(async {
            machine(&world, json!({"systemID": id})).await;
            world.until("it is deployed", is_deployed).await;
            assert_eq!(allocated(&world), ["free-02"]);
            assert_eq!(seen(&world)["spec"]["providerID"], format!("maas:///az1/{id}"));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_asked_for_and_is_somebody_elses_is_left_alone() {
    let world = World::of_user(PLAIN);
    let id = world
        .emulator
        .world(|world| world.all_machines().find(|machine| machine.hostname == "m1").map(|machine| machine.system_id.clone()).unwrap());
    world
        .play_with_machines(async {
            machine(&world, json!({"systemID": id})).await;
            let is_told = |world: &World| ["NoMatchingMachine", "MachineHidden"].iter().any(|reason| deployed(world)["reason"] == *reason);
            world.until("it is told", is_told).await;
            assert_eq!((allocated(&world), world.calls("op=allocate")), (vec![], vec![]));
        })
        .await;
}
