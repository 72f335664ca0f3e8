//! Reads everything that decisions about one MaasMachine rest on. It only reads, and what it cannot read is a fact too.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use api::{
    Claim, MaasCluster, MaasMachine, SystemId,
    cluster_api::{self, Cluster, Machine},
    names,
};
use decisions::{
    Failure, FailureKind, Lookup, Server,
    machine::{Bootstrap, Facts, ImageCheck, NodeFacts},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Resource, ResourceExt};
use maas_client::{MachineFilter, UserData};

use super::{
    Hands, Rules,
    servers::{lookup, server},
};
use crate::{ObjectKey, describe::describe_of_secret, failure, maas::Account, workload::Host};

/// What was observed: the facts, and what only the hands may hold.
pub struct Observed {
    /// The facts.
    pub facts: Facts,
    /// The way to MAAS, if there is one.
    pub account: Option<Account>,
    /// What the machine shall run at its first boot. Secret, so not a fact.
    pub user_data: Option<UserData>,
}

/// Everything that decisions about this object rest on.
pub async fn observe(hands: &Hands, rules: &Rules, object: Arc<MaasMachine>) -> Observed {
    let namespace = object.namespace().unwrap_or_default();
    let machine = cluster_api::owner(object.meta(), "Machine")
        .and_then(|owner| hands.machines.cache().get(&ObjectKey::namespaced(&namespace, &owner.name)));
    let cluster_name = cluster_name(&object, machine.as_deref());
    let cluster = cluster_name.and_then(|name| hands.clusters.cache().get(&ObjectKey::namespaced(&namespace, name)));
    let maas_cluster = match &cluster {
        Some(cluster) => infrastructure_of(hands, &namespace, cluster),
        None => cluster_name.and_then(|name| infrastructure_left_by(hands, &namespace, name)),
    };
    let network = maas_cluster.as_ref().and_then(|cluster| cluster.status.as_ref()?.network.as_ref());
    let published = network.map(|network| network.addresses.iter().cloned().collect()).unwrap_or_default();
    let mut facts = Facts {
        fresh_claim: fresh_claim(hands, &object),
        object: (*object).clone(),
        machine: machine.as_deref().cloned(),
        cluster: cluster.as_deref().cloned(),
        maas_cluster: maas_cluster.as_deref().cloned(),
        bootstrap: Bootstrap::Pending,
        account: Err(Failure { kind: FailureKind::NoAccess, words: "MAAS was not asked".to_owned() }),
        management_cluster: String::new(),
        recorded: None,
        claimed: Lookup::Missing,
        releasing: BTreeMap::new(),
        image: ImageCheck::Unclear,
        recent_failures: BTreeMap::new(),
        candidates: None,
        power_now: None,
        powered_on: false,
        node: NodeFacts::Unreachable,
        published,
        shown: None,
        writer: hands.orders.writer().to_owned(),
        intent_is_fresh: false,
        unanswered_until: hands.orders.outstanding(&object),
        looks_in_vain: 0,
        not_unlinked: BTreeMap::new(),
        address_claim: Box::new(Lookup::Outdated),
        pooled: BTreeMap::new(),
        address_refused: hands.refused_addresses.of(&ObjectKey::of(&*object)),
        failed: None,
    };
    let stays = !facts.is_left_alone() && object.meta().deletion_timestamp.is_none();
    let wanted = stays && !facts.is_provisioned();
    let mut user_data = if wanted { bootstrap(hands, &namespace, &mut facts).await } else { None };
    if !(rules.concerns_maas)(&facts) {
        return Observed { facts, account: None, user_data };
    }
    let identity = facts.maas_cluster.as_ref().and_then(|cluster| cluster.spec.identity_ref.as_ref()).map(|identity| identity.name.clone());
    let account = match hands.accounts.of(&namespace, identity.as_deref()).await {
        Ok(account) => account,
        Err(error) => {
            facts.account = Err(failure::of_account(&error));
            return Observed { facts, account: None, user_data };
        }
    };
    facts.account = Ok(account.facts());
    facts.management_cluster = hands.management_cluster().await;
    look_for_servers(hands, &account, &mut facts).await;
    facts.node = node(hands, &facts);
    let unfinished = stays && facts.is_handed_over_unfinished();
    if unfinished {
        user_data = bootstrap(hands, &namespace, &mut facts).await;
    }
    if wanted || unfinished {
        facts.image = image(&account, &facts.object).await;
        let recent = account.recent_failures().await.unwrap_or_default();
        hands.accounts.machine_metrics().avoids(&account.endpoint, recent.len());
        facts.recent_failures = recent.into_iter().map(|(id, failed)| (id.as_str().into(), failed.words)).collect();
    }
    Observed { facts, account: Some(account), user_data }
}

fn cluster_name<'a>(object: &'a MaasMachine, machine: Option<&'a Machine>) -> Option<&'a str> {
    let labelled = object.labels().get(names::CLUSTER_NAME);
    machine.map(|machine| &machine.cluster_name).filter(|name| !name.is_empty()).or(labelled).map(String::as_str)
}

fn infrastructure_of(hands: &Hands, namespace: &str, cluster: &Cluster) -> Option<Arc<MaasCluster>> {
    let reference = cluster.infrastructure_ref.as_ref().filter(|reference| reference.kind == "MaasCluster")?;
    hands.maas_clusters.cache().get(&ObjectKey::namespaced(namespace, &reference.name))
}

/// The infrastructure of a Cluster that is gone. It names the way to MAAS for as long as there are machines to give back.
fn infrastructure_left_by(hands: &Hands, namespace: &str, cluster: &str) -> Option<Arc<MaasCluster>> {
    let belongs = |found: &Arc<MaasCluster>| {
        let owner = cluster_api::owner(found.meta(), "Cluster").map(|owner| owner.name.as_str());
        let name = owner.or_else(|| found.labels().get(names::CLUSTER_NAME).map(String::as_str));
        found.namespace().as_deref() == Some(namespace) && name == Some(cluster)
    };
    hands.maas_clusters.cache().all().into_iter().filter(belongs).min_by_key(|found| found.name_any())
}

/// Nobody has it: it is drawn for this object at this moment.
fn fresh_claim(hands: &Hands, object: &MaasMachine) -> Claim {
    let moment = u64::try_from(hands.clock.now().as_nanosecond()).unwrap_or_default();
    let purpose = format!("claim {} {}", ObjectKey::of(object), object.uid().unwrap_or_default());
    let (high, low) = (hands.jitter.draw(&purpose, moment), hands.jitter.draw(&format!("{purpose} low"), moment));
    Claim::from_random(u128::from(high) << 64 | u128::from(low))
}

/// One list under our claim finds what is ours, its state included; what the object names besides is looked at one by one.
async fn look_for_servers(hands: &Hands, account: &Account, facts: &mut Facts) {
    let intent = facts.intent();
    if let Some(intent) = &intent {
        // What an answer shows was so when MAAS was asked, and need not be so any more when the answer is here.
        let asked_at = hands.clock.now();
        facts.claimed = match account.client.machines().list(&MachineFilter::new().agent_name(intent.claim.as_str())).await {
            Ok(machines) => Lookup::Found(machines.iter().map(|machine| server(machine, asked_at)).collect()),
            Err(error) => Lookup::Failed(failure::of_maas(&error)),
        };
    }
    if let Some(id) = facts.recorded_id() {
        facts.recorded = Some(look_at(hands, account, facts, &id).await);
    }
    for id in intent.map(|intent| intent.releasing).unwrap_or_default() {
        let seen = match &facts.recorded {
            Some(seen) if facts.recorded_id().as_ref() == Some(&id) => seen.clone(),
            _ => look_at(hands, account, facts, &id).await,
        };
        facts.releasing.insert(id, seen);
    }
}

/// The node of the object's server. From now on the object is passed when that changes. Of a server that was handed over and goes,
/// Cluster API sees to the node.
fn node(hands: &Hands, facts: &Facts) -> NodeFacts {
    let leaves = facts.is_provisioned() && facts.object.metadata.deletion_timestamp.is_some();
    let server = facts.recorded.as_ref().and_then(Lookup::found).filter(|_| !leaves);
    let (Some(server), Some(cluster), Some(pokes)) = (server, &facts.cluster, hands.pokes.get()) else { return NodeFacts::Unreachable };
    let (cluster, object) = (ObjectKey::of(cluster), ObjectKey::of(&facts.object));
    // A server that is nobody's has no addresses any more; a node that joined at the last moment tells of those it had.
    let addresses = if server.owner.is_none() { addresses_shown(&facts.object) } else { server.addresses.clone() };
    let host = Host { hostname: &server.hostname, fqdn: &server.fqdn, addresses: &addresses };
    hands.workload.watch_node(&cluster, object, &host, pokes)
}

/// The addresses that the object shows.
fn addresses_shown(object: &MaasMachine) -> Vec<IpAddr> {
    let shown = object.status.iter().flat_map(|status| &status.addresses);
    shown.filter_map(|address| address.address.parse().ok()).collect()
}

async fn look_at(hands: &Hands, account: &Account, facts: &Facts, id: &SystemId) -> Lookup<Server> {
    let listed = facts.claimed.found().and_then(|claimed| claimed.iter().find(|server| server.system_id == *id));
    if let Some(server) = listed {
        return Lookup::Found(server.clone());
    }
    let asked_at = hands.clock.now();
    lookup(account.client.machine(&id.as_str().into()).read().await, asked_at)
}

/// What the machine shall run at its first boot.
async fn bootstrap(hands: &Hands, namespace: &str, facts: &mut Facts) -> Option<UserData> {
    let machine = facts.machine.as_ref()?;
    let Some(name) = machine.data_secret_name.clone() else {
        facts.bootstrap = if machine.bootstrap_wanted { Bootstrap::Pending } else { Bootstrap::NotWanted };
        return None;
    };
    let secrets: Api<Secret> = Api::namespaced(hands.kubernetes.clone(), namespace);
    let data = match secrets.get(&name).await {
        Ok(secret) => secret.data.and_then(|mut data| data.remove("value")),
        Err(error) => {
            facts.bootstrap = Bootstrap::Unreadable { words: format!("Secret {namespace}/{name}: {}", describe_of_secret(&error)) };
            return None;
        }
    };
    let Some(data) = data else {
        facts.bootstrap = Bootstrap::Unreadable { words: format!("Secret {namespace}/{name} has no key `value`") };
        return None;
    };
    facts.bootstrap = Bootstrap::Present { encoded_bytes: data.0.len().div_ceil(3) * 4 };
    Some(UserData::new(data.0))
}

/// Whether MAAS has the image.
async fn image(account: &Account, object: &MaasMachine) -> ImageCheck {
    let Ok(images) = account.images().await else { return ImageCheck::Unclear };
    ImageCheck::of(&object.spec.image(), images.iter().map(|image| image.name.as_str()))
}
