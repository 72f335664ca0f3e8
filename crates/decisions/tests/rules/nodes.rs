//! Which node is a machine's.

use decisions::node::{Names, Nodes, SeenNode};
use std::net::IpAddr;

fn found(hostname: &str, fqdn: &str, nodes: &[&str], of_another: &[&str]) -> Option<String> {
    let place: IpAddr = [10, 0, 0, 1].into();
    let nodes = nodes.iter().map(|name| ((*name).to_owned(), SeenNode { addresses: vec![place], ..SeenNode::default() })).collect();
    Names::new(hostname, fqdn, &[place]).find(&nodes, |name| of_another.contains(&name)).map(|(name, _)| name.to_owned())
}

#[test]
fn s22_a_node_is_found_by_host_upper_case_fqdn_and_short_name() {
    for (hostname, fqdn, nodes, expected) in [
        ("worker", "worker.maas", &["other", "worker"][..], Some("worker")),
        ("Worker-A", "Worker-A.MAAS", &["worker-a"][..], Some("worker-a")),
        ("worker", "worker.maas", &["worker.maas"][..], Some("worker.maas")),
        ("worker", "Worker.Maas.", &["worker.maas"][..], Some("worker.maas")),
        ("worker.maas", "worker.maas", &["worker"][..], Some("worker")),
        ("worker", "worker.maas", &["worker.example.com"][..], Some("worker.example.com")),
        ("worker", "worker.maas", &["worker2", "worker-2.maas", "my.worker.maas"][..], None),
        ("worker", "worker.maas", &[][..], None),
        ("", "", &["worker", ".worker"][..], None),
    ] {
        assert_eq!(found(hostname, fqdn, nodes, &[]).as_deref(), expected, "{hostname} {fqdn} {nodes:?}");
    }
}

#[test]
fn s22_of_two_names_the_exact_one_counts() {
    assert_eq!(found("worker", "worker.maas", &["worker", "worker.maas"], &[]).as_deref(), Some("worker"));
    assert_eq!(found("worker", "worker.maas", &["worker.a", "worker.maas"], &[]).as_deref(), Some("worker.maas"));
}

#[test]
fn s22_a_node_of_another_domain_counts_only_without_doubt() {
    assert_eq!(found("worker", "worker.maas", &["worker.a", "worker.b"], &[]), None);
    assert_eq!(found("worker", "worker.maas", &["worker.a", "worker.b"], &["worker.b"]).as_deref(), Some("worker.a"));
    assert_eq!(found("worker", "worker.maas", &["worker.b"], &["worker.b"]), None);
}

#[test]
fn a_node_of_another_domain_is_somebody_elses_unless_it_is_where_the_machine_is() {
    let node = |addresses: &[[u8; 4]]| {
        let addresses = addresses.iter().map(|address| (*address).into()).collect();
        [("worker.elsewhere".to_owned(), SeenNode { addresses, ..SeenNode::default() })].into()
    };
    let is_found = |machine: &[[u8; 4]], nodes: &Nodes| {
        let addresses: Vec<IpAddr> = machine.iter().map(|address| (*address).into()).collect();
        Names::new("worker", "worker.maas", &addresses).find(nodes, |_| false).is_some()
    };
    assert!(is_found(&[[10, 0, 0, 1], [10, 1, 0, 1]], &node(&[[192, 0, 2, 1], [10, 1, 0, 1]])));
    for (machine, nodes) in [(&[[10, 0, 0, 1]][..], node(&[[10, 0, 0, 2]])), (&[[10, 0, 0, 1]][..], node(&[])), (&[][..], node(&[]))] {
        assert!(!is_found(machine, &nodes), "{nodes:?}");
    }
}
