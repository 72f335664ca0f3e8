//! Names that other MaasClusters have. Such a name is theirs, whoever asks for it here: nobody but its cluster writes its record.

use api::{EndpointIntent, EndpointIntentRead, MaasCluster, names};
use jiff::Timestamp;

use super::facts::Facts;

/// A name that another MaasCluster has, or asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameOfOther {
    /// The object, as `namespace/name`.
    pub object: String,
    /// The name.
    pub name: String,
    /// The host of the MAAS it is in, where that is known.
    pub maas: Option<String>,
    /// Whether it is only asked for, as anybody can.
    pub is_only_asked_for: bool,
    /// Since when the object is there.
    pub since: Option<Timestamp>,
}

impl NameOfOther {
    /// The names of another object: the one on record, and the host it shows.
    pub fn of(other: &MaasCluster) -> Vec<Self> {
        let metadata = &other.metadata;
        let read = EndpointIntent::of(metadata);
        let is_unreadable = matches!(read, EndpointIntentRead::Unreadable(_));
        let intent = read.ours().unwrap_or_else(|| EndpointIntent::new(metadata));
        let (object, maas) = (EndpointIntent::new(metadata).object, intent.maas);
        let since = metadata.creation_timestamp.as_ref().map(|time| time.0);
        let name = |name: &str, is_only_asked_for| Self {
            object: object.clone(),
            name: plain(name),
            maas: maas.clone(),
            is_only_asked_for,
            since,
        };
        let is_custom = metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(names::CUSTOM_ENDPOINT));
        let reached = other.status.as_ref().and_then(|status| status.initialization.as_ref()?.provisioned).unwrap_or_default();
        // Somebody uses the host of these, although it is not on record.
        let is_used = is_custom || reached || is_unreadable;
        let recorded = intent.name.as_deref().map(|recorded| name(recorded, false));
        let shown = other.spec.endpoint_host().map(|host| name(host, !is_used));
        recorded.into_iter().chain(shown).collect()
    }
}

impl Facts {
    /// The other object that has this name, as long as we do not have it on record. Of two that only ask for it the older one gets it.
    pub(super) fn holder_of(&self, name: &str) -> Option<&str> {
        let here = self.account.as_ref().ok().map(|account| account.host.as_str());
        let metadata = &self.object.metadata;
        let ours = (metadata.creation_timestamp.as_ref().map(|time| time.0), EndpointIntent::new(metadata).object);
        let name = plain(name);
        let has = |other: &&NameOfOther| {
            let is_elsewhere = other.maas.as_deref().is_some_and(|maas| here.is_some_and(|here| here != maas));
            let came_later = other.is_only_asked_for && (other.since, &other.object) > (ours.0, &ours.1);
            other.name == name && !is_elsewhere && !came_later
        };
        self.names_of_others.iter().find(has).map(|other| other.object.as_str())
    }
}

/// A name as it is compared.
fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}
