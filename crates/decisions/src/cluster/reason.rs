//! Why a MaasCluster is as it is: the reasons of its conditions beside those it shares with machines. They are stable, because people and
//! programs look for them; docs/troubleshooting.md is made from this table.

use crate::machine::{Reason, calm, trouble, waits_for};

pub const LOAD_BALANCER_READY: Reason = calm("LoadBalancerReady", "The address of the API server is known and leads to the control plane.");
pub const WAIT_FOR_NAME: Reason = calm("WaitForDNSName", "The name of the API server is being made in MAAS.");
pub const WAIT_FOR_ENDPOINT: Reason = waits_for(
    "WaitForEndpoint",
    "The address of the API server is given by somebody else, who has not done so yet.",
    "Write spec.controlPlaneEndpoint, or let whoever is to give it do so.",
);
pub const API_SERVER_AVAILABLE: Reason = calm("APIServerAvailable", "The API server answers.");
pub const API_SERVER_NOT_READY: Reason = waits_for(
    "APIServerNotReady",
    "The API server does not answer, or not yet.",
    "Nothing while the first machine of the control plane comes up. If that is Deployed for minutes, look on it at /var/log/cloud-init-output.log: \
     kubeadm says there what it misses, such as an image without kubelet and containerd. Else look whether the machines have power and their network.",
);
pub const ZONES_READY: Reason = calm("FailureDomainsReady", "The zones machines are spread over are known.");
pub const WAITING_FOR_MACHINES: Reason = calm("WaitingForMachines", "Machines of the cluster have to go first.");
pub const CLEANING_UP: Reason = calm("CleaningUp", "What the cluster has in MAAS's network is being removed.");
pub const REMOVED: Reason = calm("Removed", "The cluster has nothing left in MAAS's network.");

pub const LOAD_BALANCER_FAILED: Reason = trouble(
    "LoadBalancerFailed",
    "The address of the API server could not be made or kept in MAAS.",
    "MAAS's words in the message say why; it is tried again by itself.",
);
pub const DOMAIN_NOT_FOUND: Reason = trouble(
    "DNSDomainNotFound",
    "MAAS does not have the DNS domain.",
    "Create the domain in MAAS, or make the cluster with a domain that MAAS has.",
);
pub const NAME_TAKEN: Reason = trouble(
    "DNSNameTaken",
    "MAAS has a record of this name that was there before and is not this cluster's, or another MaasCluster has the name. It is not touched.",
    "Remove the record in MAAS if nobody uses it, or make the cluster with another name in spec.controlPlaneEndpoint.",
);
pub const DNS_RIGHTS_MISSING: Reason = trouble(
    "DNSRightsMissing",
    "Our MAAS user may not write DNS records.",
    "Give an administrator's key, or make the cluster with spec.endpoint.mode VIP, which a plain user may, or with an endpoint of your own.",
);
pub const NO_MATCHING_ADDRESS: Reason = trouble(
    "NoMatchingAddress",
    "No machine of the control plane has an address as spec.endpoint.addresses or the ConfigMap maas-preferred-subnet asks for.",
    "Correct the choice, or connect the machines to that network in MAAS.",
);
pub const MACHINES_NOT_SEEN: Reason = Reason {
    name: "MachinesNotSeen",
    trouble: false,
    meaning: "The name of the API server leads to addresses that no known machine has. They stay because MAAS has not shown every machine of the control plane to us yet, such as after a move.",
    remedy: "If it lasts, the conditions of those MaasMachines say why: mend that, or delete the Machines if they are lost.",
};
pub const ADDRESS_TAKEN: Reason = trouble(
    "AddressTaken",
    "Somebody else has the address that the API server is to have: another MaasCluster, or whoever MAAS's words name. It is not touched.",
    "Give another address in spec.endpoint.vip, or free this one if nobody uses it: delete the other MaasCluster, or release the address in MAAS.",
);
pub const NO_FREE_ADDRESS: Reason = trouble(
    "NoFreeAddress",
    "The subnet has no free address, or MAAS has no such subnet.",
    "Check spec.endpoint.vip.subnet, or free addresses in MAAS.",
);
pub const ANNOTATION_UNREADABLE: Reason = trouble(
    "EndpointUnreadable",
    "The annotation metalshift.io/endpoint was changed by somebody, so it cannot be told what the cluster has in MAAS.",
    "Put back what it said, or remove the annotation if you are sure that the cluster has nothing in MAAS.",
);
pub const ZONE_NOT_FOUND: Reason = trouble(
    "ZoneNotFound",
    "MAAS does not have some of the zones in spec.failureDomains. The others are used.",
    "Create the zones in MAAS, or correct spec.failureDomains.",
);
pub const ZONES_UNKNOWN: Reason = calm("FailureDomainsUnknown", "MAAS has not told its zones yet; what was known of them stays.");

/// All of them.
pub const ALL: &[Reason] = &[
    LOAD_BALANCER_READY,
    WAIT_FOR_NAME,
    WAIT_FOR_ENDPOINT,
    API_SERVER_AVAILABLE,
    API_SERVER_NOT_READY,
    ZONES_READY,
    WAITING_FOR_MACHINES,
    CLEANING_UP,
    REMOVED,
    LOAD_BALANCER_FAILED,
    DOMAIN_NOT_FOUND,
    NAME_TAKEN,
    DNS_RIGHTS_MISSING,
    NO_MATCHING_ADDRESS,
    MACHINES_NOT_SEEN,
    ADDRESS_TAKEN,
    NO_FREE_ADDRESS,
    ANNOTATION_UNREADABLE,
    ZONE_NOT_FOUND,
    ZONES_UNKNOWN,
];

/// Those of machines that clusters show too.
pub const SHARED: &[Reason] = &[
    Reason::NO_ACCESS,
    Reason::KEY_REFUSED,
    Reason::MAAS_UNAVAILABLE,
    Reason::NOT_MAAS,
    Reason::OTHER_MAAS,
    Reason::LXD_NOT_SUPPORTED,
    Reason::KUBERNETES_FAILED,
    Reason::UNANSWERED,
    Reason::MAAS_AVAILABLE,
];
