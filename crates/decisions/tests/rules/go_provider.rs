//! The Go provider's reasons: who looks for one of them finds it here too.

use decisions::{cluster, machine};

/// Of the conditions `MachineDeployed` and `DNSAttached` of a MaasMachine, in both lines of the Go provider.
const OF_MACHINES: [&str; 15] = [
    "MachineDeployed",
    "WaitingForClusterInfrastructure",
    "WaitingForBootstrapData",
    "WaitingForStaticIP",
    "MachineDeployStartedReason",
    "MachineDeploying",
    "MachineDeployFailed",
    "MachinePoweredOff",
    "MachineTerminatedReason",
    "MachineNotFound",
    "MachineStateUndefined",
    "Deleted",
    "DNSAttached",
    "DNSAttachPending",
    "DNSDetachPending",
];

/// Of `LoadBalancerReady` and `APIServerAvailable` of a MaasCluster. Those of `LXDReady` come with hosts of virtual machines.
const OF_CLUSTERS: [&str; 5] = ["LoadBalancerReady", "LoadBalancerFailed", "WaitForDNSName", "APIServerAvailable", "APIServerNotReady"];

#[test]
fn every_reason_of_the_go_provider_is_one_of_ours() {
    for (theirs, ours) in [(&OF_MACHINES[..], machine::Reason::ALL), (&OF_CLUSTERS[..], cluster::REASONS)] {
        let missing: Vec<&&str> = theirs.iter().filter(|name| !ours.iter().any(|reason| reason.name == **name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
