//! The parts of Cluster API's address management that are used: a claim, which the provider of a pool fulfils, and the address it gives.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

use crate::AddressPool;

/// What a claim asks for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[kube(
    group = "ipam.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "IPAddressClaim",
    plural = "ipaddressclaims",
    root = "IpAddressClaim",
    namespaced,
    status = "ClaimStatus",
    schema = "disabled",
    derive = "PartialEq",
    doc = "Asks a pool for an address."
)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    /// The Cluster the address is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// The pool.
    pub pool_ref: AddressPool,
}

/// What came of a claim, which its provider writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimStatus {
    /// The address that was given, once it was.
    pub address_ref: AddressReference,
}

/// An address, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AddressReference {
    /// Empty until there is one.
    pub name: String,
}

/// An address and who has it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[kube(
    group = "ipam.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "IPAddress",
    plural = "ipaddresses",
    root = "IpAddress",
    namespaced,
    schema = "disabled",
    derive = "PartialEq",
    doc = "An address of a pool that was given to a claim."
)]
#[serde(rename_all = "camelCase", default)]
pub struct AddressSpec {
    /// The claim it was given to.
    pub claim_ref: AddressReference,
    /// The address.
    pub address: String,
    /// How many bits of it are the network's.
    pub prefix: Option<u8>,
}
