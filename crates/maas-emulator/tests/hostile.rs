//! Calls that are wrong, large or untimely: each gets an answer, and nothing that was there is lost.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use maas_emulator::{Emulator, Fleet};

/// Calls as the administrator of a fleet that names no users; status and body.
async fn call(emulator: &Emulator, method: &str, path: &str, form: &str) -> (u16, String) {
    call_at(emulator, method, path, form, &emulator.clock().now().as_second().to_string()).await
}

async fn call_at(emulator: &Emulator, method: &str, path: &str, form: &str, timestamp: &str) -> (u16, String) {
    maas::call_at(emulator, Some(Fleet::DEFAULT_KEY), method, path, form, timestamp).await
}

fn system_id(emulator: &Emulator, hostname: &str) -> String {
    emulator.world(|world| world.all_machines().find(|machine| machine.hostname == hostname).unwrap().system_id.clone())
}

fn status(emulator: &Emulator, hostname: &str) -> &'static str {
    emulator.world(|world| world.all_machines().find(|machine| machine.hostname == hostname).unwrap().status.name())
}

#[tokio::test(start_paused = true)]
async fn numbers_beyond_all_measure_are_answered() {
    let emulator = maas::emulator("machines: [{hostname: m, count: 2}]\nvm_hosts: [{name: host}]");
    assert_eq!(call_at(&emulator, "GET", "users/?op=whoami", "", "-9223372036854775808").await.0, 401);
    let machine = system_id(&emulator, "m01");
    assert_eq!(call(&emulator, "PUT", &format!("machines/{machine}/"), "cpu_count=4294967295&memory=18446744073709551615").await.0, 200);
    for _ in 0..2 {
        call(&emulator, "POST", "vm-hosts/3/?op=compose", "storage=root:18446744073&skip_commissioning=true").await;
    }
    assert_eq!(call(&emulator, "GET", "vm-hosts/", "").await.0, 200);
    assert_eq!(call(&emulator, "POST", "maas/?op=set_config", "name=node_timeout&value=18446744073709551615").await.0, 200);
    let other = system_id(&emulator, "m02");
    assert_eq!(call(&emulator, "POST", &format!("machines/{other}/?op=deploy"), "").await.0, 200);
    for cidr in ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "::/0", "0.0.0.0/0"] {
        assert_eq!(call(&emulator, "POST", "subnets/", &format!("cidr={cidr}")).await.0, 200);
        for operation in ["statistics", "unreserved_ip_ranges", "reserved_ip_ranges", "ip_addresses"] {
            assert_eq!(call(&emulator, "GET", &format!("subnets/cidr:{cidr}/?op={operation}"), "").await.0, 200, "{operation} of {cidr}");
        }
        call(&emulator, "POST", "ipaddresses/?op=reserve", &format!("subnet={cidr}")).await;
    }
    assert_eq!(call(&emulator, "PUT", "vm-hosts/3/", "cpu_over_commit_ratio=nan").await.0, 400, "not a number is not a ratio");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_no_form_is_not_read_as_one() {
    let emulator = maas::emulator("");
    let before = emulator.world(|world| world.zones.len());
    let request = Request::post("/MAAS/api/2.0/zones/").header("content-type", "text/plain").body(Bytes::from_static(b"name=z")).unwrap();
    assert_eq!(emulator.answer(request).await.unwrap().status(), 401);
    assert_eq!(call(&emulator, "POST", "zones/", "").await.0, 400);
    assert_eq!(emulator.world(|world| world.zones.len()), before);
}

#[tokio::test(start_paused = true)]
async fn machines_that_begin_in_the_middle_of_something_go_on_with_it() {
    let emulator = maas::emulator(
        "
machines:
  - {hostname: commissioning, status: commissioning, owner: admin}
  - {hostname: deploying, status: deploying, owner: admin, image: ubuntu/jammy}
  - {hostname: releasing, status: releasing, owner: admin}
  - {hostname: erasing, status: disk_erasing, owner: admin}
  - {hostname: testing, status: testing, owner: admin}
  - {hostname: entering, status: entering_rescue_mode, owner: admin}
",
    );
    tokio::time::sleep(Duration::from_mins(2)).await;
    let settled = ["commissioning", "deploying", "releasing", "erasing", "testing", "entering"].map(|name| status(&emulator, name));
    assert_eq!(settled, ["Ready", "Deployed", "Ready", "Ready", "Ready", "Rescue mode"]);
}

#[tokio::test(start_paused = true)]
async fn tests_that_are_stopped_leave_the_machine_to_everybody() {
    let emulator = maas::emulator("machines: [{hostname: m}]");
    let id = system_id(&emulator, "m");
    assert_eq!(call(&emulator, "POST", &format!("machines/{id}/?op=test"), "").await.0, 200);
    let (answered, body) = call(&emulator, "POST", &format!("machines/{id}/?op=abort"), "").await;
    assert_eq!(answered, 200);
    assert!(body.contains("\"status_name\": \"Testing\""), "the answer shows the state that is being left");
    assert_eq!(emulator.world(|world| world.all_machines().next().unwrap().owner), None);
    assert_eq!(status(&emulator, "m"), "Ready");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_hosts_others_is_not_released_among_many() {
    let emulator = maas::emulator(
        "machines: [{hostname: m, status: deployed, owner: admin, image: ubuntu/jammy}]\nvm_hosts: [{name: host, machine: m}]",
    );
    let id = system_id(&emulator, "m");
    let (refused, words) = call(&emulator, "POST", "machines/?op=release", &format!("machines={id}")).await;
    assert_eq!((refused, words.as_str()), (400, "The following VM hosts must be removed first: host"));
}

#[tokio::test(start_paused = true)]
async fn large_answers_are_counted_and_not_kept() {
    let emulator = maas::emulator("machines: [{hostname: m, count: 50}]");
    assert_eq!(call(&emulator, "GET", "machines/", "").await.0, 200);
    let (size, kept) = emulator.journal(|journal| journal.entries().last().map(|entry| (entry.size, entry.response.is_some())).unwrap());
    assert!(size > 500_000 && !kept, "{size} bytes, kept: {kept}");
    assert_eq!(call(&emulator, "GET", "no-such-thing/", "").await.0, 404);
    assert_eq!(emulator.journal(|journal| journal.by_user()["admin"]), 2, "a call to nowhere counts for who made it");
}

#[test]
fn fleets_with_contradictions_are_refused_in_one_line() {
    let refused = |text: &str| {
        let fleet = Fleet::from_yaml(text).unwrap();
        Emulator::new(fleet, maas_emulator::Options::default()).err().unwrap().to_string()
    };
    assert_eq!(refused("zones: [{name: a}, {name: a}]"), "zones: \"a\" is there twice");
    assert_eq!(
        refused("machines: [{hostname: bad_host}]"),
        "machines: bad_host: hostname: Host label cannot contain underscore: 'bad_host'."
    );
    assert!(refused("machines: [{hostname: m, interfaces: [{vlan: 77}]}]").contains("no VLAN with id 77"));
    assert!(refused("machines: [{hostname: m, count: 4000000000}]").contains("at most"));
}
