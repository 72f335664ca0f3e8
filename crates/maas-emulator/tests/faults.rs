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
    let at = |method: Option<&str>, path: Option<&str>| {
        let matching = CallPattern { method: method.map(str::to_owned), path: path.map(str::to_owned), ..CallPattern::default() };
        Fault::Call(CallFault { matching, skip: 0, times: Some(0), harm: CallHarm::ResetBefore })
    };
    for path in ["", "machines", "machines/", "machines/abc123/", "nodes/abc123/interfaces/1/", "subnets/cidr:10.20.0.0/24/", "zones/a"] {
        emulator.inject(at(Some("get"), Some(path))).unwrap();
    }
    let wrong = [
        (Fault::Machine(MachineFault { machine: Some("m99".into()), times: None, harm: MachineHarm::HangDeploy }), "no machine \"m99\""),
        (incident("nobody", Happening::PowerLoss), "no machine \"nobody\""),
        (incident("m01", Happening::DeployedBy("eve".into())), "no user \"eve\""),
        (of_user("eve"), "no user \"eve\""),
        (on("alocate", 1, CallHarm::Conflict), "no call has the operation \"alocate\""),
        (Fault::ExhaustedAddresses { subnet: "192.0.2.0/24".parse().unwrap() }, "no subnet 192.0.2.0/24"),
        (at(Some("GTE"), None), "no call has the method \"GTE\""),
        (at(None, Some("nosuch/")), "no call has a path that begins with \"nosuch/\""),
        (at(None, Some("/MAAS/api/2.0/machines/")), "faults name paths below api/2.0/"),
        (at(None, Some("machines/abc123/nosuch/")), "no call has a path that begins with \"machines/abc123/nosuch/\""),
        (on("allocate", 1, CallHarm::Slow { seconds: -1.0 }), "-1 is not a time in seconds from now on"),
        (on("allocate", 1, CallHarm::LateCommit { seconds: f64::NAN }), "NaN is not a time in seconds from now on"),
        (
            Fault::Incident(Incident { after_seconds: -5.0, machine: "m01".into(), what: Happening::Locked }),
            "-5 is not a time in seconds from now on",
        ),
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

#[tokio::test(start_paused = true)]
async fn a_name_that_is_committed_late_does_not_see_the_one_made_in_its_place() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    let matching = CallPattern { method: Some("POST".into()), path: Some("dnsresources/".into()), ..CallPattern::default() };
    let late = CallHarm::LateCommit { seconds: 60.0 };
    emulator.inject(Fault::Call(CallFault { matching, skip: 0, times: Some(1), harm: late })).unwrap();
    let create = async || client.dns_resources().create("lost.maas", None, &[[10, 20, 0, 240].into()]).await;
    assert!(matches!(create().await, Err(Error::OutcomeUnknown { .. })));
    let names = || emulator.world(|world| world.names.values().filter(|name| name.name == "lost").count());
    assert_eq!(names(), 0, "not yet");
    create().await.unwrap();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(names(), 2, "each transaction saw none of that name when it began");
    assert!(matches!(create().await, Err(Error::Refused { .. })), "one that begins now sees them");
}

#[tokio::test(start_paused = true)]
async fn a_call_signed_in_its_body_is_done_late_and_counted_like_any_other() {
    let emulator = emulator(FLEET);
    let [consumer, token, secret] = <[&str; 3]>::try_from(maas_emulator::Fleet::DEFAULT_KEY.split(':').collect::<Vec<_>>()).unwrap();
    let signed = |nonce: u32| {
        format!(
            "oauth_signature_method=PLAINTEXT&oauth_consumer_key={consumer}&oauth_token={token}&oauth_signature=%26{secret}\
             &oauth_nonce={nonce}&oauth_timestamp={}",
            emulator.clock().now().as_second()
        )
    };
    let form = "application/x-www-form-urlencoded";
    let in_body = http::Request::post("/MAAS/api/2.0/machines/?op=allocate").header("content-type", form);
    let in_body = in_body.body(bytes::Bytes::from(format!("agent_name=late&{}", signed(1)))).unwrap();
    let in_query = http::Request::get(format!("/MAAS/api/2.0/users/?op=whoami&{}", signed(2))).body(bytes::Bytes::new()).unwrap();
    let to_nowhere = http::Request::post("/MAAS/api/2.0/nowhere/").header("content-type", form);
    let to_nowhere = to_nowhere.body(bytes::Bytes::from(signed(3))).unwrap();
    emulator.inject(on("allocate", 1, CallHarm::LateCommit { seconds: 2.0 })).unwrap();
    emulator.answer(in_body).await.unwrap_err();
    assert_eq!(emulator.answer(in_query).await.unwrap().status(), 200);
    assert_eq!(emulator.answer(to_nowhere).await.unwrap().status(), 404);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(emulator.world(|world| world.all_machines().filter(|machine| machine.agent_name == "late").count()), 1);
    assert_eq!(emulator.journal(|journal| (journal.by_key()[token], journal.by_user()["admin"])), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn faults_stay_with_a_machine_that_is_renamed() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    emulator.inject(Fault::Machine(MachineFault { machine: Some("m01".into()), times: None, harm: MachineHarm::HangDeploy })).unwrap();
    emulator.inject(Fault::Incident(Incident { after_seconds: 60.0, machine: "m01".into(), what: Happening::Locked })).unwrap();
    let id = emulator.world(|world| world.all_machines().find(|machine| machine.hostname == "m01").unwrap().system_id.clone());
    let (renamed, words) =
        maas::call(&emulator, Some(maas_emulator::Fleet::DEFAULT_KEY), "PUT", &format!("machines/{id}/"), "hostname=n").await;
    assert_eq!(renamed, 200, "{words}");
    let id = maas_client::SystemId::from(id);
    client.machine(&id).deploy(&Deploy::default()).await.unwrap();
    tokio::time::sleep(Duration::from_mins(2)).await;
    let machine = client.machine(&id).read().await.unwrap();
    assert_eq!((machine.status, machine.locked), (MachineStatus::Deploying, true));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_others_take_away_takes_its_vm_hosts_and_their_machines_along() {
    for what in [Happening::Released, Happening::Deleted, Happening::DeployedBy("admin".into())] {
        let emulator = emulator(
            "
machines: [{hostname: host, status: deployed, owner: admin, image: ubuntu/jammy}]
vm_hosts: [{name: lxd, machine: host}, {name: other}]
",
        );
        let hosts: Vec<u32> = emulator.world(|world| world.vm_hosts.values().map(|host| host.id.0).collect());
        for host in hosts {
            let form = format!("hostname=on-{host}&skip_commissioning=true");
            let place = format!("vm-hosts/{host}/?op=compose");
            let (composed, words) = maas::call(&emulator, Some(maas_emulator::Fleet::DEFAULT_KEY), "POST", &place, &form).await;
            assert_eq!(composed, 200, "{words}");
        }
        emulator.inject(Fault::Incident(Incident { after_seconds: 1.0, machine: "host".into(), what: what.clone() })).unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let left = emulator.world(|world| {
            let machines: Vec<String> =
                world.all_machines().map(|machine| machine.hostname.clone()).filter(|name| name != "host").collect();
            (world.vm_hosts.values().map(|host| host.name.clone()).collect::<Vec<_>>(), machines.len())
        });
        assert_eq!(left, (vec!["other".to_owned()], 1), "{what:?}");
    }
}
