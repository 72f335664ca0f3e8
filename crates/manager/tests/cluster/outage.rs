//! A MAAS that is away for long is told once and not with every attempt.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    log,
    world::{Behaviour, World, condition, quiet},
};

const MACHINES: usize = 10;

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What each object was warned of, in order; under an empty name, what was warned of beside the objects.
fn warnings(lines: &[Value]) -> BTreeMap<String, Vec<String>> {
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["level"] != "INFO") {
        told.entry(word(&line["span"]["object"])).or_default().push(format!("{} {}", word(&line["message"]), word(&line["error"])));
    }
    told
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_hours_is_one_warning_an_object_and_its_end_is_none() {
    let world = World::with_free_machines(MACHINES);
    let names: Vec<String> = (0..MACHINES).map(|number| format!("w{number:02}")).collect();
    let available = |world: &World, wanted: &str| {
        let is = |plural: &str, name: &str| condition(&world.seen(plural, name), "MaasAvailable")["status"] == wanted;
        is("maasclusters", "one") && names.iter().all(|name| is("maasmachines", name))
    };
    world
        .play_with_machines(async {
            world.plain_cluster().await;
            world.takes_machines().await;
            for name in &names {
                world.machine(name, json!({}), json!({})).await;
            }
            let ready = |world: &World| names.iter().all(|name| condition(&world.seen("maasmachines", name), "Ready")["status"] == "True");
            world.until("all are ready", ready).await;
            quiet().await;
            log::listen();
            for (away, cause) in [(Behaviour::Refuses, "connection refused"), (Behaviour::HasExpired, "certificate expired")] {
                world.maas_behaves(away);
                sleep(Duration::from_hours(4)).await;
                assert!(available(&world, "False"), "everybody noticed");
                let mut told = warnings(&log::lines());
                let beside = told.remove("").unwrap_or_default();
                assert!(beside.len() <= 2, "one of MAAS itself and one of its event log: {beside:#?}");
                assert_eq!(told.len(), 1 + MACHINES, "{:?}", told.keys());
                for (object, causes) in &told {
                    assert!(causes.len() == 1 && causes[0].contains(cause), "{object}: {causes:#?}");
                }
                world.maas_behaves(Behaviour::Answers);
                world.until("all is well", |world| available(world, "True")).await;
                quiet().await;
                assert_eq!(warnings(&log::lines()), BTreeMap::new());
            }
        })
        .await;
}
