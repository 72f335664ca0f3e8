//! Every kind of call the controllers make. The list is fixed, so that a kind no story brings about any more is missed, and a new one is seen.

use std::collections::BTreeSet;

use simulation::explorer::CallKind;

const KINDS: [&str; 50] = [
    "kubernetes GET configmaps",
    "kubernetes GET namespaces",
    "kubernetes GET secrets",
    "kubernetes LIST clusters",
    "kubernetes LIST maasclusters",
    "kubernetes LIST maasmachines",
    "kubernetes LIST maasmachinetemplates",
    "kubernetes LIST maasremediations",
    "kubernetes LIST machines",
    "kubernetes PATCH maasclusters",
    "kubernetes PATCH maasclusters/status",
    "kubernetes PATCH maasmachines",
    "kubernetes PATCH maasmachines/status",
    "kubernetes PATCH maasmachinetemplates/status",
    "kubernetes POST events",
    "kubernetes WATCH clusters",
    "kubernetes WATCH maasclusters",
    "kubernetes WATCH maasmachines",
    "kubernetes WATCH maasmachinetemplates",
    "kubernetes WATCH maasremediations",
    "kubernetes WATCH machines",
    "maas DELETE dnsresources/{}",
    "maas GET boot-resources",
    "maas GET dnsresources",
    "maas GET events query",
    "maas GET ipaddresses",
    "maas GET machines",
    "maas GET machines/{}",
    "maas GET machines/{} query_power_state",
    "maas GET subnets",
    "maas GET subnets/{} unreserved_ip_ranges",
    "maas GET users whoami",
    "maas GET zones",
    "maas POST dnsresources",
    "maas POST ipaddresses release",
    "maas POST ipaddresses reserve",
    "maas POST machines allocate",
    "maas POST machines/{} deploy",
    "maas POST machines/{} power_on",
    "maas POST machines/{} release",
    "maas POST machines/{} set_workload_annotations",
    "maas POST nodes/{}/interfaces/{} link_subnet",
    "maas POST nodes/{}/interfaces/{} unlink_subnet",
    "maas PUT dnsresources/{}",
    "maas PUT machines/{}",
    "workload GET nodes",
    "workload LIST nodes",
    "workload PATCH namespaces",
    "workload PATCH nodes",
    "workload WATCH nodes",
];

pub fn every_kind() -> BTreeSet<CallKind> {
    KINDS.into_iter().map(|kind| CallKind(kind.to_owned())).collect()
}
