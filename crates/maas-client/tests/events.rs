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
async fn following_from_the_beginning_asks_for_no_place_before_it() {
    let log = Log::default();
    log.add([1, 2], "old");
    for after in [0, 1] {
        let (mut follower, sent) = log.follow(Some(after));
        assert_eq!(next(&mut follower).await, (after + 1..=2).collect::<Vec<_>>());
        assert!(sent.last().uri().query().unwrap().ends_with("&after=0"), "{}", sent.last().uri());
    }
}

#[tokio::test(start_paused = true)]
async fn what_turns_up_late_comes_also_among_more_events_than_a_page_holds() {
    let log = Log::default();
    log.add(1..=50, "old");
    let (mut follower, _) = log.follow(None);
    next(&mut follower).await;
    log.add((51..=2500).filter(|id| ![61, 1500].contains(id)), "new");
    assert_eq!(next(&mut follower).await.len(), 2448);
    tokio::time::sleep(Duration::from_secs(55)).await;
    log.add([61, 1500, 2501], "new");
    assert_eq!(next(&mut follower).await, [61, 1500, 2501]);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert!(next(&mut follower).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn many_events_are_not_read_again_with_every_poll() {
    let log = Log::default();
    log.add(1..=50, "old");
    let (mut follower, sent) = log.follow(None);
    next(&mut follower).await;
    log.add((51..=4000).filter(|id| *id != 70), "new");
    assert_eq!(next(&mut follower).await.len(), 3949);
    log.add([70], "new");
    let before = sent.count();
    let mut all = Vec::new();
    for id in 4001..=4060 {
        log.add([id], "new");
        all.extend(next(&mut follower).await);
    }
    assert!(sent.count() - before <= 60 + 6 * 4, "{} requests for 60 polls", sent.count() - before);
    assert!(all.iter().position(|id| *id == 70).is_some_and(|position| position <= 11), "it came late: {all:?}");
    all.retain(|id| *id != 70);
    assert_eq!(all, (4001..=4060).collect::<Vec<_>>());
    tokio::time::sleep(Duration::from_mins(2)).await;
    for _ in 0..3 {
        assert!(next(&mut follower).await.is_empty());
    }
    assert!(sent.last().uri().query().unwrap().ends_with("after=4059"), "{}", sent.last().uri());
}

#[tokio::test(start_paused = true)]
async fn a_log_that_goes_back_among_many_events_is_noticed() {
    let log = Log::default();
    log.add(1..=50, "old");
    let (mut follower, _) = log.follow(None);
    next(&mut follower).await;
    log.add(51..=2500, "new");
    assert_eq!(next(&mut follower).await.len(), 2450);
    log.0.lock().unwrap().retain(|id, _| *id <= 2000);
    assert!(next(&mut follower).await.is_empty());
    log.add([2001], "again");
    assert!(follower.next().await.unwrap().reset, "the number was another event's");
    log.add([2002, 2003], "again");
    assert_eq!(next(&mut follower).await, [2002, 2003]);
}

/// Transactions take up to 55 seconds from numbering an event to committing it; now and then a thousand machines do something at once.
#[tokio::test(start_paused = true)]
async fn every_event_comes_once_whatever_the_order_of_commits() {
    for seed in 0..3 {
        let mut random = fastrand::Rng::with_seed(seed);
        let log = Log::default();
        log.add([1], "t");
        let (mut follower, _) = log.follow(None);
        next(&mut follower).await;
        let (mut number, mut commits, mut all) = (1, BTreeMap::<u64, Vec<i64>>::new(), Vec::new());
        for second in 0..220 {
            let count = match second {
                0..100 if random.u8(..20) == 0 => random.i64(500..1500),
                0..100 => random.i64(..20),
                _ => 0,
            };
            for _ in 0..count {
                number += 1;
                let delay = if random.u8(..10) == 0 { random.u64(1..=55) } else { 0 };
                commits.entry(second + delay).or_default().push(number);
            }
            log.add(commits.remove(&second).unwrap_or_default(), "t");
            all.extend(next(&mut follower).await);
        }
        all.sort_unstable();
        assert_eq!(all, (2..=number).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn old_events_are_read_to_their_end_and_what_comes_too_fast_to_read_twice_is_told() {
    let log = Log::default();
    log.add(1..=35_000, "Sun, 15 Nov. 2026 19:00:00");
    log.add([35_001], "Sun, 15 Nov. 2026 19:47:54");
    let (mut follower, sent) = log.follow(Some(0));
    let started = Instant::now();
    let mut all = Vec::new();
    while all.len() < 35_001 {
        all.extend(next(&mut follower).await);
    }
    assert_eq!(all, (1..=35_001).collect::<Vec<_>>());
    assert!(started.elapsed() == Duration::ZERO && sent.count() < 50, "{} requests in {:?}", sent.count(), started.elapsed());
    log.add(35_002..=55_000, "Sun, 15 Nov. 2026 19:47:59");
    assert!(follower.next().await.unwrap().reset, "one of so many may turn up late");
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
