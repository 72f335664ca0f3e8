//! What is repeated, what is not, for how long, and what is said of it. All on a wire in this process under paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod support;

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use maas_client::{
    Allocate, Budget, Client, Deploy, Error, HeldBack, Id, Limit, Limits, MachineFilter, MachineSettings, NotSent, Release, SystemId,
};
use support::{always, answer, builder, conflict_page, json, text, wire, with_retry_after};
use tokio::time::Instant;

const MACHINE: &str = r#"{"system_id": "abc123", "status": 10}"#;

fn id() -> SystemId {
    SystemId::from("abc123")
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_until_maas_is_there_and_every_attempt_has_its_own_nonce() {
    let (transport, sent) = wire(|number, _| async move {
        match number {
            0 => Err(NotSent("connection refused".to_owned()).into()),
            1 => Err("connection reset".into()),
            2 => Ok(answer(502, "text/html", "<html>")),
            3 => Ok(answer(503, "text/plain; charset=utf-8", "Service Unavailable")),
            4 => Ok(answer(429, "application/json", r#"{"message": "API rate limit exceeded"}"#)),
            5 => Ok(with_retry_after(text(503, "no rack"), 10)),
            _ => Ok(json(MACHINE)),
        }
    });
    let client = builder().build_on(transport);
    let started = Instant::now();
    assert_eq!(client.machine(&id()).read().await.unwrap().system_id, id());
    let nonces: BTreeSet<String> =
        sent.all().iter().map(|request| format!("{:?}", request.headers()["authorization"].as_bytes())).collect();
    assert_eq!((sent.count(), nonces.len()), (7, 7));
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_secs(10) && elapsed < Duration::from_secs(20), "Retry-After was not kept: {elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_read_gives_up_at_its_deadline_and_says_how_often_it_tried() {
    let (transport, sent) = wire(|_, _| async { Err(NotSent("connection refused".to_owned()).into()) });
    let client = builder().build_on(transport);
    let started = Instant::now();
    let error = client.version().await.unwrap_err();
    assert!(started.elapsed() <= Duration::from_mins(1) && started.elapsed() > Duration::from_secs(40), "{:?}", started.elapsed());
    let Error::Unavailable { attempts, answered: false, words, .. } = &error else { panic!("{error:?}") };
    assert_eq!((usize::try_from(*attempts).unwrap(), words.as_str()), (sent.count(), "connection refused"));
    assert!(*attempts > 5 && !error.may_have_changed_something());
}

#[tokio::test(start_paused = true)]
async fn what_a_transport_holds_back_ends_at_once_and_was_not_done() {
    let (transport, sent) = wire(|_, _| async { Err(HeldBack("MAAS has not answered for a minute".to_owned()).into()) });
    let client = builder().build_on(transport);
    let started = Instant::now();
    for error in [client.version().await.unwrap_err(), client.tags().delete("ssd").await.unwrap_err()] {
        let Error::Unavailable { words, .. } = &error else { panic!("{error:?}") };
        assert_eq!(words, "MAAS has not answered for a minute");
        assert!(!error.may_have_changed_something());
    }
    assert_eq!((sent.count(), started.elapsed()), (2, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_the_deadline_is_not_begun() {
    let (transport, sent) = always(with_retry_after(text(503, "come back tomorrow"), 86_400));
    let started = Instant::now();
    let error = builder().build_on(transport).version().await.unwrap_err();
    assert_eq!((sent.count(), started.elapsed(), error.retry_after()), (1, Duration::ZERO, Some(Duration::from_hours(24))));
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_all_measure_is_told_and_not_begun() {
    for seconds in ["18446744073709551615", "99999999999999999999999999"] {
        let mut response = conflict_page();
        response.headers_mut().insert("retry-after", seconds.parse().unwrap());
        let (transport, sent) = always(response);
        let (client, started) = (builder().build_on(transport), Instant::now());
        for error in [client.version().await.unwrap_err(), client.machines().allocate(&Allocate::new()).await.unwrap_err()] {
            assert_eq!(error.retry_after(), Some(Duration::from_secs(u64::MAX)), "{error:?}");
        }
        assert_eq!((sent.count(), started.elapsed()), (2, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn what_acts_on_machines_names_or_things_by_name_is_sent_once_whatever_happens() {
    type Trouble = fn() -> Result<http::Response<bytes::Bytes>, maas_client::BoxError>;
    let troubles: [(Trouble, bool); 11] = [
        (|| Ok(answer(503, "text/plain", "no healthy upstream")), true),
        (|| Ok(answer(429, "text/plain; charset=utf-8", "Too Many Requests")), true),
        (|| Ok(answer(503, "application/json", r#"{"message": "no peer"}"#)), true),
        (|| Ok(answer(503, "text/html", "<html>no server is available")), true),
        (|| Ok(with_retry_after(answer(429, "text/html", "<html>"), 5)), true),
        (|| Err("connection reset".into()), true),
        (|| Ok(answer(504, "text/html", "")), true),
        (|| Ok(answer(502, "text/html", "")), true),
        (|| Err(NotSent("connection refused".to_owned()).into()), false),
        (|| Ok(with_retry_after(text(503, "no rack"), 10)), false),
        (|| Ok(with_retry_after(conflict_page(), 5)), false),
    ];
    for (trouble, unknown) in troubles {
        let (transport, sent) = wire(move |_, _| async move { trouble() });
        let client = builder().build_on(transport);
        let id = id();
        let machine = client.machine(&id);
        let errors = [
            client.machines().allocate(&Allocate::new()).await.unwrap_err(),
            machine.deploy(&Deploy::default()).await.unwrap_err(),
            machine.release(&Release::default()).await.unwrap_err(),
            machine.power_on(None).await.unwrap_err(),
            machine.delete(false).await.unwrap_err(),
            machine.update(&MachineSettings::default()).await.unwrap_err(),
            client.vm_hosts().compose(Id::new(1), &maas_client::Compose::default()).await.unwrap_err(),
            client.vm_hosts().delete(Id::new(1), true).await.unwrap_err(),
            client.dns_resources().create("a.example", None, &[]).await.unwrap_err(),
            client.dns_resources().update(Id::new(1), None, &[]).await.unwrap_err(),
            client.ip_addresses().reserve(&maas_client::Reserve::default()).await.unwrap_err(),
            client.tags().delete("t").await.unwrap_err(),
            client.zones().delete("z").await.unwrap_err(),
            client.users().delete("u", Some("heir")).await.unwrap_err(),
        ];
        assert_eq!(sent.count(), errors.len());
        for error in errors {
            assert_eq!(matches!(error, Error::OutcomeUnknown { .. }), unknown, "{error:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_has_two_minutes_and_then_its_outcome_is_unknown() {
    let (transport, sent) = wire(|_, _| pending());
    let client = builder().build_on(transport);
    let started = Instant::now();
    let error = client.machines().allocate(&Allocate::new().agent_name("claim")).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { .. }) && error.may_have_changed_something(), "{error:?}");
    assert_eq!((sent.count(), started.elapsed()), (1, Duration::from_mins(2)));
    assert_eq!(error.call().to_string(), "POST machines/?op=allocate");
}

#[tokio::test(start_paused = true)]
async fn reads_are_given_up_sooner_and_slow_calls_later() {
    let (transport, _) = wire(|_, _| pending());
    let client = builder().build_on(transport);
    let started = Instant::now();
    assert!(matches!(client.version().await.unwrap_err(), Error::Unavailable { .. }));
    assert_eq!(started.elapsed(), Duration::from_mins(1));
    let started = Instant::now();
    assert!(matches!(client.vm_hosts().refresh(Id::new(1)).await.unwrap_err(), Error::OutcomeUnknown { .. }));
    assert_eq!(started.elapsed(), Duration::from_secs(210));
}

#[tokio::test(start_paused = true)]
async fn a_slow_success_within_the_limit_is_a_success() {
    let (transport, _) = wire(|_, _| async {
        tokio::time::sleep(Duration::from_secs(100)).await;
        Ok(json(MACHINE))
    });
    assert_eq!(builder().build_on(transport).machines().allocate(&Allocate::new()).await.unwrap().system_id, id());
}

#[tokio::test(start_paused = true)]
async fn a_repeated_delete_that_finds_nothing_has_done_its_work() {
    let gone = || text(404, "No DNSResource matches the given query.");
    let (transport, sent) = wire(move |number, _| async move { if number == 0 { Err("reset".into()) } else { Ok(gone()) } });
    builder().build_on(transport).dns_resources().delete(Id::new(1)).await.unwrap();
    assert_eq!(sent.count(), 2);
    let (transport, _) = always(gone());
    assert!(builder().build_on(transport).dns_resources().delete(Id::new(1)).await.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn once_unknown_an_outcome_stays_unknown() {
    let (transport, _) =
        wire(|number, _| async move { if number == 0 { Err("reset".into()) } else { Err(NotSent("refused".to_owned()).into()) } });
    let error = builder().build_on(transport).domains().delete(Id::new(3)).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_a_later_attempt_does_not_undo_the_one_nobody_answered() {
    let key_refused = || {
        let mut response = answer(401, "text/html", "");
        response.headers_mut().insert("www-authenticate", http::HeaderValue::from_static("OAuth realm=\"OAuth\""));
        response
    };
    let later = [
        with_retry_after(conflict_page(), 86_400),
        text(409, "it is taken"),
        text(400, "a thing of this name exists"),
        text(403, ""),
        text(410, "gone"),
        key_refused(),
    ];
    for later in later {
        let (transport, sent) = wire(move |number, _| {
            let later = later.clone();
            async move { if number == 0 { Err("reset".into()) } else { Ok(later) } }
        });
        let error = builder().build_on(transport).tags().update_nodes("t", &[id()], &[]).await.unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown { .. }) && error.may_have_changed_something(), "{error:?}");
        assert_eq!(sent.count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_conflict_of_the_moment_is_tried_again() {
    let (transport, sent) = wire(|number, _| async move {
        Ok(if number == 0 { with_retry_after(conflict_page(), 5) } else { json(r#"{"added": 1, "removed": 0}"#) })
    });
    builder().build_on(transport).tags().update_nodes("t", &[id()], &[]).await.unwrap();
    assert_eq!(sent.count(), 2);
    let (transport, sent) =
        wire(|number, _| async move { Ok(if number == 0 { conflict_page() } else { json(r#"{"added": 1, "removed": 0}"#) }) });
    let started = Instant::now();
    builder().build_on(transport).tags().update_nodes("t", &[id()], &[]).await.unwrap();
    assert!(sent.count() == 2 && started.elapsed() >= Duration::from_secs(5), "a page without the header is one of the moment too");
    let (transport, sent) = always(text(409, "Machine is not locked"));
    let error = builder().build_on(transport).tags().update_nodes("t", &[id()], &[]).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { retry_after: None, .. }));
    assert_eq!(sent.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_asks_to_wait_is_given_its_time_also_by_writes() {
    for status in [429, 503] {
        let (transport, sent) = wire(move |number, _| async move {
            Ok(if number == 0 { with_retry_after(answer(status, "text/html", ""), 20) } else { json(r#"{"added": 1, "removed": 0}"#) })
        });
        let started = Instant::now();
        builder().build_on(transport).tags().update_nodes("t", &[id()], &[]).await.unwrap();
        assert!(sent.count() == 2 && started.elapsed() >= Duration::from_secs(20), "{status}: {:?}", started.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_maas_cannot_serve_is_tried_again_only_if_it_says_when() {
    let (transport, sent) = always(text(503, "Failed talking to pod: Pod 13: Failed to connect to the LXD REST API."));
    let error = builder().build_on(transport).vm_hosts().refresh(Id::new(13)).await.unwrap_err();
    assert!(
        matches!(error, Error::Unavailable { answered: true, retry_after: None, .. }) && error.may_have_changed_something(),
        "{error:?}"
    );
    assert_eq!(sent.count(), 1);
    let (transport, sent) =
        wire(|number, _| async move { Ok(if number == 0 { with_retry_after(text(503, "no rack"), 10) } else { json(r#"{"id": 13}"#) }) });
    builder().build_on(transport).vm_hosts().refresh(Id::new(13)).await.unwrap();
    assert_eq!(sent.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_maas_is_said_to_be_none_and_a_write_it_took_is_unknown() {
    for strange in [
        answer(200, "text/html", "<html>Sign in"),
        answer(302, "text/html", ""),
        answer(404, "text/html", "nginx"),
        json("[1, 2]"),
        json("{"),
        json("{}"),
    ] {
        let (transport, _) = always(strange);
        let error = builder().build_on(transport).version().await.unwrap_err();
        assert!(matches!(error, Error::NotMaas { .. }), "{error:?}");
    }
    let (transport, _) = always(answer(200, "text/html", "<html>Sign in"));
    let client = builder().build_on(transport);
    assert!(matches!(client.machines().allocate(&Allocate::new()).await.unwrap_err(), Error::OutcomeUnknown { .. }));
    assert!(matches!(client.tags().delete("t").await.unwrap_err(), Error::OutcomeUnknown { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_machine_taken_without_being_named_is_an_unknown_outcome() {
    for nameless in ["null", "{}", r#"{"system_id": null, "status": 10}"#] {
        let (transport, _) = always(json(nameless));
        let client = builder().build_on(transport);
        assert!(matches!(client.machines().allocate(&Allocate::new()).await.unwrap_err(), Error::OutcomeUnknown { .. }));
        let composed = client.vm_hosts().compose(Id::new(1), &maas_client::Compose::default()).await;
        assert!(matches!(composed.unwrap_err(), Error::OutcomeUnknown { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn limits_without_an_end_are_no_reason_to_panic() {
    let endless = Limit { attempt: Duration::MAX, total: Duration::MAX };
    let limits = Limits { read: endless, write: endless, slow: endless };
    let (transport, sent) = wire(|number, _| async move { if number < 3 { Err("reset".into()) } else { Ok(json(MACHINE)) } });
    let client = builder().limits(limits).build_on(transport);
    assert_eq!(client.machine(&id()).read().await.unwrap().system_id, id());
    assert_eq!(sent.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_call_on_a_machine_without_an_id_is_not_sent() {
    let (transport, sent) = always(json("[]"));
    let client = builder().build_on(transport);
    for id in ["", " ", ".", ".."] {
        let error = client.machine(&SystemId::from(id)).release(&Release::default()).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    }
    assert_eq!(sent.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_run_at_once_than_the_budget_allows_also_over_several_clients() {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (transport, sent) = wire({
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        move |_, _| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(json("[]"))
            }
        }
    });
    let budget = Budget::new(3);
    let clients: Vec<Client> = (0..2).map(|_| builder().budget(budget.clone()).build_on(transport.clone())).collect();
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..30 {
        let client = clients[number % 2].clone();
        tasks.spawn(async move { client.machines().list(&MachineFilter::new()).await });
    }
    assert!(tasks.join_all().await.into_iter().all(|result| result.is_ok()));
    assert_eq!((most.load(Ordering::SeqCst), sent.count(), started.elapsed()), (3, 30, Duration::from_secs(10)));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_gets_its_turn_was_not_sent() {
    let (transport, sent) = wire(|_, _| pending());
    let client = builder().budget(Budget::new(1)).build_on(transport);
    let first = tokio::spawn({
        let client = client.clone();
        async move { client.vm_hosts().compose(Id::new(1), &maas_client::Compose::default()).await }
    });
    tokio::task::yield_now().await;
    let error = client.machines().allocate(&Allocate::new()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { answered: false, attempts: 0, .. }), "{error:?}");
    assert_eq!(sent.count(), 1);
    let told = error.to_string();
    assert!(told.starts_with("POST machines/?op=allocate: not sent: too many calls are under way from here"), "{told}");
    assert!(!told.contains("attempt") && !told.contains("reachable") && told.ends_with("let more calls run at once"), "{told}");
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn a_read_that_met_trouble_and_then_got_no_turn_tells_of_the_trouble() {
    let (transport, sent) = wire(|number, _| async move { if number == 0 { Err("reset by peer".into()) } else { pending().await } });
    let client = builder().budget(Budget::new(1)).build_on(transport);
    let (machines, any) = (client.machines(), Allocate::new());
    let (read, written) = tokio::join!(client.version(), machines.allocate(&any));
    let read = read.unwrap_err();
    assert!(matches!(&read, Error::Unavailable { attempts: 1, words, .. } if words == "reset by peer"), "{read:?}");
    assert!(matches!(written, Err(Error::OutcomeUnknown { .. })), "{written:?}");
    assert_eq!(sent.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_maas_failed_at_has_done_nothing() {
    let (transport, _) = always(text(500, "Could not contact node's BMC: connection timed out"));
    let client = builder().build_on(transport);
    let told = client.machine(&id()).read().await.unwrap_err().to_string();
    assert!(told.contains("node's BMC") && told.contains("try again") && !told.contains("done"), "{told}");
    let told = client.machine(&id()).release(&Release::default()).await.unwrap_err().to_string();
    assert!(told.contains("part of it may have been done"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_not_accepted_is_not_tried_again_and_its_cure_is_told() {
    for (fault, cure) in [
        ("UnknownIssuer", "give the certificate authority"),
        ("certificate expired: verification time 2000 (UNIX), but certificate is not valid after 1000", "renew MAAS's certificate"),
        ("certificate not valid yet: verification time 1 (UNIX)", "correct the clock"),
        ("certificate not valid for name \"localhost\"; certificate is only valid for DnsName(\"maas\")", "by a name that its certificate"),
    ] {
        let (transport, sent) =
            wire(move |_, _| async move { Err(NotSent(format!("client error (Connect): invalid peer certificate: {fault}")).into()) });
        let (client, started) = (builder().build_on(transport), Instant::now());
        for error in [client.version().await.unwrap_err(), client.domains().delete(Id::new(1)).await.unwrap_err()] {
            let told = error.to_string();
            assert!(matches!(error, Error::Unavailable { answered: false, attempts: 1, .. }), "{error:?}");
            assert!(told.contains(fault) && told.contains(cure) && !told.contains("reachable"), "{told}");
        }
        assert_eq!((sent.count(), started.elapsed()), (2, Duration::ZERO));
    }
}

/// The time of the tests' clock is 2026-11-15 19:47:23.
#[tokio::test(start_paused = true)]
async fn a_wait_until_a_date_is_kept_by_the_clock_of_whoever_named_it() {
    for (date, until, wait) in [
        (None, "Sun, 15 Nov 2026 19:47:53 GMT", 30),
        (Some("Sun, 15 Nov 2026 18:00:00 GMT"), "Sun, 15 Nov 2026 18:00:20 GMT", 20),
        (None, "Sun, 06 Nov 1994 08:49:37 GMT", 0),
    ] {
        let (transport, sent) = wire(move |number, _| async move {
            let mut response = answer(if number < 1 { 503 } else { 200 }, "application/json", r#"{"version": "3.7.3"}"#);
            response.headers_mut().insert("retry-after", until.parse().unwrap());
            date.map(|date| response.headers_mut().insert("date", date.parse().unwrap()));
            Ok(response)
        });
        let started = Instant::now();
        builder().build_on(transport).version().await.unwrap();
        let (elapsed, wait) = (started.elapsed(), Duration::from_secs(wait));
        assert!(sent.count() == 2 && elapsed >= wait && elapsed < wait + Duration::from_secs(1), "{until}: {elapsed:?}");
    }
    let mut response = text(503, "not now");
    response.headers_mut().insert("retry-after", "Sun, 15 Nov 2026 20:47:23 GMT".parse().unwrap());
    let error = builder().build_on(always(response).0).machines().allocate(&Allocate::new()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_hours(1)), "{error:?}");
    for nonsense in ["soon", "Sun, 99 Nov 2026 20:27:53 GMT", "-5", ""] {
        let mut response = text(503, "not now");
        response.headers_mut().insert("retry-after", nonsense.parse().unwrap());
        let error = builder().build_on(always(response).0).version().await.unwrap_err();
        assert_eq!(error.retry_after(), None, "{nonsense}: {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_500_to_a_write_in_words_nobody_knows_is_of_unknown_outcome_and_told_in_them() {
    let (transport, sent) = always(answer(500, "text/plain", "chassis 7 is on fire"));
    let error = builder().build_on(transport).machine(&SystemId::from("abc123")).release(&Release::default()).await.unwrap_err();
    let Error::OutcomeUnknown { words, .. } = &error else { panic!("{error:?}") };
    assert!(words.contains("chassis 7 is on fire") && sent.count() == 1, "{words}");
}
