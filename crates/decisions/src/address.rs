//! Addresses that machines get from pools: what a MaasMachine waits for in `spec.staticIP.ip` is claimed, and written there once the pool's
//! provider has given it. The claim belongs to the object, so that Kubernetes removes it when the object is gone. That may be before its
//! server was given back, so the address itself is held before a server gets it (`machine/pooled.rs`).

use std::net::IpAddr;

use api::{
    MaasMachine,
    cluster_api::{ClaimSpec, Cluster, IpAddress, IpAddressClaim},
    names,
};
use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// What is known of one MaasMachine and its claim.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The object.
    pub object: MaasMachine,
    /// Its Cluster.
    pub cluster: Option<Cluster>,
    /// The claim of the object's name.
    pub claim: Option<IpAddressClaim>,
    /// The address the claim names.
    pub address: Option<IpAddress>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Nothing: there is no pool, the address is there, or the object is to be left alone.
    Nothing,
    /// Make this claim.
    Claim(Box<IpAddressClaim>),
    /// The pool's provider has not given an address yet.
    Wait,
    /// Write this address.
    Write {
        /// The address.
        ip: IpAddr,
        /// The subnet, if the object does not say it.
        cidr: Option<IpNet>,
    },
    /// Something is wrong that a person has to mend.
    Refuse {
        /// What, and what to do.
        words: String,
    },
}

/// Whether the object waits for an address of a pool, so that claims have to be looked at.
pub fn concerns(object: &MaasMachine, cluster: Option<&Cluster>) -> bool {
    let annotated = |name| object.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(name));
    let paused = annotated(names::PAUSED) || annotated(names::MANAGED_BY) || cluster.is_none_or(|cluster| cluster.paused);
    let waits = object.spec.static_ip.as_ref().is_some_and(|wanted| wanted.ip.is_none() && wanted.pool_ref.is_some());
    waits && !paused && object.metadata.deletion_timestamp.is_none()
}

/// What to do about the object's address.
pub fn decide(facts: &Facts) -> Plan {
    let Facts { object, cluster, claim, address } = facts;
    let wanted = object.spec.static_ip.as_ref().filter(|_| concerns(object, cluster.as_ref()));
    let Some((wanted, pool)) = wanted.and_then(|wanted| Some((wanted, wanted.pool_ref.as_ref()?))) else { return Plan::Nothing };
    let name = object.metadata.name.clone().unwrap_or_default();
    let Some(claim) = claim else {
        let cluster_name = cluster.as_ref().and_then(|cluster| cluster.metadata.name.clone()).unwrap_or_default();
        let spec = ClaimSpec { cluster_name, pool_ref: pool.clone() };
        return Plan::Claim(Box::new(IpAddressClaim { metadata: metadata_of_claim(object), spec, status: None }));
    };
    // What goes back to its pool is for somebody else soon. A claim of that name can be made once this one is gone.
    let goes = claim.metadata.deletion_timestamp.is_some();
    if goes || address.as_ref().is_some_and(|address| address.metadata.deletion_timestamp.is_some()) {
        return Plan::Wait;
    }
    if !is_of(object, claim) {
        let words = format!("IPAddressClaim {name} is there and belongs to another object: remove it if nobody needs its address");
        return Plan::Refuse { words };
    }
    if claim.spec.pool_ref != *pool {
        let words = format!(
            "IPAddressClaim {name} asks {} {} for an address, and spec.staticIP.poolRef names {} {}: remove the claim to let it ask there",
            claim.spec.pool_ref.kind, claim.spec.pool_ref.name, pool.kind, pool.name
        );
        return Plan::Refuse { words };
    }
    let Some(address) = address else { return Plan::Wait };
    let given = &address.spec;
    if given.claim_ref.name != name {
        let words =
            format!("the address of IPAddressClaim {name} was given to claim {}: its provider contradicts itself", given.claim_ref.name);
        return Plan::Refuse { words };
    }
    let Ok(ip) = given.address.parse::<IpAddr>() else {
        return Plan::Refuse { words: format!("IPAddressClaim {name} was given {:?}, which is no address", given.address) };
    };
    let subnet = given.prefix.and_then(|prefix| IpNet::new(ip, prefix).ok()).map(|network| network.trunc());
    Plan::Write { ip, cidr: subnet.filter(|_| wanted.cidr.is_none()) }
}

/// Whether the object made the claim.
pub(crate) fn is_of(object: &MaasMachine, claim: &IpAddressClaim) -> bool {
    let owners = claim.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().any(|owner| Some(&owner.uid) == object.metadata.uid.as_ref())
}

/// Named like the object and owned by it.
fn metadata_of_claim(object: &MaasMachine) -> ObjectMeta {
    let ObjectMeta { name, namespace, uid, labels, .. } = object.metadata.clone();
    let labels = labels.unwrap_or_default().into_iter().filter(|(label, _)| label == names::CLUSTER_NAME).collect();
    let owner = OwnerReference {
        api_version: names::API_VERSION.to_owned(),
        kind: "MaasMachine".to_owned(),
        name: name.clone().unwrap_or_default(),
        uid: uid.unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    ObjectMeta { name, namespace, labels: Some(labels), owner_references: Some(vec![owner]), ..ObjectMeta::default() }
}
