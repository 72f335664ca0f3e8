//! Following the event log of a MAAS that numbers events before it commits them, hides some and goes back in time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod support;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use maas_client::{EventFilter, EventFollower, EventLevel, FollowSettings, Id};
use serde_json::json;
use tokio::time::Instant;

/// The wire to an event log: events by number, each with its time.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<BTreeMap<i64, String>>>);

impl Log {
    fn add(&self, ids: impl IntoIterator<Item = i64>, created: &str) {
        self.0.lock().unwrap().extend(ids.into_iter().map(|id| (id, created.to_owned())));
    }

    fn hide(&self, id: i64) {
        self.0.lock().unwrap().remove(&id);
    }

    /// As MAAS pages: the newest, or the oldest after one; always newest first.
    fn page(&self, query: &str) -> String {
        let value = |name: &str| {
            form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.parse::<i64>().unwrap())
        };
        let limit = usize::try_from(value("limit").unwrap_or(100)).unwrap();
        let log = self.0.lock().unwrap();
        let mut page: Vec<(&i64, &String)> = match value("after") {
            Some(after) => log.range(after + 1..).take(limit).collect(),
            None => log.iter().rev().take(limit).collect(),
        };
        page.sort_by(|one, other| other.cmp(one));
        let events: Vec<_> =
            page.iter().map(|(id, created)| json!({ "id": id, "created": created, "level": "INFO", "type": "t" })).collect();
        json!({ "count": events.len(), "events": events }).to_string()
    }

    fn follow(&self, after: Option<i64>) -> (EventFollower, support::Sent) {
        let log = self.clone();
        let (transport, sent) = support::wire(move |_, request| {
            let page = log.page(request.uri().query().unwrap_or_default());
            async move { Ok(support::json(&page)) }
        });
        let client = support::builder().build_on(transport);
        (client.events().follow(EventFilter::new().level(EventLevel::Debug), after.map(Id::new), FollowSettings::default()), sent)
    }
}

async fn next(follower: &mut EventFollower) -> Vec<i64> {
    let batch = follower.next().await.unwrap();
    assert!(!batch.reset);
    batch.events.iter().map(|event| event.id.number()).collect()
}

#[tokio::test(start_paused = true)]
async fn every_event_comes_once_also_one_that_turns_up_behind_its_successors() {
    let log = Log::default();
    log.add(1..=50, "old");
    let (mut follower, sent) = log.follow(None);
    assert!(next(&mut follower).await.is_empty());
    let started = Instant::now();
    log.add([51, 53], "new");
    assert_eq!(next(&mut follower).await, [51, 53]);
    assert_eq!(started.elapsed(), Duration::from_secs(1));
    log.add([52, 54], "new");
    assert_eq!(next(&mut follower).await, [52, 54]);
    for _ in 0..200 {
        assert!(next(&mut follower).await.is_empty());
    }
    assert!(sent.last().uri().query().unwrap().ends_with("after=53"), "at rest only the newest event is asked for: {}", sent.last().uri());
}

#[tokio::test(start_paused = true)]
async fn following_after_an_event_brings_all_that_came_since_in_pages() {
    let log = Log::default();
    log.add(1..=3500, "old");
    let (mut follower, _) = log.follow(Some(500));
    let started = Instant::now();
    let mut all = Vec::new();
    while all.len() < 3000 {
        all.extend(next(&mut follower).await);
    }
    assert_eq!(all, (501..=3500).collect::<Vec<_>>());
    assert_eq!(started.elapsed(), Duration::ZERO, "full pages are followed at once");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_went_back_is_noticed_and_followed_from_where_it_is() {
    let log = Log::default();
    log.add(1..=50, "old");
    let (mut follower, _) = log.follow(None);
    next(&mut follower).await;
    log.0.lock().unwrap().retain(|id, _| *id <= 20);
    tokio::time::sleep(Duration::from_mins(2)).await;
    let mut reset = false;
    for _ in 0..3 {
        reset |= follower.next().await.unwrap().reset;
    }
    assert!(reset);
    log.add([21, 22], "again");
    assert_eq!(next(&mut follower).await, [21, 22]);
}

#[tokio::test(start_paused = true)]
async fn numbers_used_again_for_other_events_are_noticed() {
    let log = Log::default();
    log.add(1..=50, "old");
    let (mut follower, _) = log.follow(None);
    next(&mut follower).await;
    log.add(40..=60, "another life");
    assert!(follower.next().await.unwrap().reset);
    assert!(next(&mut follower).await.is_empty());
    log.add([61], "another life");
    assert_eq!(next(&mut follower).await, [61]);
}

#[tokio::test(start_paused = true)]
async fn an_event_hidden_with_its_machine_stops_nothing() {
    let log = Log::default();
    log.add([5, 9], "old");
    let (mut follower, _) = log.follow(None);
    next(&mut follower).await;
    log.hide(5);
    log.add([10], "new");
    assert_eq!(next(&mut follower).await, [10]);
    assert!(next(&mut follower).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_empty_log_is_followed_from_its_first_event() {
    let log = Log::default();
    let (mut follower, _) = log.follow(None);
    assert!(next(&mut follower).await.is_empty());
    log.add([1, 2], "new");
    assert_eq!(next(&mut follower).await, [1, 2]);
}
