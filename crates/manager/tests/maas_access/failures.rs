//! Which machines failed to deploy lately, by MAAS's own log.

use crate::world::{ALICE, ENDPOINT, World};
use maas_client::{Allocate, Client, Deploy, MachineStatus, Release, SystemId};
use maas_emulator::{
    Fault,
    faults::{MachineFault, MachineHarm},
};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

async fn reaches(client: &Client, id: &SystemId, status: MachineStatus) {
    let deadline = Instant::now() + Duration::from_hours(2);
    while client.machine(id).read().await.unwrap().status != status {
        assert!(Instant::now() < deadline, "{id} never was {status:?}");
        sleep(Duration::from_secs(1)).await;
    }
}

async fn deploy(client: &Client, id: &SystemId, end: MachineStatus) {
    client.machine(id).deploy(&Deploy::default()).await.unwrap();
    reaches(client, id, end).await;
}

async fn release(client: &Client, id: &SystemId) {
    client.machine(id).release(&Release::default()).await.unwrap();
    reaches(client, id, MachineStatus::Ready).await;
}

fn next_deployment_fails(world: &World, words: &str) {
    let harm = MachineHarm::FailDeploy(words.to_owned());
    world.maas.emulator.inject(Fault::Machine(MachineFault { machine: None, times: Some(1), harm })).unwrap();
}

#[tokio::test(start_paused = true)]
async fn failures_are_remembered_by_maas_and_forgotten_after_success_or_a_day() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    let person = world.person(ALICE);
    let [first, second] = [person.machines().allocate(&Allocate::new()).await, person.machines().allocate(&Allocate::new()).await]
        .map(|machine| machine.unwrap().system_id);
    for id in [&first, &second] {
        next_deployment_fails(&world, "no space left on device");
        deploy(&person, id, MachineStatus::FailedDeployment).await;
        release(&person, id).await;
    }
    let failed_at = world.clock.now();
    let account = world.accounts.of("team", None).await.unwrap();
    let failures = account.recent_failures().await.unwrap();
    assert_eq!(
        failures.keys().collect::<BTreeSet<_>>(),
        BTreeSet::from([&first, &second]),
        "the objects and processes that saw it are gone"
    );
    assert_eq!(failures[&first].words, "no space left on device");
    assert!(failures[&second].at <= failed_at && failed_at.duration_since(failures[&second].at).as_secs() < 120, "{failures:?}");
    deploy(&person, &first, MachineStatus::Deployed).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(account.recent_failures().await.unwrap().keys().collect::<Vec<_>>(), [&second]);
    sleep(Duration::from_hours(24)).await;
    let account = world.another_process().of("team", None).await.unwrap();
    assert!(account.recent_failures().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_feed_keeps_the_memory_so_that_the_log_is_read_once() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    let stop = CancellationToken::new();
    let following = world.accounts.clone().follow(stop.clone());
    let script = async {
        let account = world.accounts.of("team", None).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(account.recent_failures().await.unwrap().is_empty());
        let person = world.person(ALICE);
        let id = person.machines().allocate(&Allocate::new()).await.unwrap().system_id;
        next_deployment_fails(&world, "the disk is dead");
        deploy(&person, &id, MachineStatus::FailedDeployment).await;
        let learnt = async {
            while account.recent_failures().await.unwrap().get(&id).is_none_or(|failed| failed.words != "the disk is dead") {
                sleep(Duration::from_secs(1)).await;
            }
        };
        timeout(Duration::from_secs(12), learnt).await.expect("the feed tells of the failure");
        release(&person, &id).await;
        deploy(&person, &id, MachineStatus::Deployed).await;
        let forgotten = async {
            while !account.recent_failures().await.unwrap().is_empty() {
                sleep(Duration::from_secs(1)).await;
            }
        };
        timeout(Duration::from_secs(12), forgotten).await.expect("the feed tells of the success");
        for _ in 0..100 {
            account.recent_failures().await.unwrap();
            sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(world.maas.calls("level=INFO"), 1);
        stop.cancel();
    };
    tokio::join!(following, script);
}

#[tokio::test(start_paused = true)]
async fn what_fails_while_it_is_erased_is_no_failed_deployment() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    let person = world.person(ALICE);
    let id = person.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    deploy(&person, &id, MachineStatus::Deployed).await;
    world.maas.emulator.inject(Fault::Machine(MachineFault { machine: None, times: Some(1), harm: MachineHarm::FailErase })).unwrap();
    person.machine(&id).release(&Release { erase: true, ..Release::default() }).await.unwrap();
    reaches(&person, &id, MachineStatus::FailedDiskErasing).await;
    let account = world.accounts.of("team", None).await.unwrap();
    assert!(account.recent_failures().await.unwrap().is_empty());
}
