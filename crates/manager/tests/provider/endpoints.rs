//! Names of clusters on the real Cluster API core: whom they lead to, and who writes them.

use crate::rack::{FLEET, Rack, condition};
use api::names;
use kube::api::{Patch, PatchParams};
use maas_emulator::{
    Fault,
    faults::{Happening, Incident},
};
use serde_json::{Value, json};

/// Two networks on every machine, so that there is something to choose.
const TWO_NETWORKS: &str = "
subnets: [{id: 1, cidr: 10.20.0.0/24}, {id: 2, cidr: 10.30.0.0/24}]
machines:
  - {hostname: a, cpus: 4, memory: 8192, interfaces: [{name: eth0, links: [{mode: auto, subnet: 1}, {mode: auto, subnet: 2}]}]}
timings: {deploy: [0.2, 0.4], power_on: [0, 0.1], power_off: [0, 0.1]}
";

/// A provisioned Cluster `c2`, with this in the specs of it and of its infrastructure.
async fn cluster(rack: &Rack, cluster: Value, infrastructure: Value) -> Value {
    rack.cluster("c2", cluster, json!({}), infrastructure).await;
    rack.cluster_provisioned("c2").await
}

/// A machine of its control plane.
async fn control_plane(rack: &Rack, name: &str) {
    let labels = json!({names::CLUSTER_NAME: "c2", names::CONTROL_PLANE: ""});
    rack.machine_of(&labels, name, json!({}), json!({"dataSecretName": "boot"})).await;
}

fn addresses(rack: &Rack) -> Vec<String> {
    rack.names().into_iter().flat_map(|(_, addresses)| addresses).collect()
}

/// The address a machine shows first.
async fn address(rack: &Rack, name: &str) -> String {
    let object = rack.provisioned(name).await;
    let shown = object["status"]["addresses"].as_array().unwrap().iter().find(|address| address["type"] == "ExternalIP").unwrap();
    shown["address"].as_str().unwrap().to_owned()
}

/// Has the infrastructure passed once more, and waits until that pass has ended.
async fn pass_again(rack: &Rack, label: &str) {
    let ended = async || {
        let page = rack.metrics().await;
        let count = |line: &str| line.rsplit(' ').next().and_then(|number| number.parse::<f64>().ok());
        let ours =
            |line: &&str| line.starts_with("metalshift_reconciles") && line.contains("maascluster") && line.contains("outcome=\"success\"");
        page.lines().filter(ours).filter_map(count).sum::<f64>()
    };
    let before = ended().await;
    let change = Patch::Merge(json!({"metadata": {"labels": {"looked-at": label}}}));
    rack.maas_clusters().patch("c2", &PatchParams::default(), &change).await.unwrap();
    let began = tokio::time::Instant::now();
    while ended().await <= before {
        assert!(began.elapsed() < crate::rack::DEADLINE, "the infrastructure is not passed again");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn end(rack: Rack) {
    rack.delete_cluster("c2").await;
    assert_eq!((rack.names(), rack.allocated()), (vec![], vec![]));
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s02_an_endpoint_given_on_the_cluster_is_kept_and_its_name_is_made() {
    let rack = Rack::new("s02", FLEET).await;
    let seen = cluster(&rack, json!({"controlPlaneEndpoint": {"host": "api.maas", "port": 7443}}), json!({})).await;
    assert_eq!(seen["spec"]["controlPlaneEndpoint"], json!({"host": "api.maas", "port": 7443}));
    assert_eq!(rack.names(), [("api".to_owned(), vec![])]);
    end(rack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s03_a_custom_endpoint_needs_no_call_about_dns_at_all() {
    // The cluster that every rack has is one.
    let rack = Rack::new("s03", FLEET).await;
    rack.machine("m1", json!({})).await;
    rack.provisioned("m1").await;
    let seen = rack.wait(rack.core("Cluster"), "c1", "it is there", |_| true).await;
    assert_eq!(seen["spec"]["controlPlaneEndpoint"], json!({"host": "c1.example", "port": 6443}));
    let about_names = rack.emulator.journal(|journal| journal.entries().filter(|entry| entry.uri.contains("dnsresources")).count());
    assert_eq!(about_names, 0);
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s04_s05_s06_s07_a_name_leads_to_the_control_plane_is_mended_survives_a_blip_and_is_written_only_on_change() {
    let rack = Rack::new("s04", FLEET).await;
    cluster(&rack, json!({}), json!({})).await;
    control_plane(&rack, "m1").await;
    let own = address(&rack, "m1").await;
    rack.wait(rack.maas_clusters(), "c2", "the name leads to it", |_| addresses(&rack) == [own.clone()]).await;
    pass_again(&rack, "first").await;

    let writes = || rack.calls().iter().filter(|call| call.contains("dnsresources")).count();
    let before = writes();
    pass_again(&rack, "second").await;
    assert_eq!(writes(), before, "a second pass without a change writes nothing");

    let host = rack.provisioned("m1").await["status"]["hostname"].as_str().unwrap().to_owned();
    rack.emulator.inject(Fault::Incident(Incident { after_seconds: 0.0, machine: host, what: Happening::PowerLoss })).unwrap();
    rack.wait_machine("m1", "it is switched on", |_| rack.calls().iter().any(|call| call.starts_with("power_on"))).await;
    rack.wait_machine("m1", "it is ready again", |object| condition(object, "Ready")["status"] == "True").await;
    assert_eq!((addresses(&rack), writes()), (vec![own.clone()], before), "a blip of power changes no name");

    rack.emulator.world(|world| world.names.values_mut().for_each(|name| name.addresses.clear()));
    pass_again(&rack, "third").await;
    rack.wait(rack.maas_clusters(), "c2", "what was changed in MAAS is mended", |_| addresses(&rack) == [own.clone()]).await;

    rack.delete("Machine", "m1").await;
    rack.gone("m1").await;
    rack.wait(rack.maas_clusters(), "c2", "the name leads nowhere", |_| addresses(&rack).is_empty()).await;
    assert_eq!(rack.names().len(), 1, "the name itself is the cluster's");
    end(rack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s08_only_an_address_that_fits_is_published_and_without_one_it_is_told() {
    for (number, (subnets, published)) in [("10.99.0.0/16, 10.30.0.0/24", Some("10.30.0.")), ("192.0.2.0/24", None)].into_iter().enumerate()
    {
        let rack = Rack::new(&format!("s08-{number}"), TWO_NETWORKS).await;
        rack.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "maas-preferred-subnet"}, "data": {"preferredSubnets": subnets}}))
            .await;
        cluster(&rack, json!({}), json!({})).await;
        control_plane(&rack, "m1").await;
        rack.provisioned("m1").await;
        if let Some(prefix) = published {
            let leads_there = |_: &Value| addresses(&rack).iter().any(|address| address.starts_with(prefix));
            rack.wait(rack.maas_clusters(), "c2", "the name leads to that network", leads_there).await;
            assert_eq!(addresses(&rack).len(), 1, "and to no other");
        } else {
            let told = |object: &Value| condition(object, "LoadBalancerReady")["reason"] == "NoMatchingAddress";
            rack.wait(rack.maas_clusters(), "c2", "it is told", told).await;
            assert_eq!(addresses(&rack), Vec::<String>::new());
        }
        end(rack).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_18_what_another_program_reconciles_is_never_written() {
    let rack = Rack::new("row18", FLEET).await;
    rack.cluster("c2", json!({}), json!({names::MANAGED_BY: ""}), json!({})).await;
    let owned = |object: &Value| object["metadata"]["ownerReferences"].is_array();
    rack.wait(rack.maas_clusters(), "c2", "its Cluster owns it", owned).await;
    pass_again(&rack, "by-hand").await;
    let object = rack.maas_clusters().get("c2").await.unwrap();
    let writers: Vec<String> = object.metadata.managed_fields.unwrap().into_iter().filter_map(|field| field.manager).collect();
    assert!(!writers.iter().any(|writer| writer.contains("metalshift")), "{writers:?}");
    assert!(object.data["status"].is_null() && object.metadata.finalizers.is_none(), "{}", object.data);
    rack.finish().await;
}
