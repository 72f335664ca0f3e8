//! `cargo xtask bench emulator`: single calls on a fleet of ten thousand machines, in this process, as many of them deployed as
//! allocations were measured, at most half. Above its targets it fails.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use clap::Args;
use http::{Method, Request};
use maas_emulator::{Clock, Emulator, Fleet, Options};

use crate::command::{cargo, run as run_command};
use crate::output::{data, say};

/// How to measure it.
#[derive(Debug, Args)]
pub struct Arguments {
    /// How many machines
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    machines: u32,
    /// How many calls of each kind
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(100..))]
    calls: u32,
}

/// What 99 of 100 calls should stay below, and the memory in megabytes.
const WANTED: Duration = Duration::from_millis(5);
const WANTED_MEMORY: u64 = 250;
/// What a thousand machines from allocation to release should stay below.
const WANTED_LIVES: Duration = Duration::from_secs(10);

/// Measures.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        say("building with optimisations, as people run it");
        let (machines, calls) = (arguments.machines.to_string(), arguments.calls.to_string());
        let again = [
            "run",
            "--quiet",
            "--release",
            "--locked",
            "--package",
            "xtask",
            "--",
            "bench",
            "emulator",
            "--machines",
            &machines,
            "--calls",
            &calls,
        ];
        return run_command(&mut cargo(&again));
    }
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    say(format!("a fleet of {} machines", arguments.machines));
    let caller = Caller::new(arguments.machines)?;
    // At most half of the fleet is deployed, so that there is something to see and something left to take.
    let count = arguments.calls.min(arguments.machines / 2);
    let mut taken = Vec::new();
    let mut allocate = Times::new("allocate");
    for number in 0..count {
        let begun = Instant::now();
        let answer =
            caller.call(Method::POST, "machines/?op=allocate", &format!("zone=zone-{}&agent_name=claim-{number}", number % 4)).await?;
        allocate.add(begun.elapsed());
        taken.push(system_id(&answer)?);
    }
    for id in &taken {
        caller.call(Method::POST, &format!("machines/{id}/?op=deploy"), "").await?;
    }
    caller.emulator.clock().advance(Duration::from_mins(1));
    let (mut read, mut list, mut poll) = (Times::new("read"), Times::new("list of 10"), Times::new("event poll"));
    let newest = caller.emulator.world(|world| world.events.next_id());
    for number in 0..usize::try_from(arguments.calls)? {
        let id = &taken[number % taken.len()];
        read.time(caller.call(Method::GET, &format!("machines/{id}/"), "")).await?;
        let ten: Vec<String> = (0..10).map(|step| format!("id={}", taken[(number + step) % taken.len()])).collect();
        let answer = list.time(caller.call(Method::GET, &format!("machines/?{}", ten.join("&")), "")).await?;
        ensure!(answer.windows(13).filter(|window| window == b"\"status_name\"").count() == 10, "the list does not hold ten machines");
        poll.time(caller.call(Method::GET, &format!("events/?op=query&level=DEBUG&after={}", newest.saturating_sub(20)), "")).await?;
    }
    let mut missed = Vec::new();
    for times in [&mut allocate, &mut read, &mut list, &mut poll] {
        if times.print(Some(WANTED)) > WANTED {
            missed.push(times.name);
        }
    }
    // Long lists are not part of the target and come after its measure.
    let memory = memory_megabytes()?;
    data(format!("{:<16} {memory:>7} MB  target {WANTED_MEMORY} MB", "memory"));
    if memory > WANTED_MEMORY {
        missed.push("memory");
    }
    beside_long_lists(&caller, &taken).await?;
    if lives().await? > WANTED_LIVES {
        missed.push("lives");
    }
    ensure!(missed.is_empty(), "above the target: {}", missed.join(", "));
    Ok(())
}

/// Allocates, deploys and releases as many machines as a long list holds, on a clock that never waits.
async fn lives() -> anyhow::Result<Duration> {
    let caller = Caller::new(u32::try_from(LONG)?)?;
    let clock = caller.emulator.clock();
    let begun = Instant::now();
    let mut taken = Vec::new();
    for _ in 0..LONG {
        taken.push(system_id(&caller.call(Method::POST, "machines/?op=allocate", "").await?)?);
    }
    for (operation, ends_as) in [("deploy", "Deployed"), ("release", "Ready")] {
        for id in &taken {
            caller.call(Method::POST, &format!("machines/{id}/?op={operation}"), "").await?;
        }
        clock.advance(Duration::from_hours(1));
        let there = caller.emulator.world(|world| world.all_machines().filter(|machine| machine.status.name() == ends_as).count());
        ensure!(there == LONG, "{there} machines of {LONG} are {ends_as}");
    }
    let took = begun.elapsed();
    data(format!("{:<16} {:>7.2} s for 1,000; target {} s", "lives", took.as_secs_f64(), WANTED_LIVES.as_secs()));
    Ok(took)
}

/// How many machines a long list holds.
const LONG: usize = 1_000;
/// How many long lists are read.
const LISTS: usize = 20;

/// What reads take while another thread does nothing but read long lists.
async fn beside_long_lists(caller: &Caller, taken: &[String]) -> anyhow::Result<()> {
    let ids: Vec<String> = taken.iter().take(LONG).map(|id| format!("id={id}")).collect();
    let path = format!("machines/?{}", ids.join("&"));
    let (mut long, mut read) = (Times::new("list of 1,000"), Times::new("read beside it"));
    let lister = Caller { emulator: caller.emulator.clone(), nonce: std::cell::Cell::new(1 << 40) };
    let lists = std::thread::spawn(move || -> anyhow::Result<Times> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        for _ in 0..LISTS {
            runtime.block_on(long.time(lister.call(Method::GET, &path, "")))?;
        }
        Ok(long)
    });
    let mut number = 0;
    while !lists.is_finished() {
        let id = &taken[number % taken.len()];
        read.time(caller.call(Method::GET, &format!("machines/{id}/"), "")).await?;
        number += 1;
    }
    let mut long = lists.join().map_err(|_| anyhow::anyhow!("the thread that reads lists panicked"))??;
    long.print(None);
    read.print(None);
    Ok(())
}

/// An administrator who calls within this process.
struct Caller {
    emulator: Emulator,
    nonce: std::cell::Cell<u64>,
}

impl Caller {
    fn new(machines: u32) -> anyhow::Result<Self> {
        let zones: Vec<String> = (0..4).map(|zone| format!("{{name: zone-{zone}}}")).collect();
        let kinds: Vec<String> = (0..4)
            .map(|zone| format!("  - {{hostname: machine-{zone}-, count: {}, zone: zone-{zone}, tags: [worker]}}", machines / 4))
            .collect();
        let network = "subnets: [{cidr: 10.0.0.0/8, gateway: 10.0.0.1, dhcp: {start: 10.200.0.0, end: 10.255.255.254}}]";
        let text = format!("zones: [{}]\n{network}\nmachines:\n{}\n", zones.join(", "), kinds.join("\n"));
        let clock = Clock::manual(jiff::Timestamp::from_second(1_800_000_000)?);
        let emulator = Emulator::new(Fleet::from_yaml(&text)?, Options { clock, ..Options::default() })?;
        Ok(Caller { emulator, nonce: std::cell::Cell::new(0) })
    }

    async fn call(&self, method: Method, path: &str, form: &str) -> anyhow::Result<Bytes> {
        self.nonce.set(self.nonce.get() + 1);
        let [consumer, token, secret] =
            <[&str; 3]>::try_from(Fleet::DEFAULT_KEY.split(':').collect::<Vec<_>>()).ok().context("a key has three parts")?;
        let header = format!(
            "OAuth oauth_version=\"1.0\", oauth_signature_method=\"PLAINTEXT\", oauth_consumer_key=\"{consumer}\", oauth_token=\"{token}\", \
             oauth_signature=\"%26{secret}\", oauth_nonce=\"{}\", oauth_timestamp=\"{}\"",
            self.nonce.get(),
            self.emulator.clock().now().as_second(),
        );
        let request = Request::builder()
            .method(method)
            .uri(format!("/MAAS/api/2.0/{path}"))
            .header("authorization", header)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Bytes::from(form.to_owned()))?;
        let answer = self.emulator.answer(request).await?;
        ensure!(answer.status().is_success(), "{path}: {} {}", answer.status(), String::from_utf8_lossy(answer.body()));
        Ok(answer.into_body())
    }
}

fn system_id(answer: &[u8]) -> anyhow::Result<String> {
    let machine: serde_json::Value = serde_json::from_slice(answer)?;
    Ok(machine["system_id"].as_str().context("an allocation without a machine")?.to_owned())
}

/// How long calls of one kind took.
struct Times {
    name: &'static str,
    taken: Vec<Duration>,
}

impl Times {
    fn new(name: &'static str) -> Self {
        Times { name, taken: Vec::new() }
    }

    fn add(&mut self, time: Duration) {
        self.taken.push(time);
    }

    async fn time<T>(&mut self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let begun = Instant::now();
        let done = work.await?;
        self.add(begun.elapsed());
        Ok(done)
    }

    /// Tells them, and returns what 99 of 100 stayed below.
    fn print(&mut self, wanted: Option<Duration>) -> Duration {
        self.taken.sort_unstable();
        let at = |percent: usize| self.taken[(self.taken.len() * percent / 100).min(self.taken.len() - 1)];
        let milliseconds = |percent: usize| at(percent).as_secs_f64() * 1e3;
        let target = wanted.map_or_else(String::new, |wanted| format!("; target {} ms", wanted.as_millis()));
        data(format!("{:<16} {:>7.2} ms half of them, {:.2} ms 99 of 100{target}", self.name, milliseconds(50), milliseconds(99)));
        at(99)
    }
}

/// What this process holds, as the kernel counts it.
fn memory_megabytes() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("could not read how much memory is in use")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("the kernel does not say how much memory was in use")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes * 1024 / 1_000_000)
}
