//! Attempts that failed are never forgotten, whenever the process ends.

use crate::{
    networks::{has_address, is_deployed, machine, seen},
    world::{PLAIN, World, condition},
};
use api::names;
use maas_emulator::{
    Fault,
    faults::{CallFault, CallHarm, CallPattern},
};
use serde_json::{Value, json};

/// MAAS refuses this operation so often, after it did it so often.
fn refuses(world: &World, operation: &str, skip: u32, times: u32, words: &str) {
    answers(world, operation, 409, skip, times, words);
}

fn answers(world: &World, operation: &str, status: u16, skip: u32, times: u32, words: &str) {
    let matching = CallPattern { operation: Some(operation.to_owned()), ..CallPattern::default() };
    let harm = CallHarm::Status { status, body: words.to_owned(), retry_after: None };
    world.emulator.inject(Fault::Call(CallFault { matching, skip, times: Some(times), harm })).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_shown_before_the_trail_of_its_machine_goes() {
    let world = World::new();
    refuses(&world, "deploy", 0, 1, "Cannot deploy");
    world
        .play_with_machines(async {
            machine(&world, json!({})).await;
            world.until("another one is deployed", is_deployed).await;
            assert_eq!(seen(&world)["status"]["attemptCount"], 1);
            let writes: Vec<String> = world.kubernetes_writes().into_iter().filter(|call| call.contains("maasmachines/a")).collect();
            let place = |part: &str| writes.iter().position(|call| call.contains(part)).unwrap_or_else(|| panic!("{part}: {writes:#?}"));
            assert!(place("attemptCount") < place(r#""systemID":null"#), "{writes:#?}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_fixed_address_that_maas_does_not_take_off_at_first_is_told_and_taken_off_later_for_the_next_machine() {
    let world = World::new();
    refuses(&world, "deploy", 0, 1, "Cannot deploy");
    // The first machine loses what MAAS connected it with; from then on it is refused.
    refuses(&world, "unlink_subnet", 1, 5, "The node is being commissioned");
    world
        .play_with_machines(async {
            machine(&world, json!({"staticIP": {"ip": "10.20.0.50"}})).await;
            let freed = |world: &World| condition(&seen(world), "FixedAddressesFreed");
            world.until("it is told", |world| freed(world)["reason"] == "FixedAddressLeft").await;
            let message = freed(&world)["message"].as_str().unwrap().to_owned();
            assert!(message.contains("The node is being commissioned") && message.contains("Unlink the address"), "{message}");
            world.until("another one is deployed", is_deployed).await;
            assert!(has_address(&world, "10.20.0.50"), "{:#}", seen(&world));
            world.until("that is told too", |world| freed(world)["status"] == "True").await;
            let event = |event: &Value| event["reason"] == "FixedAddressLeft" && event["type"] == "Warning";
            assert_eq!(world.server.objects("events").iter().filter(|found| event(found)).count(), 1);
            let claim = seen(&world)["metadata"]["annotations"][names::CLAIM].as_str().unwrap().to_owned();
            assert!(!claim.contains("releasing"), "nothing is left to do: {claim}");
        })
        .await;
}

/// Warnings of this reason.
fn warnings(world: &World, reason: &str) -> Vec<String> {
    let told = world.server.objects("events").into_iter().filter(|event| event["reason"] == reason && event["type"] == "Warning");
    told.map(|event| event["note"].as_str().or(event["message"].as_str()).unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_fixed_address_on_a_machine_that_somebody_got_before_it_was_off_is_told_until_it_is_free_and_off() {
    let world = World::new();
    refuses(&world, "deploy", 0, 1, "Cannot deploy");
    refuses(&world, "unlink_subnet", 1, 5, "The node is being commissioned");
    world
        .play_with_machines(async {
            machine(&world, json!({"staticIP": {"ip": "10.20.0.50"}})).await;
            let freed = |world: &World| condition(&seen(world), "FixedAddressesFreed");
            world.until("it is told", |world| freed(world)["reason"] == "FixedAddressLeft").await;
            let left = maas_client::SystemId::from(seen(&world)["status"]["attempts"][0]["systemID"].as_str().unwrap());
            let somebody = world.person_with(PLAIN);
            let got = somebody.machines().allocate(&maas_client::Allocate::new().system_id(&left)).await.unwrap();
            let says_who = |world: &World| freed(world)["message"].as_str().unwrap().contains("belongs to MAAS user");
            world.until("it is told who has it", says_who).await;
            let message = freed(&world)["message"].as_str().unwrap().to_owned();
            assert!(message.contains(&got.hostname) && message.contains("10.20.0.50"), "{message}");
            let unlinks = |world: &World| world.calls("op=unlink_subnet").iter().filter(|call| call.contains(left.as_str())).count();
            let before = unlinks(&world);
            tokio::time::sleep(std::time::Duration::from_mins(20)).await;
            assert_eq!((freed(&world)["status"].as_str(), unlinks(&world)), (Some("False"), before));
            somebody.machine(&left).release(&maas_client::Release::default()).await.unwrap();
            world.until("it is free", |world| freed(world)["status"] == "True").await;
            let claim = seen(&world)["metadata"]["annotations"][names::CLAIM].as_str().unwrap().to_owned();
            assert!(!claim.contains("releasing"), "nothing is left to do: {claim}");
            world.until("the next machine has it", |world| is_deployed(world) && has_address(world, "10.20.0.50")).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_names_its_fixed_address_if_somebody_got_its_machine_before_it_was_off() {
    let world = World::new();
    world
        .play_with_machines(async {
            machine(&world, json!({"staticIP": {"ip": "10.20.0.50"}})).await;
            world.until("it is deployed", is_deployed).await;
            let id = maas_client::SystemId::from(seen(&world)["spec"]["systemID"].as_str().unwrap());
            answers(&world, "unlink_subnet", 503, 0, 1000, "busy");
            world.delete("MaasMachine", "a").await;
            world.until("it was tried", |world| !world.calls("op=unlink_subnet").is_empty()).await;
            world
                .until("it is free", |world| {
                    world
                        .emulator
                        .world(|world| world.all_machines().any(|one| one.system_id.as_str() == id.as_str() && one.owner.is_none()))
                })
                .await;
            let got = world.person_with(PLAIN).machines().allocate(&maas_client::Allocate::new().system_id(&id)).await.unwrap();
            world.until("it is gone", |world| seen(world).is_null()).await;
            let told = warnings(&world, "FixedAddressLeft");
            assert!(told.len() == 1 && told[0].contains(&got.hostname) && told[0].contains("10.20.0.50"), "{told:?}");
            assert_eq!(warnings(&world, "MachineLeftAlone"), Vec::<String>::new());
        })
        .await;
}
