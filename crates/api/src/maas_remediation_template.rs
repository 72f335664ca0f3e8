//! `MaasRemediationTemplate`: what a `MachineHealthCheck` makes `MaasRemediation` objects of.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MaasRemediationSpec, TemplateMetadata};

/// A template of remediations.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "MaasRemediationTemplate",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    shortname = "maasrt",
    doc = "What is done to machines whose nodes a MachineHealthCheck finds unhealthy; its spec.remediation.templateRef names it. It cannot be changed: make a new one and refer to that.",
    printcolumn(
        name = "Strategy",
        type_ = "string",
        json_path = ".spec.template.spec.strategy.type",
        description = "What is done to a machine"
    ),
    printcolumn(
        name = "Limit",
        type_ = "integer",
        json_path = ".spec.template.spec.strategy.retryLimit",
        description = "How many attempts are made"
    ),
    printcolumn(
        name = "Timeout",
        type_ = "string",
        json_path = ".spec.template.spec.strategy.timeout",
        description = "How long a node may take after each"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Since when it exists")
)]
#[serde(rename_all = "camelCase")]
pub struct MaasRemediationTemplateSpec {
    /// What every remediation is made of.
    pub template: MaasRemediationTemplateResource,
}

/// What every remediation is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaasRemediationTemplateResource {
    /// Labels and annotations of every remediation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// How a machine whose node is unhealthy is brought back.
    pub spec: MaasRemediationSpec,
}
