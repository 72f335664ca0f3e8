//! Events of Kubernetes: what happened to an object, for people. The rules decide what is told, once for every transition.

use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::{
    api::core::v1::{Event, EventSource},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{Api, Client, Resource, ResourceExt, api::PostParams};

use crate::{Clock, FIELD_MANAGER};

/// What the API server takes.
const LONGEST_MESSAGE: usize = 1024;

/// As long may the name of an event be.
const LONGEST_NAME: usize = 253;

/// The name of an event: that of the object, as far as there is room, and what makes it different from others.
fn name_of_event(object: &str, number: &str) -> String {
    let room = LONGEST_NAME.saturating_sub(number.len() + 1);
    // A part of a name ends with a letter or a digit.
    let part = object.get(..room).unwrap_or(object).trim_end_matches(['.', '-']);
    format!("{part}.{number}")
}

/// Tells people what happened.
#[derive(Debug)]
pub struct Events {
    client: ClientWithoutDebug,
    clock: Clock,
    told: AtomicU64,
}

struct ClientWithoutDebug(Client);

impl std::fmt::Debug for ClientWithoutDebug {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Client")
    }
}

impl Events {
    /// Nothing told yet.
    pub fn new(client: Client, clock: Clock) -> Self {
        Self { client: ClientWithoutDebug(client), clock, told: AtomicU64::new(0) }
    }

    /// Tells what happened to an object. An event that cannot be written is not worth a failure: the condition says it too.
    pub async fn tell<K: Resource<DynamicType = ()>>(&self, about: &K, warning: bool, reason: &str, message: &str) {
        let namespace = about.namespace().unwrap_or_else(|| "default".to_owned());
        let now = self.clock.now();
        let number = self.told.fetch_add(1, Ordering::Relaxed);
        let name = name_of_event(&about.name_any(), &format!("{:x}.{number:x}", now.as_nanosecond()));
        let event = Event {
            metadata: ObjectMeta { name: Some(name), namespace: Some(namespace.clone()), ..ObjectMeta::default() },
            involved_object: about.object_ref(&()),
            reason: Some(reason.to_owned()),
            message: Some(message.chars().take(LONGEST_MESSAGE).collect()),
            type_: Some(if warning { "Warning" } else { "Normal" }.to_owned()),
            source: Some(EventSource { component: Some(FIELD_MANAGER.to_owned()), host: None }),
            reporting_component: Some(FIELD_MANAGER.to_owned()),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(1),
            ..Event::default()
        };
        let events: Api<Event> = Api::namespaced(self.client.0.clone(), &namespace);
        if let Err(error) = events.create(&PostParams::default(), &event).await {
            tracing::debug!(%error, reason, "could not write an event");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_event_has_as_much_of_its_object_as_there_is_room_for() {
        assert_eq!(name_of_event("rack-1", "18a.0"), "rack-1.18a.0");
        let long = format!("{}-.{}", "a".repeat(245), "b".repeat(6));
        assert_eq!(name_of_event(&long, "18a.0"), format!("{}.18a.0", "a".repeat(245)));
        assert_eq!(name_of_event(&"c".repeat(253), "18a.0").len(), LONGEST_NAME);
    }
}
