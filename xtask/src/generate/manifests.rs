//! The kinds and the admission policy as files that `kubectl apply` takes. Used by `generate`.

use anyhow::Context as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde_json::Value;

use super::Page;

/// Where the kinds are.
pub const KINDS: &str = "manifests/crds";
/// Where the admission policies are.
pub const ADMISSION: &str = "manifests/admission";

/// A manifest for each kind.
pub fn kinds(definitions: &[CustomResourceDefinition]) -> anyhow::Result<Vec<Page>> {
    let page = |definition: &CustomResourceDefinition| {
        let name = definition.metadata.name.as_deref().context("a kind has no name")?;
        Ok((format!("{KINDS}/{name}.yaml"), yaml(&[document(definition)?])))
    };
    definitions.iter().map(page).collect()
}

/// A manifest for each admission policy.
pub fn admission() -> anyhow::Result<Vec<Page>> {
    let (policy, binding) = api::admission::template_immutability();
    Ok(vec![(format!("{ADMISSION}/template-immutability.yaml"), yaml(&[document(&policy)?, document(&binding)?]))])
}

fn document(object: &impl Serialize) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(object).context("an object cannot be written as JSON")?;
    whole_numbers(&mut value);
    serde_saphyr::to_string(&value).context("an object cannot be written as YAML")
}

/// Bounds of integers are floating-point numbers for the types of Kubernetes; nobody writes `1.0` there.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(whole_numbers),
        Value::Object(values) => values.values_mut().for_each(whole_numbers),
        Value::Number(number) => {
            if let Ok(whole) = format!("{number}").trim_end_matches(".0").parse::<i64>() {
                *value = whole.into();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn yaml(documents: &[String]) -> String {
    let remark = "# Written by `cargo xtask generate` from the crate `api`; changes made here are lost.\n";
    format!("{remark}{}", documents.join("---\n"))
}
