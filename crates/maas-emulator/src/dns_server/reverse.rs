//! The reverse zones of a subnet. A zone ends at a whole label: an octet of IPv4, a hexadecimal digit of IPv6. A subnet between two
//! labels gets several zones; one smaller than the last label lies in the zone of its neighbours.

use std::net::IpAddr;

use hickory_proto::rr::Name;
use ipnet::IpNet;

/// The origins of the zones that hold the names of this subnet's addresses.
pub fn origins(subnet: IpNet) -> Vec<Name> {
    let (label_bits, longest) = if subnet.addr().is_ipv4() { (8, 24) } else { (4, 124) };
    let whole = subnet.prefix_len().next_multiple_of(label_bits).min(longest);
    let kept = usize::from(whole / label_bits);
    let name_of = |network: IpNet| {
        let full = Name::from(network.addr());
        full.trim_to(kept + 2)
    };
    if whole < subnet.prefix_len() {
        return IpNet::new(subnet.addr(), whole).map(|network| name_of(network.trunc())).into_iter().collect();
    }
    match subnet {
        IpNet::V4(subnet) => subnet.subnets(whole).map(|parts| parts.map(|part| name_of(part.into())).collect()).unwrap_or_default(),
        IpNet::V6(subnet) => subnet.subnets(whole).map(|parts| parts.map(|part| name_of(part.into())).collect()).unwrap_or_default(),
    }
}

/// The name under which the names of an address are found.
pub fn name(address: IpAddr) -> Name {
    Name::from(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_end_at_whole_labels_of_the_address() {
        let table = [
            ("10.20.0.0/24", vec!["0.20.10.in-addr.arpa."]),
            ("10.20.0.64/26", vec!["0.20.10.in-addr.arpa."]),
            ("10.20.4.0/23", vec!["4.20.10.in-addr.arpa.", "5.20.10.in-addr.arpa."]),
            ("10.20.0.0/16", vec!["20.10.in-addr.arpa."]),
            ("10.0.0.0/8", vec!["10.in-addr.arpa."]),
            ("2001:db8::/32", vec!["8.b.d.0.1.0.0.2.ip6.arpa."]),
            ("2001:db8:a:b::/63", vec!["a.0.0.0.a.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.", "b.0.0.0.a.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa."]),
        ];
        for (subnet, expected) in table {
            let subnet: IpNet = subnet.parse().unwrap();
            let found: Vec<String> = origins(subnet.trunc()).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{subnet}");
        }
    }

    #[test]
    fn no_subnet_has_more_zones_than_a_label_has_values() {
        for length in 0..=32 {
            assert!(origins(IpNet::new([10, 0, 0, 0].into(), length).unwrap().trunc()).len() <= 128, "/{length}");
        }
        for length in 0..=128 {
            assert!(origins(IpNet::new("2001:db8::".parse().unwrap(), length).unwrap().trunc()).len() <= 8, "/{length}");
        }
    }
}
