//! What `kubectl get` shows: the server's own table.

use crate::{rules_of_clusters, rules_of_machines, server::Server};
use api::names;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The cells of one object by column, and the columns that are always shown.
async fn table(server: &Server, plural: &str, name: &str) -> (BTreeMap<String, Value>, Vec<String>) {
    let path = format!("/apis/{}/{}/namespaces/{}/{plural}/{name}", names::GROUP, names::VERSION, server.namespace);
    let table = server.get(&path, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    let columns = table["columnDefinitions"].as_array().unwrap();
    let name = |column: &Value| column["name"].as_str().unwrap().to_owned();
    let cells = columns.iter().map(name).zip(table["rows"][0]["cells"].as_array().unwrap().iter().cloned());
    (cells.collect(), columns.iter().filter(|column| column["priority"] == 0).map(name).collect())
}

#[tokio::test]
async fn a_machine_is_shown_with_where_it_is_and_why() {
    let server = Server::with_namespace("machine-columns").await;
    server.create("MaasMachine", "one", &rules_of_machines::spec(&json!({})), false).await.unwrap();
    server.change("MaasMachine", "one", &json!({"metadata": {"labels": {names::CLUSTER_NAME: "prod"}}}), false).await.unwrap();
    let ready = json!({"type": "Ready", "status": "False", "reason": "MachineDeploying", "message": "MAAS installs it", "lastTransitionTime": "2026-11-16T04:00:00Z"});
    let paused =
        json!({"type": "Paused", "status": "False", "reason": "NotPaused", "message": "", "lastTransitionTime": "2026-11-16T04:00:00Z"});
    let addresses = json!([{"type": "Hostname", "address": "rack-7"}, {"type": "InternalIP", "address": "10.0.0.7"}, {"type": "InternalIP", "address": "10.1.0.7"}]);
    let status = json!({
        "phase": "Deploying", "hostname": "rack-7", "failureDomain": "zone-1", "resourcePool": "gold", "provisioningMode": "bare-metal",
        "addresses": addresses, "conditions": [paused, ready], "attemptCount": 2, "expectedEnd": "2026-11-16T04:12:00Z",
    });
    server.change_status("MaasMachine", "one", &status).await.unwrap();
    let (cells, always) = table(&server, "maasmachines", "one").await;
    assert_eq!(always, ["Name", "Cluster", "Phase", "Machine", "Zone", "Pool", "Mode", "Address", "Reason", "Age"]);
    for (column, cell) in [
        ("Name", json!("one")),
        ("Cluster", json!("prod")),
        ("Phase", json!("Deploying")),
        ("Machine", json!("rack-7")),
        ("Zone", json!("zone-1")),
        ("Pool", json!("gold")),
        ("Mode", json!("bare-metal")),
        ("Address", json!("10.0.0.7")),
        ("Reason", json!("MachineDeploying")),
        ("Image", json!("ubuntu/noble")),
        ("Attempts", json!(2)),
        ("Expected End", json!("2026-11-16T04:12:00Z")),
        ("Paused", json!("False")),
        ("Message", json!("MAAS installs it")),
    ] {
        assert_eq!(cells[column], cell, "{column}");
    }
}

#[tokio::test]
async fn a_cluster_is_shown_with_its_endpoint_and_why_it_is_not_ready() {
    let server = Server::with_namespace("cluster-columns").await;
    let spec =
        rules_of_clusters::spec(&json!({"controlPlaneEndpoint": {"host": "c.maas.example", "port": 6443}, "endpoint": {"mode": "Hosted"}}));
    server.create("MaasCluster", "one", &spec, false).await.unwrap();
    let ready = json!({"type": "Ready", "status": "Unknown", "reason": "MaasUnreachable", "message": "Check it.", "lastTransitionTime": "2026-11-16T04:00:00Z"});
    server.change_status("MaasCluster", "one", &json!({"conditions": [ready]})).await.unwrap();
    let (cells, always) = table(&server, "maasclusters", "one").await;
    assert_eq!(always, ["Name", "Cluster", "Endpoint", "Ready", "Reason", "Age"]);
    for (column, cell) in [
        ("Endpoint", json!("c.maas.example")),
        ("Ready", json!("Unknown")),
        ("Reason", json!("MaasUnreachable")),
        ("Port", json!(6443)),
        ("Mode", json!("Hosted")),
        ("Domain", json!("maas.example")),
        ("Message", json!("Check it.")),
    ] {
        assert_eq!(cells[column], cell, "{column}");
    }
}

#[tokio::test]
async fn a_remediation_is_shown_with_how_far_it_is_and_why() {
    let server = Server::with_namespace("remediation-columns").await;
    server.create("MaasRemediation", "one", &json!({"strategy": {"type": "PowerCycle", "retryLimit": 2}}), false).await.unwrap();
    let why = json!({"type": "Remediated", "status": "False", "reason": "WaitingForNode", "message": "It boots.", "lastTransitionTime": "2026-11-16T04:00:00Z"});
    server.change_status("MaasRemediation", "one", &json!({"phase": "Running", "attempts": 1, "conditions": [why]})).await.unwrap();
    let (cells, always) = table(&server, "maasremediations", "one").await;
    assert_eq!(always, ["Name", "Cluster", "Strategy", "Phase", "Attempts", "Reason", "Last", "Age"]);
    for (column, cell) in [
        ("Strategy", json!("PowerCycle")),
        ("Phase", json!("Running")),
        ("Attempts", json!(1)),
        ("Limit", json!(2)),
        ("Reason", json!("WaitingForNode")),
        ("Message", json!("It boots.")),
    ] {
        assert_eq!(cells[column], cell, "{column}");
    }
}

#[tokio::test]
async fn templates_are_shown_with_what_they_make() {
    let server = Server::with_namespace("template-columns").await;
    let machines = json!({"template": {"spec": rules_of_machines::spec(&json!({"resourcePool": "gold"}))}});
    server.create("MaasMachineTemplate", "one", &machines, false).await.unwrap();
    server.change_status("MaasMachineTemplate", "one", &json!({"capacity": {"cpu": 2, "memory": "4Gi"}})).await.unwrap();
    let (cells, always) = table(&server, "maasmachinetemplates", "one").await;
    assert_eq!(always, ["Name", "Cluster", "Image", "Pool", "CPU", "Memory", "Age"]);
    assert_eq!((&cells["Image"], &cells["Pool"], &cells["Memory"]), (&json!("ubuntu/noble"), &json!("gold"), &json!("4Gi")));
    server.create("MaasClusterTemplate", "one", &json!({"template": {"spec": rules_of_clusters::spec(&json!({}))}}), false).await.unwrap();
    let (cells, always) = table(&server, "maasclustertemplates", "one").await;
    let strategy = json!({"template": {"spec": {"strategy": {"type": "PowerCycle", "timeout": "10m"}}}});
    server.create("MaasRemediationTemplate", "one", &strategy, false).await.unwrap();
    let (of_remediations, _) = table(&server, "maasremediationtemplates", "one").await;
    assert_eq!((&of_remediations["Strategy"], &of_remediations["Timeout"]), (&json!("PowerCycle"), &json!("10m")));
    assert_eq!((always, &cells["Domain"]), (["Name", "Domain", "Mode", "Age"].map(str::to_owned).to_vec(), &json!("maas.example")));
}
