//! An address reserved in MAAS for the API server, which a plain user may do. The address is chosen and written down before it is
//! reserved, so that an answer that got lost can be looked for. Who answers at it is not our business.
//!
//! An address is one cluster's only. MAAS reserves it once, so of two clusters that want the same one is refused; where MAAS cannot tell them
//! apart, because nobody heard its answer or a person reserved the address before, what is on record does.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use api::{EndpointIntent, EndpointIntentRead, EndpointOrderKind as Kind};

use super::{
    addresses,
    draft::Draft,
    endpoint::hash,
    orders::Outstanding,
    others::{Hold, Rival},
    plan::{LookAgain, Plan, Step},
    reason,
};

/// How often it is looked whether the address is still reserved.
const DRIFT_POLL: Duration = Duration::from_mins(5);
/// How often it is looked whether another cluster has given way.
const RIVAL_POLL: Duration = Duration::from_secs(5);

pub(super) fn decide(mut draft: Draft<'_>) -> Plan {
    let facts = draft.facts;
    match draft.outstanding() {
        Outstanding::Nothing => {}
        Outstanding::Settle(step) | Outstanding::Ask(step) => return draft.step(step),
        Outstanding::Wait => return draft.wait_for_answer(),
    }
    let Some(reservations) = &facts.reservations else { return draft.step(Step::ListReservations) };
    let is_reserved = |ip: IpAddr| reservations.iter().any(|reservation| reservation.ip == ip);
    let recorded = facts.intent().and_then(|intent| intent.address);
    match (recorded, facts.own_hold()) {
        (Some(address), Some(Hold::Has)) if is_reserved(address) || draft.endpoint_is(&address.to_string()) => {
            return keep(draft, address, is_reserved(address));
        }
        (Some(address), Some(Hold::Contends)) if is_reserved(address) => return contend(draft, address),
        _ => {}
    }
    match wanted(&draft) {
        Wanted::Address(address) if recorded == Some(address) => reserve(draft, address),
        Wanted::Address(address) => begin(draft, address, is_reserved(address)),
        Wanted::Ask(subnet) => draft.step(Step::ListFree { subnet }),
        Wanted::Nothing => {
            let subnet = subnet(&draft).unwrap_or_default();
            draft.no_endpoint(reason::NO_FREE_ADDRESS, format!("subnet {subnet} has no free address. {}", reason::NO_FREE_ADDRESS.remedy));
            draft.wait(LookAgain::AfterBackoff)
        }
    }
}

/// Nothing is on record yet. What another cluster has is left to it; an address that is reserved and no cluster's is a person's, who
/// reserved it for this with our own user.
fn begin(draft: Draft<'_>, address: IpAddr, is_reserved: bool) -> Plan {
    let facts = draft.facts;
    let read = EndpointIntent::of(&facts.object.metadata);
    if matches!(read, EndpointIntentRead::Copied(original) if original.address == Some(address)) {
        return taken(draft, &format!("the object was copied from another one, whose address {address} is"));
    }
    if let Some(holder) = facts.holder_of(&address.to_string()) {
        let words = format!("the address {address} is that of the MaasCluster {holder}");
        return taken(draft, &words);
    }
    if !is_reserved {
        return reserve(draft, address);
    }
    if !facts.others_are_confirmed {
        // A cluster that had it reserved a moment ago may not be in the cache yet.
        return draft.step(Step::ListOthers);
    }
    let intent = EndpointIntent { address: Some(address), address_given: true, ..draft.intent() };
    draft.step(Step::Settle(intent))
}

/// A person's address is on record. MAAS cannot say whose it is, so it is looked whether another cluster wrote it down at the same time.
fn contend(mut draft: Draft<'_>, address: IpAddr) -> Plan {
    let facts = draft.facts;
    if !facts.others_are_confirmed {
        return draft.step(Step::ListOthers);
    }
    match facts.rival_for(address, draft.now) {
        None => keep(draft, address, true),
        Some(Rival::Prevails) => {
            let intent = EndpointIntent { address: None, address_given: false, ..draft.intent() };
            draft.step(Step::Settle(intent))
        }
        Some(Rival::MayHave(other)) => {
            let words = format!("the MaasCluster {other} is about to take the address {address} too");
            draft.no_endpoint(reason::ADDRESS_TAKEN, reason::ADDRESS_TAKEN.message(&words));
            draft.wait(LookAgain::After(RIVAL_POLL))
        }
    }
}

fn taken(mut draft: Draft<'_>, words: &str) -> Plan {
    draft.no_endpoint(reason::ADDRESS_TAKEN, reason::ADDRESS_TAKEN.message(words));
    draft.wait(LookAgain::AfterBackoff)
}

fn keep(mut draft: Draft<'_>, address: IpAddr, is_reserved: bool) -> Plan {
    if !is_reserved && !draft.facts.is_provisioned() {
        // Nobody hears of an address that may yet turn out to be somebody else's.
        return reserve(draft, address);
    }
    if let Some(step) = draft.endpoint_step(&address.to_string()) {
        return draft.step(step);
    }
    draft.network().reserved_address = Some(address.to_string());
    draft.provisioned_if_zones_are_known();
    if !is_reserved {
        // Somebody freed it: others could get it any time.
        return reserve(draft, address);
    }
    if let Some(next) = addresses::next(&draft, &BTreeSet::new()) {
        return addresses::take(draft, next);
    }
    match draft.facts.older_holder_of(address) {
        None => draft.endpoint_is_ready(),
        // Nothing that is settled is given up for that: machines know the address. A person has to know.
        Some(other) => {
            let words = format!("the address {address} is that of the older MaasCluster {other} too");
            draft.no_endpoint(reason::ADDRESS_TAKEN, reason::ADDRESS_TAKEN.message(&words));
        }
    }
    draft.wait(LookAgain::After(DRIFT_POLL))
}

fn reserve(draft: Draft<'_>, address: IpAddr) -> Plan {
    draft.tell(
        Kind::Reserve(address),
        move |intent| intent.address = Some(address),
        move |not_after| Step::ReserveAddress { address, not_after },
    )
}

enum Wanted {
    Address(IpAddr),
    Ask(String),
    Nothing,
}

fn subnet(draft: &Draft<'_>) -> Option<String> {
    draft.facts.object.spec.endpoint.as_ref()?.vip.as_ref()?.subnet.clone()
}

/// The address of the spec or the Cluster, or a free one. Which of the free ones depends on the object, so that two clusters that choose at the
/// same time seldom choose the same; if they do, one of them is refused and chooses again.
fn wanted(draft: &Draft<'_>) -> Wanted {
    let facts = draft.facts;
    let of_vip = facts.object.spec.endpoint.as_ref().and_then(|endpoint| endpoint.vip.as_ref()?.address.clone());
    let of_spec = facts.object.spec.endpoint_host().map(str::to_owned);
    let of_cluster = || facts.cluster.as_ref()?.control_plane_endpoint.as_ref()?.host.clone();
    if let Some(address) = of_vip.or(of_spec).or_else(of_cluster).and_then(|text| text.parse().ok()) {
        return Wanted::Address(address);
    }
    if let Some(address) = facts.intent().and_then(|intent| intent.address) {
        return Wanted::Address(address);
    }
    match &facts.free {
        None => Wanted::Ask(subnet(draft).unwrap_or_default()),
        Some(free) => {
            let key = format!("{:?}/{:?}", facts.object.metadata.namespace, facts.object.metadata.name);
            let reserved = facts.reservations.iter().flatten().map(|reservation| reservation.ip);
            let of_others = facts.held_by_others.iter().filter_map(|held| held.what.parse().ok());
            let taken = reserved.chain(of_others).collect();
            pick(free, hash(&key), &taken).map_or(Wanted::Nothing, Wanted::Address)
        }
    }
}

/// One of the free addresses. Within the larger half of what is free MAAS itself chooses last, since it begins at the lowest.
fn pick(free: &[(IpAddr, IpAddr)], draw: u64, taken: &BTreeSet<IpAddr>) -> Option<IpAddr> {
    let number = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let sizes: Vec<u128> = free.iter().map(|(from, to)| number(to).saturating_sub(number(from)).saturating_add(1)).collect();
    let total: u128 = sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
    let upper_half = total - total / 2;
    (0..upper_half.min(64)).find_map(|attempt| {
        let mut place = total / 2 + (u128::from(draw).wrapping_add(attempt)) % upper_half.max(1);
        let (range, size) = free.iter().zip(&sizes).find(|(_, size)| {
            let inside = place < **size;
            if !inside {
                place -= **size;
            }
            inside
        })?;
        debug_assert!(place < *size);
        let address = match range.0 {
            IpAddr::V4(from) => IpAddr::V4(from.to_bits().checked_add(u32::try_from(place).ok()?)?.into()),
            IpAddr::V6(from) => IpAddr::V6(from.to_bits().checked_add(place)?.into()),
        };
        (!taken.contains(&address)).then_some(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: &str, to: &str) -> (IpAddr, IpAddr) {
        (from.parse().unwrap(), to.parse().unwrap())
    }

    #[test]
    fn an_address_is_picked_from_what_is_free_and_taken_by_nobody() {
        let free = [range("10.0.0.2", "10.0.0.3"), range("10.0.0.10", "10.0.0.13")];
        let picked: BTreeSet<IpAddr> = (0..20).filter_map(|draw| pick(&free, draw, &BTreeSet::new())).collect();
        assert_eq!(picked, ["10.0.0.11", "10.0.0.12", "10.0.0.13"].map(|ip| ip.parse().unwrap()).into());
        let taken = ["10.0.0.11", "10.0.0.13"].map(|ip| ip.parse().unwrap()).into();
        assert!((0..20).all(|draw| pick(&free, draw, &taken) == "10.0.0.12".parse().ok()));
        let taken = picked;
        assert_eq!(pick(&free, 1, &taken), None);
        assert_eq!(pick(&[], 1, &BTreeSet::new()), None);
        assert_eq!(pick(&[range("fd00::", "fd00::")], 7, &BTreeSet::new()), "fd00::".parse().ok());
    }
}
