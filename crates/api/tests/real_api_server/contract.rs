//! What Cluster API asks of kinds, looked up in what the server has of ours.

use crate::{offered::KINDS, schema, server::Server};
use api::{definitions, names};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt};
use serde_json::json;

async fn installed(server: &Server, plural: &str) -> CustomResourceDefinition {
    let kinds: Api<CustomResourceDefinition> = Api::all(server.client.clone());
    kinds.get(&format!("{plural}.{}", names::GROUP)).await.unwrap()
}

#[tokio::test]
async fn row_2_the_server_takes_kinds_and_their_names() {
    let server = Server::with_namespace("row-2").await;
    for (kind, plural) in KINDS {
        let definition = installed(&server, plural).await;
        let conditions = definition.status.unwrap_or_default().conditions.unwrap_or_default();
        let holds: Vec<&str> =
            conditions.iter().filter(|condition| condition.status == "True").map(|condition| condition.type_.as_str()).collect();
        assert!(holds.contains(&"Established") && holds.contains(&"NamesAccepted"), "{kind}: {conditions:?}");
        assert!(!holds.contains(&"NonStructuralSchema"), "{kind}: {conditions:?}");
    }
}

#[tokio::test]
async fn row_4_the_server_has_a_list_of_every_kind() {
    let server = Server::with_namespace("row-4").await;
    let found = server.get(&format!("/apis/{}/{}", names::GROUP, names::VERSION), "application/json").await;
    for (kind, plural) in KINDS {
        let resource = found["resources"].as_array().unwrap().iter().find(|resource| resource["name"] == plural).unwrap();
        assert_eq!((&resource["kind"], &resource["categories"]), (&json!(kind), &json!(["cluster-api"])));
        assert!(resource["shortNames"][0].as_str().unwrap().starts_with("maas"), "{resource}");
        let path = format!("/apis/{}/{}/namespaces/{}/{plural}", names::GROUP, names::VERSION, server.namespace);
        assert_eq!(server.get(&path, "application/json").await["kind"], format!("{kind}List"));
    }
}

#[test]
fn row_28_addresses_have_the_types_of_cluster_api() {
    let all = definitions();
    let machine = all.iter().find(|definition| definition.spec.names.kind == "MaasMachine").unwrap();
    let walk = schema::walk(schema::of(machine), "");
    let (_, kind) = walk.iter().find(|(path, _)| path == "status.addresses[].type").unwrap();
    let values: Vec<&str> = kind.enum_.iter().flatten().filter_map(|value| value.0.as_str()).collect();
    assert_eq!(values, ["Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"]);
}

#[test]
fn row_29_conditions_are_lists_with_their_type_as_key() {
    for definition in definitions().iter().filter(|definition| !definition.spec.names.kind.ends_with("Template")) {
        let walk = schema::walk(schema::of(definition), "");
        let (_, conditions) = walk.iter().find(|(path, _)| path == "status.conditions").unwrap();
        assert_eq!(conditions.x_kubernetes_list_type.as_deref(), Some("map"));
        assert_eq!(conditions.x_kubernetes_list_map_keys, Some(vec!["type".to_owned()]));
        assert_eq!(conditions.max_items, Some(32));
    }
}

#[test]
fn row_33_there_is_no_place_for_a_failure_beside_conditions() {
    for definition in definitions() {
        for (path, _) in schema::walk(schema::of(&definition), "") {
            assert!(!path.ends_with("failureReason") && !path.ends_with("failureMessage"), "{path}");
        }
    }
}

#[test]
fn numbers_and_times_have_formats_every_server_knows_and_numbers_have_bounds() {
    for definition in definitions() {
        for (path, schema) in schema::walk(schema::of(&definition), "") {
            assert!(matches!(schema.format.as_deref(), None | Some("int32" | "int64" | "date-time")), "{path}: {:?}", schema.format);
            let bounded = schema.minimum.is_some() && (schema.maximum.is_some() || schema.format.as_deref() == Some("int64"));
            assert!(schema.type_.as_deref() != Some("integer") || bounded, "{path} has no bounds");
        }
    }
}

#[tokio::test]
async fn installing_the_kinds_again_changes_nothing_and_gives_no_warning() {
    let server = Server::with_namespace("warnings").await;
    for definition in definitions() {
        let before = installed(&server, &definition.spec.names.plural).await;
        let path =
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}?fieldManager=tests&force=true", definition.name_any());
        let request =
            http::Request::patch(path).header("content-type", "application/apply-patch+yaml").header("accept", "application/json");
        let answer = server.client.send(request.body(serde_json::to_vec(&definition).unwrap().into()).unwrap()).await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        assert_eq!(answer.headers().get("warning"), None);
        let after = installed(&server, &definition.spec.names.plural).await;
        assert_eq!(before.resource_version(), after.resource_version());
    }
}
