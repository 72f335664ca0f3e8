//! The same seed is the same run: the real manager on the in-process server, twenty processes, one digest of every call.
//!
//! The counter-proofs use the same comparison on things that are random: they show that it can fail.

use crate::scenario::{WIDGETS, Widget, WidgetError, WidgetSpec, epoch, in_paused_time, twelve_busy_minutes};
use futures::StreamExt;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    runtime::{Controller, controller, watcher},
};
use manager::Jitter;
use serde_json::json;
use simulation::{ApiServer, Faults};
use std::{collections::BTreeSet, process::Command, sync::Arc, time::Duration};

const RUNS: usize = 20;
const SEED_VARIABLE: &str = "SIMULATION_SEED";

/// Not a test by itself: what the test below starts twenty times.
#[test]
#[ignore = "the other tests start it in processes of its own"]
fn one_run_in_its_own_process() {
    let seed = std::env::var(SEED_VARIABLE).unwrap().parse().unwrap();
    let server = in_paused_time(twelve_busy_minutes(seed, Jitter::seeded(seed)));
    let trace = server.trace();
    let last = trace.entries().last().map_or(0, |entry| entry.at.as_secs());
    println!("\ndigest={} seconds={last} entries={}", trace.digest(), trace.entries().len());
}

fn digest_of_a_process(seed: u64) -> String {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", "determinism::one_run_in_its_own_process", "--ignored", "--nocapture"];
    let output = Command::new(program).args(arguments).env(SEED_VARIABLE, seed.to_string()).env("RUST_BACKTRACE", "0").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with("digest=")).map(str::to_owned);
    line.unwrap_or_else(|| panic!("no digest in {text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn twenty_processes_with_the_same_seed_are_the_same_run() {
    let digests: BTreeSet<_> = (0..RUNS).map(|_| digest_of_a_process(7)).collect();
    println!("{digests:?}");
    assert_eq!(digests.len(), 1, "{digests:#?}");
    let entries: usize = digests.first().unwrap().rsplit('=').next().unwrap().parse().unwrap();
    assert!(entries > 1000, "a run with only {entries} entries proves little");
}

#[test]
fn another_seed_is_another_run() {
    let digests: BTreeSet<_> = (0..5).map(digest_of_a_process).collect();
    assert_eq!(digests.len(), 5, "{digests:#?}");
}

#[test]
fn randomness_of_the_system_in_the_delays_is_noticed() {
    let digests: BTreeSet<_> = (0..5).map(|_| in_paused_time(twelve_busy_minutes(7, Jitter::from_system())).trace().digest()).collect();
    assert!(digests.len() > 1, "five unseeded runs were the same");
}

/// Why the manager has a queue of its own: kube's holds what is due in a hash set whose order differs from run to run.
#[test]
fn the_order_of_kubes_own_controller_is_noticed_to_be_random() {
    let digests: BTreeSet<_> = (0..RUNS).map(|_| in_paused_time(kubes_own_controller(WIDGETS, 4))).collect();
    println!("{} different digests in {RUNS} runs", digests.len());
    assert!(digests.len() > 1, "kube's controller repeated itself: the manager's own queue may no longer be needed");
}

async fn kubes_own_controller(widgets: usize, concurrency: u16) -> String {
    let server = ApiServer::new(epoch(), Faults { slowest: Duration::from_millis(20), ..Faults::none() });
    let client = server.client("kube");
    let api: Api<Widget> = Api::namespaced(client.clone(), "default");
    for number in 0..widgets {
        api.create(&PostParams::default(), &Widget::new(&format!("w{number:02}"), WidgetSpec { size: 1 })).await.unwrap();
    }
    let reconcile = |widget: Arc<Widget>, api: Arc<Api<Widget>>| async move {
        let status = json!({"apiVersion": "example.com/v1", "kind": "Widget", "status": {"observedSize": widget.spec.size}});
        let name = widget.metadata.name.clone().unwrap_or_default();
        api.patch_status(&name, &PatchParams::apply("kube").force(), &Patch::Apply(status)).await?;
        Ok::<_, WidgetError>(controller::Action::requeue(Duration::from_secs(30)))
    };
    let running = Controller::new(api.clone(), watcher::Config::default())
        .with_config(controller::Config::default().concurrency(concurrency))
        .run(reconcile, |_, _, _| controller::Action::requeue(Duration::from_secs(5)), Arc::new(api))
        .for_each(|_| std::future::ready(()));
    drop(tokio::time::timeout(Duration::from_secs(100), running).await);
    server.trace().digest()
}
