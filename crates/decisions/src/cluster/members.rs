//! Which addresses the endpoint's name leads to: one of every machine of the control plane that can be expected to serve.
//!
//! Before the control plane is initialized the first machine has to be there while it is being deployed, since it looks itself up by the
//! name at its first boot. From then on a machine is added when its node has joined: others would be sent to an API server that is not
//! there yet. A machine whose state is in doubt stays if it is there and is not added if it is not. After a move MAAS has shown us no machine
//! yet: as long as one of them is unseen, addresses that may be its own are held, which is said, and only those of machines that do not
//! serve leave.

use std::{collections::BTreeSet, net::IpAddr};

use api::{AddressChoice, AddressType, Phase, condition};
use ipnet::IpNet;

use super::facts::{Facts, Member};
use crate::{Lookup, machine::Reason};

/// Which addresses the name should lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The addresses; nothing if the record is to stay as it is.
    pub wanted: Option<BTreeSet<IpAddr>>,
    /// Machines that are in use and have no address that fits.
    pub without_address: Vec<String>,
    /// Machines that MAAS has not shown to us yet.
    pub unseen: Vec<String>,
    /// Addresses of no machine that is known, which stay since they may be those of an unseen one.
    pub held: BTreeSet<IpAddr>,
}

/// Whether a machine can be expected to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Serves,
    InDoubt,
    DoesNotServe,
}

/// Which addresses the name should lead to, given those it leads to.
pub fn membership(facts: &Facts, published: &BTreeSet<IpAddr>) -> Membership {
    let control_plane: Vec<&Member> = facts.machines.iter().filter(|member| member.is_control_plane()).collect();
    let initialized = facts.cluster.as_ref().is_some_and(|cluster| cluster.control_plane_initialized);
    let (mut wanted, mut early, mut without_address) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    let (mut leaving, mut unseen) = (BTreeSet::new(), Vec::new());
    for member in &control_plane {
        let health = health(member);
        if health == Health::DoesNotServe {
            leaving.extend(addresses(member));
            continue;
        }
        // MAAS gives a machine its addresses while it installs it: until then there is nothing to complain of.
        let in_use = (health == Health::Serves && !addresses(member).is_empty()) || (is_handed_over(member) && member.is_seen());
        if is_handed_over(member) && !member.is_seen() {
            unseen.push(member.name().to_owned());
        }
        match choose(facts, member) {
            Choice::Fits(address) if health == Health::Serves && (member.joined || !initialized) => drop(wanted.insert(address)),
            Choice::Fits(address) if published.contains(&address) => drop(wanted.insert(address)),
            Choice::Fits(address) if health == Health::Serves => drop(early.insert(address)),
            Choice::Nothing if in_use => without_address.push(member.name().to_owned()),
            Choice::Fits(_) | Choice::Nothing => {}
            // Which of its addresses it is cannot be told now: those that are there stay.
            Choice::Unknown => wanted.extend(addresses(member).into_iter().filter(|address| published.contains(address))),
        }
    }
    let mut held = BTreeSet::new();
    if !unseen.is_empty() {
        held = published.iter().filter(|ip| !leaving.contains(ip) && !wanted.contains(ip)).copied().collect();
        wanted.extend(&held);
    }
    if wanted.is_empty() {
        wanted = early;
    }
    let remains = control_plane.iter().any(|member| !member.is_going());
    let wanted = (!wanted.is_empty() || !remains).then_some(wanted);
    Membership { wanted, without_address, unseen, held }
}

fn health(member: &Member) -> Health {
    if member.is_going() {
        return Health::DoesNotServe;
    }
    let Some(status) = &member.object.status else {
        return if is_handed_over(member) { Health::InDoubt } else { Health::DoesNotServe };
    };
    let deployed = condition::find(&status.conditions, "MachineDeployed");
    let reason = deployed.map(|condition| condition.reason.as_str()).unwrap_or_default();
    let gone = [
        Reason::POWERED_OFF,
        Reason::TERMINATED,
        Reason::TAKEN_AWAY,
        Reason::NOT_FOUND,
        Reason::FOREIGN,
        Reason::DEPLOY_FAILED,
        Reason::TRYING_ANOTHER,
        Reason::RELEASING,
        Reason::RELEASED,
    ];
    if gone.iter().any(|known| known.name == reason) {
        return Health::DoesNotServe;
    }
    match status.phase {
        Some(Phase::Deployed) if deployed.is_some_and(|condition| condition.status == "True") => Health::Serves,
        Some(Phase::Deploying) if status.machine_state.as_deref() == Some("Deploying") => Health::Serves,
        Some(Phase::Deploying | Phase::Deployed | Phase::Failed) | None => Health::InDoubt,
        Some(Phase::Pending | Phase::Allocating | Phase::Allocated | Phase::Releasing | Phase::Released) => Health::DoesNotServe,
    }
}

fn is_handed_over(member: &Member) -> bool {
    member.object.spec.provider_id.as_ref().is_some_and(|id| !id.is_empty())
}

enum Choice {
    Fits(IpAddr),
    Nothing,
    Unknown,
}

/// The addresses of a machine, in MAAS's order.
fn addresses(member: &Member) -> Vec<IpAddr> {
    let shown = member.object.status.as_ref().map(|status| status.addresses.as_slice()).unwrap_or_default();
    let external = shown.iter().filter(|address| address.kind == AddressType::ExternalIp);
    external.filter_map(|address| address.address.parse().ok()).collect()
}

/// The address of a machine that is published.
fn choose(facts: &Facts, member: &Member) -> Choice {
    let nothing = AddressChoice::default();
    let choice = facts.object.spec.endpoint.as_ref().and_then(|endpoint| endpoint.addresses.as_ref()).unwrap_or(&nothing);
    let mut candidates = addresses(member);
    if choice.interface.is_some() || choice.tag.is_some() {
        let system_id = member.object.spec.system_id.as_deref().unwrap_or_default();
        let Lookup::Found(all) = &facts.interfaces else { return Choice::Unknown };
        let Some(interfaces) = all.get(system_id) else { return Choice::Unknown };
        let fits = |interface: &&crate::NetworkInterface| {
            let named = choice.interface.as_ref().is_none_or(|name| interface.name == *name);
            named && choice.tag.as_ref().is_none_or(|tag| interface.tags.contains(tag))
        };
        let links = interfaces.iter().filter(fits).flat_map(|interface| &interface.links);
        let on_them: BTreeSet<IpAddr> = links.filter_map(|link| link.address).collect();
        candidates.retain(|address| on_them.contains(address));
    }
    let preferred = match &facts.preferred_subnets {
        Lookup::Found(subnets) => subnets.as_slice(),
        Lookup::Missing => &[],
        Lookup::Forbidden | Lookup::Failed(_) | Lookup::Outdated => return Choice::Unknown,
    };
    let rank = |subnets: &[String], address: &IpAddr| {
        let contains = |subnet: &String| subnet.trim().parse::<IpNet>().is_ok_and(|subnet| subnet.contains(address));
        if subnets.is_empty() { Some(0) } else { subnets.iter().position(contains) }
    };
    let ranked = candidates.iter().filter_map(|address| Some((rank(&choice.subnets, address)?, rank(preferred, address)?, address)));
    // The first of several that are as good.
    ranked
        .min_by_key(|(by_spec, by_namespace, _)| (*by_spec, *by_namespace))
        .map_or(Choice::Nothing, |(_, _, address)| Choice::Fits(*address))
}
