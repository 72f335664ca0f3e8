//! What happened to machines, as MAAS logs it. [`crate::EventFollower`] follows the log.

use std::fmt;

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id, SystemId,
    call::{Call, Form, Path},
    named::Named,
};

/// How much an event matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EventLevel {
    /// What users did, apart from all other levels.
    Audit,
    /// Changes of status and requests are here.
    Debug,
    /// Milestones, such as Deployed.
    Info,
    /// Something odd.
    Warning,
    /// Something failed.
    Error,
    /// Something failed badly.
    Critical,
    /// One this client does not know.
    Other(String),
}

impl From<String> for EventLevel {
    fn from(text: String) -> Self {
        match text.as_str() {
            "AUDIT" => Self::Audit,
            "DEBUG" => Self::Debug,
            "INFO" => Self::Info,
            "WARNING" => Self::Warning,
            "ERROR" => Self::Error,
            "CRITICAL" => Self::Critical,
            _ => Self::Other(text),
        }
    }
}

impl From<EventLevel> for String {
    fn from(level: EventLevel) -> Self {
        level.to_string()
    }
}

impl fmt::Display for EventLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Audit => "AUDIT",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
            Self::Critical => "CRITICAL",
            Self::Other(text) => text,
        })
    }
}

impl Default for EventLevel {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Event {
    /// Its number. Larger is later, but a smaller one may become visible after a larger.
    pub id: Id<Event>,
    /// How much it matters.
    pub level: EventLevel,
    /// When, in UTC and MAAS's spelling; see [`Event::created_at`].
    pub created: String,
    /// What kind of thing, such as `Node changed status`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What exactly, such as `From 'Deploying' to 'Deployed'`.
    pub description: String,
    /// The machine it happened to.
    pub node: Option<SystemId>,
    /// The machine's name.
    pub hostname: Option<String>,
    /// Who did it; `unknown` for MAAS itself.
    pub username: Option<String>,
}

impl Event {
    /// When it happened, to the second. Nothing if MAAS spells times in a way we do not know.
    pub fn created_at(&self) -> Option<Timestamp> {
        let time = DateTime::strptime("%a, %d %b. %Y %H:%M:%S", &self.created).ok()?;
        time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    }
}

/// A page of events, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EventPage {
    /// How many are on this page.
    pub count: u64,
    /// The events.
    pub events: Vec<Event>,
    /// Where newer ones will be.
    pub next_uri: Option<String>,
    /// Where older ones are.
    pub prev_uri: Option<String>,
}

/// A page as it comes. Without a list it is none, and nobody may conclude that nothing happened.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Page {
    count: u64,
    events: Option<Vec<Event>>,
    next_uri: Option<String>,
    prev_uri: Option<String>,
}

impl Named for Page {
    const KIND: &'static str = "events";

    fn is_named(&self) -> bool {
        self.events.is_some()
    }
}

/// Which events to read: all, of level INFO and above, unless told otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter(Form);

impl EventFilter {
    /// The default.
    pub fn new() -> Self {
        Self::default()
    }

    fn with(self, key: &'static str, value: impl fmt::Display) -> Self {
        Self(self.0.with(key, value))
    }

    /// Of this machine; given several times, of any of these.
    #[must_use]
    pub fn machine(self, id: &SystemId) -> Self {
        self.with("id", id)
    }

    /// Of machines of this name.
    #[must_use]
    pub fn hostname(self, hostname: &str) -> Self {
        self.with("hostname", hostname)
    }

    /// Of the machine with this MAC address. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn mac_address(self, address: &str) -> Self {
        self.with("mac_address", address)
    }

    /// Of machines in this zone.
    #[must_use]
    pub fn zone(self, zone: &str) -> Self {
        self.with("zone", zone)
    }

    /// Of machines in this domain. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn domain(self, domain: &str) -> Self {
        self.with("domain", domain)
    }

    /// Of machines with this agent name. Rests on [reading](crate#what-it-rests-on).
    #[must_use]
    pub fn agent_name(self, name: &str) -> Self {
        self.with("agent_name", name)
    }

    /// Of what this user did.
    #[must_use]
    pub fn owner(self, owner: &str) -> Self {
        self.with("owner", owner)
    }

    /// Of this level and above; AUDIT is alone.
    #[must_use]
    pub fn level(self, level: EventLevel) -> Self {
        self.with("level", level)
    }
}

/// Where in the log to read. MAAS takes no two of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventPlace {
    /// The newest ones.
    #[default]
    Newest,
    /// The newest ones older than this one.
    Before(Id<Event>),
    /// The *oldest* ones newer than this one, so that nothing is skipped.
    After(Id<Event>),
}

/// The most events MAAS gives at once.
pub const MOST_EVENTS: u32 = 1000;

/// Calls on events; see [`Client::events`].
#[derive(Clone, Copy, Debug)]
pub struct Events<'a>(&'a Client);

impl Client {
    /// The event log.
    pub fn events(&self) -> Events<'_> {
        Events(self)
    }
}

impl<'a> Events<'a> {
    pub(crate) fn client(self) -> &'a Client {
        self.0
    }

    /// A page of up to `limit` events, of which MAAS gives 1,000 at most; newest first.
    pub async fn query(self, filter: &EventFilter, place: EventPlace, limit: Option<u32>) -> Result<EventPage, Error> {
        let query = filter.0.clone().maybe("limit", limit.map(|limit| limit.clamp(1, MOST_EVENTS)));
        let query = match place {
            EventPlace::Newest => query,
            EventPlace::Before(id) => query.with("before", id),
            EventPlace::After(id) => query.with("after", id),
        };
        let page: Page = self.0.object(Call::get(Path::new("events")).operation("query").query(query)).await?;
        let Page { count, events, next_uri, prev_uri } = page;
        Ok(EventPage { count, events: events.unwrap_or_default(), next_uri, prev_uri })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_maas_spells_them() {
        let event = Event { created: "Sun, 15 Nov. 2026 19:47:54".to_owned(), ..Event::default() };
        assert_eq!(event.created_at().unwrap().to_string(), "2026-11-15T19:47:54Z");
        assert_eq!(Event::default().created_at(), None);
    }
}
