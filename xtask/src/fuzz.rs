//! `cargo xtask fuzz`: requests made by chance from the API's own vocabulary, with values people and programs get wrong. The emulator
//! answers all of them or has a bug: a panic ends the run with the request that caused it, and its seed repeats the run.

use std::cell::RefCell;

use anyhow::bail;
use bytes::Bytes;
use clap::Args;
use fastrand::Rng;
use futures::FutureExt as _;
use http::Request;
use maas_emulator::{Clock, Emulator, Fleet, Options};

use crate::output::{data, say};

/// How much nonsense.
#[derive(Debug, Args)]
pub struct Arguments {
    /// How many requests
    #[arg(long, default_value_t = 1_000_000)]
    inputs: u64,
    /// What chance begins with
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const FLEET: &str = "
users:
  - {name: admin, superuser: true, keys: [{key: 'ac:at:as'}]}
  - {name: alice, keys: [{key: 'lc:lt:ls'}]}
zones: [{name: az1}]
pools: [{name: k8s}]
domains: [{name: maas}, {name: k8s.example}]
spaces: [{name: one}]
tags: [{name: worker}]
machines:
  - {hostname: ready-, count: 4, zone: az1, tags: [worker]}
  - {hostname: fresh, status: new, commissioned: false}
  - {hostname: mine, status: deployed, owner: admin, image: ubuntu/jammy}
  - {hostname: hers, status: failed_deployment, owner: alice}
  - {hostname: hand, power: {type: manual}}
vm_hosts: [{name: host, machine: mine, tags: [virtual]}]
timings: {deploy: [0, 1], commission: [0, 1], test: [0, 1], erase: [0, 1], rescue: [0, 1], power_on: [0, 0], power_off: [0, 1]}
";

/// After so many requests the world begins anew, so that it does not fill up with what was created.
const WORLD: u64 = 2_000;

/// Fields that operations read.
const KEYS: &[&str] = &[
    "name",
    "hostname",
    "system_id",
    "id",
    "zone",
    "pool",
    "tags",
    "not_tags",
    "mem",
    "cpu_count",
    "arch",
    "storage",
    "interfaces",
    "subnets",
    "devices",
    "agent_name",
    "comment",
    "dry_run",
    "verbose",
    "distro_series",
    "hwe_kernel",
    "user_data",
    "ephemeral_deploy",
    "register_vmhost",
    "install_kvm",
    "bridge_all",
    "bridge_type",
    "bridge_fd",
    "erase",
    "scripts",
    "force",
    "machines",
    "nodes",
    "add",
    "remove",
    "mac_addresses",
    "mac_address",
    "architecture",
    "power_type",
    "power_parameters_power_address",
    "commission",
    "deployed",
    "status",
    "owner",
    "fqdn",
    "domain",
    "ip_addresses",
    "address_ttl",
    "ttl",
    "rrtype",
    "rrdata",
    "ip",
    "subnet",
    "mac",
    "cidr",
    "gateway_ip",
    "vlan",
    "vid",
    "start_ip",
    "end_ip",
    "type",
    "mode",
    "ip_address",
    "parent",
    "parents",
    "level",
    "limit",
    "before",
    "after",
    "all",
    "key",
    "username",
    "email",
    "password",
    "is_superuser",
    "token_key",
    "value",
    "storage_layout",
    "testing_scripts",
    "power_address",
    "project",
    "cores",
    "memory",
    "pinned_cores",
    "skip_commissioning",
    "cpu_over_commit_ratio",
    "default_storage_pool",
    "decompose",
    "transfer_resources_to",
    "format",
    "filetype",
    "sha256",
    "size",
    "title",
    "tag",
    "stop_mode",
    "space",
    "include_ranges",
    "pod",
    "subarchitecture",
    "min_hwe_kernel",
    "swap_size",
    "cpu_speed",
    "memory_over_commit_ratio",
    "hugepages_backed",
    "mtu",
    "bond_miimon",
    "bridge_stp",
    "bond_mode",
    "link_speed",
    "interface_speed",
    "vlans",
    "fabric",
    "fabrics",
    "rdns_mode",
    "dns_servers",
    "managed",
    "dhcp_on",
    "authoritative",
    "default_gateway",
    "enable_hw_sync",
    "install_rackd",
    "secure_erase",
    "quick_erase",
    "node_timeout",
];

/// Values that mean something somewhere, and values nobody expects.
const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "true",
    "false",
    "perhaps",
    "az1",
    "default",
    "k8s",
    "worker",
    "ready-01",
    "mine",
    "fresh.maas",
    "amd64",
    "amd64/generic",
    "ubuntu/jammy",
    "jammy",
    "custom/x",
    "root:8(local),data:1",
    "root:big(",
    "8",
    ":",
    "(,)",
    "eth0:subnet_cidr=10.20.0.0/24",
    "a:name=eth0;b:ip=10.20.0.9",
    "a:b",
    "10.20.0.0/24",
    "10.20.0.5",
    "10.20.0.1",
    "::1",
    "2001:db8::/64",
    "0.0.0.0/0",
    "255.255.255.255",
    "10.20.0.100",
    "10.20.0.149",
    "52:54:00:00:00:09",
    "zz",
    "lxd",
    "virsh",
    "ipmi",
    "manual",
    "AUTO",
    "STATIC",
    "DHCP",
    "LINK_UP",
    "auto",
    "reserved",
    "dynamic",
    "DEBUG",
    "AUDIT",
    "99999999999999999999",
    "-0.5",
    "1e309",
    "NaN",
    "inf",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "-9223372036854775808",
    "340282366920938463463374607431768211455",
    "4294967295",
    "4294967296",
    "2147483647",
    "2147483648",
    "-2147483648",
    "65535",
    "65536",
    "4095",
    "-0",
    "+1",
    "1e308",
    "-1e308",
    "1e-400",
    "nan",
    "-inf",
    "0x10",
    "1_000",
    "٣",
    // Longer than a name of an interface in bytes, and cut within a letter.
    "béééééééé",
    "網路介面網路介面",
    "root:1e308,data:18446744073",
    "root:NaN",
    "root:-0",
    "10.20.0.0/0",
    "10.20.0.0/33",
    "10.20.0.0/4294967295",
    "10.20.0.0/-1",
    "255.255.255.255/32",
    "255.255.255.254/31",
    "::/0",
    "::/128",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
    "2001:db8::/129",
    "10.20.0.0",
    "10.20.0.255",
    "0.0.0.0",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db8::1",
    "2001:db8::ffff:ffff",
    "999999999T",
    "18446744073709551615K",
    "api.k8s.example",
    "*.maas",
    "@",
    "_a._tcp.maas",
    "SRV",
    "CNAME",
    "A",
    "TXT",
    "name:pxe",
    "cidr:10.20.0.0/24",
    "ip:10.20.0.3",
    "space:one",
    "vlan:5001",
    "flat",
    "lvm",
    "blank",
    "none",
    "smartctl-validate",
    "ssh-ed25519 AAAA",
    "wipe-disks",
    "\u{0}",
    "\u{1F600}",
    "é",
    "a b c",
    "a,b,,c",
    "../..",
    "'",
    "\"",
    "%",
    "&",
    "=",
    "\n",
];

/// Throws.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let mut chance = Rng::with_seed(arguments.seed);
    let mut statuses = std::collections::BTreeMap::<u16, u64>::new();
    let mut emulator = world(arguments.seed)?;
    let last: RefCell<String> = RefCell::default();
    for number in 0..arguments.inputs {
        if number % WORLD == 0 {
            emulator = world(arguments.seed + number)?;
        }
        let Some(request) = request(&mut chance, &emulator, number) else { continue };
        *last.borrow_mut() = format!("{} {} {:?} {:?}", request.method(), request.uri(), request.headers(), request.body());
        let answered = runtime.block_on(std::panic::AssertUnwindSafe(emulator.answer(request)).catch_unwind());
        match answered {
            Ok(Ok(answer)) => *statuses.entry(answer.status().as_u16()).or_default() += 1,
            Ok(Err(_)) => bail!("request {number} was cut off without a fault: {}", last.borrow()),
            Err(_) => bail!("request {number} of seed {} made the emulator panic: {}", arguments.seed, last.borrow()),
        }
        if chance.u8(..) == 0 {
            emulator.clock().advance(std::time::Duration::from_secs(chance.u64(0..7_200)));
        }
        if number % 100_000 == 99_999 {
            say(format!("{} requests", number + 1));
        }
    }
    data(format!("{} requests, no panic; answers by status: {statuses:?}", arguments.inputs));
    Ok(())
}

fn world(seed: u64) -> anyhow::Result<Emulator> {
    let clock = Clock::manual(jiff::Timestamp::from_second(1_800_000_000)?);
    Ok(Emulator::new(Fleet::from_yaml(FLEET)?, Options { clock, seed, ..Options::default() })?)
}

fn word(chance: &mut Rng) -> String {
    match chance.u8(0..10) {
        0 => chance.u64(..).to_string(),
        1 => (0..chance.usize(0..200)).map(|_| chance.char(..)).collect(),
        _ => VALUES[chance.usize(..VALUES.len())].to_owned(),
    }
}

/// An argument of a path: something that exists, mostly.
fn argument(chance: &mut Rng, emulator: &Emulator) -> String {
    let system_ids: Vec<String> = emulator.world(|world| world.all_machines().map(|machine| machine.system_id.clone()).collect());
    match chance.u8(0..8) {
        0..=3 if !system_ids.is_empty() => system_ids[chance.usize(..system_ids.len())].clone(),
        4..=5 => chance.u32(0..20).to_string(),
        6 => [u64::from(u32::MAX), u64::MAX, 0, 1 << 31, 1 << 32][chance.usize(..5)].to_string(),
        _ => percent_encoding::utf8_percent_encode(&word(chance), percent_encoding::NON_ALPHANUMERIC).to_string(),
    }
}

fn request(chance: &mut Rng, emulator: &Emulator, number: u64) -> Option<Request<Bytes>> {
    let operations: Vec<_> = maas_emulator::operations().collect();
    let (path, method, name) = operations[chance.usize(..operations.len())];
    let mut path: String = path
        .split("{}")
        .enumerate()
        .map(|(index, part)| if index == 0 { part.to_owned() } else { format!("{}{part}", argument(chance, emulator)) })
        .collect();
    if chance.u8(..) == 0 {
        path =
            (0..chance.usize(0..40)).map(|_| char::from(chance.u8(33..127))).filter(|letter| !"?#\"<>`{}\\^|".contains(*letter)).collect();
    }
    let pairs = |chance: &mut Rng| {
        let mut form = form_urlencoded::Serializer::new(String::new());
        for _ in 0..chance.usize(0..6) {
            let key = KEYS[chance.usize(..KEYS.len())];
            form.append_pair(key, &word(chance));
        }
        form.finish()
    };
    let mut query = if chance.bool() { pairs(chance) } else { String::new() };
    if let Some(name) = name.filter(|_| chance.u8(..) > 3) {
        query = format!("op={name}&{query}");
    }
    let method = if chance.u8(..) == 0 { ["HEAD", "PATCH", "OPTIONS", "PUT", "DELETE", "POST"][chance.usize(..6)] } else { method };
    let (content_type, body) = body(chance, pairs);
    let mut request = Request::builder().method(method).uri(format!("/MAAS/api/2.0/{path}?{query}")).header("content-type", content_type);
    let now = emulator.clock().now().as_second();
    let (consumer, token, secret) = if chance.u8(0..3) == 0 { ("lc", "lt", "ls") } else { ("ac", "at", "as") };
    let header = match chance.u8(..) {
        0 => Some("Basic YTpi".to_owned()),
        1 => None,
        2 => Some(format!("OAuth {}", word(chance))),
        _ => Some(format!(
            "OAuth oauth_signature_method=\"PLAINTEXT\", oauth_consumer_key=\"{consumer}\", oauth_token=\"{token}\", oauth_signature=\"%26{secret}\", \
             oauth_nonce=\"{number}\", oauth_timestamp=\"{now}\""
        )),
    };
    if let Some(header) = header.and_then(|text| http::HeaderValue::from_bytes(text.as_bytes()).ok()) {
        request = request.header("authorization", header);
    }
    request.body(body).ok()
}

fn body(chance: &mut Rng, pairs: impl Fn(&mut Rng) -> String) -> (&'static str, Bytes) {
    match chance.u8(0..16) {
        0 => ("application/json", Bytes::from(if chance.bool() { "{\"a\": [1, null]}".to_owned() } else { word(chance) })),
        1 => ("multipart/form-data; boundary=b", multipart(chance)),
        2 => ("application/x-www-form-urlencoded", (0..chance.usize(0..60)).map(|_| chance.u8(..)).collect::<Vec<u8>>().into()),
        3 => ("text/xml", Bytes::from(word(chance))),
        _ => ("application/x-www-form-urlencoded", Bytes::from(pairs(chance))),
    }
}

/// Parts that are whole, broken, or cut short.
fn multipart(chance: &mut Rng) -> Bytes {
    let mut text = Vec::new();
    for _ in 0..chance.usize(0..4) {
        let key = KEYS[chance.usize(..KEYS.len())];
        text.extend_from_slice(format!("--b\r\nContent-Disposition: form-data; name=\"{key}\"\r\n\r\n{}\r\n", word(chance)).as_bytes());
    }
    if chance.bool() {
        text.extend_from_slice(b"--b\r\nContent-Disposition: form-data; name=\"content\"; filename=\"f\"\r\n\r\n\xff\xfe\r\n");
    }
    text.extend_from_slice(b"--b--\r\n");
    text.truncate(if chance.u8(0..4) == 0 { chance.usize(..text.len()) } else { text.len() });
    text.into()
}
