//! Fleet files that are wrong: each is refused in one line that says where and why.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use maas_emulator::{Emulator, Fleet};

/// Lists with their entries, each of which is wrong in line 4, and the words for it.
fn each_is_refused(fleets: &[(&str, &str, &str)]) {
    for (list, entries, words) in fleets {
        let fleet = Fleet::from_yaml(&format!("{list}:\n{entries}\n")).unwrap();
        let refused = Emulator::new(fleet, maas_emulator::Options::default()).err().map(|error| error.to_string());
        assert_eq!(refused, Some(format!("line 4: {words}")), "{entries}");
    }
}

#[test]
fn times_and_statuses_that_are_none_are_refused_with_their_line() {
    for bad in ["[.nan, 1]", "[5, 1]", "[-5, 1]", "[1, .inf]"] {
        let refused = Fleet::from_yaml(&format!("zones: []\ntimings:\n  deploy: {bad}\n")).unwrap_err();
        assert!(refused.line == Some(3) && refused.to_string().contains("not the shortest and the longest time"), "{bad}: {refused}");
    }
    for status in ["0", "42", "99", "1000"] {
        let fleet = format!("zones: []\nfaults:\n  - call: {{harm: {{status: {{status: {status}}}}}}}\n");
        let refused = Fleet::from_yaml(&fleet).unwrap_err();
        assert!(refused.line == Some(3) && refused.to_string().contains("is not a status from 200 to 599"), "{status}: {refused}");
    }
    let syntax = Fleet::from_yaml("zones: []\nmachines: [{hostname: a}\n").unwrap_err().to_string();
    assert!(!syntax.contains("error: line"), "{syntax}");
}

#[test]
fn values_that_cannot_be_read_are_refused_by_line_and_field() {
    let no_number = "this is not a whole number from 0 to 4294967295";
    for (fleet, line, field, words) in [
        ("machines:\n- hostname: a\n  cpus: -4", 3, "machines: number 1: cpus", no_number),
        ("machines:\n- hostname: a\n- {hostname: b, count: -2}", 3, "machines: number 2: count", no_number),
        (
            "machines:\n- hostname: a\n  interfaces: [{}, {links: [{mode: auto, subnet: -1}]}]",
            3,
            "machines: number 1: interfaces: number 2: links: number 1: subnet",
            no_number,
        ),
        (
            "machines:\n- hostname: a\n  disks:\n  - size: -1",
            4,
            "machines: number 1: disks: number 1: size",
            "this is not a whole number from 0 to 18446744073709551615",
        ),
        ("zones: []\nvm_hosts: [{name: a, cores: -1}]", 2, "vm_hosts: number 1: cores", no_number),
        ("zones: []\nsubnets: [{cidr: nonsense}]", 2, "subnets: number 1: cidr", "invalid IP address syntax"),
    ] {
        let refused = Fleet::from_yaml(fleet).unwrap_err();
        assert_eq!((refused.line, refused.field.as_str(), refused.problem.as_str()), (Some(line), field, words), "{fleet}");
    }
}

#[test]
fn people_and_places_that_contradict_each_other_are_refused_by_line_and_field() {
    each_is_refused(&[
        ("zones", "- name: a\n- {name: b}\n- name: a", "zones: name: \"a\" is there twice"),
        ("zones", "- name: a\n- {name: b}\n- description: c", "zones: name: it has none"),
        ("zones", "- {name: a, id: 5}\n- {name: b}\n- {name: c, id: 5}", "zones: id: 5 is the id of another one too"),
        ("pools", "- name: a\n- {name: b}\n- name: a", "pools: name: \"a\" is there twice"),
        ("domains", "- name: a\n- {name: b}\n- name: a", "domains: name: \"a\" is there twice"),
        ("users", "- name: a\n- {name: b}\n- name: a", "users: name: \"a\" is there twice"),
        (
            "users",
            "- name: a\n  keys: [{key: 'c:t:s'}]\n- {name: b, keys: [{key: 'c:t:z'}]}",
            "users: b: keys: a has an API key of the same consumer and token",
        ),
        (
            "users",
            "- name: a\n  keys:\n  - key: 'c:t'",
            "users: a: keys: an API key has three parts with colons between them: consumer:token:secret",
        ),
        ("users", "- name: a\n  keys:\n  - key: 'c::s'", "users: a: keys: a part of the API key is empty: it is consumer:token:secret"),
    ]);
}

#[test]
fn machines_and_hosts_that_contradict_the_rest_are_refused_by_line_and_field() {
    each_is_refused(&[
        ("machines", "- hostname: a\n- cpus: 2\n  hostname: a", "machines: a: hostname: \"a\" is the name of another machine too"),
        (
            "machines",
            "- hostname: a02\n- cpus: 2\n  hostname: a\n  count: 2",
            "machines: a: hostname: \"a02\" is the name of another machine too",
        ),
        (
            "machines",
            "- hostname: a\n- cpus: 2\n  hostname: bad_host",
            "machines: bad_host: hostname: Host label cannot contain underscore: 'bad_host'.",
        ),
        (
            "machines",
            "- {hostname: a, system_id: abc123}\n- hostname: b\n  system_id: abc123",
            "machines: b: system_id: \"abc123\" is another machine's too",
        ),
        ("machines", "- hostname: a\n- hostname: b\n  count: 4000000000", "machines: b: count: at most 100000 machines of one kind"),
        (
            "machines",
            "- hostname: a\n- hostname: c\n- {hostname: b, interfaces: [{vlan: 77}]}",
            "machines: b: vlan: there is no VLAN with id 77 under fabrics",
        ),
        (
            "machines",
            "- hostname: a\n- hostname: b\n  interfaces: [{links: [{mode: auto, subnet: 99}]}]",
            "machines: b: links: subnet: there is no subnet with id 99 under subnets",
        ),
        (
            "machines",
            "- hostname: b\n  interfaces:\n  - {links: [{mode: static, subnet: 1, address: 192.0.2.7}]}",
            "machines: b: links: address: 192.0.2.7 is not inside 10.20.0.0/24",
        ),
        (
            "machines",
            "- {hostname: a, interfaces: [{links: [{mode: static, address: 10.20.0.7}]}]}\n- hostname: b\n  interfaces: [{links: [{mode: static, subnet: 1, address: 10.20.0.7}]}]",
            "machines: b: links: address: 10.20.0.7 is in use already",
        ),
        (
            "machines",
            "- hostname: a\n- hostname: b\n  image: ubuntu/nosuch\n  status: deployed",
            "machines: b: image: \"ubuntu/nosuch\" is not among images",
        ),
        (
            "machines",
            "- hostname: a\n- hostname: c\n- {hostname: b, interfaces: [{id: 4294967295}]}",
            "machines: b: interfaces: id: 4294967295 is more than 2147483647, the largest id there is",
        ),
        (
            "machines",
            "- hostname: a\n- hostname: c\n- {hostname: b, disks: [{partition_ids: [4294967295]}]}",
            "machines: b: disks: id: 4294967295 is more than 2147483647, the largest id there is",
        ),
        (
            "vm_hosts",
            "- name: a\n- name: c\n- {name: b, cpu_over_commit_ratio: -0.5}",
            "vm_hosts: b: cpu_over_commit_ratio: -0.5 is not from 0 to 10",
        ),
    ]);
}

#[test]
fn subnets_that_contradict_each_other_are_refused_by_line_and_field() {
    each_is_refused(&[
        (
            "subnets",
            "- cidr: 10.0.0.0/24\n- cidr: 10.1.0.0/24\n- cidr: 10.0.0.0/16",
            "subnets: 10.0.0.0/16: cidr: 10.0.0.0/24 has the same addresses",
        ),
        (
            "subnets",
            "- cidr: 10.0.0.0/24\n  dhcp: {start: 10.0.0.10, end: 10.0.0.20}\n  ranges: [{type: reserved, start: 10.0.0.20, end: 10.0.0.30}]",
            "subnets: 10.0.0.0/24: ranges: 10.0.0.20 to 10.0.0.30 shares addresses with 10.0.0.10 to 10.0.0.20",
        ),
        (
            "subnets",
            "- cidr: 10.0.0.0/24\n  ranges:\n  - {type: reserved, start: 10.0.0.20, end: 10.0.1.30}",
            "subnets: 10.0.0.0/24: ranges: 10.0.0.20 to 10.0.1.30 is not a range inside the subnet",
        ),
        (
            "subnets",
            "- cidr: 10.0.0.0/24\n  ranges:\n  - {type: reserved, start: 10.0.0.20, end: 10.0.0.30, user: nobody}",
            "subnets: 10.0.0.0/24: ranges: user: there is no user \"nobody\"",
        ),
    ]);
}
