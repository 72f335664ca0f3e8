//! Following the event log: every event once, although MAAS numbers events before it commits them and a smaller number may turn up late.
//!
//! A number counts as settled some time after it was first seen. Each poll asks for what comes after the last settled number, so at rest it
//! asks for next to nothing. The settled event itself is asked for too: if it is missing, the log may have been replaced by an older one.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::{
    Client, Error, Id,
    events::{Event, EventFilter, EventPage, EventPlace, Events, MOST_EVENTS},
    limits::later,
};

/// How many numbers before the newest one may still turn up when following begins.
const RECENT: u32 = 100;

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
    /// Whether the log went back, or what was seen of it is hidden now: whatever was learnt from events should be read anew.
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
        EventPlace::After(Id::new(self.settled.as_ref().map_or(0, |(id, _)| id.number().saturating_sub(1))))
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
    fn misses(&self, events: &[Event]) -> bool {
        matches!(&self.settled, Some((id, Some(_))) if !events.iter().any(|event| event.id == *id))
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

/// Follows the event log; see [`Events::follow`].
#[derive(Debug)]
pub struct EventFollower {
    client: Client,
    filter: EventFilter,
    settings: FollowSettings,
    cursor: Option<Cursor>,
    next_poll: Instant,
}

impl Events<'_> {
    /// Follows the log after the given event, or from now on. Nothing is read before the first [`EventFollower::next`].
    pub fn follow(self, filter: EventFilter, after: Option<Id<Event>>, settings: FollowSettings) -> EventFollower {
        let cursor = after.map(|id| Cursor { settled: Some((id, None)), ..Cursor::default() });
        EventFollower { client: self.client().clone(), filter, settings, cursor, next_poll: Instant::now() }
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
            let page = self.query(EventPlace::Newest, RECENT).await?;
            self.cursor = Some(Cursor::begin(page.events, now));
            return Ok(Batch::default());
        };
        let page = self.query(cursor.place(), MOST_EVENTS).await?;
        if page.events.iter().any(|event| cursor.contradicts(event)) {
            return self.begin_again(now).await;
        }
        let missing = cursor.misses(&page.events);
        if missing && page.events.is_empty() {
            // Gone back, or hidden with its machine. Only the newest number tells.
            let newest = self.query(EventPlace::Newest, 1).await?;
            if newest.events.first().map(|event| event.id) < cursor.newest() {
                return self.begin_again(now).await;
            }
        }
        Ok(self.taken(page.events, missing, now))
    }

    async fn query(&self, place: EventPlace, limit: u32) -> Result<EventPage, Error> {
        self.client.events().query(&self.filter, place, Some(limit)).await
    }

    async fn begin_again(&mut self, now: Instant) -> Result<Batch, Error> {
        let page = self.query(EventPlace::Newest, RECENT).await?;
        self.cursor = Some(Cursor::begin(page.events, now));
        Ok(Batch { events: Vec::new(), reset: true })
    }

    fn taken(&mut self, events: Vec<Event>, missing: bool, now: Instant) -> Batch {
        let cursor = self.cursor.get_or_insert_default();
        if missing && let Some((_, created)) = &mut cursor.settled {
            *created = None;
        }
        let full = events.len() >= MOST_EVENTS as usize;
        let last = events.iter().map(|event| event.id).max();
        let events = cursor.take(events, now);
        if full {
            // There are more than fit. Going on from the end of these is the only way to get to them.
            cursor.settle(|id, _| Some(id) <= last);
            self.next_poll = now;
        } else {
            let settle = self.settings.settle;
            cursor.settle(|_, seen| now.duration_since(seen) >= settle);
        }
        Batch { events, reset: false }
    }
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
        assert!(cursor.misses(&[event(11, "b")]) && !cursor.misses(&[event(10, "a")]));
    }
}
