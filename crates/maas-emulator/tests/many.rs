//! A thousand machines under a paused clock: the same seed makes the same history to the byte. How long calls take is for the benchmark.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::Request;
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

/// An administrator who writes requests by hand: a typed client would spend most of the test's time on reading answers.
struct Caller {
    emulator: Emulator,
    nonce: std::cell::Cell<u64>,
}

impl Caller {
    async fn post(&self, path: &str, form: String) -> Bytes {
        let parts: Vec<&str> = Fleet::DEFAULT_KEY.split(':').collect();
        self.nonce.set(self.nonce.get() + 1);
        let header = format!(
            "OAuth oauth_signature_method=\"PLAINTEXT\", oauth_consumer_key=\"{}\", oauth_token=\"{}\", oauth_signature=\"%26{}\", \
             oauth_nonce=\"{}\", oauth_timestamp=\"{}\"",
            parts[0],
            parts[1],
            parts[2],
            self.nonce.get(),
            self.emulator.clock().now().as_second(),
        );
        let request = Request::post(format!("/MAAS/api/2.0/{path}"))
            .header("authorization", header)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Bytes::from(form))
            .unwrap();
        let answer = self.emulator.answer(request).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}: {}", String::from_utf8_lossy(answer.body()));
        answer.into_body()
    }

    fn machines(&self) -> Vec<(String, &'static str)> {
        self.emulator.world(|world| world.all_machines().map(|machine| (machine.system_id.clone(), machine.status.name())).collect())
    }
}

/// Takes every machine through its life, eight at a time, and returns the digest of every call and every answer.
async fn life_of_all(seed: u64) -> String {
    let clock = Clock::running(jiff::Timestamp::from_second(1_800_000_000).unwrap());
    let emulator = Emulator::new(Fleet::from_yaml(FLEET).unwrap(), Options { clock, seed, ..Options::default() }).unwrap();
    let caller = Caller { emulator, nonce: std::cell::Cell::new(0) };
    let mut digest = Sha256::new();
    let mut read = 0;
    let mut drain = |caller: &Caller| {
        caller.emulator.journal(|journal| {
            let before = read;
            for entry in journal.entries().filter(|entry| entry.number > before) {
                read = entry.number;
                digest.update(format!("{} {} {} {}\n", entry.at, entry.method, entry.uri, entry.status));
                digest.update(entry.request.as_deref().unwrap());
                digest.update(entry.response.as_deref().unwrap());
            }
        });
    };
    for batch in 0..MACHINES / 100 {
        futures::stream::iter(0..100)
            .for_each_concurrent(8, |number| {
                let caller = &caller;
                async move {
                    let answer = caller.post("machines/?op=allocate", format!("agent_name=claim-{batch}-{number}")).await;
                    let text = String::from_utf8_lossy(&answer);
                    let id = text.split("\"system_id\": \"").nth(1).unwrap()[..6].to_owned();
                    caller.post(&format!("machines/{id}/?op=deploy"), String::new()).await;
                }
            })
            .await;
        drain(&caller);
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    let machines = caller.machines();
    assert_eq!(machines.iter().filter(|(_, status)| *status == "Deployed").count(), MACHINES);
    for chunk in machines.chunks(100) {
        futures::stream::iter(chunk)
            .for_each_concurrent(8, |(id, _)| {
                let caller = &caller;
                async move { drop(caller.post(&format!("machines/{id}/?op=release"), String::new()).await) }
            })
            .await;
        drain(&caller);
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(caller.machines().iter().all(|(_, status)| *status == "Ready"));
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
