//! Other ways to the API server than a name in MAAS's DNS: an address that a plain user of MAAS reserves, and a name somebody else keeps.

use std::net::Ipv4Addr;

use serde_json::json;

use crate::{
    pod::answers,
    stage::{CLUSTER_WITHIN, Cluster, SOON, Stage},
    waiting::{is_root, until, until_some},
};

/// Credentials of a plain user of MAAS, for the clusters that name them.
const PLAIN_USER: &str = "
apiVersion: v1
kind: Secret
metadata: {name: plain-user, namespace: default}
stringData: {MAAS_ENDPOINT: \"http://maas.lab:5240/MAAS\", MAAS_API_KEY: \"plain:user:key\"}
";

#[tokio::test]
async fn a_plain_user_of_maas_gets_a_cluster_behind_an_address_it_reserves() {
    if !is_root("machines need root") {
        return;
    }
    let stage = Stage::up().await;
    stage.apply(PLAIN_USER).await;
    let template = stage.generated(&Cluster { name: "vip", ..Cluster::default() }).await;
    let template = with_spec(
        &template,
        "MaasCluster",
        &json!({
            "dnsDomain": "racks.example",
            "identityRef": {"kind": "Secret", "name": "plain-user"},
            "endpoint": {"mode": "VIP", "vip": {"subnet": "10.20.0.0/16", "address": "10.20.3.77"}},
        }),
    );
    // In place of a program that moves the address: there is one control plane, and it has it.
    let has_it = "- systemctl start containerd\n    - ip address add 10.20.3.77/32 dev eth0";
    let template = template.replacen("- systemctl start containerd", has_it, 1);
    stage.apply(&template).await;
    stage.until_nodes("vip", 2).await;
    stage.until_is("maascluster/vip", ".spec.controlPlaneEndpoint.host", "10.20.3.77").await;
    let held = stage.maas().await.machines().list(&maas_client::MachineFilter::new()).await.unwrap();
    assert!(held.iter().filter_map(|machine| machine.owner.as_deref()).all(|owner| owner == "kubernetes"), "all are the plain user's");
    answers(&stage, "vip").await;
    stage.delete_cluster("vip").await;
}

#[tokio::test]
async fn machines_in_memory_with_an_address_of_a_pool_use_an_endpoint_of_somebody_else_and_maas_gets_no_name() {
    if !is_root("machines need root") {
        return;
    }
    let stage = Stage::up().await;
    let template = stage.generated(&Cluster { name: "own", template: "cluster-template-ephemeral.yaml", ..Cluster::default() }).await;
    let template = with_spec(
        &template,
        "MaasCluster",
        &json!({
            "dnsDomain": "racks.example", "controlPlaneEndpoint": {"host": "api.own.lab", "port": 6443},
        }),
    );
    let template = template.replace(
        "kind: MaasCluster\nmetadata:\n",
        "kind: MaasCluster\nmetadata:\n  annotations:\n    spectrocloud.com/custom-dns-provided: \"\"\n",
    );
    let template = with_pool(&template);
    stage.apply(&template).await;
    fulfil_claim(&stage).await;
    // Somebody else is this test: it lets the name lead to the first machine of the control plane.
    until("the first machine has an address", CLUSTER_WITHIN, async || {
        let output = "jsonpath={.items[*].status.addresses[?(@.type==\"InternalIP\")].address}";
        let selector = "cluster.x-k8s.io/control-plane";
        let found = stage.try_kubectl(&["get", "maasmachines", "--selector", selector, "--output", output]).await;
        let Some(address) = found.and_then(|found| found.trim().parse::<Ipv4Addr>().ok()) else { return false };
        stage.lab.control().set_name("api.own.lab", &[address]).await.unwrap();
        true
    })
    .await;
    stage.until_nodes("own", 2).await;
    let machines = stage.maas().await.machines().list(&maas_client::MachineFilter::new()).await.unwrap();
    let in_memory = machines.iter().filter(|machine| machine.owner.is_some()).map(|machine| machine.ephemeral_deploy);
    assert_eq!(in_memory.collect::<Vec<bool>>(), [true, true], "nothing is on a disk");
    let addresses = ["get", "nodes", "--output", "jsonpath={.items[*].status.addresses[?(@.type==\"InternalIP\")].address}"];
    let addresses = until_some("the nodes tell their addresses", SOON, async || stage.in_workload("own", &addresses).await).await;
    assert!(addresses.split(' ').any(|address| address == POOLED), "no node has {POOLED}: {addresses}");
    // Nobody gets the address while the machine has it, whoever deletes it.
    stage.until_is(POOLED_ADDRESSES, ".items[*].metadata.finalizers[*]", "infrastructure.cluster.x-k8s.io/maasmachine-address").await;
    stage.kubectl(&["delete", POOLED_ADDRESSES, "--all", "--wait=false"]).await;
    let held = stage.left_in_maas().await;
    assert!(held.iter().all(|held| !held.starts_with("name")), "MAAS got a name: {held:?}");
    assert!(held.contains(&format!("address {POOLED}")), "MAAS does not tell of {POOLED}, so nobody could tell that it is left: {held:?}");
    let left = async || stage.kubectl(&["get", &format!("ipaddressclaims,{POOLED_ADDRESSES}"), "--output=name"]).await;
    assert_eq!(left().await.lines().count(), 2, "the claim and the address: {}", left().await);
    stage.delete_cluster("own").await;
    until("the claim and the address are gone", SOON, async || left().await.is_empty()).await;
}

/// Kubernetes has another kind of this name.
const POOLED_ADDRESSES: &str = "ipaddresses.ipam.cluster.x-k8s.io";
const POOLED: &str = "10.20.5.5";
const POOL: &str = "{apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: rack}";

/// Workers get their address from a pool.
fn with_pool(documents: &str) -> String {
    let workers = "deployInMemory: true\n      image: ubuntu/noble";
    let (before, after) = documents.rsplit_once(workers).unwrap();
    format!("{before}{workers}\n      staticIP: {{poolRef: {POOL}}}{after}")
}

/// The provider of the pool is this test, too.
async fn fulfil_claim(stage: &Stage) {
    let mut claim = String::new();
    until("an address is claimed", CLUSTER_WITHIN, async || {
        claim = stage.kubectl(&["get", "ipaddressclaims", "--output=jsonpath={.items[*].metadata.name}"]).await;
        !claim.is_empty()
    })
    .await;
    stage
        .apply(&format!(
            "{{apiVersion: ipam.cluster.x-k8s.io/v1beta2, kind: IPAddress, metadata: {{name: {claim}, namespace: default}}, \
             spec: {{claimRef: {{name: {claim}}}, poolRef: {POOL}, address: {POOLED}, prefix: 16}}}}"
        ))
        .await;
    let given = json!({"status": {"addressRef": {"name": claim}}}).to_string();
    stage.kubectl(&["patch", "ipaddressclaim", &claim, "--subresource=status", "--type=merge", "--patch", &given]).await;
}

/// The documents with another spec for the object of this kind.
fn with_spec(documents: &str, kind: &str, spec: &serde_json::Value) -> String {
    let replaced = documents.split("\n---\n").map(|document| {
        if !document.contains(&format!("kind: {kind}\n")) || document.starts_with("apiVersion: cluster.x-k8s.io") {
            return document.to_owned();
        }
        let head = document.split("\nspec:").next().unwrap();
        format!("{head}\nspec: {spec}")
    });
    replaced.collect::<Vec<_>>().join("\n---\n")
}
