//! Power switched by hand while MAAS is at work on a machine: no state lasts for ever, and none ends later than it would have.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use std::time::Duration;

use maas::{administrator, emulator, settled};
use maas_client::{Allocate, Client, Commission, Deploy, MachineStatus, PowerOff, Release, SystemId};
use maas_emulator::Fault;
use maas_emulator::faults::{MachineFault, MachineHarm};

const FLEET: &str = "
machines: [{hostname: m}]
timings: {deploy_timeout: 600, power_off: [30, 30]}
";

async fn allocated(client: &Client) -> SystemId {
    client.machines().allocate(&Allocate::new()).await.unwrap().system_id
}

#[tokio::test(start_paused = true)]
async fn a_deployment_whose_power_is_taken_fails_when_it_would_have() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    let id = allocated(&client).await;
    let begun = tokio::time::Instant::now();
    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    client.machine(&id).power_off(PowerOff::Hard, None).await.unwrap();
    let failed = settled(&client, &id, MachineStatus::FailedDeployment).await.unwrap();
    assert!(failed.error_description.contains("timed out after 10 minutes"), "{}", failed.error_description);
    assert!((600..610).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn switching_on_a_machine_that_is_being_deployed_changes_nothing_and_one_that_was_switched_off_begins_again() {
    for off in [false, true] {
        let emulator = emulator(FLEET);
        let client = administrator(&emulator);
        let id = allocated(&client).await;
        client.machine(&id).deploy(&Deploy::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        if off {
            client.machine(&id).power_off(PowerOff::Hard, None).await.unwrap();
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        client.machine(&id).power_on(None).await.unwrap();
        let begun = tokio::time::Instant::now();
        settled(&client, &id, MachineStatus::Deployed).await.unwrap();
        assert!(begun.elapsed() < Duration::from_mins(1), "{off}: {:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_hangs_still_ends_after_it_was_switched_on() {
    let emulator = emulator(FLEET);
    emulator.inject(Fault::Machine(MachineFault { machine: None, times: None, harm: MachineHarm::HangDeploy })).unwrap();
    let client = administrator(&emulator);
    let id = allocated(&client).await;
    let begun = tokio::time::Instant::now();
    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(100)).await;
        client.machine(&id).power_off(PowerOff::Hard, None).await.unwrap();
        tokio::time::sleep(Duration::from_secs(40)).await;
        client.machine(&id).power_on(None).await.unwrap();
    }
    settled(&client, &id, MachineStatus::FailedDeployment).await.unwrap();
    assert!((600..610).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn commissioning_without_power_fails_and_goes_on_with_it() {
    for on_again in [false, true] {
        let emulator = emulator(FLEET);
        let client = administrator(&emulator);
        let id = client.machines().list(&maas_client::MachineFilter::new()).await.unwrap()[0].system_id.clone();
        client.machine(&id).commission(&Commission::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        client.machine(&id).power_off(PowerOff::Hard, None).await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        if on_again {
            client.machine(&id).power_on(None).await.unwrap();
        }
        let end = if on_again { MachineStatus::Ready } else { MachineStatus::FailedCommissioning };
        settled(&client, &id, end).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_somebody_switches_on_again_fails_after_five_minutes() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    let id = allocated(&client).await;
    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
    settled(&client, &id, MachineStatus::Deployed).await.unwrap();
    client.machine(&id).release(&Release::default()).await.unwrap();
    client.machine(&id).power_on(None).await.unwrap();
    let failed = settled(&client, &id, MachineStatus::ReleasingFailed).await.unwrap();
    assert!(failed.error_description.contains("after 5 minutes"), "{}", failed.error_description);
    client.machine(&id).release(&Release::default()).await.unwrap();
    settled(&client, &id, MachineStatus::Ready).await.unwrap();
}
