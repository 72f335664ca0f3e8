//! An emulator that is stopped and started again from its file.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use maas::{administrator, emulator, settled};
use maas_client::{Allocate, Deploy, MachineFilter, MachineStatus, Release};
use maas_emulator::{Clock, Emulator, Options, state_file};

#[tokio::test(start_paused = true)]
async fn what_was_under_way_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json");
    assert!(state_file::load(&path).unwrap().is_none(), "no file, no world");
    let before = emulator("machines: [{hostname: m, count: 2}]");
    let id = administrator(&before).machines().allocate(&Allocate::new().agent_name("claim")).await.unwrap().system_id;
    administrator(&before).machine(&id).deploy(&Deploy::default()).await.unwrap();
    state_file::save(&path, &before).unwrap();
    let options = Options { clock: Clock::running(before.clock().now()), ..Options::default() };
    let after = Emulator::resume(state_file::load(&path).unwrap().unwrap(), options);
    drop(before);
    let client = administrator(&after);
    let deployed = settled(&client, &id, MachineStatus::Deployed).await.unwrap();
    assert!(!deployed.ip_addresses.is_empty());
    assert_eq!(client.machines().list(&MachineFilter::new().agent_name("claim")).await.unwrap().len(), 1);
    client.machine(&id).release(&Release::default()).await.unwrap();
    settled(&client, &id, MachineStatus::Ready).await.unwrap();
}

#[test]
fn a_file_that_is_no_state_is_refused_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json");
    std::fs::write(&path, "{\"half\":").unwrap();
    let refused = state_file::load(&path).unwrap_err().to_string();
    assert!(refused.contains("is not a state this emulator wrote"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"half\":");
}
