//! Attempts that failed are never forgotten, whenever the process ends.

use crate::{
    networks::{is_deployed, machine, seen},
    world::World,
};
use maas_emulator::{
    Fault,
    faults::{CallFault, CallHarm, CallPattern},
};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_shown_before_the_trail_of_its_machine_goes() {
    let world = World::new();
    let matching = CallPattern { operation: Some("deploy".to_owned()), ..CallPattern::default() };
    let harm = CallHarm::Status { status: 409, body: "Cannot deploy".to_owned(), retry_after: None };
    world.emulator.inject(Fault::Call(CallFault { matching, skip: 0, times: Some(1), harm })).unwrap();
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
