//! Where an API server is to be reached.

use super::*;
use decisions::cluster::{Endpoint, Origin};

fn dns(name: &str, origin: Origin) -> Endpoint {
    Endpoint::Dns { name: name.to_owned(), origin }
}

fn elsewhere(host: &str) -> Endpoint {
    Endpoint::Elsewhere { host: host.to_owned() }
}

#[test]
fn every_way_to_an_endpoint() {
    let on_cluster = |host: &str| json!({"spec": {"controlPlaneEndpoint": {"host": host, "port": 1}}});
    let custom = json!({"metadata": {"annotations": {names::CUSTOM_ENDPOINT: ""}}});
    let custom_host =
        json!({"metadata": {"annotations": {names::CUSTOM_ENDPOINT: ""}}, "spec": {"controlPlaneEndpoint": {"host": "api.maas"}}});
    let annotated = |text: Value| json!({"metadata": {"annotations": {names::ENDPOINT: text.to_string()}}});
    let copied = json!({"metadata": {"annotations": {names::ENDPOINT: json!({"object": "rack/two", "name": "api.maas"}).to_string()}}, "spec": {"controlPlaneEndpoint": {"host": "api.maas"}}});
    let rows = [
        (json!({}), on_cluster("api.maas"), dns("api.maas", Origin::Asked)),
        (json!({}), on_cluster("API.maas."), dns("api.maas", Origin::Asked)),
        (json!({}), on_cluster("a.b.maas"), elsewhere("a.b.maas")),
        (json!({}), on_cluster("maas"), elsewhere("maas")),
        (json!({}), on_cluster("10.0.0.1"), elsewhere("10.0.0.1")),
        (json!({"spec": {"controlPlaneEndpoint": {"host": "mine.maas"}}}), json!({}), dns("mine.maas", Origin::Asked)),
        (custom.clone(), json!({}), Endpoint::Awaited),
        (custom, on_cluster("api.maas"), elsewhere("api.maas")),
        (custom_host, json!({}), elsewhere("api.maas")),
        (json!({"spec": {"endpoint": {"mode": "Hosted"}}}), json!({}), Endpoint::Awaited),
        (json!({"spec": {"endpoint": {"mode": "Hosted"}}}), on_cluster("h.example"), elsewhere("h.example")),
        (json!({"spec": {"endpoint": {"mode": "VIP", "vip": {"subnet": "x"}}}}), json!({}), Endpoint::Vip),
        (annotated(json!({"object": "rack/one", "name": "old.maas"})), on_cluster("api.maas"), dns("old.maas", Origin::Ours)),
        (copied, json!({}), dns("api.maas", Origin::Copied)),
        (json!({"status": {"ready": true, "network": {"dnsName": "go.maas"}}}), json!({}), dns("go.maas", Origin::GoProvider)),
        (
            json!({"metadata": {"finalizers": [names::LEGACY_CLUSTER_FINALIZER]}, "spec": {"controlPlaneEndpoint": {"host": "go.maas", "port": 1}}}),
            json!({}),
            dns("go.maas", Origin::GoProvider),
        ),
    ];
    for (number, (ours, theirs, expected)) in rows.into_iter().enumerate() {
        let facts = Facts { object: object(ours), cluster: Some(cluster(theirs)), ..facts() };
        assert_eq!(facts.endpoint(), expected, "row {number}");
    }
}

#[test]
fn a_new_name_is_the_same_at_every_attempt_and_another_one_for_a_cluster_made_anew() {
    let name = |cluster_name: &str, uid: &str| {
        let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": cluster_name, "uid": uid}]);
        let object = object(json!({"metadata": {"ownerReferences": owner}}));
        let cluster = cluster(json!({"metadata": {"name": cluster_name, "uid": uid}}));
        match (Facts { object, cluster: Some(cluster), ..facts() }).endpoint() {
            Endpoint::Dns { name, origin: Origin::New } => name,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(name("one", "u"), name("one", "u"));
    assert_ne!(name("one", "u"), name("one", "v"));
    assert_ne!(name("one", "u"), name("two", "u"));
    let long = name(&"x".repeat(63), "u");
    let label = long.strip_suffix(".maas").unwrap();
    assert!(label.len() == 63 && label.as_bytes()[56] == b'-', "{long}");
    assert!(name("a.b", "u").starts_with("a-b-"));
}

#[test]
fn the_port_is_the_objects_the_clusters_or_the_usual_one() {
    let rows = [
        (json!({}), json!({}), 6443),
        (json!({}), json!({"spec": {"clusterNetwork": {"apiServerPort": 8443}}}), 8443),
        (
            json!({}),
            json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 9443}, "clusterNetwork": {"apiServerPort": 8443}}}),
            9443,
        ),
        (json!({"spec": {"controlPlaneEndpoint": {"port": 443}}}), json!({"spec": {"clusterNetwork": {"apiServerPort": 8443}}}), 443),
    ];
    for (ours, theirs, expected) in rows {
        let facts = Facts { object: object(ours), cluster: Some(cluster(theirs)), ..facts() };
        assert_eq!(facts.port(), expected);
    }
}
