//! The rules of a machine's spec, whether it stands alone or in a template.

use crate::{
    rules::{Case, try_all},
    server::Server,
};
use serde_json::{Value, json};

/// A spec that is taken, with these changes; null takes a field away.
pub fn spec(changes: &Value) -> Value {
    let mut spec = json!({"image": "ubuntu/noble", "minCPU": 2, "minMemory": 4096});
    for (name, value) in changes.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

fn case(path: &'static str, message: &'static str, refused: &Value, taken: &Value) -> Case {
    Case { kind: "MaasMachine", path, message, before: None, refused: spec(refused), taken: spec(taken) }
}

const TIME: &str = "the time must be longer than nothing: write for example 45m";

fn sizes_and_modes() -> Vec<Case> {
    let case = |message, refused, taken| case("spec", message, &refused, &taken);
    vec![
        case(
            "minCPU is missing: give the number of CPU cores the machine has at least",
            json!({"minCPU": null}),
            json!({"minCPU": null, "minCpu": 2}),
        ),
        case("minCPU and minCpu are two spellings of one setting and differ: remove minCpu", json!({"minCpu": 3}), json!({"minCpu": 2})),
        case(
            "minMemory is missing: give the MiB of memory the machine has at least",
            json!({"minMemory": null}),
            json!({"minMemory": null, "minMemoryInMB": 4096}),
        ),
        case(
            "minMemory and minMemoryInMB are two spellings of one setting and differ: remove minMemoryInMB",
            json!({"minMemoryInMB": 1}),
            json!({"minMemoryInMB": 4096}),
        ),
        case(
            "deployInMemory and ephemeral are two spellings of one setting and differ: remove ephemeral",
            json!({"deployInMemory": true, "ephemeral": false}),
            json!({"deployInMemory": true, "ephemeral": true}),
        ),
        case(
            "provisioningMode and lxd.enabled contradict each other: remove lxd.enabled, or set provisioningMode to the same",
            json!({"provisioningMode": "lxd", "lxd": {"enabled": false}}),
            json!({"provisioningMode": "baremetal", "lxd": {"enabled": false}}),
        ),
        case(
            "lxdConfig is only used for virtual machines: set provisioningMode to lxd, or remove lxdConfig",
            json!({"provisioningMode": "bare-metal", "lxdConfig": {"profile": "maas"}}),
            json!({"lxd": {"enabled": true}, "lxdConfig": {"profile": "maas"}}),
        ),
        case(
            "lxdConfig.storage.size and lxd.vmConfig.diskSize are two spellings of one setting and differ: remove one of them",
            json!({"lxd": {"enabled": true, "vmConfig": {"diskSize": 60}}, "lxdConfig": {"storage": {"size": "80GB"}}}),
            json!({"lxd": {"enabled": true, "vmConfig": {"diskSize": 60}}, "lxdConfig": {"storage": {"size": "60GB"}}}),
        ),
        case(
            "lxdConfig.storage.pool and lxd.vmConfig.storagePool are two spellings of one setting and differ: remove one of them",
            json!({"lxd": {"enabled": true, "vmConfig": {"storagePool": "fast"}}, "lxdConfig": {"storage": {"pool": "slow"}}}),
            json!({"lxd": {"enabled": true, "vmConfig": {"storagePool": "fast"}}, "lxdConfig": {"storage": {"pool": "fast"}}}),
        ),
        case(
            "virtual machines cannot be deployed in memory: remove deployInMemory, or choose metal",
            json!({"provisioningMode": "lxd", "ephemeral": true}),
            json!({"provisioningMode": "bare-metal", "ephemeral": true}),
        ),
    ]
}

fn networks() -> Vec<Case> {
    let fixed = |message, refused, taken| case("spec.staticIP", message, &json!({"staticIP": refused}), &json!({"staticIP": taken}));
    let link = |message, refused, taken| {
        case("spec.networkInterfaces[]", message, &json!({"networkInterfaces": [refused]}), &json!({"networkInterfaces": [taken]}))
    };
    vec![
        fixed("ip is not an IP address: write for example 10.0.0.5", json!({"ip": "10.0.0"}), json!({"ip": ""})),
        fixed("cidr is not a subnet: write for example 10.0.0.0/24", json!({"cidr": "10.0.0.0"}), json!({"cidr": "fd00::/64"})),
        fixed("gateway is not an IP address: write for example 10.0.0.1", json!({"gateway": "router"}), json!({"gateway": "10.0.0.1"})),
        fixed(
            "ip lies outside cidr: give an address of that subnet, or the subnet of that address",
            json!({"ip": "10.0.1.5", "cidr": "10.0.0.0/24"}),
            json!({"ip": "10.0.0.5", "cidr": "10.0.0.0/24"}),
        ),
        fixed(
            "gateway lies outside cidr: give the router's address in that subnet",
            json!({"ip": "10.0.0.5", "cidr": "10.0.0.0/24", "gateway": "10.0.1.1"}),
            json!({"ip": "fd00::5", "cidr": "fd00::/64", "gateway": "fd00::1"}),
        ),
        link(
            "a static link needs ip: give an address of the subnet, or choose mode auto to let MAAS choose one",
            json!({"name": "eth0", "subnet": "rack", "mode": "static"}),
            json!({"name": "eth0", "subnet": "rack", "mode": "static", "ip": "10.0.0.5"}),
        ),
        link(
            "ip is only used with mode static: set mode to static, or remove ip",
            json!({"name": "eth0", "subnet": "rack", "mode": "dhcp", "ip": "10.0.0.5"}),
            json!({"name": "eth0", "subnet": "rack", "mode": "dhcp"}),
        ),
        link(
            "ip is not an IP address: write for example 10.0.0.5",
            json!({"name": "eth0", "subnet": "rack", "mode": "static", "ip": "ten"}),
            json!({"name": "eth0", "subnet": "rack", "mode": "static", "ip": "fd00::5"}),
        ),
        link(
            "ip lies outside subnet: give an address of that subnet",
            json!({"name": "eth0", "subnet": "10.0.0.0/24", "mode": "static", "ip": "10.0.1.5"}),
            json!({"name": "eth0", "subnet": "10.0.0.0/24", "mode": "static", "ip": "10.0.0.5"}),
        ),
    ]
}

fn times() -> Vec<Case> {
    let time = |path, field: &str| case(path, TIME, &json!({"provisioning": {field: "0s"}}), &json!({"provisioning": {field: "1h30m"}}));
    vec![
        time("spec.provisioning.allocateTimeout", "allocateTimeout"),
        time("spec.provisioning.deployTimeout", "deployTimeout"),
        time("spec.provisioning.releaseTimeout", "releaseTimeout"),
    ]
}

pub fn cases() -> Vec<Case> {
    sizes_and_modes().into_iter().chain(networks()).chain(times()).collect()
}

#[tokio::test]
async fn every_rule_of_a_machine_refuses_with_words_and_takes_what_is_right() {
    try_all(&Server::with_namespace("machine-rules").await, cases()).await;
}

#[tokio::test]
async fn a_template_has_the_rules_of_its_machines() {
    let in_template = |spec: &Value| json!({"template": {"spec": spec}});
    let cases = cases().into_iter().map(|case| Case {
        kind: "MaasMachineTemplate",
        path: Box::leak(case.path.replacen("spec", "spec.template.spec", 1).into_boxed_str()),
        refused: in_template(&case.refused),
        taken: in_template(&case.taken),
        ..case
    });
    try_all(&Server::with_namespace("machine-template-rules").await, cases.collect()).await;
}

#[tokio::test]
async fn what_is_too_long_too_large_or_of_another_kind_is_refused() {
    let server = Server::with_namespace("machine-bounds").await;
    let tags = |count: usize| (0..count).map(|number| format!("tag-{number}")).collect::<Vec<_>>();
    for (wrong, said) in [
        (json!({"tags": tags(65)}), "must have at most 64 items"),
        (json!({"tags": [""]}), "should be at least 1 chars long"),
        (json!({"image": ""}), "should be at least 1 chars long"),
        (json!({"image": "x".repeat(254)}), "may not be more than 253 bytes"),
        (json!({"minCPU": -1}), "should be greater than or equal to 0"),
        (json!({"minMemory": 5_000_000_000_i64}), "should be less than or equal to 2147483647"),
        (json!({"swap": "on"}), "Unsupported value: \"on\": supported values: \"Off\", \"Keep\""),
        (json!({"provisioningMode": "kvm"}), "supported values: \"bare-metal\", \"baremetal\", \"lxd\""),
        (json!({"provisioning": {"attempts": 0}}), "should be greater than or equal to 1"),
        (json!({"provisioning": {"deployTimeout": "soon"}}), "should match"),
        (json!({"provisioningMode": "lxd", "lxdConfig": {"storage": {"size": "60MB"}}}), "should match"),
        (
            json!({"networkInterfaces": [{"name": "a", "subnet": "s", "mode": "auto"}, {"name": "a", "subnet": "t", "mode": "auto"}]}),
            "Duplicate value",
        ),
    ] {
        let answer = server.create("MaasMachine", "bounds", &spec(&wrong), true).await.unwrap_err();
        assert!(answer.contains(said), "{wrong} was answered with {answer}");
    }
    server.create("MaasMachine", "bounds", &spec(&json!({"tags": tags(64)})), true).await.unwrap();
}
