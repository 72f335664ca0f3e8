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
    for bad in ["-1", ".nan", ".inf"] {
        let refused = Fleet::from_yaml(&format!("zones: []\ntimings:\n  deploy_timeout: {bad}\n")).unwrap_err();
        assert!(refused.line == Some(3) && refused.to_string().contains("timings: deploy_timeout: "), "{bad}: {refused}");
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
fn names_and_types_that_maas_would_not_take_are_refused_by_line_and_field() {
    let letters = "is not made of letters, digits, dots, hyphens and underscores";
    let place = "is not made of letters, digits and underscores, after the first also hyphens and spaces";
    let long = "a".repeat(92);
    each_is_refused(&[
        ("zones", "- name: a\n- {name: b}\n- name: a.b", &format!("zones: name: \"a.b\" {place}")),
        ("pools", "- name: a\n- {name: b}\n- name: -a", &format!("pools: name: \"-a\" {place}")),
        ("tags", "- name: a\n- {name: b}\n- name: a b", "tags: name: \"a b\" is not made of letters, digits, hyphens and underscores"),
        ("domains", "- name: a\n- {name: b}\n- name: 'a b..c'", "domains: name: Invalid domain name: a b..c."),
        ("domains", &format!("- name: a\n- {{name: b}}\n- name: {long}"), &format!("domains: name: Invalid domain name: {long}.")),
        ("machines", "- hostname: a\n- hostname: b\n  system_id: a/b", "machines: b: system_id: \"a/b\" is not made of letters and digits"),
        (
            "machines",
            "- hostname: a\n- hostname: c\n- {hostname: b, architecture: z80/generic}",
            "machines: b: architecture: \"z80/generic\" is not an architecture such as amd64/generic; there are amd64, arm64, armhf, i386, ppc64el, riscv64, s390x",
        ),
        (
            "machines",
            "- hostname: a\n- hostname: c\n- {hostname: b, annotations: {'a b': c}}",
            &format!("machines: b: annotations: \"a b\" {letters}"),
        ),
        (
            "machines",
            "- hostname: a\n- hostname: c\n- {hostname: b, interfaces: [{name: eth1}, {}]}",
            "machines: b: interfaces: name: \"eth1\" is there twice",
        ),
        (
            "machines",
            "- hostname: a\n- hostname: c\n- {hostname: b, disks: [{id: 7}, {id: 7}]}",
            "machines: b: disks: id: 7 is the id of another one too",
        ),
        (
            "machines",
            "- {hostname: a, disks: [{partition_ids: [8]}]}\n- hostname: c\n- {hostname: b, disks: [{partition_ids: [8]}]}",
            "machines: b: disks: id: 8 is the id of another one too",
        ),
        (
            "images",
            "- {name: ubuntu/noble, architecture: amd64/ga-24.04}\n- {name: ubuntu/jammy, architecture: amd64/ga-22.04}\n- {name: ubuntu/jammy, architecture: amd64}",
            "images: ubuntu/jammy: architecture: \"amd64\" is not an architecture such as amd64/generic; there are amd64, arm64, armhf, i386, ppc64el, riscv64, s390x",
        ),
        (
            "images",
            "- {name: ubuntu/noble, architecture: amd64/ga-24.04}\n- {name: a, architecture: amd64/generic, uploaded: true}\n- {name: ubuntu/noble, architecture: amd64/ga-24.04}",
            "images: name: it is there twice for one architecture",
        ),
        ("settings", "  maas_name: a\n  theme: b\n  nosuch: c", "settings: nosuch: MAAS has no setting \"nosuch\""),
        (
            "settings",
            "  maas_name: a\n  theme: b\n  node_timeout: -7",
            "settings: node_timeout: Ensure this value is greater than or equal to 1.",
        ),
        (
            "rack",
            "  interfaces: [{mac: '52:54:00:00:00:01'}]\nmachines:\n- {hostname: b, interfaces: [{mac: '52:54:00:00:00:01'}]}",
            "machines: b: mac: 52:54:00:00:00:01 is rack's too",
        ),
        (
            "vm_hosts",
            "- name: a\n- name: c\n- {name: b, type: qemu}",
            "vm_hosts: b: type: \"qemu\" is not a type of VM host; there are lxd, virsh",
        ),
    ]);
    let magic = Fleet::from_yaml("machines: [{hostname: b, power: {type: magic}}]").unwrap();
    let refused = Emulator::new(magic, maas_emulator::Options::default()).err().unwrap().to_string();
    assert!(
        refused.starts_with("line 1: machines: b: power: type: \"magic\" is no way to switch power; MAAS knows amt, apc,"),
        "{refused}"
    );
}

#[test]
fn ids_that_are_made_up_come_after_those_that_are_given() {
    let fleet = Fleet::from_yaml("machines: [{hostname: a}, {hostname: b, disks: [{id: 1, partition_ids: [1, 2]}]}]").unwrap();
    let emulator = Emulator::new(fleet, maas_emulator::Options::default()).unwrap();
    let ids: Vec<u32> = emulator.world(|world| world.all_machines().flat_map(|machine| &machine.disks).map(|disk| disk.id).collect());
    assert_eq!(ids, [2, 1]);
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
