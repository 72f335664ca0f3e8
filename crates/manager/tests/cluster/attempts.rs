//! Attempts that failed are never forgotten, whenever the process ends.

use crate::{
    networks::{has_address, is_deployed, machine, seen},
    world::{World, condition},
};
use api::names;
use maas_emulator::{
    Fault,
    faults::{CallFault, CallHarm, CallPattern},
};
use serde_json::{Value, json};

/// MAAS refuses this operation so often, after it did it so often.
fn refuses(world: &World, operation: &str, skip: u32, times: u32, words: &str) {
    let matching = CallPattern { operation: Some(operation.to_owned()), ..CallPattern::default() };
    let harm = CallHarm::Status { status: 409, body: words.to_owned(), retry_after: None };
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
