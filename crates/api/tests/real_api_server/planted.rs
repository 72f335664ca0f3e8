//! Mistakes in what we offer, read and write, each found by exactly one row.

use crate::offered::{CHECKS, Check, Offered};
use api::names;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use serde_json::{Value, json};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

/// Panics unless this mistake is found by the check of this row and by no other.
fn only(row: u32, mistake: &Offered) {
    let found: Vec<u32> = CHECKS.into_iter().filter(|(_, check)| quietly_fails(*check, mistake)).map(|(row, _)| row).collect();
    assert_eq!(found, [row], "the rows whose checks found the mistake");
}

fn quietly_fails(check: Check, offered: &Offered) -> bool {
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| check(offered)));
    QUIET.set(false);
    outcome.is_err()
}

/// What we offer, with a mistake in the definition of one kind.
fn with(kind: &str, mistake: impl Fn(&mut CustomResourceDefinition)) -> Offered {
    let mut offered = Offered::ours();
    offered.kinds.iter_mut().filter(|definition| definition.spec.names.kind == kind).for_each(mistake);
    offered
}

/// The schema of a kind at this place below its objects.
fn schema<'a>(definition: &'a mut CustomResourceDefinition, path: &[&str]) -> &'a mut JSONSchemaProps {
    let root = definition.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    path.iter().fold(root, |schema, name| schema.properties.as_mut().unwrap().get_mut(*name).unwrap())
}

#[test]
fn planted_row_1_machines_belong_to_no_namespace() {
    only(1, &with("MaasMachine", |definition| definition.spec.scope = "Cluster".to_owned()));
}

#[test]
fn planted_row_2_a_kind_has_another_name_than_cluster_api_computes() {
    only(2, &with("MaasMachine", |definition| definition.metadata.name = Some(format!("maasmachine.{}", names::GROUP))));
}

#[test]
fn planted_row_3_a_kind_does_not_say_which_contract_it_keeps() {
    let mistake = with("MaasClusterTemplate", |definition| {
        drop(definition.metadata.labels.as_mut().unwrap().remove(names::CONTRACT_V1BETA2));
    });
    only(3, &mistake);
}

#[test]
fn planted_row_4_a_kind_has_no_list() {
    only(4, &with("MaasMachineTemplate", |definition| definition.spec.names.list_kind = None));
}

#[test]
fn planted_row_9_an_endpoint_may_have_a_host_of_any_length() {
    only(9, &with("MaasCluster", |definition| schema(definition, &["spec", "controlPlaneEndpoint", "host"]).max_length = None));
}

#[test]
fn planted_row_14_only_an_owner_that_calls_itself_the_controller_counts() {
    let read = |object: &mut Value| {
        if let Some(owners) = object["ownerReferences"].as_array_mut() {
            owners.retain(|owner| owner["controller"] == true);
        }
    };
    only(14, &Offered { read, ..Offered::ours() });
}

#[test]
fn planted_row_24_an_id_may_be_written_over() {
    let mistake = with("MaasMachine", |definition| {
        let rules = schema(definition, &[]).x_kubernetes_validations.as_mut().unwrap();
        rules.retain(|rule| rule.field_path.as_deref() != Some(".spec.providerID"));
    });
    only(24, &mistake);
}

#[test]
fn planted_row_36_a_template_does_not_take_all_that_its_machines_take() {
    let mistake = with("MaasMachineTemplate", |definition| {
        drop(schema(definition, &["spec", "template", "spec"]).properties.as_mut().unwrap().remove("tags"));
    });
    only(36, &mistake);
}

#[test]
fn planted_row_64_only_the_newer_shape_of_a_cluster_is_read() {
    let read = |object: &mut Value| {
        if let Some(status) = object["status"].as_object_mut() {
            status.remove("infrastructureReady");
        }
    };
    only(64, &Offered { read, ..Offered::ours() });
}

#[test]
fn planted_row_65_an_empty_list_is_written() {
    let written = |object: &mut Value| {
        if object["image"].is_string() {
            object["tags"] = json!([]);
        }
    };
    only(65, &Offered { written, ..Offered::ours() });
}
