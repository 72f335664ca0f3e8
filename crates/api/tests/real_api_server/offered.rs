//! Rows of Cluster API's contract about what we offer, read and write. A check takes all of it: as it is in the test that is named after its
//! row, and with one mistake in it in [`crate::planted`].

use crate::{schema, server::Server};
use api::{
    MaasClusterSpec, MaasClusterStatus, MaasClusterTemplateSpec, MaasMachineSpec, MaasMachineStatus, MaasMachineTemplateSpec,
    MaasMachineTemplateStatus, MaasRemediationSpec, MaasRemediationStatus,
    cluster_api::{Cluster, Machine, owner},
    definitions, names,
};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};

pub const KINDS: [(&str, &str); 6] = [
    ("MaasCluster", "maasclusters"),
    ("MaasClusterTemplate", "maasclustertemplates"),
    ("MaasMachine", "maasmachines"),
    ("MaasMachineTemplate", "maasmachinetemplates"),
    ("MaasRemediation", "maasremediations"),
    ("MaasRemediationTemplate", "maasremediationtemplates"),
];

/// What we offer, and what becomes of objects on their way in and out.
pub struct Offered {
    pub kinds: Vec<CustomResourceDefinition>,
    pub read: fn(&mut Value),
    pub written: fn(&mut Value),
}

/// Panics unless a row of the contract holds for what is offered.
pub type Check = fn(&Offered);

pub const CHECKS: [(u32, Check); 10] =
    [(1, row_1), (2, row_2), (3, row_3), (4, row_4), (9, row_9), (14, row_14), (24, row_24), (36, row_36), (64, row_64), (65, row_65)];

impl Offered {
    pub fn ours() -> Self {
        Self { kinds: definitions().into(), read: |_| (), written: |_| () }
    }

    /// As the server has it.
    async fn installed(namespace: &str) -> Self {
        let server = Server::with_namespace(namespace).await;
        let kinds: Api<CustomResourceDefinition> = Api::all(server.client.clone());
        let kinds = kinds.list(&ListParams::default()).await.unwrap().items;
        Self { kinds: kinds.into_iter().filter(|kind| kind.spec.group == names::GROUP).collect(), ..Self::ours() }
    }

    fn kind(&self, kind: &str) -> &CustomResourceDefinition {
        self.kinds.iter().find(|definition| definition.spec.names.kind == kind).unwrap()
    }

    /// The schema at this place of a kind.
    fn schema(&self, kind: &str, at: &str) -> JSONSchemaProps {
        let walk = schema::walk(schema::of(self.kind(kind)), "");
        walk.into_iter().find(|(path, _)| path == at).map(|(_, schema)| schema.clone()).unwrap()
    }

    fn reads<T: serde::de::DeserializeOwned>(&self, mut object: Value) -> T {
        (self.read)(&mut object);
        serde_json::from_value(object).unwrap()
    }
}

#[tokio::test]
async fn row_1_all_kinds_are_namespaced_and_have_their_status_apart() {
    row_1(&Offered::installed("offered-row-1").await);
}

fn row_1(offered: &Offered) {
    for (kind, _) in KINDS {
        let definition = offered.kind(kind);
        assert_eq!(definition.spec.scope, "Namespaced", "{kind}");
        let subresources = definition.spec.versions[0].subresources.as_ref();
        let has_status = !matches!(kind, "MaasClusterTemplate" | "MaasRemediationTemplate");
        assert_eq!(subresources.is_some_and(|subresources| subresources.status.is_some()), has_status, "{kind}");
    }
}

#[tokio::test]
async fn row_2_kinds_are_found_under_the_names_cluster_api_computes() {
    row_2(&Offered::installed("offered-row-2").await);
}

fn row_2(offered: &Offered) {
    for (kind, plural) in KINDS {
        let definition = offered.kind(kind);
        assert_eq!((definition.name_any(), definition.spec.names.plural.as_str()), (format!("{plural}.{}", names::GROUP), plural));
    }
}

#[tokio::test]
async fn row_3_every_kind_names_a_served_version_for_both_contracts() {
    row_3(&Offered::installed("offered-row-3").await);
}

fn row_3(offered: &Offered) {
    for (kind, _) in KINDS {
        let definition = offered.kind(kind);
        for contract in [names::CONTRACT_V1BETA1, names::CONTRACT_V1BETA2] {
            let version = &definition.labels()[contract];
            assert!(definition.spec.versions.iter().any(|served| served.served && served.name == *version), "{kind} {contract}: {version}");
        }
        assert_eq!(definition.labels()[names::PROVIDER], names::PROVIDER_NAME, "{kind}");
        assert!(definition.labels().contains_key(names::CLUSTERCTL), "{kind} is moved by clusterctl");
    }
}

#[tokio::test]
async fn row_4_every_kind_has_a_list() {
    row_4(&Offered::installed("offered-row-4").await);
}

fn row_4(offered: &Offered) {
    for (kind, _) in KINDS {
        assert_eq!(offered.kind(kind).spec.names.list_kind, Some(format!("{kind}List")));
    }
}

#[tokio::test]
async fn row_9_host_and_port_of_an_endpoint_have_the_bounds_of_cluster_api() {
    row_9(&Offered::installed("offered-row-9").await);
}

fn row_9(offered: &Offered) {
    assert_eq!(offered.schema("MaasCluster", "spec.controlPlaneEndpoint.host").max_length, Some(512));
    assert_eq!(offered.schema("MaasCluster", "spec.controlPlaneEndpoint.port").maximum, Some(65535.0));
}

#[test]
fn row_14_an_owner_is_found_whatever_its_version_and_flags() {
    row_14(&Offered::ours());
}

fn row_14(offered: &Offered) {
    for (version, controller) in [("v1beta1", json!(true)), ("v1beta2", Value::Null), ("v1", json!(false))] {
        let reference = |group: &str, kind: &str| json!({"apiVersion": format!("{group}/{version}"), "kind": kind, "name": kind, "uid": "u", "controller": controller});
        let owners = [
            reference(names::CLUSTER_API_GROUP, "MachineSet"),
            reference("other.example", "Machine"),
            reference(names::CLUSTER_API_GROUP, "Machine"),
        ];
        let metadata: ObjectMeta = offered.reads(json!({"name": "m", "ownerReferences": owners}));
        let found = owner(&metadata, "Machine").unwrap();
        assert_eq!(found.api_version, format!("{}/{version}", names::CLUSTER_API_GROUP));
        assert_eq!(owner(&metadata, "Cluster"), None);
    }
}

#[tokio::test]
async fn row_24_the_server_keeps_an_id_as_it_is() {
    row_24(&Offered::installed("offered-row-24").await);
}

fn row_24(offered: &Offered) {
    let walk = schema::walk(schema::of(offered.kind("MaasMachine")), "");
    let rules = walk.into_iter().filter_map(|(_, schema)| schema.x_kubernetes_validations.clone()).flatten();
    let mut about_ids = rules.filter(|rule| rule.rule.contains("oldSelf") && rule.field_path.as_deref() == Some(".spec.providerID"));
    assert!(about_ids.next().is_some(), "no rule compares an id with the one before");
}

#[tokio::test]
async fn row_36_a_machine_template_holds_metadata_and_spec_of_its_machines() {
    row_36(&Offered::installed("offered-row-36").await);
}

fn row_36(offered: &Offered) {
    let machine = offered.schema("MaasMachine", "spec");
    let in_template =
        JSONSchemaProps { description: machine.description.clone(), ..offered.schema("MaasMachineTemplate", "spec.template.spec") };
    assert_eq!(in_template, machine, "what is cloned must be taken");
    for part in ["labels", "annotations"] {
        let part = offered.schema("MaasMachineTemplate", &format!("spec.template.metadata.{part}"));
        assert_eq!(part.type_.as_deref(), Some("object"));
    }
}

#[test]
fn row_64_what_is_read_of_cluster_api_is_the_same_in_both_shapes() {
    row_64(&Offered::ours());
}

fn row_64(offered: &Offered) {
    let older = json!({"metadata": {"name": "c"}, "spec": {"infrastructureRef": {"apiVersion": names::API_VERSION, "kind": "MaasCluster", "name": "c"}},
        "status": {"infrastructureReady": true, "conditions": [{"type": "ControlPlaneInitialized", "status": "True"}]}});
    let newer = json!({"metadata": {"name": "c"}, "spec": {"infrastructureRef": {"apiGroup": names::GROUP, "kind": "MaasCluster", "name": "c"}},
        "status": {"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true}}});
    let read: Cluster = offered.reads(newer);
    assert!(read.infrastructure_provisioned && read.control_plane_initialized);
    assert_eq!(offered.reads::<Cluster>(older), read);
    let machine = |reference: Value| json!({"metadata": {"name": "m"}, "spec": {"clusterName": "c", "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": reference}});
    let older = machine(json!({"apiVersion": names::API_VERSION, "kind": "MaasMachine", "name": "m"}));
    let newer = machine(json!({"apiGroup": names::GROUP, "kind": "MaasMachine", "name": "m"}));
    let read: Machine = offered.reads(newer);
    assert_eq!(read.infrastructure_ref.as_ref().unwrap().group, names::GROUP);
    assert_eq!(offered.reads::<Machine>(older), read);
}

#[test]
fn row_65_what_is_not_set_is_not_written() {
    row_65(&Offered::ours());
}

fn row_65(offered: &Offered) {
    let image = MaasMachineSpec { image: "ubuntu/noble".to_owned(), ..MaasMachineSpec::default() };
    let domain = MaasClusterSpec { dns_domain: "maas.example".to_owned(), ..MaasClusterSpec::default() };
    let machines = MaasMachineTemplateSpec { template: api::MaasMachineTemplateResource { metadata: None, spec: image.clone() } };
    let clusters = MaasClusterTemplateSpec { template: api::MaasClusterTemplateResource { metadata: None, spec: domain.clone() } };
    for (mut written, expected) in [
        (json!(image), json!({"image": "ubuntu/noble"})),
        (json!(domain), json!({"dnsDomain": "maas.example"})),
        (json!(machines), json!({"template": {"spec": {"image": "ubuntu/noble"}}})),
        (json!(clusters), json!({"template": {"spec": {"dnsDomain": "maas.example"}}})),
        (json!(MaasMachineStatus::default()), json!({"ready": false})),
        (json!(MaasClusterStatus::default()), json!({"ready": false})),
        (json!(MaasMachineTemplateStatus::default()), json!({})),
        (json!(MaasRemediationSpec::default()), json!({})),
        (json!(MaasRemediationStatus::default()), json!({})),
    ] {
        (offered.written)(&mut written);
        assert_eq!(written, expected);
    }
}
