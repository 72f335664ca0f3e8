//! Following the event log: every event once, although MAAS numbers events before it commits them and a smaller number may turn up late.
//!
//! A number counts as settled some time after it was first seen. A poll asks for what comes after the last settled number, page by page, so
//! at rest it asks for next to nothing. When that is more than a page, most polls ask for what comes after the newest number only. The
//! event before is asked for too: if it is missing, the log may have been replaced by an older one.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::{
    Client, Error, Id,
    events::{Event, EventFilter, EventPage, EventPlace, Events, MOST_EVENTS},
    limits::later,
};

/// How many numbers before the newest one may still turn up when following begins.
const RECENT: u32 = 100;

/// How many pages one poll reads at most. What is on all but the last of so many counts as settled, or the end would never be reached.
const MOST_PAGES: usize = 10;

/// How often within the settling time what has not settled is read again when it is more than a page.
const READINGS: u32 = 6;

/// How to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowSettings {
    /// The time from one poll to the next.
    pub interval: Duration,
    /// How long after it was first seen an event's number counts as settled: longer than a transaction of MAAS runs.
    pub settle: Duration,
}

impl Default for FollowSettings {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), settle: Duration::from_mins(1) }
    }
}

/// What one poll brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Batch {
    /// Events not seen before, oldest number first.
    pub events: Vec<Event>,
    /// Whether whatever was learnt from events should be read anew: the log went back, what was seen of it is hidden now, or so many events
    /// (about 10,000) came within [`FollowSettings::settle`] that one that turned up late may have been missed.
    pub reset: bool,
}

/// What has been seen of the log. Times are in MAAS's spelling: a log that went back gives old numbers to other events.
#[derive(Clone, Debug, Default)]
struct Cursor {
    /// Everything up to this number is done with. Its time is known if we saw it and expect to see it again.
    settled: Option<(Id<Event>, Option<String>)>,
    /// What was seen after it, and when.
    recent: BTreeMap<Id<Event>, (Instant, String)>,
}

impl Cursor {
    /// The place to ask for, which brings the settled event again.
    fn place(&self) -> EventPlace {
        EventPlace::After(Id::new(self.settled.as_ref().map_or(0, |(id, _)| id.number().saturating_sub(1).max(0))))
    }

    /// Whether an event has a number we know as another event's.
    fn contradicts(&self, event: &Event) -> bool {
        let settled = self
            .settled
            .as_ref()
            .is_some_and(|(id, created)| *id == event.id && created.as_ref().is_some_and(|time| *time != event.created));
        settled || self.recent.get(&event.id).is_some_and(|(_, created)| *created != event.created)
    }

    /// Whether the settled event should have come again and did not.
    fn misses(&self, pages: &[Vec<Event>]) -> bool {
        matches!(&self.settled, Some((id, Some(_))) if !pages.iter().flatten().any(|event| event.id == *id))
    }

    /// The place that brings the newest event again, and what comes after it.
    fn end(&self) -> EventPlace {
        EventPlace::After(Id::new(self.newest().map_or(0, |id| id.number().saturating_sub(1).max(0))))
    }

    /// Whether what has not settled is more than a page.
    fn is_long(&self) -> bool {
        self.recent.len() + 1 >= MOST_EVENTS as usize
    }

    fn newest(&self) -> Option<Id<Event>> {
        self.recent.keys().next_back().copied().or(self.settled.as_ref().map(|(id, _)| *id))
    }

    /// The events among these not seen before, oldest number first.
    fn take(&mut self, events: Vec<Event>, now: Instant) -> Vec<Event> {
        let done = self.settled.as_ref().map(|(id, _)| *id);
        let mut fresh: Vec<Event> =
            events.into_iter().filter(|event| Some(event.id) > done && !self.recent.contains_key(&event.id)).collect();
        fresh.sort_by_key(|event| event.id);
        fresh.dedup_by_key(|event| event.id);
        self.recent.extend(fresh.iter().map(|event| (event.id, (now, event.created.clone()))));
        fresh
    }

    /// Settles the first numbers, as long as the condition holds.
    fn settle(&mut self, condition: impl Fn(Id<Event>, Instant) -> bool) {
        while let Some(entry) = self.recent.first_entry()
            && condition(*entry.key(), entry.get().0)
        {
            let (id, (_, created)) = entry.remove_entry();
            self.settled = Some((id, Some(created)));
        }
    }

    /// Begins anew: all of these have been seen, and some before the newest may still turn up.
    fn begin(events: Vec<Event>, now: Instant) -> Self {
        let mut cursor = Self::default();
        cursor.take(events, now);
        let oldest = cursor.recent.keys().next().copied();
        cursor.settle(|id, _| Some(id) == oldest);
        cursor
    }
}

/// Follows the event log: every event once, although MAAS numbers events before it commits them and a smaller number may turn up late; see
/// [`Events::follow`].
#[derive(Debug)]
pub struct EventFollower {
    client: Client,
    filter: EventFilter,
    settings: FollowSettings,
    cursor: Option<Cursor>,
    next_poll: Instant,
    /// When all that has not settled was last read; nothing while there is more than one poll reads.
    read_whole: Option<Instant>,
}

impl Events<'_> {
    /// Follows the log after the given event, or from now on. Nothing is read before the first [`EventFollower::next`].
    ///
    /// What was first seen less than [`FollowSettings::settle`] ago is read again, since numbers in between may still turn up: with each
    /// poll if it is less than a page of 1,000 events, and six times within that time if it is more.
    ///
    /// ```
    /// use maas_client::{Client, Error, EventFilter, EventLevel, FollowSettings};
    ///
    /// async fn follow(client: &Client) -> Result<(), Error> {
    ///     let filter = EventFilter::new().level(EventLevel::Debug);
    ///     let mut follower = client.events().follow(filter, None, FollowSettings::default());
    ///     loop {
    ///         let batch = follower.next().await?;
    ///         if batch.reset {
    ///             println!("look at everything anew");
    ///         }
    ///         for event in batch.events {
    ///             println!("{:?}: {} {}", event.node, event.kind, event.description);
    ///         }
    ///     }
    /// }
    /// ```
    pub fn follow(self, filter: EventFilter, after: Option<Id<Event>>, settings: FollowSettings) -> EventFollower {
        let cursor = after.map(|id| Cursor { settled: Some((id, None)), ..Cursor::default() });
        EventFollower { client: self.client().clone(), filter, settings, cursor, next_poll: Instant::now(), read_whole: None }
    }
}

impl EventFollower {
    /// Waits for the next poll and says what it brought, which may be nothing. After an error the next call polls the same place again.
    ///
    /// Dropping the future loses nothing: events count as seen only when they are returned.
    pub async fn next(&mut self) -> Result<Batch, Error> {
        sleep_until(self.next_poll).await;
        let now = Instant::now();
        self.next_poll = later(now, self.settings.interval);
        let Some(cursor) = &self.cursor else {
            self.begin().await?;
            return Ok(Batch::default());
        };
        let rested = |time: Instant| now.duration_since(time) >= self.settings.settle / READINGS;
        let mut whole = !cursor.is_long() || self.read_whole.is_none_or(rested);
        let mut pages = self.pages(if whole { cursor.place() } else { cursor.end() }).await?;
        let goes_on = |pages: &[Vec<Event>]| pages.iter().flatten().any(|event| Some(event.id) == cursor.newest());
        if !whole && (!goes_on(&pages) || more_after(&pages).is_some()) {
            whole = true;
            pages = self.pages(cursor.place()).await?;
        }
        if pages.iter().flatten().any(|event| cursor.contradicts(event)) {
            return self.begin_again().await;
        }
        let missing = whole && cursor.misses(&pages);
        if missing && pages.iter().all(Vec::is_empty) {
            // Gone back, or hidden with its machine. Only the newest number tells.
            let newest = self.query(EventPlace::Newest, 1).await?;
            if newest.events.first().map(|event| event.id) < cursor.newest() {
                return self.begin_again().await;
            }
        }
        let rest = more_after(&pages).cloned();
        let hurried = match &rest {
            Some(last) => !self.is_old(last).await?,
            None => false,
        };
        if missing {
            self.expect_no_settled();
        }
        let events = self.take(pages, now, whole, rest.map(|event| event.id));
        Ok(Batch { events, reset: hurried })
    }

    /// All there is from here on, in pages, or as much as one poll reads.
    async fn pages(&self, mut place: EventPlace) -> Result<Vec<Vec<Event>>, Error> {
        let mut pages = Vec::new();
        loop {
            let page = self.query(place, MOST_EVENTS).await?.events;
            let next = newest_of(&page).filter(|_| is_full(&page)).map(|event| event.id);
            pages.push(page);
            match next {
                Some(last) if pages.len() < MOST_PAGES => place = EventPlace::After(last),
                _ => return Ok(pages),
            }
        }
    }

    /// Whether an event is so much older than the newest one that every number before it has been committed.
    async fn is_old(&self, event: &Event) -> Result<bool, Error> {
        let newest = self.query(EventPlace::Newest, 1).await?.events.first().and_then(Event::created_at);
        let age = newest.zip(event.created_at()).and_then(|(newest, time)| Duration::try_from(newest.duration_since(time)).ok());
        Ok(age.is_some_and(|age| age >= self.settings.settle))
    }

    async fn query(&self, place: EventPlace, limit: u32) -> Result<EventPage, Error> {
        self.client.events().query(&self.filter, place, Some(limit)).await
    }

    async fn begin(&mut self) -> Result<(), Error> {
        let page = self.query(EventPlace::Newest, RECENT).await?;
        self.cursor = Some(Cursor::begin(page.events, Instant::now()));
        Ok(())
    }

    async fn begin_again(&mut self) -> Result<Batch, Error> {
        self.begin().await?;
        Ok(Batch { events: Vec::new(), reset: true })
    }

    /// The settled event is hidden, and will not come again.
    fn expect_no_settled(&mut self) {
        if let Some((_, created)) = self.cursor.as_mut().and_then(|cursor| cursor.settled.as_mut()) {
            *created = None;
        }
    }

    /// Takes what a poll that began at `now` brought. After reading the whole of it, what is old has settled; with `rest` there is more,
    /// and everything up to that number has settled too.
    fn take(&mut self, pages: Vec<Vec<Event>>, now: Instant, whole: bool, rest: Option<Id<Event>>) -> Vec<Event> {
        let cursor = self.cursor.get_or_insert_default();
        // Seen when the reading ended, settled when it began: slow reading must not shorten the time in between.
        let events = cursor.take(pages.into_iter().flatten().collect(), Instant::now());
        if whole {
            let settle = self.settings.settle;
            cursor.settle(|id, seen| Some(id) <= rest || now.duration_since(seen) >= settle);
            self.read_whole = rest.is_none().then_some(now);
        }
        if rest.is_some() && !events.is_empty() {
            self.next_poll = now;
        }
        events
    }
}

/// The event up to which a poll is done with, if there is more after its pages. Going on from there is the only way to get to it.
fn more_after(pages: &[Vec<Event>]) -> Option<&Event> {
    match pages {
        [done @ .., last] if pages.len() == MOST_PAGES && is_full(last) => newest_of(done.iter().flatten()),
        _ => None,
    }
}

fn is_full(page: &[Event]) -> bool {
    page.len() >= MOST_EVENTS as usize
}

fn newest_of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<&'a Event> {
    events.into_iter().max_by_key(|event| event.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: i64, created: &str) -> Event {
        Event { id: Id::new(id), created: created.to_owned(), ..Event::default() }
    }

    fn ids(events: &[Event]) -> Vec<i64> {
        events.iter().map(|event| event.id.number()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_that_turns_up_late_is_new_until_those_around_it_have_settled() {
        let start = Instant::now();
        let mut cursor = Cursor::begin(vec![event(10, "a")], start);
        assert_eq!(ids(&cursor.take(vec![event(13, "c"), event(11, "b"), event(10, "a")], start)), [11, 13]);
        assert_eq!(ids(&cursor.take(vec![event(13, "c"), event(12, "c"), event(11, "b")], start)), [12]);
        cursor.settle(|_, seen| seen <= start);
        assert!(cursor.recent.is_empty());
        assert_eq!(cursor.place(), EventPlace::After(Id::new(12)));
        assert!(cursor.take(vec![event(13, "c"), event(12, "c")], start).is_empty());
    }

    #[test]
    fn numbers_given_to_other_events_are_noticed() {
        let cursor = Cursor::begin(vec![event(10, "a"), event(11, "b")], Instant::now());
        assert!(cursor.contradicts(&event(11, "z")) && cursor.contradicts(&event(10, "z")));
        assert!(!cursor.contradicts(&event(11, "b")) && !cursor.contradicts(&event(12, "z")));
        assert!(cursor.misses(&[vec![event(11, "b")]]) && !cursor.misses(&[vec![event(10, "a")], vec![event(11, "b")]]));
    }
}
