//! Answers that no MAAS gives: what they are taken for. An object made of defaults would be a machine without an owner, and the 404 or 403
//! of a proxy a machine that was deleted or taken away.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod support;

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Response};
use maas_client::{
    Allocate, Client, Compose, CreatePhysical, Deploy, DnsFilter, Error, EventFilter, EventPlace, FollowSettings, Id, MachineFilter,
    MachineSettings, PowerOff, Release, Reserve, SubnetName, SystemId,
};
use tokio::time::Instant;

const STRANGE: [&str; 5] = ["{}", r#"{"error": "who are you?"}"#, " null\n", "[]", r#"{"system_id": "", "id": null, "name": ""}"#];

fn client(body: &str) -> Client {
    support::builder().build_on(support::always(support::json(body)).0)
}

fn expect_no_maas<T>(result: Result<T, Error>, body: &str, call: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{call} took {body} for an answer"));
    assert!(matches!(error, Error::NotMaas { .. }), "{call} of {body}: {error:?}");
}

fn expect_unknown<T>(result: Result<T, Error>, body: &str, call: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{call} took {body} for an answer"));
    assert!(matches!(error, Error::OutcomeUnknown { .. }) && error.may_have_changed_something(), "{call} of {body}: {error:?}");
}

#[tokio::test]
async fn an_object_that_does_not_say_which_it_is_was_not_read_from_a_maas() {
    let id = SystemId::from("abc123");
    for body in STRANGE {
        let client = client(body);
        expect_no_maas(client.machine(&id).read().await, body, "machine");
        expect_no_maas(client.machine(&id).query_power_state().await, body, "power");
        expect_no_maas(client.whoami().await, body, "whoami");
        expect_no_maas(client.users().read("u").await, body, "user");
        expect_no_maas(client.version().await, body, "version");
        expect_no_maas(client.zones().read("z").await, body, "zone");
        expect_no_maas(client.resource_pools().read(Id::new(1)).await, body, "pool");
        expect_no_maas(client.tags().read("t").await, body, "tag");
        expect_no_maas(client.domains().read(Id::new(1)).await, body, "domain");
        expect_no_maas(client.dns_resources().read(Id::new(1)).await, body, "DNS resource");
        expect_no_maas(client.dns_records().read(Id::new(1)).await, body, "DNS record");
        expect_no_maas(client.subnets().read(&SubnetName::Id(Id::new(1))).await, body, "subnet");
        expect_no_maas(client.subnets().statistics(&SubnetName::Id(Id::new(1))).await, body, "statistics");
        expect_no_maas(client.vlans().read(Id::new(1)).await, body, "VLAN");
        expect_no_maas(client.spaces().read(Id::new(1)).await, body, "space");
        expect_no_maas(client.ip_ranges().read(Id::new(1)).await, body, "IP range");
        expect_no_maas(client.vm_hosts().read(Id::new(1)).await, body, "VM host");
        expect_no_maas(client.vm_clusters().read(Id::new(1)).await, body, "VM cluster");
        expect_no_maas(client.boot_resources().read(Id::new(1)).await, body, "image");
        expect_no_maas(client.interfaces(&id).read(Id::new(1)).await, body, "interface");
        expect_no_maas(client.events().query(&EventFilter::new(), EventPlace::Newest, None).await, body, "events");
    }
}

#[tokio::test]
async fn what_such_an_answer_to_a_write_has_done_is_unknown() {
    let id = SystemId::from("abc123");
    for body in STRANGE {
        let client = client(body);
        let machine = client.machine(&id);
        expect_unknown(machine.deploy(&Deploy::default()).await, body, "deploy");
        expect_unknown(machine.release(&Release::default()).await, body, "release");
        expect_unknown(machine.update(&MachineSettings::default()).await, body, "update");
        expect_unknown(machine.power_on(None).await, body, "power_on");
        expect_unknown(machine.set_workload_annotations(&BTreeMap::new()).await, body, "annotations");
        expect_unknown(client.interfaces(&id).create_physical(&CreatePhysical::default()).await, body, "interface");
        expect_unknown(client.ip_addresses().reserve(&Reserve::default()).await, body, "reserve");
        expect_unknown(client.account().create_token("n").await, body, "API key");
        expect_unknown(client.tags().update_nodes("t", &[], &[]).await, body, "update_nodes");
        if body.trim() == "null" {
            assert!(machine.power_off(PowerOff::Hard, None).await.unwrap().is_none(), "manual power is answered with null");
        } else {
            expect_unknown(machine.power_off(PowerOff::Hard, None).await, body, "power_off");
        }
    }
}

#[tokio::test]
async fn nothing_is_no_list_and_a_machine_in_a_list_has_a_name() {
    for body in ["null", "{}", r#"{"error": "x"}"#] {
        expect_no_maas(client(body).machines().list(&MachineFilter::new()).await, body, "machines");
        expect_no_maas(client(body).zones().list().await, body, "zones");
        expect_unknown(client(body).machines().release(&[], None).await, body, "release of several");
    }
    for body in ["[null]", "[{}]", r#"[{"error": "x"}]"#] {
        expect_no_maas(client(body).machines().list(&MachineFilter::new()).await, body, "machines");
        expect_no_maas(client(body).machines().list_allocated().await, body, "allocated machines");
        expect_no_maas(client(body).tags().machines("t").await, body, "machines of a tag");
    }
    assert!(client("[]").machines().list(&MachineFilter::new()).await.unwrap().is_empty());
}

/// What proxies, load balancers and other programs answer to an address they do not know or do not let through.
fn of_strangers(status: u16) -> Vec<Response<Bytes>> {
    let pages = [
        ("text/html", "<html><head><title>Not Found</title></head><body><center>nginx</center></body></html>"),
        ("text/plain; charset=utf-8", "404 page not found\n"),
        ("text/plain", "Not Found"),
        ("text/plain", "default backend - 404"),
        ("text/plain", "RBAC: access denied"),
        ("text/plain", "no healthy upstream"),
        ("text/plain", ""),
        ("application/json", r#"{"detail": "Not Found"}"#),
        ("application/json", r#""No Machine matches the given query.""#),
        ("application/json", r#"{"kind": "Status", "reason": "NotFound", "code": 404}"#),
        ("application/octet-stream", "No Machine matches the given query."),
    ];
    pages.map(|(kind, body)| support::answer(status, kind, body)).into()
}

#[tokio::test(start_paused = true)]
async fn only_maas_itself_can_say_that_something_is_missing_or_not_permitted() {
    let id = SystemId::from("abc123");
    for response in of_strangers(404).into_iter().chain(of_strangers(403)) {
        let what = format!("{} {:?}", response.status(), response.body());
        let (transport, sent) = support::always(response);
        let client = support::builder().build_on(transport);
        expect_no_maas(client.machine(&id).read().await, &what, "machine");
        expect_no_maas(client.dns_resources().list(&DnsFilter::default()).await, &what, "DNS resources");
        expect_unknown(client.machine(&id).release(&Release::default()).await, &what, "release");
        expect_unknown(client.machine(&id).delete(false).await, &what, "delete of a machine");
        expect_unknown(client.dns_resources().delete(Id::new(1)).await, &what, "delete of a name");
        expect_unknown(client.ip_addresses().reserve(&Reserve::default()).await, &what, "reserve");
        assert_eq!(sent.count(), 6, "{what}: asking again does not make a MAAS of it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_a_stranger_answered_ends_at_once_and_one_that_a_gateway_could_not_serve_is_repeated() {
    for status in [301, 302, 307, 400, 401, 403, 404, 405, 410, 413, 418, 500, 501] {
        let (transport, sent) = support::always(support::answer(status, "text/html", "<html>Sign in"));
        let (client, started) = (support::builder().build_on(transport), Instant::now());
        expect_unknown(client.domains().delete(Id::new(1)).await, "a page", "delete of a domain");
        expect_unknown(client.resource_pools().update(Id::new(1), Some("p"), None).await, "a page", "update of a pool");
        assert_eq!((sent.count(), started.elapsed()), (2, Duration::ZERO), "{status}");
    }
    for status in [429, 502, 503, 504] {
        let (transport, sent) = support::always(support::answer(status, "text/html", "<html>try later"));
        expect_unknown(support::builder().build_on(transport).domains().delete(Id::new(1)).await, "a page", "delete of a domain");
        assert!(sent.count() > 5, "{status}: sent {} times", sent.count());
    }
}

#[tokio::test(start_paused = true)]
async fn where_a_redirect_leads_is_told_without_what_it_repeats_of_the_call() {
    for status in [301, 302, 307, 308] {
        let mut response = support::answer(status, "text/html", "");
        response.headers_mut().insert("location", HeaderValue::from_static("https://maas.example:5443/MAAS/?next=canary#canary"));
        let client = support::builder().build_on(support::always(response).0);
        for error in [client.version().await.unwrap_err(), client.domains().delete(Id::new(1)).await.unwrap_err()] {
            let told = error.to_string();
            assert!(told.contains(&format!("it answers {status} and leads to https://maas.example:5443/MAAS/, ")), "{told}");
            assert!(!told.contains("canary"), "{told}");
        }
    }
    let client = support::builder().build_on(support::always(support::answer(302, "text/html", "")).0);
    assert!(client.version().await.unwrap_err().to_string().contains("it answers 302;"), "nowhere is no place");
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_somebody_else_is_none_of_maas() {
    let id = SystemId::from("abc123");
    for response in of_gateways(500) {
        let what = format!("{:?}", response.body());
        let (transport, sent) = support::always(response);
        let client = support::builder().build_on(transport);
        let read = client.machine(&id).read().await.unwrap_err();
        assert!(matches!(read, Error::Unavailable { answered: false, .. }) && sent.count() > 5, "{what}: {read:?} of {}", sent.count());
        let before = sent.count();
        expect_unknown(client.machine(&id).release(&Release::default()).await, &what, "release");
        expect_unknown(client.domains().delete(Id::new(1)).await, &what, "delete of a domain");
        assert_eq!(sent.count() - before, 2, "{what}: a write was sent again");
    }
    let (transport, sent) = support::always(support::text(500, "Invalid character in key name"));
    let client = support::builder().build_on(transport);
    for error in [client.machine(&id).read().await.unwrap_err(), client.domains().delete(Id::new(1)).await.unwrap_err()] {
        assert!(matches!(error, Error::Failed { .. }), "{error:?}");
    }
    assert_eq!(sent.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_mark_that_gateways_give_to_all_they_answer_is_not_that_of_maas() {
    let id = SystemId::from("abc123");
    let marked = |status, marks: &[&'static str], vary: &'static str| {
        let mut response = support::answer(status, "text/plain; charset=utf-8", "not now");
        for mark in marks {
            response.headers_mut().append("x-frame-options", HeaderValue::from_static(mark));
        }
        response.headers_mut().insert("vary", HeaderValue::from_static(vary));
        support::builder().build_on(support::always(response).0)
    };
    for status in [400, 401, 403, 409, 410, 500, 503] {
        for (marks, vary) in [
            (&["SAMEORIGIN"][..], "Accept-Encoding"),
            (&["SAMEORIGIN"], "Cookie2"),
            (&["ALLOW-FROM https://a.example"], "Cookie"),
            (&[""], "Cookie"),
            (&[], "Cookie"),
        ] {
            expect_unknown(marked(status, marks, vary).machine(&id).release(&Release::default()).await, "not now", "release");
        }
        // The last two are what releases before 3.3 send.
        for (marks, vary) in [
            (&["DENY"][..], ""),
            (&["deny"], "Cookie"),
            (&["SAMEORIGIN", "DENY"], ""),
            (&["SAMEORIGIN"], "Cookie"),
            (&["SAMEORIGIN"], "Authorization, Cookie"),
        ] {
            let error = marked(status, marks, vary).machine(&id).release(&Release::default()).await.unwrap_err();
            assert!(!matches!(error, Error::OutcomeUnknown { .. } | Error::NotMaas { .. }), "{status} {marks:?} {vary}: {error:?}");
        }
    }
}

/// What gateways answer in words and in JSON when there is no MAAS behind them, or too much was asked of it.
fn of_gateways(status: u16) -> Vec<Response<Bytes>> {
    let texts = [
        ("text/plain", "upstream connect error or disconnect/reset before headers. reset reason: connection failure"),
        ("text/plain; charset=utf-8", "Bad Gateway"),
        ("text/plain; charset=utf-8", "Service Unavailable"),
        ("text/plain; charset=utf-8", "no available server\n"),
        ("text/plain; charset=UTF-8", "error code: 503"),
        ("application/json", r#"{"message": "failure to get a peer from the ring-balancer"}"#),
        ("application/json; charset=utf-8", r#"{"message": "API rate limit exceeded"}"#),
        ("application/json", r#"{"kind": "Status", "reason": "ServiceUnavailable", "code": 503}"#),
    ];
    let mut answers: Vec<Response<Bytes>> = texts.map(|(kind, body)| support::answer(status, kind, body)).into();
    answers.extend(of_strangers(status));
    answers
}

#[tokio::test(start_paused = true)]
async fn what_a_gateway_cannot_serve_is_read_again_and_unknown_of_a_write() {
    let id = SystemId::from("abc123");
    for response in [429, 502, 503, 504].into_iter().flat_map(of_gateways) {
        let what = format!("{} {:?}", response.status(), response.body());
        let (transport, sent) = support::always(response);
        let client = support::builder().build_on(transport);
        let read = client.machine(&id).read().await.unwrap_err();
        assert!(matches!(read, Error::Unavailable { answered: false, .. }) && sent.count() > 5, "{what}: {read:?} of {}", sent.count());
        let before = sent.count();
        expect_unknown(client.machines().allocate(&Allocate::new()).await, &what, "allocate");
        expect_unknown(client.machine(&id).deploy(&Deploy::default()).await, &what, "deploy");
        expect_unknown(client.ip_addresses().reserve(&Reserve::default()).await, &what, "reserve");
        expect_unknown(client.vm_hosts().compose(Id::new(1), &Compose::default()).await, &what, "compose");
        assert_eq!(sent.count() - before, 4, "{what}: a write was sent again");
    }
}

#[tokio::test(start_paused = true)]
async fn what_maas_itself_cannot_serve_is_believed_also_without_its_usual_headers() {
    let id = SystemId::from("abc123");
    for words in
        ["No more IPs available in subnet: 10.60.0.0/30.", "Unable to connect to any rack controller gb78pw; no connections available."]
    {
        let (transport, sent) = support::always(support::answer(503, "text/plain; charset=utf-8", words));
        let error = support::builder().build_on(transport).machine(&id).deploy(&Deploy::default()).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { answered: true, .. }) && sent.count() == 1, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_maas_itself_can_refuse_a_call_a_key_or_a_machine() {
    let id = SystemId::from("abc123");
    let basic = |mut response: Response<Bytes>| {
        response.headers_mut().insert("www-authenticate", HeaderValue::from_static("Basic realm=\"proxy\""));
        response
    };
    let portal = [400, 401, 405, 409, 410, 413].map(|status| support::of_maas(support::answer(status, "text/html", "<html>Sign in")));
    let all = [400, 401, 405, 409, 410, 413].into_iter().flat_map(of_strangers).chain(portal);
    let asking = [basic(support::answer(401, "text/html", "<html>")), basic(support::text(401, "Forbidden"))];
    for response in all.chain(asking) {
        let what = format!("{} {:?}", response.status(), response.body());
        let client = support::builder().build_on(support::always(response).0);
        expect_no_maas(client.machine(&id).read().await, &what, "machine");
        expect_unknown(client.machines().allocate(&Allocate::new()).await, &what, "allocate");
        expect_unknown(client.machine(&id).release(&Release::default()).await, &what, "release");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_a_conflict_and_other_words_of_maas_a_refusal() {
    let composed = |response| async move {
        support::builder().build_on(support::always(response).0).vm_hosts().compose(Id::new(1), &Compose::default()).await.unwrap_err()
    };
    let taken = composed(support::text(404, "The IP address 10.20.0.60 is already in use.")).await;
    assert!(matches!(taken, Error::Conflict { retry_after: None, .. }), "{taken:?}");
    let refused = composed(support::text(404, "No storage pool is called fast.")).await;
    assert!(matches!(refused, Error::Refused { status: 404, .. }), "{refused:?}");
}

#[tokio::test]
async fn what_maas_says_of_missing_and_forbidden_things_is_believed() {
    let id = SystemId::from("abc123");
    let with = |mut response: Response<Bytes>, header: &'static str, value: &'static str| {
        response.headers_mut().insert(header, HeaderValue::from_static(value));
        support::builder().build_on(support::always(response).0)
    };
    let before_3_3 = with(support::answer(404, "text/plain", "Not Found"), "x-maas-api-hash", "36763f14");
    assert!(before_3_3.machine(&id).read().await.unwrap_err().is_not_found());
    let now = support::builder().build_on(support::always(support::text(404, "No Machine matches the given query.")).0);
    assert!(now.machine(&id).read().await.unwrap_err().is_not_found() && now.machine(&id).delete(true).await.unwrap_err().is_not_found());
    let forbidden = with(support::text(403, ""), "x-frame-options", "DENY").machine(&id).read().await.unwrap_err();
    assert!(matches!(forbidden, Error::NotPermitted { .. }), "{forbidden:?}");
    // The slash at the end got lost on the way: MAAS knows the machine all the same.
    let mangled = support::text(404, "Unknown API endpoint: /MAAS/api/2.0/machines/abc123.");
    let mangled = support::builder().build_on(support::always(mangled).0).machine(&id).read().await.unwrap_err();
    assert!(matches!(&mangled, Error::Refused { status: 404, .. }) && mangled.to_string().contains("machines/abc123"), "{mangled:?}");
}

/// A client that reads no status tells of success here, and whatever it was about is forgotten.
#[tokio::test(start_paused = true)]
async fn what_maas_does_not_find_is_no_success_of_any_change() {
    let client = support::builder().build_on(support::always(support::text(404, "No Machine matches the given query.")).0);
    let id = SystemId::from("abc123");
    let machine = || client.machine(&id);
    let outcomes = [
        ("release", machine().release(&Release::default()).await.err()),
        ("deploy", machine().deploy(&Deploy::default()).await.err()),
        ("power on", machine().power_on(None).await.err()),
        ("marks", machine().set_workload_annotations(&BTreeMap::new()).await.err()),
        ("delete", machine().delete(true).await.err()),
        ("tagging", client.tags().update_nodes("t", std::slice::from_ref(&id), &[]).await.err()),
        ("delete of a tag", client.tags().delete("t").await.err()),
        ("delete of a VM host", client.vm_hosts().delete(Id::new(1), false).await.err()),
        ("delete of a name", client.dns_resources().delete(Id::new(1)).await.err()),
    ];
    for (call, outcome) in outcomes {
        assert!(outcome.as_ref().is_some_and(Error::is_not_found), "{call}: {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_may_be_followed_from_any_number_with_any_interval() {
    let client = client(r#"{"count": 0, "events": []}"#);
    for (after, interval) in [(i64::MIN, Duration::MAX), (i64::MAX, Duration::ZERO)] {
        let settings = FollowSettings { interval, ..FollowSettings::default() };
        let mut follower = client.events().follow(EventFilter::new(), Some(Id::new(after)), settings);
        assert!(follower.next().await.unwrap().events.is_empty());
    }
}
