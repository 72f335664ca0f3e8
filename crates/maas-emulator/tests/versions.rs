//! What a client sees of the differences between releases of MAAS.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use maas::{administrator, emulator};
use maas_client::{Allocate, Error, MachineFilter, PowerOff, PowerState, Release, SystemId};
use maas_emulator::Emulator;
use maas_emulator::faults::{CallFault, CallHarm, CallPattern, Fault};

fn fleet(version: &str) -> Emulator {
    emulator(&format!("version: '{version}'\nmachines: [{{hostname: m, count: 2}}]\nvm_hosts: [{{name: host}}]"))
}

async fn keys_of_a_machine(emulator: &Emulator) -> Vec<String> {
    let id = administrator(emulator).machines().list(&MachineFilter::new()).await.unwrap().remove(0).system_id;
    let answer = emulator.journal(|journal| journal.entries().last().unwrap().response.clone().unwrap());
    let list: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_slice(&answer).unwrap();
    assert!(list.iter().any(|machine| machine["system_id"] == id.to_string()));
    list[0].keys().cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn older_releases_have_fewer_fields() {
    assert!(!keys_of_a_machine(&fleet("3.0")).await.contains(&"enable_hw_sync".to_owned()));
    assert!(keys_of_a_machine(&fleet("3.3")).await.contains(&"enable_hw_sync".to_owned()));
    assert!(!keys_of_a_machine(&fleet("3.5")).await.contains(&"is_dpu".to_owned()));
    assert!(keys_of_a_machine(&fleet("3.7")).await.contains(&"is_dpu".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn each_release_says_which_it_is_and_what_it_does_not_find() {
    for (version, full, words) in [("3.0", "3.0.1", "Not Found"), ("3.3", "3.3.10", "No Machine matches the given query.")] {
        let emulator = fleet(version);
        let client = administrator(&emulator);
        assert_eq!(client.version().await.unwrap().version, full);
        let missing = client.machine(&SystemId::from("zzzzzz")).read().await;
        assert!(matches!(&missing, Err(Error::NotFound { words: told, .. }) if told == words), "{missing:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn conflicts_of_the_oldest_release_do_not_say_when_to_try_again_and_are_known_by_their_page() {
    for (version, says) in [("3.0", false), ("3.3", true)] {
        let emulator = fleet(version);
        let matching = CallPattern { operation: Some("allocate".into()), ..CallPattern::default() };
        emulator.inject(Fault::Call(CallFault { matching, skip: 0, times: Some(2), harm: CallHarm::Conflict })).unwrap();
        let request = Request::post("/MAAS/api/2.0/machines/?op=allocate").body(Bytes::new()).unwrap();
        let answer = emulator.answer(request).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers().contains_key("retry-after")), (409, says), "{version}");
        let conflict = administrator(&emulator).machines().allocate(&Allocate::new()).await;
        assert!(matches!(conflict, Err(Error::Conflict { retry_after, .. }) if retry_after.is_some()), "{version}: {conflict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn before_3_5_a_machine_is_not_switched_while_it_is_being_switched_the_other_way() {
    for (version, refuses) in [("3.0", true), ("3.3", true), ("3.5", false), ("3.7", false)] {
        let emulator = emulator(&format!(
            "version: '{version}'\nmachines: [{{hostname: m, status: deployed, owner: admin, image: ubuntu/jammy}}]\n\
             timings: {{power_off: [30, 30], power_on: [30, 30]}}"
        ));
        let client = administrator(&emulator);
        let id = client.machines().list(&MachineFilter::new()).await.unwrap().remove(0).system_id;
        let machine = client.machine(&id);
        machine.power_off(PowerOff::Hard, None).await.unwrap();
        machine.power_off(PowerOff::Hard, None).await.unwrap();
        let on = machine.power_on(None).await;
        if refuses {
            let Err(Error::Unavailable { words, retry_after, .. }) = on else { panic!("{version}: {on:?}") };
            let expected = "Unable to change power state to 'on' for node m: another action is already in progress for that node.";
            assert_eq!((words.as_str(), retry_after), (expected, Some(Duration::from_secs(10))), "{version}");
            tokio::time::sleep(Duration::from_secs(31)).await;
            machine.power_on(None).await.unwrap();
        } else {
            on.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(machine.query_power_state().await.unwrap(), PowerState::On, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_maas_without_vm_hosts_answers_that_they_are_gone() {
    assert_eq!(administrator(&fleet("3.7")).vm_hosts().list().await.unwrap().len(), 1);
    let gone = administrator(&fleet("removed")).vm_hosts().list().await;
    assert!(matches!(gone, Err(Error::Gone { .. })), "{gone:?}");
    let emulator = emulator(
        "version: removed\nmachines: [{hostname: m, status: deployed, owner: admin, image: ubuntu/jammy}]\nvm_hosts: [{name: h, machine: m}]",
    );
    let client = administrator(&emulator);
    let id = client.machines().list(&MachineFilter::new()).await.unwrap().remove(0).system_id;
    client.machine(&id).release(&Release::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn answers_of_releases_before_3_3_may_be_shown_in_frames_of_the_same_origin() {
    for (version, frames) in [("3.0", "SAMEORIGIN"), ("3.3", "DENY"), ("3.7", "DENY")] {
        for path in ["/MAAS/api/2.0/version/", "/MAAS/api/2.0/zones/", "/MAAS/nowhere"] {
            let answer = fleet(version).answer(Request::get(path).body(Bytes::new()).unwrap()).await.unwrap();
            assert_eq!(answer.headers()["x-frame-options"], frames, "{version} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bad_requests_are_answered_as_maas_answers_them() {
    let emulator = fleet("3.7");
    let ask = async |method: &str, path: &str, content_type: &str, body: &'static [u8]| {
        let request =
            Request::builder().method(method).uri(path).header("content-type", content_type).body(Bytes::from_static(body)).unwrap();
        let answer = emulator.answer(request).await.unwrap();
        (answer.status().as_u16(), String::from_utf8_lossy(answer.body()).into_owned())
    };
    assert_eq!(ask("GET", "/MAAS/api/2.0/machines", "", b"").await, (404, "Unknown API endpoint: /MAAS/api/2.0/machines.".into()));
    assert_eq!(ask("GET", "/MAAS/api/2.0/machines/", "", b"").await.0, 400, "anonymous callers have a handler of their own there");
    assert_eq!(ask("GET", "/MAAS/api/2.0/zones/", "", b"").await, (401, "Forbidden".into()));
    assert_eq!(ask("HEAD", "/MAAS/api/2.0/version/", "", b"").await.0, 405, "nobody is asked for a key there");
    assert_eq!(ask("POST", "/MAAS/api/2.0/machines/?op=allocate", "application/json", b"{\"a\":").await, (400, "Bad Request".into()));
    assert_eq!(ask("POST", "/MAAS/api/2.0/zones/", "application/x-www-form-urlencoded", b"name=%ff%fe").await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn strangers_hear_nothing_of_what_is_wrong_with_their_requests() {
    let emulator = fleet("3.7");
    let [consumer, token, secret] = <[&str; 3]>::try_from(maas_emulator::Fleet::DEFAULT_KEY.split(':').collect::<Vec<_>>()).unwrap();
    let now = emulator.clock().now().as_second();
    let cases: [(&str, &str, &str, &'static [u8], u16); 6] = [
        ("PATCH", "zones/", "", b"", 405),
        ("DELETE", "machines/", "", b"", 405),
        ("PUT", "machines/", "application/json", b"{\"a\":", 400),
        ("POST", "zones/", "application/json", b"{\"a\":", 400),
        ("POST", "zones/", "multipart/form-data; boundary=x", b"nonsense", 400),
        ("GET", "zones/", "application/json", b"{\"a\":", 200),
    ];
    for (nonce, (method, path, content_type, body, status)) in cases.into_iter().enumerate() {
        let request = || {
            let request = Request::builder().method(method).uri(format!("/MAAS/api/2.0/{path}"));
            request.header("content-type", content_type)
        };
        let key = format!(
            "OAuth oauth_signature_method=\"PLAINTEXT\", oauth_consumer_key=\"{consumer}\", oauth_token=\"{token}\", \
             oauth_signature=\"%26{secret}\", oauth_nonce=\"n{nonce}\", oauth_timestamp=\"{now}\""
        );
        let known = request().header("authorization", &key).body(Bytes::from_static(body)).unwrap();
        assert_eq!(emulator.answer(known).await.unwrap().status(), status, "{method} {path}");
        let stranger = request().body(Bytes::from_static(body)).unwrap();
        assert_eq!(emulator.answer(stranger).await.unwrap().status(), 401, "{method} {path}");
    }
    let wrong = Request::get("/MAAS/api/2.0/version/").header("authorization", "OAuth oauth_consumer_key=\"x\", oauth_token=\"x\", oauth_signature=\"x\", oauth_signature_method=\"PLAINTEXT\", oauth_timestamp=\"1\", oauth_nonce=\"x\"");
    let answer = emulator.answer(wrong.body(Bytes::new()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200, "nobody is asked for a key there, so a wrong one does no harm");
}

#[tokio::test(start_paused = true)]
async fn a_release_does_not_read_parameters_of_later_ones() {
    for (version, sync, dump) in [("3.0", false, false), ("3.3", true, false), ("3.5", true, false), ("3.7", true, true)] {
        let emulator = fleet(version);
        let id = emulator.world(|world| world.all_machines().next().unwrap().system_id.clone());
        let form = "enable_hw_sync=true&enable_kernel_crash_dump=true";
        let path = format!("machines/{id}/?op=deploy");
        let (status, words) = maas::call(&emulator, Some(maas_emulator::Fleet::DEFAULT_KEY), "POST", &path, form).await;
        assert_eq!(status, 200, "{version}: {words}");
        let kept = emulator.world(|world| {
            let machine = world.all_machines().find(|machine| machine.system_id == id).unwrap();
            (machine.enable_hw_sync, machine.enable_kernel_crash_dump)
        });
        assert_eq!(kept, (sync, dump), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn filters_of_lists_that_came_with_3_3_are_unknown_before() {
    for (version, known) in [("3.0", false), ("3.3", true), ("3.7", true)] {
        let client = administrator(&fleet(version));
        let all = MachineFilter::new;
        for filter in [all().owner("admin"), all().not_hostname("x"), all().power_state(PowerState::On), all().not_domain("x")] {
            let listed = client.machines().list(&filter).await;
            assert_eq!(listed.is_ok(), known, "{version}: {listed:?}");
            assert!(known || matches!(listed, Err(Error::Refused { .. })), "{version}: {listed:?}");
        }
        client.machines().list(&all().hostname("x").domain("maas").agent_name("x").not_tag("x")).await.unwrap();
    }
}
