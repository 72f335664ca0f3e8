//! An emulator that is stopped and started again from its file.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use maas::{administrator, call, emulator, settled};
use maas_client::{Allocate, Deploy, DnsFilter, Error, MachineFilter, MachineStatus, Release};
use maas_emulator::faults::{CallFault, CallHarm, CallPattern};
use maas_emulator::state_file::{self, Saver};
use maas_emulator::{Clock, Emulator, Fault, Fleet, Options};

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

#[tokio::test(start_paused = true)]
async fn a_call_that_is_carried_out_late_is_carried_out_after_a_restart_too_and_its_fault_is_used_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json");
    let before = emulator("machines: [{hostname: m, count: 3}]");
    let saver = Saver::new(path.clone(), before.clone()).unwrap();
    let late_commit = |operation: Option<&str>, path: Option<&str>| {
        let matching = CallPattern { operation: operation.map(str::to_owned), path: path.map(str::to_owned), ..CallPattern::default() };
        before.inject(Fault::Call(CallFault { matching, skip: 0, times: Some(1), harm: CallHarm::LateCommit { seconds: 60.0 } })).unwrap();
    };
    late_commit(Some("allocate"), None);
    late_commit(None, Some("dnsresources/"));
    saver.save().await.unwrap();
    let client = administrator(&before);
    let lost = client.machines().allocate(&Allocate::new().agent_name("late")).await;
    assert!(matches!(lost, Err(Error::OutcomeUnknown { .. })), "{lost:?}");
    // Another call saves the file after the fault has struck and before the call is put off: names take a moment.
    let (lost, between) = tokio::join!(client.dns_resources().create("late.maas", None, &[]), async {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        saver.save().await
    });
    assert!(matches!(lost, Err(Error::OutcomeUnknown { .. })), "{lost:?}");
    between.unwrap();
    saver.save().await.unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing lies beside the file");
    let options = Options { clock: Clock::running(before.clock().now()), ..Options::default() };
    let after = Emulator::resume(state_file::load(&path).unwrap().unwrap(), options);
    let client = administrator(&after);
    client.machines().allocate(&Allocate::new().agent_name("next")).await.unwrap();
    let late = async || client.machines().list(&MachineFilter::new().agent_name("late")).await.unwrap().len();
    assert_eq!(late().await, 0);
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    assert_eq!(late().await, 1);
    assert_eq!(client.dns_resources().list(&DnsFilter::default()).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_checksum_of_an_upload_in_pieces_is_held_to_all_of_them_over_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json");
    let restarted = |before: &Emulator| {
        state_file::save(&path, before).unwrap();
        let options = Options { clock: Clock::running(before.clock().now()), ..Options::default() };
        Emulator::resume(state_file::load(&path).unwrap().unwrap(), options)
    };
    let put = async |emulator: &Emulator, place: &str, piece: &str| {
        let place = place.strip_prefix("/MAAS/api/2.0/").unwrap();
        call(emulator, Some(Fleet::DEFAULT_KEY), "PUT", place, piece).await
    };
    let mut emulator = emulator("machines: []");
    // The digest of "onetwothree".
    let form = "name=custom/a&architecture=amd64/generic&size=11&sha256=4592092e1061c7ea85af2aed194621cc17a2762bae33a79bf8ce33fd0168b801";
    let (status, image) = call(&emulator, Some(Fleet::DEFAULT_KEY), "POST", "boot-resources/", form).await;
    assert_eq!(status, 201, "{image}");
    let image: serde_json::Value = serde_json::from_str(&image).unwrap();
    let set = image["sets"].as_object().unwrap().values().next().unwrap();
    let place = set["files"]["root.tgz"]["upload_uri"].as_str().unwrap();
    for piece in ["one", "two"] {
        assert_eq!(put(&emulator, place, piece).await.0, 200);
        emulator = restarted(&emulator);
    }
    let refused = put(&emulator, place, "THREE").await;
    assert_eq!(refused, (400, "Saved content does not match given SHA256 value.".to_owned()));
    emulator = restarted(&emulator);
    assert_eq!(put(&emulator, place, "three").await.0, 200);
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

#[tokio::test(start_paused = true)]
async fn keys_that_nobody_may_guess_are_others_for_the_same_seed_also_after_a_restart() {
    const FLEET: &str = "users: [{name: admin, superuser: true, keys: [{key: 'ac:at:as'}]}, {name: ada}]";
    let keys_made = async |unguessable_keys: bool| {
        let options = || Options { clock: Clock::running(jiff::Timestamp::UNIX_EPOCH), unguessable_keys, ..Options::default() };
        let before = Emulator::new(Fleet::from_yaml(FLEET).unwrap(), options()).unwrap();
        let world: maas_emulator::world::World =
            before.world(|world| serde_json::from_str(&serde_json::to_string(world).unwrap()).unwrap());
        let emulator = Emulator::resume(world, options());
        for (path, form) in [
            ("account/?op=create_authorisation_token", "name=second"),
            ("users/", "username=grace&email=grace@example.com&password=p&is_superuser=0"),
        ] {
            let (status, words) = call(&emulator, maas::ADMIN, "POST", path, form).await;
            assert_eq!(status, 200, "{path}: {words}");
        }
        emulator.world(|world| world.tokens.iter().skip(1).map(maas_emulator::world::people::Token::key).collect::<Vec<String>>())
    };
    assert_eq!(keys_made(false).await, keys_made(false).await, "the seed says what they are");
    let (one, another) = (keys_made(true).await, keys_made(true).await);
    assert_eq!(one.len(), 3, "that of the fleet's user, the second one of the administrator, and that of the new user");
    for key in &one {
        assert_eq!(key.split(':').map(str::len).collect::<Vec<_>>(), [18, 18, 32]);
        assert!(!another.contains(key), "{key}");
    }
}
