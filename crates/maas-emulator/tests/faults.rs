//! What goes wrong in an emulated MAAS, as a client meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use std::time::Duration;

use maas::{administrator, emulator, settled};
use maas_client::{Allocate, Deploy, Error, EventFilter, EventLevel, EventPlace, MachineFilter, MachineStatus, Release};
use maas_emulator::Fault;
use maas_emulator::faults::{CallFault, CallHarm, CallPattern, Happening, Incident, MachineFault, MachineHarm};

const FLEET: &str = "machines: [{hostname: m, count: 3}]";

fn on(operation: &str, times: u32, harm: CallHarm) -> Fault {
    Fault::Call(CallFault {
        matching: CallPattern { operation: Some(operation.into()), ..CallPattern::default() },
        skip: 0,
        times: Some(times),
        harm,
    })
}

fn machine(harm: MachineHarm) -> Fault {
    Fault::Machine(MachineFault { machine: None, times: Some(1), harm })
}

#[tokio::test(start_paused = true)]
async fn an_installation_that_fails_says_why_and_the_machine_stays_with_its_owner() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    emulator.inject(machine(MachineHarm::FailDeploy("cloud-init: no space left on device".into()))).unwrap();
    let id = client.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
    let failed = settled(&client, &id, MachineStatus::FailedDeployment).await.unwrap();
    assert_eq!(failed.owner.as_deref(), Some("admin"));
    assert_eq!(failed.error_description, "cloud-init: no space left on device");
    let page = client.events().query(&EventFilter::new().machine(&id).level(EventLevel::Error), EventPlace::Newest, None).await.unwrap();
    assert_eq!(page.events[0].description, "cloud-init: no space left on device");
    assert!(
        matches!(client.machine(&id).deploy(&Deploy::default()).await, Err(Error::Conflict { .. })),
        "a failed machine is released first"
    );
    client.machine(&id).release(&Release::default()).await.unwrap();
    settled(&client, &id, MachineStatus::Ready).await.unwrap();
    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
    settled(&client, &id, MachineStatus::Deployed).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_installation_that_hangs_is_failed_after_an_hour() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    emulator.inject(machine(MachineHarm::HangDeploy)).unwrap();
    let id = client.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
    let begun = tokio::time::Instant::now();
    settled(&client, &id, MachineStatus::FailedDeployment).await.unwrap();
    let minutes = begun.elapsed().as_secs() / 60;
    assert!((60..62).contains(&minutes), "{minutes} minutes");
}

#[tokio::test(start_paused = true)]
async fn an_installation_whose_machine_loses_its_power_is_failed_when_its_time_is_over() {
    let emulator = emulator("machines: [{hostname: m}]\ntimings: {deploy_timeout: 45}");
    let client = administrator(&emulator);
    let id = client.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
    emulator.inject(Fault::Incident(Incident { after_seconds: 3.0, machine: id.to_string(), what: Happening::PowerLoss })).unwrap();
    let failed = settled(&client, &id, MachineStatus::FailedDeployment).await.unwrap();
    assert_eq!(failed.error_description, "Node operation 'Deploying' timed out after 45 seconds.");
    client.machine(&id).release(&Release::default()).await.unwrap();
    settled(&client, &id, MachineStatus::Ready).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_does_not_answer_fails_the_deployment_and_half_clears_a_release() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    let id = client.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
    settled(&client, &id, MachineStatus::Deployed).await.unwrap();
    emulator.inject(machine(MachineHarm::BmcError("Could not contact node's BMC: timed out".into()))).unwrap();
    let refused = client.machine(&id).release(&Release::default()).await;
    assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
    let half = client.machine(&id).read().await.unwrap();
    assert_eq!((half.status, half.osystem.as_str()), (MachineStatus::Deployed, ""), "the old state, the image already forgotten");
    client.machine(&id).release(&Release::default()).await.unwrap();
    settled(&client, &id, MachineStatus::Ready).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_allocation_without_an_answer_may_or_may_not_have_happened() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    let wish = |name: &str| Allocate::new().agent_name(name);
    emulator.inject(on("allocate", 1, CallHarm::ResetBefore)).unwrap();
    assert!(matches!(client.machines().allocate(&wish("before")).await, Err(Error::OutcomeUnknown { .. })));
    assert!(client.machines().list(&MachineFilter::new().agent_name("before")).await.unwrap().is_empty());
    emulator.inject(on("allocate", 1, CallHarm::ResetAfter)).unwrap();
    assert!(matches!(client.machines().allocate(&wish("after")).await, Err(Error::OutcomeUnknown { .. })));
    assert_eq!(client.machines().list(&MachineFilter::new().agent_name("after")).await.unwrap().len(), 1);
    emulator.inject(on("allocate", 1, CallHarm::LateCommit { seconds: 60.0 })).unwrap();
    assert!(matches!(client.machines().allocate(&wish("late")).await, Err(Error::OutcomeUnknown { .. })));
    assert!(client.machines().list(&MachineFilter::new().agent_name("late")).await.unwrap().is_empty(), "not yet");
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    assert_eq!(
        client.machines().list(&MachineFilter::new().agent_name("late")).await.unwrap().len(),
        1,
        "committed after the client gave up"
    );
}

#[tokio::test(start_paused = true)]
async fn conflicts_and_outages_come_in_the_shapes_of_maas() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    emulator.inject(on("allocate", 1, CallHarm::Conflict)).unwrap();
    let conflict = client.machines().allocate(&Allocate::new()).await;
    assert!(matches!(conflict, Err(Error::Conflict { retry_after: Some(_), .. })), "{conflict:?}");
    emulator.inject(on("allocate", 1, CallHarm::Status { status: 500, body: "broken".into(), retry_after: None })).unwrap();
    assert!(matches!(client.machines().allocate(&Allocate::new()).await, Err(Error::Failed { .. })));
    let reads = |status| {
        Fault::Call(CallFault {
            matching: CallPattern { method: Some("GET".into()), ..CallPattern::default() },
            skip: 0,
            times: Some(2),
            harm: CallHarm::Status { status, body: "away".into(), retry_after: Some(1) },
        })
    };
    emulator.inject(reads(503)).unwrap();
    assert_eq!(client.machines().list(&MachineFilter::new()).await.unwrap().len(), 3, "reads are repeated until it is back");
    assert_eq!(emulator.journal(|journal| journal.entries().filter(|entry| entry.status == 503).count()), 2);
}

#[tokio::test(start_paused = true)]
async fn others_release_lock_delete_and_take_machines() {
    let emulator = emulator(
        "
users:
  - {name: admin, superuser: true, keys: [{key: 'emulatorconsumer00:emulatortokenkey00:emulatortokensecret0000000000000'}]}
  - {name: somebody}
machines: [{hostname: m, count: 4}]
",
    );
    let client = administrator(&emulator);
    let mut ids = Vec::new();
    for _ in 0..4 {
        let id = client.machines().allocate(&Allocate::new()).await.unwrap().system_id;
        client.machine(&id).deploy(&Deploy::default()).await.unwrap();
        settled(&client, &id, MachineStatus::Deployed).await.unwrap();
        ids.push(id);
    }
    let happenings = [Happening::Released, Happening::Locked, Happening::Deleted, Happening::DeployedBy("somebody".into())];
    for (id, what) in ids.iter().zip(happenings) {
        emulator.inject(Fault::Incident(Incident { after_seconds: 30.0, machine: id.to_string(), what })).unwrap();
    }
    assert_eq!(client.machine(&ids[2]).read().await.unwrap().status, MachineStatus::Deployed, "nothing happens before its time");
    tokio::time::sleep(std::time::Duration::from_secs(40)).await;
    assert_eq!(client.machine(&ids[0]).read().await.unwrap().owner, None);
    assert!(client.machine(&ids[1]).read().await.unwrap().locked);
    assert!(matches!(client.machine(&ids[1]).release(&Release::default()).await, Err(Error::NotPermitted { .. })), "locked is 403");
    assert!(matches!(client.machine(&ids[2]).read().await, Err(Error::NotFound { .. })));
    assert_eq!(client.machine(&ids[3]).read().await.unwrap().owner.as_deref(), Some("somebody"));
}

#[tokio::test(start_paused = true)]
async fn a_subnet_without_addresses_leaves_the_machine_allocated() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    emulator.inject(Fault::ExhaustedAddresses { subnet: "10.20.0.0/24".parse().unwrap() }).unwrap();
    let id = client.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    let full = client.machine(&id).deploy(&Deploy::default()).await.unwrap_err();
    assert!(full.to_string().contains("No more IPs available in subnet: 10.20.0.0/24"), "{full}");
    assert_eq!(client.machine(&id).read().await.unwrap().status, MachineStatus::Allocated);
}

#[tokio::test(start_paused = true)]
async fn without_a_rack_nothing_is_switched_and_deployments_fail() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    let running = client.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    client.machine(&running).deploy(&Deploy::default()).await.unwrap();
    settled(&client, &running, MachineStatus::Deployed).await.unwrap();
    emulator.inject(Fault::NoRack).unwrap();
    let id = client.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
    let failed = client.machine(&id).read().await.unwrap();
    assert_eq!(failed.status, MachineStatus::FailedDeployment);
    assert!(failed.error_description.starts_with("Unable to connect to any rack controller"), "{}", failed.error_description);
    let kept = client.machine(&running).release(&Release::default()).await;
    assert!(matches!(kept, Err(Error::Unavailable { retry_after: Some(_), .. })), "{kept:?}");
    assert_eq!(client.machine(&running).read().await.unwrap().status, MachineStatus::Deployed, "nobody could switch it off");
}

#[tokio::test(start_paused = true)]
async fn faults_of_what_does_not_exist_are_refused_and_none_of_their_company_takes_effect() {
    let emulator = emulator(FLEET);
    let incident = |machine: &str, what| Fault::Incident(Incident { after_seconds: 0.0, machine: machine.into(), what });
    let of_user = |user: &str| {
        let matching = CallPattern { user: Some(user.into()), ..CallPattern::default() };
        Fault::Call(CallFault { matching, skip: 0, times: None, harm: CallHarm::ResetBefore })
    };
    let wrong = [
        (Fault::Machine(MachineFault { machine: Some("m99".into()), times: None, harm: MachineHarm::HangDeploy }), "no machine \"m99\""),
        (incident("nobody", Happening::PowerLoss), "no machine \"nobody\""),
        (incident("m01", Happening::DeployedBy("eve".into())), "no user \"eve\""),
        (of_user("eve"), "no user \"eve\""),
        (on("alocate", 1, CallHarm::Conflict), "no call has the operation \"alocate\""),
        (Fault::ExhaustedAddresses { subnet: "192.0.2.0/24".parse().unwrap() }, "no subnet 192.0.2.0/24"),
    ];
    for (fault, words) in wrong {
        let refused = emulator.inject_all(vec![of_user("admin"), fault]).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(administrator(&emulator).machines().list(&MachineFilter::new()).await.unwrap().len(), 3);
    let fleet = "machines: [{hostname: m}]\nfaults:\n  - no_rack\n  - machine: {machine: n, harm: hang_deploy}\n";
    let error = maas_emulator::Emulator::new(maas_emulator::Fleet::from_yaml(fleet).unwrap(), maas_emulator::Options::default());
    let error = error.err().unwrap().to_string();
    assert!(error.starts_with("line 4: faults: there is no machine \"n\""), "{error}");
}

/// What is noted of calls that were given up: in the moment they were sent, and in the middle of a slow one.
async fn given_up() -> Vec<(String, u16, i64)> {
    let emulator = emulator(FLEET);
    emulator.inject(on("allocate", 1, CallHarm::Slow { seconds: 60.0 })).unwrap();
    let client = administrator(&emulator);
    for name in ["az1", "az2", "az3"] {
        let zones = client.zones();
        let mut creation = std::pin::pin!(zones.create(name, ""));
        assert!(futures::poll!(creation.as_mut()).is_pending(), "sent, and not yet answered");
    }
    let any = Allocate::new();
    let allocation = tokio::time::timeout(Duration::from_secs(1), client.machines().allocate(&any)).await;
    assert!(allocation.is_err(), "the client gives up");
    let owned = || emulator.world(|world| world.all_machines().filter(|machine| machine.owner.is_some()).count());
    assert_eq!(owned(), 0, "not yet");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(owned(), 1, "done all the same");
    let zones = client.zones().list().await.unwrap();
    assert_eq!(zones.iter().map(|zone| zone.name.as_str()).collect::<Vec<_>>(), ["az1", "az2", "az3", "default"]);
    emulator.journal(|journal| {
        journal.entries().map(|entry| (format!("{} {}", entry.method, entry.uri), entry.status, entry.at.as_second())).collect()
    })
}

#[tokio::test(start_paused = true)]
async fn what_a_client_in_this_process_gave_up_on_is_done_and_noted_all_the_same() {
    let noted = given_up().await;
    let kinds: Vec<(&str, u16)> = noted.iter().map(|(call, status, _)| (call.as_str(), *status)).collect();
    let zone = ("POST /MAAS/api/2.0/zones/", 200);
    assert_eq!(kinds, [zone, zone, zone, ("POST /MAAS/api/2.0/machines/?op=allocate", 200), ("GET /MAAS/api/2.0/zones/", 200)]);
    for _ in 0..20 {
        assert_eq!(given_up().await, noted, "the same each time");
    }
}
