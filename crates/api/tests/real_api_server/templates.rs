//! Templates do not change, but for the dry runs in which Cluster API's topology controller compares them.

use crate::{rules_of_clusters, rules_of_machines, server::Server};
use api::names;
use serde_json::{Value, json};

/// A kind of templates, one of it, and a change of what it says.
fn kinds() -> [(&'static str, Value, Value); 3] {
    [
        ("MaasMachineTemplate", rules_of_machines::spec(&json!({})), json!({"image": "ubuntu/jammy"})),
        ("MaasClusterTemplate", rules_of_clusters::spec(&json!({})), json!({"failureDomains": ["zone-1"]})),
        ("MaasRemediationTemplate", json!({"strategy": {"retryLimit": 1}}), json!({"strategy": {"retryLimit": 2}})),
    ]
}

async fn try_change(namespace: &str, metadata: Value, change_spec: bool, dry_run: bool) -> Vec<Result<(), String>> {
    let server = Server::with_namespace(namespace).await;
    server.wait_for_policy().await;
    let mut answers = Vec::new();
    for (kind, spec, change) in kinds() {
        server.create(kind, "template", &json!({"template": {"spec": spec}}), false).await.unwrap();
        let spec =
            if change_spec { json!({"template": {"spec": change}}) } else { json!({"template": {"metadata": {"labels": {"a": "b"}}}}) };
        let change = json!({"metadata": metadata, "spec": spec});
        answers.push(server.change(kind, "template", &change, dry_run).await.map(drop));
    }
    answers
}

fn assert_refused(answers: Vec<Result<(), String>>) {
    for answer in answers {
        let said = answer.unwrap_err();
        assert!(said.contains("spec.template.spec cannot be changed: make a template with another name"), "{said}");
    }
}

fn assert_taken(answers: &[Result<(), String>]) {
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

fn topology() -> Value {
    json!({"annotations": {names::TOPOLOGY_DRY_RUN: ""}})
}

#[tokio::test]
async fn row_37_a_change_of_a_template_is_refused() {
    assert_refused(try_change("template-change", json!({}), true, false).await);
}

#[tokio::test]
async fn row_37_a_change_of_a_templates_metadata_is_taken() {
    assert_taken(&try_change("template-metadata", json!({"labels": {"a": "b"}}), false, false).await);
}

#[tokio::test]
async fn row_38_a_dry_run_without_the_annotation_is_refused() {
    assert_refused(try_change("template-dry-run", json!({}), true, true).await);
}

#[tokio::test]
async fn row_38_a_dry_run_of_the_topology_controller_is_taken() {
    assert_taken(&try_change("template-topology", topology(), true, true).await);
}

#[tokio::test]
async fn row_38_the_annotation_alone_does_not_help() {
    assert_refused(try_change("template-annotation", topology(), true, false).await);
}
