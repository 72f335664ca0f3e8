//! What surrounds addresses of pools: the provider of a pool, which gives addresses to claims and takes them back, and Kubernetes' collector
//! of garbage, which removes the claims of objects that are gone, and in a foreground deletion of those that only go.

use std::{collections::BTreeMap, time::Duration};

use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use manager::Jitter;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::world::World;

pub(super) const GROUP: &str = "ipam.cluster.x-k8s.io";
/// What holds a claim that is deleted until its address is back.
const FINALIZER: &str = "ipam.cluster.x-k8s.io/ReleaseAddress";
/// As many as there are claims when all is well, so that somebody waits for what somebody else gives back.
const ADDRESSES: [&str; 3] = ["10.30.0.201", "10.30.0.202", "10.30.0.203"];
/// Claims of objects that are gone may stay for so long.
const SLOWEST_COLLECTOR: Duration = Duration::from_secs(25);
/// How long a claim or an address waits for the provider.
const PACE: Duration = Duration::from_secs(1);

/// The pool that claims name.
pub(super) fn reference() -> Value {
    json!({"apiGroup": GROUP, "kind": "InClusterIPPool", "name": "rack"})
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(super) struct Pool<'a> {
    world: &'a World,
    claims: Api<DynamicObject>,
    addresses: Api<DynamicObject>,
    jitter: Jitter,
    /// Claims of nobody, by uid, and when they were first seen to be.
    orphans: BTreeMap<String, Instant>,
}

impl<'a> Pool<'a> {
    pub fn new(world: &'a World, namespace: &str, seed: u64) -> Self {
        let api = |kind| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1beta2", kind));
            Api::namespaced_with(world.people(), namespace, &resource)
        };
        Self { world, claims: api("IPAddressClaim"), addresses: api("IPAddress"), jitter: Jitter::seeded(seed), orphans: BTreeMap::new() }
    }

    /// Gives and takes back, for ever.
    pub async fn serve(mut self) {
        loop {
            for claim in self.world.server.objects("ipaddressclaims") {
                if is_going(&claim) {
                    self.take_back(name_of(&claim)).await;
                } else if self.is_garbage(&claim) {
                    drop(self.claims.delete(name_of(&claim), &DeleteParams::default()).await);
                } else if !claim["status"]["addressRef"]["name"].is_string() {
                    self.give(name_of(&claim)).await;
                }
            }
            sleep(PACE).await;
        }
    }

    /// Whether everybody who owns it has been gone for so long that the collector has noticed, or is going in a foreground deletion, which
    /// is quick.
    fn is_garbage(&mut self, claim: &Value) -> bool {
        let uid = claim["metadata"]["uid"].as_str().unwrap_or_default();
        let in_foreground = self.jitter.draw(&format!("foreground {uid}"), 0).is_multiple_of(2);
        let objects = self.world.server.objects("maasmachines");
        let stays = |object: &&Value| !(in_foreground && is_going(object));
        let lives = |owner: &Value| objects.iter().filter(stays).any(|object| object["metadata"]["uid"] == owner["uid"]);
        let owners = claim["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        if owners.is_empty() || owners.iter().any(lives) {
            return false;
        }
        if in_foreground {
            return true;
        }
        let noticed = self.jitter.draw(uid, 0) % u64::try_from(SLOWEST_COLLECTOR.as_millis()).unwrap_or(1);
        self.orphans.entry(uid.to_owned()).or_insert_with(Instant::now).elapsed() >= Duration::from_millis(noticed)
    }

    /// Gives the first address that no claim has. While there is none, the claim waits.
    async fn give(&self, name: &str) {
        let given = self.world.server.objects("ipaddresses");
        if given.iter().any(|address| name_of(address) == name) {
            return;
        }
        let is_free = |address: &&str| !given.iter().any(|other| other["spec"]["address"] == *address);
        let Some(free) = ADDRESSES.into_iter().find(is_free) else { return };
        self.world.witness.address_is_given(free, name);
        let address = json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "IPAddress", "metadata": {"name": name},
            "spec": {"claimRef": {"name": name}, "poolRef": reference(), "address": free, "prefix": 24}});
        let address: DynamicObject = serde_json::from_value(address).expect("the explorer's addresses are well-formed");
        self.addresses.create(&PostParams::default(), &address).await.expect("nobody else makes addresses");
        let held = Patch::Merge(json!({"metadata": {"finalizers": [FINALIZER]}}));
        let fulfilled = Patch::Merge(json!({"status": {"addressRef": {"name": name}}}));
        self.claims.patch(name, &PatchParams::default(), &held).await.expect("nobody else removes claims");
        self.claims.patch_status(name, &PatchParams::default(), &fulfilled).await.expect("nobody else removes claims");
    }

    /// The address is free when nobody else holds it, which is not waited for.
    async fn take_back(&self, name: &str) {
        let deleted = self.addresses.delete(name, &DeleteParams::default()).await;
        // What is held goes back when it is let go, and that is looked at then.
        if deleted.expect("nobody else removes addresses").is_right() {
            self.world.witness.address_goes_back(name);
        }
        let free = Patch::Merge(json!({"metadata": {"finalizers": []}}));
        self.claims.patch(name, &PatchParams::default(), &free).await.expect("nobody else removes claims");
    }
}
