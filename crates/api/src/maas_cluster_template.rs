//! `MaasClusterTemplate`: what a `ClusterClass` makes `MaasCluster` objects of.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MaasClusterSpec, TemplateMetadata};

/// A template of clusters.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "MaasClusterTemplate",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    shortname = "maasct",
    doc = "What the clusters of a ClusterClass share in MAAS. It cannot be changed: make a new one and refer to that.",
    printcolumn(name = "Domain", type_ = "string", json_path = ".spec.template.spec.dnsDomain", description = "The DNS domain in MAAS"),
    printcolumn(
        name = "Mode",
        type_ = "string",
        json_path = ".spec.template.spec.endpoint.mode",
        description = "How the address of the API server comes to be"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Since when it exists")
)]
#[serde(rename_all = "camelCase")]
pub struct MaasClusterTemplateSpec {
    /// What every cluster is made of.
    pub template: MaasClusterTemplateResource,
}

/// What every cluster is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaasClusterTemplateResource {
    /// Labels and annotations of every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What the machines of one cluster share.
    pub spec: MaasClusterSpec,
}
