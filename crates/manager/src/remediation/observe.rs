//! Reads everything that decisions about one `MaasRemediation` rest on. It only reads, and what it cannot read is a fact too.

use std::sync::Arc;

use api::{
    MaasMachine, MaasRemediation, SystemId,
    cluster_api::{self, Machine},
};
use decisions::{Failure, FailureKind, Lookup, Server, remediation::Facts};
use kube::{Api, Resource, ResourceExt};
use maas_client::MachineFilter;

use super::Hands;
use crate::{
    ObjectKey, failure,
    maas::Account,
    machine::{lookup, server},
};

/// What was observed: the facts, and what only the hands may hold.
pub struct Observed {
    /// The facts.
    pub facts: Facts,
    /// The way to MAAS, if there is one.
    pub account: Option<Account>,
}

/// Everything that decisions about this object rest on.
pub async fn observe(hands: &Hands, object: Arc<MaasRemediation>) -> Result<Observed, kube::Error> {
    let namespace = object.namespace().unwrap_or_default();
    let key = |name: &str| ObjectKey::namespaced(&namespace, name);
    let machine = cluster_api::owner(object.meta(), "Machine").and_then(|owner| hands.machines.cache().get(&key(&owner.name)));
    let cluster = machine.as_ref().and_then(|machine| hands.clusters.cache().get(&key(&machine.cluster_name)));
    let maas_machine = maas_machine(hands, &namespace, machine.as_deref()).await?;
    let mut facts = Facts {
        object: (*object).clone(),
        machine: machine.as_deref().cloned(),
        cluster: cluster.as_deref().cloned(),
        maas_machine,
        account: Err(Failure { kind: FailureKind::NoAccess, words: "MAAS was not asked".to_owned() }),
        server: Lookup::Outdated,
        has_our_agent_name: false,
        power_now: None,
        intent_is_fresh: false,
        before_attempt: None,
        ordered: None,
        shown: None,
        writer: hands.writer.clone(),
        failed: None,
    };
    let Some(id) = facts.server_id().filter(|_| facts.concerns_maas()) else {
        return Ok(Observed { facts, account: None });
    };
    let reference = cluster.as_ref().and_then(|cluster| cluster.infrastructure_ref.as_ref()).filter(|found| found.kind == "MaasCluster");
    let maas_cluster = reference.and_then(|reference| hands.maas_clusters.cache().get(&key(&reference.name)));
    let identity = maas_cluster.as_ref().and_then(|cluster| cluster.spec.identity_ref.as_ref()).map(|identity| identity.name.clone());
    let account = match hands.accounts.of(&namespace, identity.as_deref()).await {
        Ok(account) => account,
        Err(error) => {
            facts.account = Err(failure::of_account(&error));
            return Ok(Observed { facts, account: None });
        }
    };
    facts.account = Ok(account.facts());
    look(hands, &account, &mut facts, &id).await;
    Ok(Observed { facts, account: Some(account) })
}

/// The infrastructure of the Machine. That there is none is worth a second look: it makes this give up.
async fn maas_machine(hands: &Hands, namespace: &str, machine: Option<&Machine>) -> Result<Option<MaasMachine>, kube::Error> {
    let reference = machine.and_then(|machine| machine.infrastructure_ref.as_ref()).filter(|reference| reference.kind == "MaasMachine");
    let Some(reference) = reference else { return Ok(None) };
    if let Some(known) = hands.maas_machines.cache().get(&ObjectKey::namespaced(namespace, &reference.name)) {
        return Ok(Some((*known).clone()));
    }
    Api::namespaced(hands.kubernetes.clone(), namespace).get_opt(&reference.name).await
}

/// The same evidence as for everything else that is done to a server: what is listed under our claim, and else the server itself.
async fn look(hands: &Hands, account: &Account, facts: &mut Facts, id: &SystemId) {
    if let Some(intent) = facts.intent() {
        match account.client.machines().list(&MachineFilter::new().agent_name(intent.claim.as_str())).await {
            Ok(machines) => {
                let listed: Option<Server> =
                    machines.iter().map(|machine| server(machine, hands.clock.now())).find(|server| server.system_id == *id);
                if let Some(server) = listed {
                    facts.has_our_agent_name = true;
                    facts.server = Lookup::Found(server);
                    return;
                }
            }
            Err(error) => {
                facts.server = Lookup::Failed(failure::of_maas(&error));
                return;
            }
        }
    }
    let asked = hands.clock.now();
    facts.server = lookup(account.client.machine(&id.as_str().into()).read().await, asked);
}
