//! The kinds as they are installed: what the types say of themselves, with labels and corrections that a derive cannot make. Used by the
//! generator of manifests and by tests.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt as _;
use schemars::Schema;

use crate::{MaasCluster, MaasClusterTemplate, MaasMachine, MaasMachineTemplate, MaasRemediation, MaasRemediationTemplate, names};

/// All kinds, ready to be installed.
pub fn definitions() -> [CustomResourceDefinition; 6] {
    [
        MaasCluster::crd(),
        MaasClusterTemplate::crd(),
        MaasMachine::crd(),
        MaasMachineTemplate::crd(),
        MaasRemediation::crd(),
        MaasRemediationTemplate::crd(),
    ]
    .map(finish)
}

fn finish(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    // Not given to the derive, which would put them on every object as well.
    let labels = [
        (names::CONTRACT_V1BETA1, names::VERSION),
        (names::CONTRACT_V1BETA2, names::VERSION),
        (names::PROVIDER, names::PROVIDER_NAME),
        (names::CLUSTERCTL, ""),
    ];
    definition.metadata.labels = Some(BTreeMap::from(labels.map(|(key, value)| (key.to_owned(), value.to_owned()))));
    // The server fills these in; written down, they are there for everybody who reads the file.
    definition.spec.names.list_kind = Some(format!("{}List", definition.spec.names.kind));
    let schemas = definition.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    schemas.for_each(correct);
    definition
}

/// Makes a schema say what a Go provider's would.
fn correct(schema: &mut JSONSchemaProps) {
    // Without it a null is dropped by the server, so that no rule has to tell it from nothing.
    schema.nullable = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    // Kubernetes knows no unsigned formats. What is larger could be stored, and then no list of the kind could be read any more.
    if let Some(largest) = schema.format.as_deref().and_then(largest) {
        schema.format = Some("int32".to_owned());
        schema.maximum = Some(schema.maximum.map_or(largest, |maximum| maximum.min(largest)));
    }
    schema.title = None;
    schema.properties.iter_mut().flat_map(BTreeMap::values_mut).for_each(correct);
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        correct(values);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        correct(items);
    }
}

/// For enums: otherwise what a type is in general replaces what it means for an optional field.
pub(crate) fn leave_description_to_the_field(schema: &mut Schema) {
    schema.remove("description");
}

fn largest(format: &str) -> Option<f64> {
    match format {
        "uint16" => Some(u16::MAX.into()),
        "uint32" => Some(i32::MAX.into()),
        _ => None,
    }
}
