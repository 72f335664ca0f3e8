//! The part of the witness that looks at names and reserved addresses.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::{Method, Request};
use maas_emulator::world::{dns::DnsResource, network::AddressKind};
use serde_json::Value;

use super::witness::{Witness, operation, parameter};

/// What people made in MAAS with our own user, and nobody may touch, but for adding to the name if somebody asked for it.
pub(super) const FOREIGN_NAME: &str = "foreign";
pub(super) const FOREIGN_ADDRESSES: [&str; 2] = ["10.30.0.200", "10.30.0.201"];

/// A name in DNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub id: String,
    pub label: String,
    pub addresses: BTreeSet<String>,
}

impl Witness {
    /// Every name in DNS.
    pub(super) fn names(&self) -> Vec<Name> {
        self.emulator.world(|world| {
            let name = |name: &DnsResource| {
                let rows = name.addresses.iter().filter_map(|id| world.addresses.get(*id));
                let addresses = rows.filter_map(|address| address.ip).map(|ip| ip.to_string()).collect();
                Name { id: name.id.to_string(), label: name.name.clone(), addresses }
            };
            world.names.values().map(name).collect()
        })
    }

    /// The names that are not people's, and what is not people's in theirs.
    pub(super) fn our_names(&self) -> Vec<Name> {
        let mut names = self.names();
        for name in names.iter_mut().filter(|name| name.label == FOREIGN_NAME) {
            name.addresses.retain(|ip| !FOREIGN_ADDRESSES.contains(&ip.as_str()));
        }
        names.into_iter().filter(|name| name.label != FOREIGN_NAME || !name.addresses.is_empty()).collect()
    }

    /// Addresses that are reserved and not people's.
    pub(super) fn our_reservations(&self) -> BTreeSet<String> {
        self.reservations().into_iter().filter(|ip| !FOREIGN_ADDRESSES.contains(&ip.as_str())).collect()
    }

    fn reservations(&self) -> BTreeSet<String> {
        self.emulator.world(|world| {
            let reserved = world.addresses.values().filter(|address| address.kind == AddressKind::UserReserved);
            reserved.filter_map(|address| address.ip).map(|ip| ip.to_string()).collect()
        })
    }

    /// A call that may change a name or a reservation is about to be carried out in MAAS.
    pub(super) fn before_dns(&self, request: &Request<Bytes>) {
        let path = request.uri().path().trim_start_matches("/MAAS/api/2.0/").trim_matches('/').to_owned();
        let mut parts = path.split('/');
        let (kind, id) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if !matches!(kind, "dnsresources" | "ipaddresses") {
            return;
        }
        let clusters = self.server.objects("maasclusters");
        // What is late about a record that is gone changes nothing.
        if clusters.is_empty() && *request.method() == Method::POST {
            self.violated(format!("{} {path} when no cluster is there", request.method()));
        }
        if clusters.iter().any(|cluster| self.is_paused(cluster)) {
            self.violated(format!("{} {path} while it is paused", request.method()));
        }
        if let Some(ip) = parameter(request.body(), "ip").filter(|ip| FOREIGN_ADDRESSES.contains(&ip.as_str())) {
            self.violated(format!("{} {path} of {ip}, which a person reserved", request.method()));
        }
        if kind == "ipaddresses" {
            self.before_address(request, &clusters);
        }
        let Some(name) = self.names().into_iter().find(|name| kind == "dnsresources" && name.id == id) else { return };
        if name.label == FOREIGN_NAME {
            self.before_foreign_name(request, &clusters);
        }
        let lives = |object: &Value| object["metadata"]["deletionTimestamp"].is_null();
        if *request.method() == Method::PUT {
            let empties = parameter(request.body(), "ip_addresses").is_none_or(|list| list.trim().is_empty()) && !name.addresses.is_empty();
            let is_control_plane = |object: &Value| object["metadata"]["labels"]["cluster.x-k8s.io/control-plane"].is_string();
            let stays = self.server.objects("maasmachines").into_iter().find(|object| is_control_plane(object) && lives(object));
            if let Some(machine) = stays.filter(|_| empties) {
                self.violated(format!("the name {} is emptied while {} is there", name.label, machine["metadata"]["name"]));
            }
        }
        if *request.method() == Method::DELETE {
            let is_last = self.names().iter().filter(|other| other.label == name.label).count() == 1;
            if is_last && self.server.objects("maasclusters").iter().any(lives) {
                self.violated(format!("the name {} is removed while its cluster is there", name.label));
            }
        }
    }

    /// An address is freed by the cluster that has it, when that goes, and by no other.
    fn before_address(&self, request: &Request<Bytes>, clusters: &[Value]) {
        let ip = parameter(request.body(), "ip").unwrap_or_default();
        let uses_it = |cluster: &&Value| cluster["spec"]["controlPlaneEndpoint"]["host"] == ip.as_str();
        let stays = clusters.iter().filter(uses_it).find(|cluster| cluster["metadata"]["deletionTimestamp"].is_null());
        if let Some(cluster) = stays.filter(|_| operation(request) == "release") {
            self.violated(format!("the address {ip} is freed, and {} has it", cluster["metadata"]["name"]));
        }
    }

    /// No two clusters are at the same address.
    pub(super) fn nobody_shares_an_address(&self) {
        let mut hosts = BTreeMap::new();
        for cluster in self.server.objects("maasclusters") {
            let Some(host) = cluster["spec"]["controlPlaneEndpoint"]["host"].as_str().map(str::to_owned) else { continue };
            if let Some(other) = hosts.insert(host.clone(), cluster["metadata"]["name"].clone()) {
                self.violated(format!("{} and {other} are both at {host}", cluster["metadata"]["name"]));
            }
        }
    }

    /// A call about the name of a person: somebody must have asked for it, and what people have in it stays.
    fn before_foreign_name(&self, request: &Request<Bytes>, clusters: &[Value]) {
        let host = format!("{FOREIGN_NAME}.maas");
        let is_asked_for = clusters.iter().any(|cluster| cluster["spec"]["controlPlaneEndpoint"]["host"] == host.as_str());
        let list = parameter(request.body(), "ip_addresses").unwrap_or_default();
        let stays = list.split_whitespace().any(|ip| ip == FOREIGN_ADDRESSES[0]);
        if *request.method() != Method::PUT || !is_asked_for || !stays {
            self.violated(format!("{} {list:?} of the name {FOREIGN_NAME}, which is a person's", request.method()));
        }
    }

    /// A cluster must not be let go while something of it is left in MAAS.
    pub(super) fn before_cluster_is_let_go(&self, method: &Method, path: &str, body: &[u8]) {
        if *method != Method::PATCH || !path.contains("/maasclusters/") || path.ends_with("/status") {
            return;
        }
        let Ok(change) = serde_json::from_slice::<Value>(body) else { return };
        if change["metadata"]["finalizers"].as_array().is_none_or(|finalizers| !finalizers.is_empty()) {
            return;
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        let (mut objects, others): (Vec<Value>, Vec<Value>) =
            self.server.objects("maasclusters").into_iter().partition(|object| object["metadata"]["name"] == name);
        let object = objects.pop().unwrap_or_default();
        let guard = &change["metadata"]["resourceVersion"];
        if guard.is_string() && *guard != object["metadata"]["resourceVersion"] {
            return;
        }
        let (names, mut reserved) = (self.our_names(), self.our_reservations());
        let on_record = |object: &Value| object["metadata"]["annotations"][api::names::ENDPOINT].as_str().unwrap_or_default().to_owned();
        let others: String = others.iter().map(on_record).collect();
        reserved.retain(|ip| !others.contains(&format!("\"{ip}\"")));
        if !names.is_empty() || !reserved.is_empty() {
            self.violated(format!("the cluster is let go while {names:?} and {reserved:?} are left"));
        }
    }

    /// What must be true when all is quiet: one name, and it leads to whoever serves.
    pub(super) fn names_are_well(&self, expected: &[&str]) {
        let names = self.our_names();
        let expected: BTreeSet<String> = expected.iter().map(|address| (*address).to_owned()).collect();
        match names.as_slice() {
            [name] if name.addresses == expected => {}
            _ => self.violated(format!("when all is quiet there are {names:?} instead of one that leads to {expected:?}")),
        }
        let reserved = self.our_reservations();
        if !reserved.is_subset(&expected) {
            self.violated(format!("when all is quiet {reserved:?} are reserved, and only {expected:?} may be"));
        }
    }

    /// What must be true when the cluster is gone.
    pub(super) fn nothing_is_left_in_dns(&self) {
        let (names, reserved) = (self.our_names(), self.our_reservations());
        if !names.is_empty() || !reserved.is_empty() {
            self.violated(format!("{names:?} and {reserved:?} are left"));
        }
        let theirs = self.names().into_iter().find(|name| name.label == FOREIGN_NAME);
        let kept = theirs.is_some_and(|name| name.addresses == BTreeSet::from([FOREIGN_ADDRESSES[0].to_owned()]));
        if !kept || !FOREIGN_ADDRESSES.iter().all(|ip| self.reservations().contains(*ip)) {
            self.violated("what people made is gone".to_owned());
        }
    }
}
