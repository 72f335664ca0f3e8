//! The part of a Machine that is read. See the parent module.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::{Resource, core::NamespaceResourceScope};
use serde::{Deserialize, Serialize};

use super::{Reference, WireReference};
use crate::{names, text::given};

/// A machine of Cluster API.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct Machine {
    /// Its name, labels, owners and so on.
    pub metadata: ObjectMeta,
    /// The Cluster it belongs to.
    pub cluster_name: String,
    /// The Secret with its user-data, once there is one.
    pub data_secret_name: Option<String>,
    /// Whether it is to have user-data at all: it names the Secret, or who makes it.
    pub bootstrap_wanted: bool,
    /// The zone it is to be in.
    pub failure_domain: Option<String>,
    /// The version of Kubernetes it is to run.
    pub version: Option<String>,
    /// The identity of its machine, which Cluster API takes over once that is provisioned. Unlike a status it survives a move.
    pub provider_id: Option<String>,
    /// Its infrastructure, such as a `MaasMachine`.
    pub infrastructure_ref: Option<Reference>,
    /// The name of its node, once it has joined.
    pub node_name: Option<String>,
    /// Of its conditions those about its health: [`Machine::HEALTH_CHECK_SUCCEEDED`], [`Machine::OWNER_REMEDIATED`], [`Machine::NODE_READY`].
    pub conditions: Vec<Condition>,
}

impl Machine {
    /// Whether a `MachineHealthCheck` finds it healthy.
    pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
    /// False if its owner is to replace it.
    pub const OWNER_REMEDIATED: &str = "OwnerRemediated";
    /// Whether its node is ready.
    pub const NODE_READY: &str = "NodeReady";

    const READ: [&str; 3] = [Self::HEALTH_CHECK_SUCCEEDED, Self::OWNER_REMEDIATED, Self::NODE_READY];
}

impl Resource for Machine {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Machine".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        names::CLUSTER_API_GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        names::CLUSTER_API_VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "machines".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Both shapes of a Machine at once.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    #[serde(skip_deserializing)]
    api_version: String,
    #[serde(skip_deserializing)]
    kind: String,
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    cluster_name: String,
    bootstrap: Bootstrap,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    failure_domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    version: Option<String>,
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    provider_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    infrastructure_ref: Option<WireReference>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Bootstrap {
    #[serde(skip_serializing_if = "Option::is_none")]
    config_ref: Option<WireReference>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    data_secret_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    node_ref: Option<NodeReference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
    /// Where v1beta1 keeps the conditions of v1beta2: those of its own have other names.
    #[serde(skip_serializing)]
    v1beta2: Option<NewerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct NewerStatus {
    conditions: Vec<Condition>,
}

impl Status {
    /// The conditions of v1beta2, or those of a Cluster API that has none.
    fn conditions(self) -> impl Iterator<Item = Condition> {
        self.v1beta2.map_or(self.conditions, |newer| newer.conditions).into_iter()
    }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct NodeReference {
    name: String,
}

impl From<Wire> for Machine {
    fn from(wire: Wire) -> Self {
        let Spec { cluster_name, bootstrap, failure_domain, version, provider_id, infrastructure_ref } = wire.spec;
        let maker = bootstrap.config_ref.and_then(WireReference::into_reference);
        Self {
            metadata: wire.metadata,
            cluster_name,
            bootstrap_wanted: maker.is_some() || bootstrap.data_secret_name.is_some(),
            data_secret_name: bootstrap.data_secret_name,
            failure_domain,
            version,
            provider_id,
            infrastructure_ref: infrastructure_ref.and_then(WireReference::into_reference),
            node_name: wire.status.node_ref.as_ref().map(|node| node.name.clone()).filter(|name| !name.is_empty()),
            conditions: wire.status.conditions().filter(|condition| Self::READ.contains(&condition.type_.as_str())).collect(),
        }
    }
}

impl From<Machine> for Wire {
    fn from(machine: Machine) -> Self {
        // Who makes the user-data is not kept; that somebody does has to be.
        let maker = Reference { group: "bootstrap.cluster.x-k8s.io".to_owned(), kind: "Bootstrap".to_owned(), name: "unknown".to_owned() };
        Self {
            api_version: Machine::api_version(&()).into_owned(),
            kind: Machine::kind(&()).into_owned(),
            metadata: machine.metadata,
            spec: Spec {
                cluster_name: machine.cluster_name,
                bootstrap: Bootstrap {
                    config_ref: (machine.bootstrap_wanted && machine.data_secret_name.is_none()).then(|| maker.into()),
                    data_secret_name: machine.data_secret_name,
                },
                failure_domain: machine.failure_domain,
                version: machine.version,
                provider_id: machine.provider_id,
                infrastructure_ref: machine.infrastructure_ref.map(WireReference::from),
            },
            status: Status {
                node_ref: machine.node_name.map(|name| NodeReference { name }),
                conditions: machine.conditions,
                v1beta2: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn row_64_a_machine_is_read_in_both_shapes() {
        let older = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "metadata": {"name": "m", "namespace": "rack"},
            "spec": {
                "clusterName": "c", "failureDomain": "zone-1", "version": "v1.35.0", "nodeDrainTimeout": "5m", "providerID": "maas:///zone-1/abc123",
                "bootstrap": {"dataSecretName": "m-data", "configRef": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "name": "m"}},
                "infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "MaasMachine", "name": "m", "namespace": "rack"},
            },
            "status": {"nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "rack-7", "uid": "x"}, "bootstrapReady": true, "conditions": [
                {"type": "HealthCheckSucceeded", "status": "False", "severity": "Warning", "reason": "NodeNotReady", "message": "x", "lastTransitionTime": "2026-11-16T04:00:00Z"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-16T04:00:00Z"},
            ]},
        });
        let newer = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "m", "namespace": "rack"},
            "spec": {
                "clusterName": "c", "failureDomain": "zone-1", "version": "v1.35.0", "deletion": {"nodeDrainTimeoutSeconds": 300}, "providerID": "maas:///zone-1/abc123",
                "bootstrap": {"dataSecretName": "m-data", "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "m"}},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasMachine", "name": "m"},
            },
            "status": {"nodeRef": {"name": "rack-7"}, "initialization": {"bootstrapDataSecretCreated": true}, "conditions": [
                {"type": "HealthCheckSucceeded", "status": "False", "reason": "NodeNotReady", "message": "x", "lastTransitionTime": "2026-11-16T04:00:00Z"},
            ]},
        });
        let read: Machine = serde_json::from_value(newer).unwrap();
        assert_eq!(serde_json::from_value::<Machine>(older).unwrap(), read);
        assert_eq!((read.cluster_name.as_str(), read.data_secret_name.as_deref(), read.bootstrap_wanted), ("c", Some("m-data"), true));
        assert_eq!((read.failure_domain.as_deref(), read.version.as_deref()), (Some("zone-1"), Some("v1.35.0")));
        assert_eq!(read.infrastructure_ref.as_ref().map(|reference| reference.kind.as_str()), Some("MaasMachine"));
        assert_eq!((read.node_name.as_deref(), read.provider_id.as_deref()), (Some("rack-7"), Some("maas:///zone-1/abc123")));
        assert_eq!(read.conditions.iter().map(|condition| condition.type_.as_str()).collect::<Vec<_>>(), [Machine::HEALTH_CHECK_SUCCEEDED]);
        assert_eq!(serde_json::from_value::<Machine>(serde_json::to_value(&read).unwrap()).unwrap(), read);
    }

    #[test]
    fn row_64_conditions_of_v1beta2_are_found_in_both_shapes() {
        let newer = |kind: &str| json!([{"type": kind, "status": "Unknown", "reason": "X", "message": "", "lastTransitionTime": "2026-11-16T04:00:00Z"}]);
        let read = |status| serde_json::from_value::<Machine>(json!({"metadata": {}, "status": status})).unwrap().conditions;
        let found = read(json!({"conditions": newer(Machine::NODE_READY)}));
        assert_eq!(found.len(), 1);
        assert_eq!(read(json!({"conditions": newer("NodeHealthy"), "v1beta2": {"conditions": newer(Machine::NODE_READY)}})), found);
    }

    #[test]
    fn user_data_is_wanted_if_somebody_makes_it_or_has_made_it() {
        for (bootstrap, wanted) in [
            (json!({}), false),
            (json!({"dataSecretName": "m-data"}), true),
            (json!({"configRef": {"kind": "KubeadmConfig", "name": "m"}}), true),
            (json!({"configRef": {"kind": "", "name": ""}}), false),
        ] {
            let machine: Machine = serde_json::from_value(json!({"metadata": {}, "spec": {"bootstrap": bootstrap}})).unwrap();
            assert_eq!(machine.bootstrap_wanted, wanted, "{bootstrap}");
            let again: Machine = serde_json::from_value(serde_json::to_value(&machine).unwrap()).unwrap();
            assert_eq!(again, machine);
        }
    }
}
