//! Power switched by hand while MAAS is at work on a machine: no state lasts for ever, and none ends later than it would have.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use std::time::Duration;

use maas::{administrator, emulator, settled};
use maas_client::{
    Allocate, Client, Commission, Deploy, Error, MachineFilter, MachineStatus, PowerOff, PowerState, Release, SystemId, Test,
};
use maas_emulator::Fault;
use maas_emulator::faults::{Happening, Incident, MachineFault, MachineHarm};

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
            tokio::time::sleep(Duration::from_mins(1)).await;
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
        tokio::time::sleep(Duration::from_mins(1)).await;
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

async fn only(client: &Client) -> SystemId {
    client.machines().list(&MachineFilter::new()).await.unwrap().remove(0).system_id
}

#[tokio::test(start_paused = true)]
async fn an_erasing_that_failed_is_not_made_up_for_by_a_plain_release() {
    let emulator = emulator(FLEET);
    emulator.inject(Fault::Machine(MachineFault { machine: None, times: Some(1), harm: MachineHarm::FailErase })).unwrap();
    let client = administrator(&emulator);
    let id = allocated(&client).await;
    client.machine(&id).release(&Release { erase: true, ..Release::default() }).await.unwrap();
    settled(&client, &id, MachineStatus::FailedDiskErasing).await.unwrap();
    assert!(emulator.world(|world| world.all_machines().all(|machine| machine.erase_options.is_none())));
}

#[tokio::test(start_paused = true)]
async fn machines_that_begin_in_a_failed_rescue_come_out_of_it_as_what_they_were() {
    for status in ["failed_entering_rescue_mode", "failed_exiting_rescue_mode"] {
        let emulator = emulator(&format!("machines: [{{hostname: m, status: {status}}}]"));
        let client = administrator(&emulator);
        let id = only(&client).await;
        let refused = client.machine(&id).test(&Test::default()).await;
        assert!(matches!(refused, Err(Error::Refused { .. })), "{status}: {refused:?}");
        client.machine(&id).exit_rescue_mode().await.unwrap();
        settled(&client, &id, MachineStatus::Ready).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_deployed_runs_and_has_an_address() {
    let emulator = emulator(FLEET);
    let what = Happening::DeployedBy("admin".into());
    emulator.inject(Fault::Incident(Incident { after_seconds: 0.0, machine: "m".into(), what })).unwrap();
    let client = administrator(&emulator);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let machine = client.machine(&only(&client).await).read().await.unwrap();
    assert_eq!((machine.status, machine.power_state), (MachineStatus::Deployed, PowerState::On));
    assert!(!machine.ip_addresses.is_empty());
}

#[tokio::test(start_paused = true)]
async fn user_data_given_with_the_power_is_decoded_as_a_deployment_decodes_it() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    let id = allocated(&client).await;
    let (status, body) = maas::call(
        &emulator,
        Some(maas_emulator::Fleet::DEFAULT_KEY),
        "POST",
        &format!("machines/{id}/?op=power_on"),
        "user_data=I2Nsb3VkLWNvbmZpZwo=",
    )
    .await;
    assert_eq!(status, 200, "{body}");
    let kept = emulator.world(|world| world.all_machines().next().unwrap().user_data.clone());
    assert_eq!(kept.as_deref(), Some(&b"#cloud-config\n"[..]));
}
