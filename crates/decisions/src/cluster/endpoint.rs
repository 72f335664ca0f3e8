//! Where a cluster's API server is to be reached, and who sees to it.

use std::net::IpAddr;

use api::{EndpointIntentRead, EndpointMode, names};

use super::facts::Facts;

/// The port of an API server when nothing is said.
const DEFAULT_PORT: u16 = 6443;
/// The longest first label of a name in MAAS's DNS.
const LONGEST_LABEL: usize = 63;
const SUFFIX_DIGITS: usize = 6;

/// Where a cluster's API server is to be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// By a name in MAAS's DNS, which we write.
    Dns {
        /// The whole name.
        name: String,
        /// Where the name comes from.
        origin: Origin,
    },
    /// At an address that we reserve.
    Vip,
    /// At a host that somebody else sees to: MAAS's network is left alone.
    Elsewhere {
        /// The host.
        host: String,
    },
    /// Somebody else says where, and has not yet.
    Awaited,
}

/// Where the name of a record comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// We wrote it down before there was a record.
    Ours,
    /// Somebody asked for exactly this name. A record that is there already is used, and stays.
    Asked,
    /// The Go provider made it. It is taken over.
    GoProvider,
    /// The object was copied from the one whose name it is.
    Copied,
    /// It is new.
    New,
}

impl Facts {
    /// Where the API server is to be reached.
    pub fn endpoint(&self) -> Endpoint {
        let object = &self.object;
        let given = || object.spec.endpoint_host().map(str::to_owned);
        let of_cluster = || self.cluster.as_ref()?.control_plane_endpoint.as_ref()?.host.clone();
        let elsewhere = |host: Option<String>| host.map_or(Endpoint::Awaited, |host| Endpoint::Elsewhere { host });
        if self.is_annotated(names::CUSTOM_ENDPOINT) {
            return elsewhere(given().or_else(of_cluster));
        }
        match object.spec.endpoint_mode() {
            EndpointMode::Hosted => elsewhere(of_cluster()),
            EndpointMode::Vip => Endpoint::Vip,
            EndpointMode::Dns => self.dns_endpoint(of_cluster().or_else(given)),
        }
    }

    fn dns_endpoint(&self, asked_for: Option<String>) -> Endpoint {
        if let Some(name) = self.intent().and_then(|intent| intent.name) {
            return Endpoint::Dns { name, origin: Origin::Ours };
        }
        if let Some(name) = self.name_of_go_provider() {
            return Endpoint::Dns { name, origin: Origin::GoProvider };
        }
        match asked_for {
            Some(host) => match self.name_in_domain(&host) {
                Some(name) => {
                    let copied = matches!(api::EndpointIntent::of(&self.object.metadata), EndpointIntentRead::Copied(other) if other.name.as_deref() == Some(&*name));
                    Endpoint::Dns { name, origin: if copied { Origin::Copied } else { Origin::Asked } }
                }
                None => Endpoint::Elsewhere { host },
            },
            None => Endpoint::Dns { name: self.new_name(), origin: Origin::New },
        }
    }

    /// The name the Go provider made for the object, unless we have taken it over.
    pub(super) fn name_of_go_provider(&self) -> Option<String> {
        if api::EndpointIntent::of(&self.object.metadata) != EndpointIntentRead::None || self.is_annotated(names::CUSTOM_ENDPOINT) {
            return None;
        }
        let status = self.object.status.as_ref();
        let recorded = status.and_then(|status| status.network.as_ref()?.dns_name.clone());
        let finalizers = self.object.metadata.finalizers.as_deref().unwrap_or_default();
        let left_by_it = finalizers.iter().any(|name| name == names::LEGACY_CLUSTER_FINALIZER) || self.is_annotated(names::LEGACY_DNS_HASH);
        // Status does not survive a move; the spec does.
        let moved = || self.object.spec.endpoint_host().filter(|_| left_by_it).map(str::to_owned);
        recorded.or_else(moved).and_then(|name| self.name_in_domain(&name))
    }

    /// The host as a name we can write: one label below the cluster's domain.
    fn name_in_domain(&self, host: &str) -> Option<String> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if host.parse::<IpAddr>().is_ok() {
            return None;
        }
        let (label, domain) = host.split_once('.')?;
        (!label.is_empty() && domain == self.object.spec.dns_domain.to_ascii_lowercase()).then_some(host)
    }

    /// The same name at every attempt, whatever got lost between them, and another one for a cluster made anew.
    fn new_name(&self) -> String {
        let cluster = self.cluster_name().unwrap_or_default();
        let namespace = self.object.metadata.namespace.as_deref().unwrap_or_default();
        let uid = self.cluster.as_ref().and_then(|cluster| cluster.metadata.uid.as_deref()).unwrap_or_default();
        let suffix = hash(&format!("{namespace}/{cluster}/{uid}")) & 0xff_ffff;
        let label: String = cluster.to_ascii_lowercase().replace('.', "-").chars().take(LONGEST_LABEL - SUFFIX_DIGITS - 1).collect();
        format!("{}-{suffix:06x}.{}", label.trim_end_matches('-'), self.object.spec.dns_domain)
    }

    /// The port of the API server.
    pub fn port(&self) -> u16 {
        let given = self.object.spec.control_plane_endpoint.as_ref().and_then(|endpoint| endpoint.port);
        let of_cluster = self.cluster.as_ref();
        let endpoint = of_cluster.and_then(|cluster| cluster.control_plane_endpoint.as_ref()?.port);
        given.or(endpoint).or_else(|| of_cluster?.api_server_port).unwrap_or(DEFAULT_PORT)
    }
}

/// FNV-1a: small, and the same everywhere and for ever.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
