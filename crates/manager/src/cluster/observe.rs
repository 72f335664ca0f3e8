//! Reads everything that decisions about one MaasCluster rest on. It only reads, and what it cannot read is a fact too.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    MaasCluster, MaasMachine,
    cluster_api::{self},
    names,
};
use decisions::{
    Failure, FailureKind, Lookup,
    cluster::{ApiServer, Endpoint, Facts, HeldByOther, Member, OrderState, Record, RecordAddress, Reservation, Zone},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Resource, ResourceExt, api::ListParams};
use maas_client::{AllocationType, DnsFilter, DnsResource, Error, IpAddress, MachineFilter};

use super::{Hands, Rules};
use crate::{ObjectKey, failure, maas::Account, machine::server, workload::ApiServerState};

/// What was observed: the facts, and the way to MAAS if there is one.
pub struct Observed {
    /// The facts.
    pub facts: Facts,
    /// The way to MAAS.
    pub account: Option<Account>,
}

/// Everything that decisions about this object rest on.
pub async fn observe(hands: &Hands, rules: &Rules, object: Arc<MaasCluster>) -> Observed {
    let key = ObjectKey::of(&*object);
    let namespace = object.namespace().unwrap_or_default();
    let owner = cluster_api::owner(object.meta(), "Cluster");
    let cluster = owner.and_then(|owner| hands.clusters.cache().get(&ObjectKey::namespaced(&namespace, &owner.name)));
    let mut facts = Facts {
        object: (*object).clone(),
        cluster: cluster.as_deref().cloned(),
        machines: Vec::new(),
        machines_are_confirmed: false,
        preferred_subnets: Lookup::Missing,
        account: Err(Failure { kind: FailureKind::NoAccess, words: "MAAS was not asked".to_owned() }),
        zones: Lookup::Outdated,
        records: Lookup::Outdated,
        interfaces: Lookup::Missing,
        reservations: None,
        reservations_as_of: None,
        free: None,
        held_by_others: Vec::new(),
        others_are_confirmed: false,
        api_server: ApiServer::NotYet,
        shown: None,
        order: OrderState::Found,
        order_seen_at: None,
        hold_until: hands.restraint.until(&key),
        failed: None,
    };
    facts.order_seen_at = facts.intent().and_then(|intent| intent.order).map(|order| hands.orders.at(&key, order));
    facts.machines = members(hands, &facts, &namespace);
    if facts.is_left_alone() {
        return Observed { facts, account: None };
    }
    facts.held_by_others = held_by_others(hands.maas_clusters.cache().all().iter().map(|other| &**other), &key);
    facts.api_server = api_server(hands, &facts, &key);
    if !(rules.concerns_maas)(&facts) {
        return Observed { facts, account: None };
    }
    let identity = facts.object.spec.identity_ref.as_ref().map(|identity| identity.name.clone());
    let account = match hands.accounts.of(&namespace, identity.as_deref()).await {
        Ok(account) => account,
        Err(error) => {
            facts.account = Err(failure::of_account(&error));
            return Observed { facts, account: None };
        }
    };
    facts.account = Ok(account.facts());
    look(hands, &account, &mut facts, &key).await;
    Observed { facts, account: Some(account) }
}

async fn look(hands: &Hands, account: &Account, facts: &mut Facts, key: &ObjectKey) {
    let deleting = facts.is_deleting();
    if !deleting {
        facts.zones = zones(account, facts.object.spec.failure_domains.is_empty()).await;
    }
    let recorded = facts.intent().and_then(|intent| intent.name);
    let name = match facts.endpoint() {
        Endpoint::Dns { name, .. } => Some(name),
        Endpoint::Vip | Endpoint::Elsewhere { .. } | Endpoint::Awaited => recorded.filter(|_| deleting),
    };
    let Some(name) = name else { return };
    facts.records = records(account, &name).await;
    if deleting && facts.machines.is_empty() {
        return;
    }
    facts.preferred_subnets = preferred_subnets(hands, key.namespace.as_deref().unwrap_or_default()).await;
    let choice = facts.object.spec.endpoint.as_ref().and_then(|endpoint| endpoint.addresses.clone()).unwrap_or_default();
    if choice.interface.is_some() || choice.tag.is_some() {
        facts.interfaces = interfaces(hands, account, facts).await;
    }
}

/// The zones of MAAS; which of them have machines only if somebody wants to know.
async fn zones(account: &Account, with_machines: bool) -> Lookup<Vec<Zone>> {
    let found = if with_machines {
        account.occupied_zones().await
    } else {
        account.zones().await.map(|zones| zones.iter().map(|zone| (zone.name.clone(), true)).collect())
    };
    match found {
        Ok(zones) => Lookup::Found(zones.into_iter().map(|(name, has_machines)| Zone { name, has_machines }).collect()),
        Err(error) => Lookup::Failed(failure::of_maas(&error)),
    }
}

/// The MaasMachines of the cluster.
fn members(hands: &Hands, facts: &Facts, namespace: &str) -> Vec<Member> {
    let Some(name) = facts.cluster_name() else { return Vec::new() };
    let belongs = |machine: &Arc<MaasMachine>| {
        machine.namespace().as_deref() == Some(namespace) && machine.labels().get(names::CLUSTER_NAME).is_some_and(|label| label == name)
    };
    let all = hands.maas_machines.cache().all().into_iter().filter(belongs);
    all.map(|machine| member(hands, (*machine).clone())).collect()
}

/// The same, as the API server has them now.
pub async fn confirmed_members(hands: &Hands, facts: &Facts) -> Result<Vec<Member>, kube::Error> {
    let Some(name) = facts.cluster_name() else { return Ok(Vec::new()) };
    let api: Api<MaasMachine> = Api::namespaced(hands.kubernetes.clone(), &facts.object.namespace().unwrap_or_default());
    let all = api.list(&ListParams::default().labels(&format!("{}={name}", names::CLUSTER_NAME))).await?;
    Ok(all.into_iter().map(|machine| member(hands, machine)).collect())
}

fn member(hands: &Hands, object: MaasMachine) -> Member {
    let owner = cluster_api::owner(object.meta(), "Machine");
    let machine =
        owner.and_then(|owner| hands.machines.cache().get(&ObjectKey::namespaced(object.namespace().unwrap_or_default(), &owner.name)));
    Member { joined: machine.is_some_and(|machine| machine.node_name.is_some()), object }
}

/// The addresses and names that clusters other than this one, in whatever namespace, have or mean to have.
fn held_by_others<'a>(all: impl IntoIterator<Item = &'a MaasCluster>, key: &ObjectKey) -> Vec<HeldByOther> {
    all.into_iter().filter(|other| ObjectKey::of(*other) != *key).flat_map(HeldByOther::of).collect()
}

/// The same, as the API server has them now.
pub async fn confirmed_others(hands: &Hands, facts: &Facts) -> Result<Vec<HeldByOther>, kube::Error> {
    let mut held = Vec::new();
    for api in &hands.everybody.places {
        held.extend(held_by_others(&api.list(&hands.everybody.filter).await?, &ObjectKey::of(&facts.object)));
    }
    Ok(held)
}

/// Whether the API server answers. From now on the object is poked when that changes.
fn api_server(hands: &Hands, facts: &Facts, key: &ObjectKey) -> ApiServer {
    let (Some(cluster), Some(pokes)) = (&facts.cluster, hands.pokes.get()) else { return ApiServer::NotYet };
    let cluster = ObjectKey::of(cluster);
    hands.workload.watch(&cluster, key.clone(), pokes);
    match hands.workload.api_server(&cluster) {
        ApiServerState::NotYet => ApiServer::NotYet,
        ApiServerState::Answers => ApiServer::Answers,
        ApiServerState::Silent { words } => ApiServer::Silent { words },
    }
}

/// The records of a name.
pub async fn records(account: &Account, name: &str) -> Lookup<Vec<Record>> {
    let filter = DnsFilter { fqdn: Some(name.to_owned()), ..DnsFilter::default() };
    match account.client.dns_resources().list(&filter).await {
        Ok(found) => {
            Lookup::Found(found.iter().filter(|found| found.fqdn.eq_ignore_ascii_case(name)).map(|found| record(account, found)).collect())
        }
        Err(Error::NotFound { .. }) => Lookup::Missing,
        Err(Error::NotPermitted { .. }) => Lookup::Forbidden,
        Err(error) => Lookup::Failed(failure::of_maas(&error)),
    }
}

/// A record as the rules know it.
pub fn record(account: &Account, found: &DnsResource) -> Record {
    let address = |address: &IpAddress| {
        let ours = address.owner.as_ref().is_some_and(|owner| owner.username == account.user);
        let reserved = address.alloc_type == AllocationType::UserReserved && ours && address.interface_set.is_empty();
        Some(RecordAddress { ip: address.ip.parse().ok()?, is_our_reservation: reserved })
    };
    Record {
        id: found.id.number(),
        time_to_live: found.address_ttl.map(|time| time.0),
        addresses: found.ip_addresses.iter().flatten().filter_map(address).collect(),
    }
}

/// What our user has reserved.
pub async fn reservations(account: &Account) -> Result<Vec<Reservation>, Error> {
    let found = account.client.ip_addresses().list(None).await?;
    let reservation = |found: &IpAddress| Some(Reservation { ip: found.ip.parse().ok()?, on_machine: !found.interface_set.is_empty() });
    Ok(found.iter().filter_map(reservation).collect())
}

/// The subnets the namespace prefers.
async fn preferred_subnets(hands: &Hands, namespace: &str) -> Lookup<Vec<String>> {
    let api: Api<ConfigMap> = Api::namespaced(hands.kubernetes.clone(), namespace);
    match api.get_opt(names::PREFERRED_SUBNETS).await {
        Ok(Some(map)) => {
            let text = map.data.and_then(|mut data| data.remove(names::PREFERRED_SUBNETS_KEY)).unwrap_or_default();
            Lookup::Found(text.split(',').map(str::trim).filter(|subnet| !subnet.is_empty()).map(str::to_owned).collect())
        }
        Ok(None) => Lookup::Missing,
        Err(error) => Lookup::Failed(failure::of_kubernetes(&error)),
    }
}

/// The network interfaces of the machines of the control plane.
async fn interfaces(hands: &Hands, account: &Account, facts: &Facts) -> Lookup<BTreeMap<String, Vec<decisions::NetworkInterface>>> {
    let control_plane = facts.machines.iter().filter(|member| member.is_control_plane());
    let ids: Vec<&String> = control_plane.filter_map(|member| member.object.spec.system_id.as_ref()).collect();
    if ids.is_empty() {
        return Lookup::Found(BTreeMap::new());
    }
    let filter = ids.iter().fold(MachineFilter::new(), |filter, id| filter.system_id(&id.as_str().into()));
    match account.client.machines().list(&filter).await {
        Ok(machines) => {
            let known = machines.iter().map(|machine| server(machine, hands.clock.now()));
            Lookup::Found(known.map(|server| (server.system_id.to_string(), server.interfaces)).collect())
        }
        Err(error) => Lookup::Failed(failure::of_maas(&error)),
    }
}
