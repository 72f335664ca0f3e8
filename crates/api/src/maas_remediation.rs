//! `MaasRemediation`: the order to bring the node of one unhealthy Machine back by switching its machine off and on. Cluster API makes one from a
//! `MaasRemediationTemplate` and deletes it when the node is well again.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema, core::Duration as GoDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{condition, definitions::leave_description_to_the_field};

/// How a machine whose node is unhealthy is brought back.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "MaasRemediation",
    namespaced,
    status = "MaasRemediationStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    shortname = "maasr",
    doc = "The order to bring back the node of the Machine of the same name by switching its machine off and on. Made by a MachineHealthCheck from a MaasRemediationTemplate, and deleted by it when the node is well.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".metadata.labels.cluster\\.x-k8s\\.io/cluster-name",
        description = "The Cluster it belongs to"
    ),
    printcolumn(name = "Strategy", type_ = "string", json_path = ".spec.strategy.type", description = "What is done to the machine"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "How far it has come"),
    printcolumn(name = "Attempts", type_ = "integer", json_path = ".status.attempts", description = "How many attempts were begun"),
    printcolumn(
        name = "Limit",
        type_ = "integer",
        json_path = ".spec.strategy.retryLimit",
        description = "How many attempts are made",
        priority = 1
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Remediated\")].reason",
        description = "Why it is in this phase"
    ),
    printcolumn(name = "Last", type_ = "date", json_path = ".status.lastRemediated", description = "When the last attempt was begun"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Since when it exists"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Remediated\")].message",
        description = "What is in the way, and what to do",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MaasRemediationSpec {
    /// What is done to the machine, how often, and how long it may take; one power cycle and ten minutes if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RemediationStrategy>,
}

/// What is done to a machine, how often, and how long it may take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemediationStrategy {
    /// What is done. `PowerCycle`: MAAS switches the machine off and on again through its power controller; what is on its disks stays. It is the
    /// only strategy there is.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<RemediationType>,
    /// How often the machine is switched off and on before it is left to its owner, which replaces it; 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub retry_limit: Option<u32>,
    /// How long the node may take to be well again after each attempt, such as `15m`; ten minutes if not given. It has to be longer than the machine
    /// takes to boot, and than its `MachineHealthCheck` takes to notice that the node is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$"))]
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("the node needs time to come back: write how long it may take to boot, for example 10m"))]
    pub timeout: Option<GoDuration>,
}

/// What is done to a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = leave_description_to_the_field)]
pub enum RemediationType {
    /// It is switched off and on.
    #[default]
    PowerCycle,
}

impl MaasRemediationSpec {
    /// How often a machine is switched off and on when nothing is said.
    pub const DEFAULT_RETRY_LIMIT: u32 = 1;
    /// How long the node may take when nothing is said: servers test themselves for minutes before they boot.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

    /// How often the machine is switched off and on.
    pub fn retry_limit(&self) -> u32 {
        self.strategy.as_ref().and_then(|strategy| strategy.retry_limit).unwrap_or(Self::DEFAULT_RETRY_LIMIT)
    }

    /// How long the node may take after each attempt.
    pub fn timeout(&self) -> Duration {
        self.strategy.as_ref().and_then(|strategy| strategy.timeout).map_or(Self::DEFAULT_TIMEOUT, Duration::from)
    }
}

/// What has come of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaasRemediationStatus {
    /// How far it has come. `Waiting`: nothing was done yet. `Running`: the machine was switched off and on, or is about to be, and its node is
    /// waited for. `Succeeded`: the node is well. `Failed`: it was given up, and the Machine's owner is to replace it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<RemediationPhase>,
    /// How many attempts were begun. It is written before the machine is touched, so that no attempt is made twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// When the last attempt was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_remediated: Option<Time>,
    /// Whether the node is back and if not, why and what to do; `Remediated` is the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::schema")]
    pub conditions: Vec<Condition>,
}

/// How far a remediation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = leave_description_to_the_field)]
pub enum RemediationPhase {
    /// Nothing was done yet.
    Waiting,
    /// The machine was switched off and on, or is about to be, and its node is waited for.
    Running,
    /// The node is well.
    Succeeded,
    /// It was given up.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_said_is_one_power_cycle_and_ten_minutes() {
        for spec in [json!({}), json!({"strategy": {}}), json!({"strategy": {"type": "PowerCycle"}})] {
            let read: MaasRemediationSpec = serde_json::from_value(spec).unwrap();
            assert_eq!((read.retry_limit(), read.timeout()), (1, Duration::from_mins(10)));
        }
        let read: MaasRemediationSpec = serde_json::from_value(json!({"strategy": {"retryLimit": 3, "timeout": "1m30s"}})).unwrap();
        assert_eq!((read.retry_limit(), read.timeout()), (3, Duration::from_secs(90)));
    }
}
