//! Where a cluster's API server is reached, and how that address comes to be. Used by the spec of a cluster and by the slices of Cluster API.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{definitions::leave_description_to_the_field, number, text::given};

/// A host and a port.
///
/// Programs written in Go send an empty host and port 0 when they mean nothing; both are read as not given and never written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiEndpoint {
    /// DNS name or address of the API server.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 512))]
    pub host: Option<String>,
    /// Port of the API server; that of the Cluster if not given, else 6443.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "number::port")]
    pub port: Option<u16>,
}

impl ApiEndpoint {
    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        self.host.is_none() && self.port.is_none()
    }

    /// Reads an optional endpoint; one without host and port was not given.
    pub(crate) fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Ok(Option::<Self>::deserialize(deserializer)?.filter(|endpoint| !endpoint.is_empty()))
    }
}

/// How the API server's address comes to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = leave_description_to_the_field)]
pub enum EndpointMode {
    /// A name in MAAS's DNS that lists the healthy machines of the control plane.
    #[default]
    #[serde(rename = "DNS")]
    Dns,
    /// An address reserved in MAAS that the machines of the control plane hand to each other.
    #[serde(rename = "VIP")]
    Vip,
    /// The address a hosted control plane publishes on the Cluster.
    Hosted,
}

/// How a cluster's API server is reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.mode) || self.mode != 'VIP' || (has(self.vip) && has(self.vip.subnet) && self.vip.subnet != '')")
        .message("mode VIP needs vip.subnet: give the subnet of MAAS in which an address is reserved"),
    validation = Rule::new("!has(self.vip) || (has(self.mode) && self.mode == 'VIP')")
        .message("vip is only used with mode VIP: set mode to VIP, or remove vip")
)]
pub struct EndpointSettings {
    /// How the address comes to be; `DNS` if not given. `DNS`: a name in MAAS's DNS for the healthy machines of the control plane. `VIP`: an address
    /// reserved in MAAS, moved between the machines by a program of the bootstrap configuration such as kube-vip. `Hosted`: the address that a
    /// hosted control plane publishes on the Cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<EndpointMode>,
    /// Seconds that name servers may keep the DNS record; 10 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub time_to_live: Option<u32>,
    /// The reserved address, with mode `VIP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip: Option<Vip>,
    /// Which address of a control-plane machine is published; its first one if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<AddressChoice>,
}

/// An address reserved in MAAS for the API server. A plain user of MAAS may reserve one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.address) || self.address == '' || isIP(self.address)")
        .message("address is not an IP address: write for example 10.0.0.5"),
    validation = Rule::new("!has(self.address) || !has(self.subnet) || !isIP(self.address) || !isCIDR(self.subnet) || cidr(self.subnet).containsIP(self.address)")
        .message("address lies outside subnet: give an address of that subnet")
)]
pub struct Vip {
    /// The subnet of MAAS in which the address is reserved, by CIDR or name.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 256))]
    pub subnet: Option<String>,
    /// The address; MAAS chooses a free one if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 45))]
    pub address: Option<String>,
}

/// Which address of a machine with several of them is published. Everything that is given must fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddressChoice {
    /// Name of the network interface in MAAS, such as `eth0` or `bond0`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 63))]
    pub interface: Option<String>,
    /// A tag of the network interface in MAAS.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 256))]
    pub tag: Option<String>,
    /// Subnets, by CIDR; an address in an earlier one is preferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 64)))]
    #[x_kube(validation = Rule::new("self.all(subnet, isCIDR(subnet))").message("every subnet is written as a CIDR, for example 10.0.0.0/24"))]
    pub subnets: Vec<String>,
}
