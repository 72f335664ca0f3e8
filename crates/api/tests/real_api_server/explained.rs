//! What `kubectl explain` shows: what the server publishes of our kinds has words for every field.

use crate::{offered::KINDS, schema, server::Server};
use api::{definitions, names};
use serde_json::Value;

#[tokio::test]
async fn every_field_is_explained() {
    let server = Server::with_namespace("explained").await;
    let document = server.get(&format!("/openapi/v3/apis/{}/{}", names::GROUP, names::VERSION), "application/json").await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut silent = Vec::new();
    let mut seen = 0;
    for (kind, _) in KINDS {
        let name = format!("io.x-k8s.cluster.infrastructure.v1beta1.{kind}");
        look(&schemas[&name], kind, &mut seen, &mut silent);
    }
    assert!(silent.is_empty(), "nothing explains {silent:?}");
    assert!(seen > 200, "only {seen} fields were looked at");
}

fn look(schema: &Value, path: &str, seen: &mut u32, silent: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        *seen += 1;
        if property["description"].as_str().is_none_or(str::is_empty) {
            silent.push(path.clone());
        }
        look(property, &path, seen, silent);
        look(&property["items"], &path, seen, silent);
    }
}

#[test]
fn a_field_is_explained_for_itself_and_not_by_its_type() {
    let (mut texts, mut doubled) = (std::collections::BTreeMap::new(), Vec::new());
    let all = definitions();
    let machine = all.iter().find(|definition| definition.spec.names.kind == "MaasMachine").unwrap();
    for (path, schema) in schema::walk(schema::of(machine), "").into_iter().filter(|(path, _)| path.starts_with("spec")) {
        let Some(text) = schema.description.clone().filter(|_| schema.enum_.is_some()) else { continue };
        if let Some(other) = texts.insert(text, path.clone()) {
            doubled.push((other, path));
        }
    }
    assert!(doubled.is_empty(), "{doubled:?}");
}
