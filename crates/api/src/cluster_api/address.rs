//! The parts of Cluster API's address management that are used: a claim, which the provider of a pool fulfils, and the address it gives.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, core::NamespaceResourceScope};
use serde::{Deserialize, Serialize};

use crate::{AddressPool, names};

/// Asks a pool for an address.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IpAddressClaim {
    api_version: String,
    kind: String,
    /// Its name, labels, owners and so on.
    pub metadata: ObjectMeta,
    /// What is asked for.
    pub spec: ClaimSpec,
    /// What came of it, which its provider writes.
    #[serde(skip_serializing)]
    pub status: ClaimStatus,
}

/// What a claim asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    /// The Cluster the address is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// The pool.
    pub pool_ref: AddressPool,
}

/// What came of a claim.
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

/// An address of a pool that was given to a claim.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IpAddress {
    /// Its name, labels, owners and so on.
    pub metadata: ObjectMeta,
    /// The address.
    pub spec: AddressSpec,
}

/// An address and who has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AddressSpec {
    /// The claim it was given to.
    pub claim_ref: AddressReference,
    /// The address.
    pub address: String,
    /// How many bits of it are the network's.
    pub prefix: Option<u8>,
}

impl IpAddressClaim {
    /// A claim that is to be made.
    pub fn new(metadata: ObjectMeta, spec: ClaimSpec) -> Self {
        let (api_version, kind) = (Self::api_version(&()).into_owned(), Self::kind(&()).into_owned());
        Self { api_version, kind, metadata, spec, status: ClaimStatus::default() }
    }
}

impl Resource for IpAddressClaim {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "IPAddressClaim".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        names::ADDRESS_GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        names::CLUSTER_API_VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "ipaddressclaims".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Resource for IpAddress {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "IPAddress".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        names::ADDRESS_GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        names::CLUSTER_API_VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "ipaddresses".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
