//! What a machine is called and how it is wired. The rack wires its own machines; whoever installs one says how (a MAAS, through
//! [`crate::Control::install`]).

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

use crate::network::{GATEWAY, MACHINES_PREFIX, Place};

/// The domain of machines nobody gave another one.
const LAB_DOMAIN: &str = "lab";
/// The kernel takes no longer name for a link.
const LONGEST_LINK: usize = 15;

/// Name and network of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wiring {
    /// Its host name, without a domain.
    pub hostname: String,
    /// Its domain.
    pub domain: String,
    /// Its network interfaces; all hang on the lab's bridge.
    pub interfaces: Vec<Wire>,
    /// Where it sends what is not for its own networks; the lab's gateway takes this address.
    pub gateway: Option<IpAddr>,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wire {
    /// Its name on the machine.
    pub name: String,
    /// Its hardware address.
    pub hardware_address: String,
    /// Its addresses.
    pub addresses: Vec<IpNet>,
}

/// A new beginning for a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Installation {
    /// Name and network.
    pub wiring: Wiring,
    /// What the first boot reads.
    pub user_data: Vec<u8>,
    /// The disk is memory: it is empty whenever the power was gone, and the machine then begins anew.
    pub in_memory: bool,
}

impl Wiring {
    /// How the rack wires a machine by itself.
    pub(crate) fn of_place(name: &str, place: Place) -> Self {
        let address = Ipv4Net::new_assert(place.address(), MACHINES_PREFIX);
        Self {
            hostname: name.to_owned(),
            domain: LAB_DOMAIN.to_owned(),
            interfaces: vec![Wire { name: "eth0".to_owned(), hardware_address: place.hardware_address(), addresses: vec![address.into()] }],
            gateway: Some(GATEWAY.into()),
        }
    }

    /// With what is missing: a machine whose addresses all come from DHCP gets the one of its place, and links have names the kernel takes.
    pub(crate) fn completed(mut self, place: Place) -> Self {
        let usual = Self::of_place(&self.hostname, place);
        if self.interfaces.is_empty() {
            self.interfaces.clone_from(&usual.interfaces);
        }
        if self.interfaces.iter().all(|wire| wire.addresses.is_empty()) {
            self.gateway = usual.gateway;
            if let (Some(first), Some(own)) = (self.interfaces.first_mut(), usual.interfaces.into_iter().next()) {
                first.addresses = own.addresses;
            }
        }
        // Bridges and bonds carry the hardware address of what is below them; on one wire it must be one link's.
        let addressed: Vec<String> =
            self.interfaces.iter().filter(|wire| !wire.addresses.is_empty()).map(|wire| wire.hardware_address.clone()).collect();
        self.interfaces.retain(|wire| !wire.addresses.is_empty() || !addressed.contains(&wire.hardware_address));
        for (number, wire) in self.interfaces.iter_mut().enumerate() {
            let plain = wire.name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'));
            if !plain || wire.name.is_empty() || wire.name.len() > LONGEST_LINK || wire.name == "lo" {
                wire.name = format!("eth{number}");
            }
        }
        self
    }

    /// Its addresses of version 4, the first one first.
    pub(crate) fn addresses(&self) -> Vec<Ipv4Addr> {
        let all = self.interfaces.iter().flat_map(|wire| &wire.addresses);
        all.filter_map(|address| if let IpNet::V4(address) = address { Some(address.addr()) } else { None }).collect()
    }

    /// What a machine calls itself towards others. In the lab's own domain that is the bare name.
    pub(crate) fn full_name(&self) -> String {
        if self.domain.is_empty() || self.domain == LAB_DOMAIN {
            self.hostname.clone()
        } else {
            format!("{}.{}", self.hostname, self.domain)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(name: &str, hardware_address: &str, addresses: &[&str]) -> Wire {
        Wire {
            name: name.to_owned(),
            hardware_address: hardware_address.to_owned(),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
        }
    }

    fn wiring(interfaces: Vec<Wire>) -> Wiring {
        Wiring { hostname: "a".to_owned(), domain: "maas".to_owned(), interfaces, gateway: None }.completed(Place(2))
    }

    #[test]
    fn a_machine_of_which_no_address_is_known_gets_that_of_its_place() {
        let completed = wiring(vec![wire("eth0", "52:54:00:00:00:01", &[]), wire("eth1", "52:54:00:00:00:02", &[])]);
        assert_eq!(completed.addresses(), [Place(2).address()]);
        assert_eq!(completed.gateway, Some(GATEWAY.into()));
        assert_eq!(completed.interfaces[0].hardware_address, "52:54:00:00:00:01");
    }

    #[test]
    fn what_is_below_a_bridge_is_not_wired_a_second_time() {
        let completed = wiring(vec![wire("eth0", "52:54:00:00:00:01", &[]), wire("br-eth0", "52:54:00:00:00:01", &["10.20.0.5/16"])]);
        assert_eq!(completed.interfaces, [wire("br-eth0", "52:54:00:00:00:01", &["10.20.0.5/16"])]);
    }

    #[test]
    fn names_the_kernel_would_refuse_are_replaced() {
        let completed = wiring(vec![wire("a-name-that-is-too-long", "52:54:00:00:00:01", &["10.20.0.5/16"])]);
        assert_eq!(completed.interfaces[0].name, "eth0");
        assert_eq!(completed.full_name(), "a.maas");
    }
}
