//! The rules of a cluster's spec, whether it stands alone or in a template.

use crate::{
    rules::{Case, try_all},
    server::Server,
};
use serde_json::{Value, json};

pub fn spec(changes: &Value) -> Value {
    let mut spec = json!({"dnsDomain": "maas.example"});
    for (name, value) in changes.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

pub fn cases() -> Vec<Case> {
    let case = |path, message, refused: Value, taken: Value| {
        let endpoint = |settings: Value| spec(&json!({"endpoint": settings}));
        Case { kind: "MaasCluster", path, message, before: None, refused: endpoint(refused), taken: endpoint(taken) }
    };
    let domain = |domain: &str| spec(&json!({"dnsDomain": domain}));
    vec![
        Case {
            kind: "MaasCluster",
            path: "spec.dnsDomain",
            message: "dnsDomain is not a name in DNS: give a domain that MAAS has, for example maas",
            before: None,
            refused: domain("no domain"),
            taken: domain("Rack-1.maas_lab.example"),
        },
        case(
            "spec.endpoint",
            "mode VIP needs vip.subnet: give the subnet of MAAS in which an address is reserved",
            json!({"mode": "VIP", "vip": {"address": "10.0.0.5"}}),
            json!({"mode": "VIP", "vip": {"subnet": "rack"}}),
        ),
        case(
            "spec.endpoint",
            "vip is only used with mode VIP: set mode to VIP, or remove vip",
            json!({"vip": {"subnet": "rack"}}),
            json!({"mode": "DNS", "timeToLive": 30}),
        ),
        case(
            "spec.endpoint.vip",
            "address is not an IP address: write for example 10.0.0.5",
            json!({"mode": "VIP", "vip": {"subnet": "rack", "address": "ten"}}),
            json!({"mode": "VIP", "vip": {"subnet": "rack", "address": "10.0.0.5"}}),
        ),
        case(
            "spec.endpoint.vip",
            "address lies outside subnet: give an address of that subnet",
            json!({"mode": "VIP", "vip": {"subnet": "10.0.0.0/24", "address": "10.0.1.5"}}),
            json!({"mode": "VIP", "vip": {"subnet": "10.0.0.0/24", "address": "10.0.0.5"}}),
        ),
        case(
            "spec.endpoint.addresses.subnets",
            "every subnet is written as a CIDR, for example 10.0.0.0/24",
            json!({"addresses": {"subnets": ["10.0.0.0/24", "rack"]}}),
            json!({"addresses": {"subnets": ["10.0.0.0/24", "fd00::/64"], "interface": "bond0"}}),
        ),
    ]
}

#[tokio::test]
async fn every_rule_of_a_cluster_refuses_with_words_and_takes_what_is_right() {
    try_all(&Server::with_namespace("cluster-rules").await, cases()).await;
}

#[tokio::test]
async fn a_template_has_the_rules_of_its_clusters() {
    let in_template = |spec: &Value| json!({"template": {"spec": spec}});
    let cases = cases().into_iter().map(|case| Case {
        kind: "MaasClusterTemplate",
        path: Box::leak(case.path.replacen("spec", "spec.template.spec", 1).into_boxed_str()),
        refused: in_template(&case.refused),
        taken: in_template(&case.taken),
        ..case
    });
    try_all(&Server::with_namespace("cluster-template-rules").await, cases.collect()).await;
}

#[tokio::test]
async fn row_9_an_endpoint_is_within_its_bounds() {
    let server = Server::with_namespace("endpoint-bounds").await;
    for (wrong, said) in [
        (json!({"controlPlaneEndpoint": {"host": "x".repeat(513), "port": 6443}}), "may not be more than 512 bytes"),
        (json!({"controlPlaneEndpoint": {"host": "x", "port": 65_536}}), "should be less than or equal to 65535"),
        (json!({"dnsDomain": ""}), "should be at least 1 chars long"),
        (json!({"dnsDomain": ""}), "dnsDomain is not a name in DNS"),
        (json!({"dnsDomain": null}), "spec.dnsDomain: Required value"),
        (json!({"identityRef": {"kind": "ConfigMap", "name": "key"}}), "supported values: \"Secret\""),
        (json!({"endpoint": {"mode": "dns"}}), "supported values: \"DNS\", \"VIP\", \"Hosted\""),
        (json!({"endpoint": {"timeToLive": 0}}), "should be greater than or equal to 1"),
    ] {
        let answer = server.create("MaasCluster", "bounds", &spec(&wrong), true).await.unwrap_err();
        assert!(answer.contains(said), "{wrong} was answered with {answer}");
    }
    let right =
        json!({"controlPlaneEndpoint": {"host": "c.maas.example", "port": 65_535}, "identityRef": {"kind": "Secret", "name": "key"}});
    server.create("MaasCluster", "bounds", &spec(&right), true).await.unwrap();
}
