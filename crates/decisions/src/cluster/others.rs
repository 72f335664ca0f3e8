//! Names and addresses that other MaasClusters have. Such a one is theirs, whoever asks for it here: nobody but its cluster writes the
//! record of a name, or uses and frees an address.

use std::{net::IpAddr, time::Duration};

use api::{EndpointIntent, EndpointIntentRead, EndpointMode, EndpointOrder, EndpointOrderKind, MaasCluster, names};
use jiff::Timestamp;

use super::facts::Facts;
use crate::plan::later;

/// A name or an address that another MaasCluster has, or asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldByOther {
    /// The object, as `namespace/name`.
    pub object: String,
    /// The name or the address.
    pub what: String,
    /// The host of the MAAS it is in, where that is known.
    pub maas: Option<String>,
    /// How firmly.
    pub hold: Hold,
    /// Since when the object is there.
    pub since: Option<Timestamp>,
    /// When it was written down that MAAS is told to reserve it, while MAAS may not have answered.
    pub ordered: Option<Timestamp>,
    /// Whether the object goes.
    pub goes: bool,
}

/// How firmly something is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It is its own.
    Has,
    /// It is used, and on no record of ours: who made it known, and in which MAAS it is, nobody can tell. Nobody else gets it, but what we have
    /// on record stays ours.
    Uses,
    /// It is on record and not known to be its own yet: MAAS has not answered, or another one may have written the same down at the same time.
    Contends,
    /// It is only asked for, as anybody can.
    Asks,
}

/// Another object that has on record what we have on record too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rival<'a> {
    /// It is the other's.
    Prevails,
    /// The other has to give way, or to hear from MAAS, and has not yet. Until then it may still turn out to have it.
    MayHave(&'a str),
}

/// For so long another cluster may be about to hear from MAAS whether it has the address: as long as MAAS may take, by a clock that may be wrong.
const MAY_BE_ANSWERED: Duration = Duration::from_mins(4);

impl HeldByOther {
    /// What another object holds: what is on record, the host it shows, and the address it asks for.
    pub fn of(other: &MaasCluster) -> Vec<Self> {
        let metadata = &other.metadata;
        let read = EndpointIntent::of(metadata);
        let is_unreadable = matches!(read, EndpointIntentRead::Unreadable(_));
        let intent = read.ours().unwrap_or_else(|| EndpointIntent::new(metadata));
        let (object, maas) = (EndpointIntent::new(metadata).object, intent.maas.clone());
        let since = metadata.creation_timestamp.as_ref().map(|time| time.0);
        let goes = metadata.deletion_timestamp.is_some();
        let held =
            |what: &str, hold| Self { object: object.clone(), what: plain(what), maas: maas.clone(), hold, since, ordered: None, goes };
        let is_custom = metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(names::CUSTOM_ENDPOINT));
        // Somebody uses the host of these, although it is not on record.
        let is_used = is_custom || is_provisioned(other);
        let asked = || if is_unreadable { Hold::Has } else { Hold::Asks };
        let recorded = intent.name.as_deref().map(|recorded| held(recorded, Hold::Has));
        let ordered = intent.order.as_ref().filter(|order| matches!(order.what, EndpointOrderKind::Reserve(_))).map(|order| order.since);
        let address = intent.address.zip(hold_of(other, &intent));
        let address = address.map(|(address, hold)| Self { ordered, ..held(&address.to_string(), hold) });
        let reserved = intent.reserved.iter().map(|address| held(&address.to_string(), Hold::Has));
        let shown = other.spec.endpoint_host().map(|host| held(host, if is_used && !is_unreadable { Hold::Uses } else { asked() }));
        let wish = asked_address(other).filter(|_| intent.address.is_none()).map(|wish| held(wish, asked()));
        // What goes asks for nothing any more.
        let asks_in_vain = |held: &Self| held.hold == Hold::Asks && goes;
        recorded.into_iter().chain(address).chain(reserved).chain(shown).chain(wish).filter(|held| !asks_in_vain(held)).collect()
    }
}

impl Facts {
    /// The other object that has this name or address, as long as we do not have it on record. Of two that only ask for it the older one gets
    /// it.
    pub(super) fn holder_of(&self, what: &str) -> Option<&str> {
        let holds = |other: &&HeldByOther| other.hold != Hold::Asks || self.came_later_than(other);
        self.others_with(what).find(holds).map(|other| other.object.as_str())
    }

    /// Whether this is another one's, whatever we have on record: it is the other's to free then. Of two that go the older one frees it.
    pub(super) fn is_of_other(&self, address: IpAddr) -> bool {
        let frees = |other: &HeldByOther| other.hold == Hold::Has && (!other.goes || self.came_later_than(other));
        self.others_with(&address.to_string()).any(frees)
    }

    /// The younger object that has this address too and goes as well: its machines may still use it.
    pub(super) fn going_holder_of(&self, address: IpAddr) -> Option<&str> {
        let goes = |other: &&HeldByOther| other.hold == Hold::Has && other.goes && !self.came_later_than(other);
        self.others_with(&address.to_string()).find(goes).map(|other| other.object.as_str())
    }

    /// The older object that has this address, which is our own too: both had it before anybody looked at that.
    pub(super) fn older_holder_of(&self, address: IpAddr) -> Option<&str> {
        let is_older = |other: &&HeldByOther| other.hold == Hold::Has && self.came_later_than(other);
        self.others_with(&address.to_string()).find(is_older).map(|other| other.object.as_str())
    }

    /// The other object that has this address on record, as we have. One that MAAS has not answered is waited for: if it is refused, what is
    /// reserved may be ours, and nobody would free it if we had given it up. Of two that cannot tell whose it is, the younger one gives way and
    /// the older one waits for that, so that one of them ends up with it.
    pub(super) fn rival_for(&self, address: IpAddr, now: Timestamp) -> Option<Rival<'_>> {
        let rivals: Vec<&HeldByOther> = self.others_with(&address.to_string()).filter(|other| other.hold != Hold::Asks).collect();
        let is_asking = |other: &HeldByOther| other.ordered.is_some_and(|since| now < later(since, MAY_BE_ANSWERED));
        let prevails =
            |other: &&&HeldByOther| matches!(other.hold, Hold::Has | Hold::Uses) || (!is_asking(other) && self.came_later_than(other));
        match rivals.iter().find(prevails) {
            Some(_) => Some(Rival::Prevails),
            None => rivals.first().map(|other| Rival::MayHave(&other.object)),
        }
    }

    /// How firmly we hold the address on record.
    pub(super) fn own_hold(&self) -> Option<Hold> {
        hold_of(&self.object, &self.intent()?)
    }

    fn came_later_than(&self, other: &HeldByOther) -> bool {
        let metadata = &self.object.metadata;
        let since = metadata.creation_timestamp.as_ref().map(|time| time.0);
        (other.since, &other.object) <= (since, &EndpointIntent::new(metadata).object)
    }

    fn others_with(&self, what: &str) -> impl Iterator<Item = &HeldByOther> {
        let here = self.account.as_ref().ok().map(|account| account.host.as_str());
        let what = plain(what);
        let is_elsewhere = move |other: &HeldByOther| other.maas.as_deref().is_some_and(|maas| here.is_some_and(|here| here != maas));
        self.held_by_others.iter().filter(move |other| other.what == what && !is_elsewhere(other))
    }
}

/// How firmly an object holds the address it has on record. One that MAAS reserved for it is its own, and so is one that everybody heard of.
/// One that was reserved before, by a person, is so for nobody in particular.
fn hold_of(object: &MaasCluster, intent: &EndpointIntent) -> Option<Hold> {
    let address = intent.address?;
    let is_shown = object.spec.endpoint_host().and_then(|host| host.parse().ok()) == Some(address);
    let is_ordered = matches!(intent.order, Some(EndpointOrder { what: EndpointOrderKind::Reserve(ordered), .. }) if ordered == address);
    let has = (is_provisioned(object) && is_shown) || !(intent.address_given || is_ordered);
    Some(if has { Hold::Has } else { Hold::Contends })
}

fn asked_address(object: &MaasCluster) -> Option<&str> {
    let endpoint = object.spec.endpoint.as_ref().filter(|_| object.spec.endpoint_mode() == EndpointMode::Vip)?;
    endpoint.vip.as_ref()?.address.as_deref()
}

fn is_provisioned(object: &MaasCluster) -> bool {
    object.status.as_ref().and_then(|status| status.initialization.as_ref()?.provisioned).unwrap_or_default()
}

/// A name or an address as it is compared.
fn plain(what: &str) -> String {
    what.parse::<IpAddr>().map_or_else(|_| what.trim_end_matches('.').to_ascii_lowercase(), |address| address.to_string())
}
