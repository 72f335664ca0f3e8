//! The hands for addresses of pools: reads the claim of a MaasMachine that waits for one, makes it, and writes down what was given. The
//! rules are in [`decisions::address`].

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use api::{
    MaasMachine,
    cluster_api::{Cluster, IpAddress, IpAddressClaim},
};
use decisions::address::{Facts, Plan, concerns, decide};
use kube::{Api, Client, ResourceExt, api::PostParams};
use serde_json::json;

use crate::{
    Action, Change, Context, Controller, Controllers, ObjectKey, Watch, controller::Pokes, describe::describe, guarded, machine::Related,
};

/// Claims are not watched: few machines wait for one, each for a moment; not every management cluster has the kind, and nobody is ready
/// before all watches are; and who watches claims has to be let see those of everybody.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

/// An address that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// Kubernetes does not let us.
    #[error("could not {intent}")]
    Kubernetes {
        /// What was tried.
        intent: &'static str,
        /// Why not.
        source: kube::Error,
    },
    /// A person has to mend it.
    #[error("{0}")]
    Refused(String),
}

/// Why objects do not get their addresses, in words. The controller of machines shows them.
#[derive(Debug, Default)]
pub struct RefusedAddresses {
    words: Mutex<BTreeMap<ObjectKey, String>>,
    pokes: OnceLock<Pokes>,
}

impl RefusedAddresses {
    /// Who hears of every change.
    pub(crate) fn are_told_to(&self, pokes: Pokes) {
        let _ = self.pokes.set(pokes);
    }

    /// Why this object does not get its address, if so.
    pub(crate) fn of(&self, key: &ObjectKey) -> Option<String> {
        self.lock().get(key).cloned()
    }

    /// Keeps these words, or none.
    fn keep(&self, key: &ObjectKey, words: Option<String>) {
        let is_news = self.of(key) != words;
        match words {
            Some(words) => self.lock().insert(key.clone(), words),
            None => self.lock().remove(key),
        };
        if let Some(pokes) = self.pokes.get().filter(|_| is_news) {
            pokes.poke(key.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, String>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the controller of addresses from pools.
pub fn add(controllers: &mut Controllers, related: &Related) {
    let (machines, clusters) = (related.maas_machines.clone(), related.clusters.clone());
    let refused = Arc::clone(&related.refused_addresses);
    let reconcile = move |object: Arc<MaasMachine>, context: Context| {
        let (machines, clusters, refused) = (machines.clone(), clusters.clone(), Arc::clone(&refused));
        async move {
            let outcome = pass(&context.client, &machines, &clusters, &object).await;
            refused.keep(&ObjectKey::of(&*object), outcome.as_ref().err().map(|error| describe(error)));
            outcome
        }
    };
    let refused = Arc::clone(&related.refused_addresses);
    related.maas_machines.subscribe(move |change| {
        if let Change::Removed(object) = change {
            refused.keep(&ObjectKey::of(&***object), None);
        }
    });
    let ours = related.maas_machines.clone();
    let of_cluster = move |cluster: &Cluster| -> Vec<ObjectKey> {
        let belongs = |machine: &Arc<MaasMachine>| {
            machine.namespace() == cluster.metadata.namespace
                && machine.labels().get(api::names::CLUSTER_NAME) == cluster.metadata.name.as_ref()
        };
        ours.cache().all().iter().filter(|machine| belongs(machine)).map(|machine| ObjectKey::of(&**machine)).collect()
    };
    let controller =
        Controller::new("address", &related.maas_machines, reconcile).watches_part(&related.clusters, |cluster| cluster.paused, of_cluster);
    controllers.add(controller);
}

async fn pass(
    client: &Client,
    machines: &Watch<MaasMachine>,
    clusters: &Watch<Cluster>,
    object: &MaasMachine,
) -> Result<Action, AddressError> {
    let namespace = object.namespace().unwrap_or_default();
    let cluster_of = |object: &MaasMachine| {
        let name = object.labels().get(api::names::CLUSTER_NAME)?;
        clusters.cache().get(&ObjectKey::namespaced(&namespace, name))
    };
    if !concerns(object, cluster_of(object).as_deref()) {
        return Ok(Action::AwaitChange);
    }
    let failed = |intent| move |source| AddressError::Kubernetes { intent, source };
    let claims: Api<IpAddressClaim> = Api::namespaced(client.clone(), &namespace);
    let addresses: Api<IpAddress> = Api::namespaced(client.clone(), &namespace);
    let claim = claims.get_opt(&object.name_any()).await.map_err(failed("read the IPAddressClaim of the machine"))?;
    let status = claim.as_ref().and_then(|claim| claim.status.as_ref());
    let named = status.map(|status| status.address_ref.name.as_str()).filter(|name| !name.is_empty());
    let address = match named {
        Some(name) => addresses.get_opt(name).await.map_err(failed("read the IPAddress that was given"))?,
        None => None,
    };
    // It may have been paused or deleted while the API server took its time.
    let Some(object) = machines.cache().get(&ObjectKey::of(object)) else { return Ok(Action::AwaitChange) };
    let cluster = cluster_of(&object).as_deref().cloned();
    match decide(&Facts { object: (*object).clone(), cluster, claim, address }) {
        Plan::Nothing => Ok(Action::AwaitChange),
        Plan::Wait => Ok(Action::RequeueAfter(LOOK_AGAIN)),
        Plan::Claim(claim) => {
            let made = claims.create(&PostParams::default(), &claim).await;
            unless_changed_meanwhile(made).map_err(failed("make an IPAddressClaim"))?;
            Ok(Action::RequeueAfter(LOOK_AGAIN))
        }
        Plan::Write { ip, cidr } => {
            let mut change = json!({"ip": ip.to_string()});
            if let Some(cidr) = cidr {
                change["cidr"] = json!(cidr.to_string());
            }
            let change = json!({"spec": {"staticIP": change}});
            let written = guarded::change(client, &*object, object.resource_version().as_deref(), change).await;
            unless_changed_meanwhile(written).map_err(failed("write the address that was given"))?;
            // The change of the object is the next look at it, also if it was somebody else's.
            Ok(Action::AwaitChange)
        }
        Plan::Refuse { words } => Err(AddressError::Refused(words)),
    }
}

/// Somebody was faster: what they did is seen at the next look.
fn unless_changed_meanwhile<K>(outcome: Result<K, kube::Error>) -> Result<(), kube::Error> {
    match outcome {
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(()),
        outcome => outcome.map(drop),
    }
}
