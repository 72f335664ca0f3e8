//! Walks through the schemas that are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// The schema of a kind.
pub fn of(definition: &CustomResourceDefinition) -> &JSONSchemaProps {
    definition.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap()
}

/// Every schema in a schema with its path, such as `spec.tags` or `spec.networkInterfaces[].ip`; the values of a map are at `*`.
pub fn walk<'a>(schema: &'a JSONSchemaProps, path: &str) -> Vec<(String, &'a JSONSchemaProps)> {
    let mut all = vec![(path.to_owned(), schema)];
    for (name, property) in schema.properties.iter().flatten() {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        all.extend(walk(property, &below));
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        all.extend(walk(items, &format!("{path}[]")));
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        all.extend(walk(values, &format!("{path}.*")));
    }
    all
}

/// Every rule of a kind: where its refusal points to, and what it says.
pub fn rules(definition: &CustomResourceDefinition) -> Vec<(String, String)> {
    let mut rules = Vec::new();
    for (path, schema) in walk(of(definition), "") {
        for rule in schema.x_kubernetes_validations.iter().flatten() {
            let place = rule.field_path.as_ref().map_or_else(|| path.clone(), |field| field.trim_start_matches('.').to_owned());
            rules.push((place, rule.message.clone().expect("every rule says what to do")));
        }
    }
    rules
}
