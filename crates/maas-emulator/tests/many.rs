//! A thousand machines under a paused clock: seconds of wall time, and the same seed makes the same history to the byte.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use std::fmt::Write as _;
use std::time::Duration;

use futures::StreamExt as _;
use maas::administrator;
use maas_client::{Allocate, Deploy, EventFilter, EventLevel, EventPlace, MachineFilter, MachineStatus, Release};
use maas_emulator::{Clock, Emulator, Fleet, Options};
use sha2::{Digest as _, Sha256};

const MACHINES: usize = 1_000;
const FLEET: &str = "
zones: [{name: az1}, {name: az2}]
subnets: [{cidr: 10.20.0.0/16, gateway: 10.20.0.1, dhcp: {start: 10.20.200.1, end: 10.20.255.254}}]
machines:
  - {hostname: one-, count: 500, zone: az1}
  - {hostname: two-, count: 500, zone: az2, cpus: 8, memory: 16384}
";

/// Takes every machine through its life, eight at a time, and returns the digest of every call and every answer.
async fn life_of_all(seed: u64) -> String {
    let clock = Clock::running(jiff::Timestamp::from_second(maas::BEGINNING).unwrap());
    let emulator = Emulator::new(Fleet::from_yaml(FLEET).unwrap(), Options { clock, seed, ..Options::default() }).unwrap();
    let client = administrator(&emulator);
    let mut digest = Sha256::new();
    let mut read = 0;
    let mut drain = |emulator: &Emulator| {
        emulator.journal(|journal| {
            let before = read;
            for entry in journal.entries().filter(|entry| entry.number > before) {
                read = entry.number;
                digest.update(format!("{} {} {} {}\n", entry.at, entry.method, entry.uri, entry.status));
                digest.update(entry.request.as_deref().unwrap_or_default());
                digest.update(entry.response.as_deref().unwrap_or_default());
            }
        });
    };
    for batch in 0..MACHINES / 100 {
        futures::stream::iter(0..100)
            .for_each_concurrent(8, |number| {
                let client = client.clone();
                async move {
                    let wish = Allocate::new().agent_name(&format!("claim-{batch}-{number}"));
                    let id = client.machines().allocate(&wish).await.unwrap().system_id;
                    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
                }
            })
            .await;
        drain(&emulator);
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    let deployed = emulator.world(|world| world.all_machines().filter(|machine| machine.status.name() == "Deployed").count());
    assert_eq!(deployed, MACHINES);
    let page = client.events().query(&EventFilter::new().level(EventLevel::Debug), EventPlace::Newest, Some(1_000)).await.unwrap();
    assert_eq!(page.events.len(), 1_000);
    for chunk in client.machines().list(&MachineFilter::new().status(MachineStatus::Deployed)).await.unwrap().chunks(100) {
        futures::stream::iter(chunk)
            .for_each_concurrent(8, |machine| {
                let client = client.clone();
                async move { drop(client.machine(&machine.system_id).release(&Release::default()).await.unwrap()) }
            })
            .await;
        drain(&emulator);
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    let left = emulator.world(|world| world.all_machines().filter(|machine| machine.owner.is_some()).count());
    assert_eq!(left, 0);
    drain(&emulator);
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn a_thousand_machines_live_and_the_same_seed_makes_the_same_history_twenty_times() {
    let run = |seed| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(life_of_all(seed))
    };
    let first = run(7);
    let runs: Vec<std::thread::JoinHandle<Vec<String>>> =
        (0..2).map(|half| std::thread::spawn(move || (0..if half == 0 { 10 } else { 9 }).map(|_| run(7)).collect())).collect();
    for again in runs.into_iter().flat_map(|thread| thread.join().unwrap()) {
        assert_eq!(again, first);
    }
    assert_ne!(run(8), first, "another seed makes another history");
}
