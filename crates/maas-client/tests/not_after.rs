//! Calls that must not be sent after a point in time: neither when their turn comes late nor when another attempt would. Under paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod support;

use std::time::Duration;

use maas_client::{Allocate, Budget, Client, Deploy, Error, Id, NotSent, SystemId, Transport};
use support::{builder, conflict_page, json, text, wire, with_retry_after};
use tokio::time::Instant;

const MACHINE: &str = r#"{"system_id": "abc123", "status": 10}"#;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A client with one turn, which is taken for so long.
async fn busy_for(time: Duration) -> (Client, support::Sent) {
    let (transport, sent) = wire(move |number, _| async move {
        if number == 0 {
            tokio::time::sleep(time).await;
        }
        Ok(json(MACHINE))
    });
    let client = builder().budget(Budget::new(1)).build_on(transport);
    let first = client.clone();
    tokio::spawn(async move { first.machine(&SystemId::from("abc123")).read().await });
    tokio::task::yield_now().await;
    assert_eq!(sent.count(), 1, "the turn is taken");
    (client, sent)
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_comes_too_late_is_not_sent_and_says_so_at_once() {
    let (client, sent) = busy_for(seconds(25)).await;
    let started = Instant::now();
    let error = client.not_after(started + seconds(20)).machines().allocate(&Allocate::new()).await.unwrap_err();
    assert!(matches!(error, Error::TooLate { .. }) && !error.may_have_changed_something(), "{error:?}");
    assert_eq!(error.to_string(), "POST machines/?op=allocate: not sent: too much time passed since it was decided");
    assert_eq!((sent.count(), started.elapsed()), (1, seconds(20)), "it waits no longer than that");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_comes_in_time_is_sent_and_may_be_answered_later() {
    let (client, sent) = busy_for(seconds(19)).await;
    client.not_after(Instant::now() + seconds(20)).machine(&SystemId::from("abc123")).deploy(&Deploy::default()).await.unwrap();
    assert_eq!(sent.count(), 2);
    let (transport, _) = wire(|_, _| async {
        tokio::time::sleep(seconds(60)).await;
        Ok(json(MACHINE))
    });
    let client = builder().build_on(transport).not_after(Instant::now() + seconds(20));
    client.machines().allocate(&Allocate::new()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_time_that_has_passed_sends_nothing_even_if_a_turn_is_free() {
    let (transport, sent) = wire(|_, _| async { Ok(json(MACHINE)) });
    let client = builder().build_on(transport);
    let now = Instant::now();
    for late in
        [client.not_after(now), client.not_after(now).not_after(now + seconds(60)), client.not_after(now + seconds(60)).not_after(now)]
    {
        assert!(matches!(late.machines().allocate(&Allocate::new()).await.unwrap_err(), Error::TooLate { .. }));
        assert!(matches!(late.version().await.unwrap_err(), Error::TooLate { .. }), "reads too");
    }
    assert_eq!(sent.count(), 0);
    client.machines().allocate(&Allocate::new()).await.unwrap();
}

type Trouble = fn() -> Result<http::Response<bytes::Bytes>, maas_client::BoxError>;

/// What the change of a domain that may not be sent after four seconds comes to, and how often it was sent.
async fn repeated(trouble: Trouble) -> (Error, usize, Duration) {
    let (transport, sent): (Transport, _) = wire(move |_, _| async move { trouble() });
    let started = Instant::now();
    let client = builder().build_on(transport).not_after(started + seconds(4));
    let error = client.domains().delete(Id::new(3)).await.unwrap_err();
    (error, sent.count(), started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn no_attempt_is_made_afterwards_and_the_outcome_is_that_of_the_attempts_made() {
    let (error, sent, elapsed) = repeated(|| Err("connection reset".into())).await;
    assert!(matches!(error, Error::OutcomeUnknown { .. }) && sent > 2 && elapsed <= seconds(4), "{sent} {elapsed:?} {error:?}");
    let (error, sent, elapsed) = repeated(|| Err(NotSent("refused".to_owned()).into())).await;
    assert!(
        matches!(error, Error::Unavailable { answered: false, .. }) && sent > 2 && elapsed <= seconds(4),
        "{sent} {elapsed:?} {error:?}"
    );
    let (error, sent, elapsed) = repeated(|| Ok(with_retry_after(text(503, "no rack"), 10))).await;
    assert!(matches!(error, Error::Unavailable { answered: true, .. }), "{error:?}");
    assert_eq!((sent, elapsed), (1, Duration::ZERO), "a wait beyond it is not begun");
    let (error, sent, _) = repeated(|| Ok(with_retry_after(conflict_page(), 5))).await;
    assert!(matches!(error, Error::Conflict { retry_after: Some(_), .. }) && sent == 1, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_waits_for_its_turn_until_too_late_leaves_what_the_first_one_left() {
    let (transport, sent) = wire(|number, request| async move {
        match (number, request.method().as_str()) {
            (0, _) => Err("connection reset".into()),
            (_, "GET") => {
                tokio::time::sleep(seconds(10)).await;
                Ok(json(MACHINE))
            }
            _ => Ok(text(404, "No Domain matches the given query.")),
        }
    });
    let client = builder().budget(Budget::new(1)).build_on(transport);
    let delete = tokio::spawn({
        let client = client.not_after(Instant::now() + seconds(4));
        async move { client.domains().delete(Id::new(3)).await }
    });
    // Takes the turn while the delete waits to try again.
    let read = tokio::spawn(async move { client.machine(&SystemId::from("abc123")).read().await });
    let error = delete.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error:?}");
    read.await.unwrap().unwrap();
    assert_eq!(sent.count(), 2, "{:?}", sent.all());
}
