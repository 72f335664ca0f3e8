//! Names on the wire: groups, finalizers, annotations, labels and well-known objects. Used by everybody who reads or writes an object.

/// The API group of our kinds.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The one version of our kinds.
pub const VERSION: &str = "v1beta1";
/// `apiVersion` of our kinds.
pub const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
/// The API group of Cluster and Machine.
pub const CLUSTER_API_GROUP: &str = "cluster.x-k8s.io";
/// The version in which objects of Cluster API are read.
pub const CLUSTER_API_VERSION: &str = "v1beta2";

// Finalizers

/// Keeps a `MaasMachine` until its machine was given back to MAAS.
pub const FINALIZER_MACHINE: &str = "infrastructure.cluster.x-k8s.io/maasmachine";
/// Keeps a `MaasCluster` until its DNS record and reserved addresses are gone.
pub const FINALIZER_CLUSTER: &str = "infrastructure.cluster.x-k8s.io/maascluster";
/// Keeps an `IPAddress` of a pool from going to somebody else until the machine that has it was given back to MAAS.
pub const FINALIZER_ADDRESS: &str = "infrastructure.cluster.x-k8s.io/maasmachine-address";
/// What the Go provider puts on a `MaasMachine` in the place of [`FINALIZER_MACHINE`].
pub const LEGACY_MACHINE_FINALIZER: &str = "maasmachine.infrastructure.cluster.x-k8s.io";
/// What the Go provider puts on a `MaasCluster` in the place of [`FINALIZER_CLUSTER`].
pub const LEGACY_CLUSTER_FINALIZER: &str = "maascluster.infrastructure.cluster.x-k8s.io";
/// What the Go provider puts on machines that host virtual machines until they are empty.
pub const LEGACY_EVACUATION_FINALIZER: &str = "maas.lxd.io/host-evacuation";

// Annotations

/// On a `MaasMachine`: the [`crate::Intent`] to own a machine, as compact JSON.
pub const CLAIM: &str = "metalshift.io/claim";
/// On a `MaasCluster`: the [`crate::EndpointIntent`], as compact JSON.
pub const ENDPOINT: &str = "metalshift.io/endpoint";
/// On a `MaasCluster`, whatever its value: the endpoint in the spec is somebody else's, MAAS's DNS is not touched.
pub const CUSTOM_ENDPOINT: &str = "spectrocloud.com/custom-dns-provided";
/// On any object, whatever its value: leave it alone.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";
/// On an object that another program reconciles: never write it.
pub const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
/// On a template in a dry run of Cluster API's topology controller, which compares templates by changing them.
pub const TOPOLOGY_DRY_RUN: &str = "topology.cluster.x-k8s.io/dry-run";
/// Makes `clusterctl move` wait while it is on an object.
pub const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// On an object that `clusterctl move` deletes on the old side because it lives on elsewhere.
pub const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
/// The Go provider's digest of the addresses it last wrote into DNS.
pub const LEGACY_DNS_HASH: &str = "infrastructure.cluster.x-k8s.io/last-applied-dns-hash";
/// The Go provider's memory of the name it gave a virtual machine.
pub const LEGACY_VM_NAME: &str = "maas.spectrocloud.com/vm-name";

// Labels

/// The Cluster an object belongs to.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// On machines of a control plane, whatever its value.
pub const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
/// Chooses which of several providers looks at an object.
pub const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
/// On everything that belongs to a provider's installation.
pub const PROVIDER: &str = "cluster.x-k8s.io/provider";
/// The value of [`PROVIDER`] on what is ours.
pub const PROVIDER_NAME: &str = "infrastructure-maas";
/// On kinds whose objects `clusterctl move` takes along.
pub const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";
/// Names the versions of a kind that follow Cluster API's first contract.
pub const CONTRACT_V1BETA1: &str = "cluster.x-k8s.io/v1beta1";
/// Names the versions of a kind that follow Cluster API's second contract.
pub const CONTRACT_V1BETA2: &str = "cluster.x-k8s.io/v1beta2";
/// On the namespace `kube-system` of a workload cluster whose API server answers.
pub const API_SERVER_READY: &str = "cluster-api-maas/api-server-ready";

// Objects

/// The Secret with MAAS's address and key, in a cluster's namespace or in the provider's.
pub const CREDENTIALS_SECRET: &str = "capmaas-manager-bootstrap-credentials";
/// The `ConfigMap` that lists the subnets an endpoint's addresses may come from.
pub const PREFERRED_SUBNETS: &str = "maas-preferred-subnet";
/// The key of [`PREFERRED_SUBNETS`]: CIDRs with commas between them.
pub const PREFERRED_SUBNETS_KEY: &str = "preferredSubnets";
