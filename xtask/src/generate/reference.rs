//! A page for every kind: its fields and what is refused, as the server is told. Used by `generate`.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use super::Page;

/// The path and the text of a kind's page.
pub fn page(definition: &CustomResourceDefinition) -> Option<Page> {
    let names = &definition.spec.names;
    let version = definition.spec.versions.first()?;
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    let mut page = format!(
        "<!-- Written by `cargo xtask generate` from the crate `api`; changes made here are lost. -->\n\n# {}\n\n{}\n\n`{}/{}`",
        names.kind,
        schema.description.as_deref().unwrap_or_default(),
        definition.spec.group,
        version.name
    );
    if let Some(short) = names.short_names.as_ref().and_then(|short| short.first()) {
        let _ = write!(page, ", short name `{short}`");
    }
    columns(version, &mut page);
    for part in ["spec", "status"] {
        if let Some(part_schema) = schema.properties.as_ref().and_then(|properties| properties.get(part)) {
            let _ = write!(page, "\n## {part}\n\n| field | type | meaning |\n|---|---|---|\n");
            fields(part_schema, "", &mut page);
        }
    }
    let mut refusals = Vec::new();
    rules(schema, "", &mut refusals);
    if !refusals.is_empty() {
        let _ = write!(page, "\n## What is refused\n\n{}\n", refusals.join("\n"));
    }
    Some((format!("docs/reference/{}.md", names.singular.as_deref()?), page))
}

fn columns(version: &CustomResourceDefinitionVersion, page: &mut String) {
    page.push_str("\n\n## Columns\n\n| column | shown | meaning |\n|---|---|---|\n");
    for column in version.additional_printer_columns.iter().flatten() {
        let shown = if column.priority.unwrap_or_default() == 0 { "always" } else { "with `-o wide`" };
        let _ = writeln!(page, "| {} | {shown} | {} |", column.name, column.description.as_deref().unwrap_or_default());
    }
}

/// A line for each field, deeper ones after the one they are in. A template's spec is that of the kind it makes.
fn fields(schema: &JSONSchemaProps, above: &str, page: &mut String) {
    let required = schema.required.as_deref().unwrap_or_default();
    for (name, property) in schema.properties.iter().flatten() {
        let path = format!("{above}{name}");
        let must = if required.contains(name) { ", required" } else { "" };
        let description = property.description.as_deref().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        let _ = writeln!(page, "| `{path}` | {}{must} | {description} |", type_of(property));
        if path == "template.spec" {
            continue;
        }
        match &property.items {
            Some(JSONSchemaPropsOrArray::Schema(items)) => fields(items, &format!("{path}[]."), page),
            _ => fields(property, &format!("{path}."), page),
        }
    }
}

fn type_of(schema: &JSONSchemaProps) -> String {
    if let Some(values) = &schema.enum_ {
        return values.iter().filter_map(|value| value.0.as_str()).map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    match (schema.type_.as_deref(), &schema.items, &schema.additional_properties) {
        (Some("array"), Some(JSONSchemaPropsOrArray::Schema(items)), _) => format!("list of {}", type_of(items)),
        (Some("object"), _, Some(JSONSchemaPropsOrBool::Schema(values))) => format!("map to {}", type_of(values)),
        (Some(name), ..) => schema.format.as_ref().filter(|format| *format == "date-time").map_or(name, |_| "time").to_owned(),
        (None, ..) => "any".to_owned(),
    }
}

fn rules(schema: &JSONSchemaProps, above: &str, refusals: &mut Vec<String>) {
    let place = if above.is_empty() { String::new() } else { format!("`{}`: ", above.trim_start_matches('.')) };
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        refusals.push(format!("- {place}{}", rule.message.as_deref().unwrap_or(&rule.rule)));
    }
    for (name, property) in schema.properties.iter().flatten() {
        rules(property, &format!("{above}.{name}"), refusals);
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &property.items {
            rules(items, &format!("{above}.{name}[]"), refusals);
        }
    }
}
