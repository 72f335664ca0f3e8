//! The part of a Cluster that is read. See the parent module.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, core::NamespaceResourceScope};
use serde::{Deserialize, Serialize};

use super::{Reference, WireReference};
use crate::{ApiEndpoint, names, number};

/// A cluster of Cluster API.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct Cluster {
    /// Its name, labels, owners and so on.
    pub metadata: ObjectMeta,
    /// Whether nothing of it is to be touched.
    pub paused: bool,
    /// Whether its infrastructure was ready once.
    pub infrastructure_provisioned: bool,
    /// Whether its API server answered once.
    pub control_plane_initialized: bool,
    /// Where its API server is reached, if the Cluster says so.
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// The port its API server listens on, if the Cluster says so.
    pub api_server_port: Option<u16>,
    /// Its infrastructure, such as a `MaasCluster`.
    pub infrastructure_ref: Option<Reference>,
    /// Its control plane.
    pub control_plane_ref: Option<Reference>,
}

impl Cluster {
    /// Whether it is being deleted.
    pub fn deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

impl Resource for Cluster {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Cluster".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        names::CLUSTER_API_GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        names::CLUSTER_API_VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "clusters".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Both shapes of a Cluster at once: what one does not have is missing in the other. The first names of a field are those that are written.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "ApiEndpoint::given")]
    control_plane_endpoint: Option<ApiEndpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_network: Option<Network>,
    #[serde(skip_serializing_if = "Option::is_none")]
    infrastructure_ref: Option<WireReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_plane_ref: Option<WireReference>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Network {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number::port")]
    api_server_port: Option<u16>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    initialization: Option<Initialization>,
    /// v1beta1's word for infrastructureProvisioned.
    #[serde(skip_serializing)]
    infrastructure_ready: Option<bool>,
    /// In v1beta1 the only place that says that the control plane was initialized.
    #[serde(skip_serializing)]
    conditions: Vec<AnyCondition>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Initialization {
    #[serde(skip_serializing_if = "Option::is_none")]
    infrastructure_provisioned: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_plane_initialized: Option<bool>,
}

/// A condition of either generation.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct AnyCondition {
    r#type: String,
    status: String,
}

impl From<Wire> for Cluster {
    fn from(wire: Wire) -> Self {
        let Wire { metadata, spec, status, .. } = wire;
        let initialization = status.initialization.unwrap_or_default();
        let said = |condition: &AnyCondition| condition.r#type == "ControlPlaneInitialized" && condition.status == "True";
        Self {
            paused: spec.paused.unwrap_or_default(),
            infrastructure_provisioned: initialization.infrastructure_provisioned.or(status.infrastructure_ready).unwrap_or_default(),
            control_plane_initialized: initialization.control_plane_initialized.unwrap_or_else(|| status.conditions.iter().any(said)),
            control_plane_endpoint: spec.control_plane_endpoint,
            api_server_port: spec.cluster_network.and_then(|network| network.api_server_port),
            infrastructure_ref: spec.infrastructure_ref.and_then(WireReference::into_reference),
            control_plane_ref: spec.control_plane_ref.and_then(WireReference::into_reference),
            metadata,
        }
    }
}

impl From<Cluster> for Wire {
    fn from(cluster: Cluster) -> Self {
        let initialization = Initialization {
            infrastructure_provisioned: cluster.infrastructure_provisioned.then_some(true),
            control_plane_initialized: cluster.control_plane_initialized.then_some(true),
        };
        Self {
            api_version: Cluster::api_version(&()).into_owned(),
            kind: Cluster::kind(&()).into_owned(),
            metadata: cluster.metadata,
            spec: Spec {
                paused: cluster.paused.then_some(true),
                control_plane_endpoint: cluster.control_plane_endpoint,
                cluster_network: cluster.api_server_port.map(|port| Network { api_server_port: Some(port) }),
                infrastructure_ref: cluster.infrastructure_ref.map(WireReference::from),
                control_plane_ref: cluster.control_plane_ref.map(WireReference::from),
            },
            status: Status {
                initialization: (cluster.infrastructure_provisioned || cluster.control_plane_initialized).then_some(initialization),
                ..Status::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn row_64_a_cluster_is_read_in_both_shapes() {
        let older = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "c", "namespace": "rack"},
            "spec": {
                "paused": true, "controlPlaneEndpoint": {"host": "c.maas", "port": 6443}, "clusterNetwork": {"apiServerPort": 8443},
                "infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "MaasCluster", "name": "c", "namespace": "rack"},
                "controlPlaneRef": {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane", "name": "c-cp"},
            },
            "status": {
                "phase": "Provisioned", "infrastructureReady": true, "controlPlaneReady": true, "observedGeneration": 2,
                "conditions": [{"type": "ControlPlaneInitialized", "status": "True", "lastTransitionTime": "2026-11-16T04:00:00Z"}],
            },
        });
        let newer = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c", "namespace": "rack"},
            "spec": {
                "paused": true, "controlPlaneEndpoint": {"host": "c.maas", "port": 6443}, "clusterNetwork": {"apiServerPort": 8443},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasCluster", "name": "c"},
                "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "c-cp"},
            },
            "status": {"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true}, "conditions": []},
        });
        let read: Cluster = serde_json::from_value(newer.clone()).unwrap();
        assert_eq!(serde_json::from_value::<Cluster>(older).unwrap(), read);
        assert!(read.paused && read.infrastructure_provisioned && read.control_plane_initialized && !read.deleting());
        assert_eq!(read.control_plane_endpoint, Some(ApiEndpoint { host: Some("c.maas".to_owned()), port: Some(6443) }));
        assert_eq!(read.api_server_port, Some(8443));
        let infrastructure = Reference { group: names::GROUP.to_owned(), kind: "MaasCluster".to_owned(), name: "c".to_owned() };
        assert_eq!(read.infrastructure_ref, Some(infrastructure));
        assert_eq!(serde_json::from_value::<Cluster>(serde_json::to_value(&read).unwrap()).unwrap(), read);
    }

    #[test]
    fn row_64_a_cluster_that_says_nothing_is_nothing() {
        for empty in [
            json!({"metadata": {}}),
            json!({"metadata": {}, "spec": {}, "status": {}}),
            json!({"metadata": {}, "spec": {"controlPlaneEndpoint": {"host": "", "port": 0}, "infrastructureRef": {"name": ""}, "clusterNetwork": {"apiServerPort": 70000}}}),
        ] {
            assert_eq!(serde_json::from_value::<Cluster>(empty).unwrap(), Cluster::default());
        }
    }

    #[test]
    fn deletion_is_seen() {
        let cluster: Cluster = serde_json::from_value(json!({"metadata": {"deletionTimestamp": "2026-11-16T04:00:00Z"}})).unwrap();
        assert!(cluster.deleting());
    }
}
