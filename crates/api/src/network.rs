//! What a machine's spec says about its network interfaces. Used by the spec of a machine.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{definitions::leave_description_to_the_field, text::given};

/// One fixed address of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.ip) || self.ip == '' || isIP(self.ip)")
        .message("ip is not an IP address: write for example 10.0.0.5"),
    validation = Rule::new("!has(self.cidr) || self.cidr == '' || isCIDR(self.cidr)")
        .message("cidr is not a subnet: write for example 10.0.0.0/24"),
    validation = Rule::new("!has(self.gateway) || self.gateway == '' || isIP(self.gateway)")
        .message("gateway is not an IP address: write for example 10.0.0.1"),
    validation = Rule::new("!has(self.ip) || !has(self.cidr) || !isIP(self.ip) || !isCIDR(self.cidr) || cidr(self.cidr).containsIP(self.ip)")
        .message("ip lies outside cidr: give an address of that subnet, or the subnet of that address"),
    validation = Rule::new("!has(self.gateway) || !has(self.cidr) || !isIP(self.gateway) || !isCIDR(self.cidr) || cidr(self.cidr).containsIP(self.gateway)")
        .message("gateway lies outside cidr: give the router's address in that subnet")
)]
pub struct StaticIp {
    /// The address. May be left out for a pool or another program to fill in; the machine waits until it is there.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 45))]
    pub ip: Option<String>,
    /// The subnet of MAAS the address belongs to, such as `10.0.0.0/24`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 64))]
    pub cidr: Option<String>,
    /// A pool of addresses of Cluster API that the address is claimed from while `ip` is empty. What it gives is written to `ip`, and to `cidr` if
    /// that is empty; it goes back to the pool with the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_ref: Option<AddressPool>,
    /// The subnet's gateway. Only checked against `cidr`: MAAS takes the gateway from its subnet.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(length(max = 45))]
    pub gateway: Option<String>,
    /// Name servers. Kept for manifests that give them: MAAS takes name servers from its subnet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 45)))]
    pub nameservers: Vec<String>,
}

/// A pool of addresses, whose provider fulfils claims of Cluster API's address management.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddressPool {
    /// Its API group, such as `ipam.cluster.x-k8s.io`.
    #[schemars(length(min = 1, max = 253))]
    pub api_group: String,
    /// Its kind, such as `InClusterIPPool` or `GlobalInClusterIPPool`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// How one network interface of a machine is connected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.mode != 'static' || has(self.ip)")
        .message("a static link needs ip: give an address of the subnet, or choose mode auto to let MAAS choose one"),
    validation = Rule::new("self.mode == 'static' || !has(self.ip)").message("ip is only used with mode static: set mode to static, or remove ip"),
    validation = Rule::new("!has(self.ip) || isIP(self.ip)").message("ip is not an IP address: write for example 10.0.0.5"),
    validation = Rule::new("!has(self.ip) || !isIP(self.ip) || !isCIDR(self.subnet) || cidr(self.subnet).containsIP(self.ip)")
        .message("ip lies outside subnet: give an address of that subnet")
)]
pub struct NetworkInterface {
    /// The interface's name in MAAS, such as `eth0` or `enp3s0`.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The subnet of MAAS it is linked to, by CIDR or name.
    #[schemars(length(min = 1, max = 256))]
    pub subnet: String,
    /// How it gets its address: `auto` (MAAS chooses one and keeps it), `static` (the one in `ip`), `dhcp`, or `link_up` (none).
    pub mode: LinkMode,
    /// The address, with mode `static` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    pub ip: Option<String>,
}

/// How an interface gets its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = leave_description_to_the_field)]
pub enum LinkMode {
    /// MAAS chooses an address of the subnet and keeps it for the machine.
    Auto,
    /// The address that is given.
    Static,
    /// By DHCP at boot.
    Dhcp,
    /// Connected, without an address.
    LinkUp,
}
