//! `MaasMachineTemplate`: what Cluster API makes `MaasMachine` objects of.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MaasMachineSpec, TemplateMetadata};

/// A template of machines.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "MaasMachineTemplate",
    namespaced,
    status = "MaasMachineTemplateStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    shortname = "maasmt",
    doc = "What machines of a control plane or a MachineDeployment are like. It cannot be changed: make a new one and refer to that.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".metadata.labels.cluster\\.x-k8s\\.io/cluster-name",
        description = "The Cluster it belongs to"
    ),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.template.spec.image", description = "What is deployed"),
    printcolumn(
        name = "Pool",
        type_ = "string",
        json_path = ".spec.template.spec.resourcePool",
        description = "The resource pool machines are taken from"
    ),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.capacity.cpu", description = "CPU cores of a machine at least"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".status.capacity.memory", description = "Memory of a machine at least"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Since when it exists")
)]
#[serde(rename_all = "camelCase")]
pub struct MaasMachineTemplateSpec {
    /// What every machine is made of.
    pub template: MaasMachineTemplateResource,
}

/// What every machine is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaasMachineTemplateResource {
    /// Labels and annotations of every machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Which machine of MAAS is wanted and what becomes of it.
    pub spec: MaasMachineSpec,
}

/// What a machine of the template has, for the cluster autoscaler to start from nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaasMachineTemplateStatus {
    /// What a machine of this template has at least, such as `cpu` and `memory`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
    /// What a node of this template is like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,
}

/// What a node is like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    /// The node's architecture in the words of Kubernetes, such as `amd64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// The node's operating system, `linux`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operating_system: Option<String>,
}
