//! From the wish for a machine to a node that runs.

use crate::{
    log,
    rack::{FLEET, Rack, USER_DATA, condition},
};
use api::names;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn s10_rows_15_23_25_26_27_28_32_35_41_42_a_machine_is_allocated_marked_deployed_and_handed_over() {
    let rack = Rack::new("s10", FLEET).await;
    rack.machine("m1", json!({"tags": ["ssd"], "resourcePool": "metal", "failureDomain": "az2"})).await;
    let object = rack.provisioned("m1").await;
    let id = object["spec"]["systemID"].as_str().unwrap().to_owned();
    assert_eq!(object["spec"]["providerID"], format!("maas:///az2/{id}"));
    assert_eq!(object["status"]["failureDomain"], "az2");
    assert!(object["spec"].get("failureDomain").is_some_and(|zone| zone == "az2"), "what people wrote stays");
    assert_eq!(rack.calls(), ["allocate machines/ 200", "set_workload_annotations two-01 200", "PUT two-01 200", "deploy two-01 200"]);
    let booted = rack.emulator.world(|world| world.machines.get(world.machine_id(&id).unwrap()).unwrap().user_data.clone()).unwrap();
    assert_eq!(booted, USER_DATA.as_bytes(), "byte for byte");
    let machine = rack
        .wait(rack.core("Machine"), "m1", "Cluster API took it over", |machine| {
            machine["status"]["initialization"]["infrastructureProvisioned"] == true
        })
        .await;
    assert_eq!(machine["spec"]["providerID"], object["spec"]["providerID"]);
    // Releases before 1.12 have no place for it.
    if machines_show_their_zone(&rack).await {
        assert_eq!(machine["status"]["failureDomain"], "az2");
    }
    assert_eq!(machine["status"]["addresses"], object["status"]["addresses"]);
    let ours = rack.wait_machine("m1", "it is ready", |object| condition(object, "Ready")["status"] == "True").await;
    let mirrored = rack
        .wait(rack.core("Machine"), "m1", "the condition is mirrored", |machine| {
            condition(machine, "InfrastructureReady")["status"] == "True"
        })
        .await;
    assert_eq!(condition(&mirrored, "InfrastructureReady")["reason"], condition(&ours, "Ready")["reason"]);
    assert!(!log::shows_bootstrap_data(&rack.everything().await), "bootstrap data is secret");
    rack.finish().await;
    log::assert_it_has_no_bootstrap_data();
}

/// Whether the Machines of this Cluster API have a zone in their status.
async fn machines_show_their_zone(rack: &Rack) -> bool {
    let machines = Api::<CustomResourceDefinition>::all(rack.client.clone()).get("machines.cluster.x-k8s.io").await.unwrap();
    let version = machines.spec.versions.into_iter().find(|version| version.name == names::CLUSTER_API_VERSION).unwrap();
    let schema = serde_json::to_value(version.schema).unwrap();
    schema.pointer("/openAPIV3Schema/properties/status/properties/failureDomain").is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_comes_and_goes_with_the_oldest_release_of_maas_too() {
    let rack = Rack::new("oldest", &format!("version: '3.0'\n{FLEET}")).await;
    rack.machine("m1", json!({"tags": ["ssd"], "resourcePool": "metal", "failureDomain": "az2"})).await;
    let object = rack.provisioned("m1").await;
    assert_eq!(object["status"]["failureDomain"], "az2");
    rack.wait_machine("m1", "it is ready", |object| condition(object, "Ready")["status"] == "True").await;
    rack.delete("Machine", "m1").await;
    rack.gone("m1").await;
    assert_eq!(rack.allocated(), Vec::<String>::new());
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s11_rows_13_21_nothing_is_asked_of_maas_before_the_bootstrap_data_is_there() {
    let rack = Rack::new("s11", FLEET).await;
    rack.maas_machine(&json!({names::CLUSTER_NAME: "c1"}), "orphan", json!({})).await;
    let config = json!({"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "later"}});
    rack.machine_with("m1", json!({}), config).await;
    rack.reason("m1", "WaitingForBootstrapData").await;
    assert_eq!(rack.calls(), Vec::<String>::new());
    let orphan = rack.wait_machine("orphan", "it is there", |object| !object.is_null()).await;
    assert!(orphan["status"].is_null() && orphan["metadata"]["finalizers"].is_null(), "{orphan}");
    let ready = Patch::Merge(json!({"spec": {"bootstrap": {"dataSecretName": "boot"}}}));
    rack.core("Machine").patch("m1", &PatchParams::default(), &ready).await.unwrap();
    rack.provisioned("m1").await;
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s15_a_machine_is_deployed_in_memory() {
    let rack = Rack::new("s15", FLEET).await;
    rack.machine("m1", json!({"deployInMemory": true})).await;
    let object = rack.provisioned("m1").await;
    let id = object["spec"]["systemID"].as_str().unwrap();
    assert!(rack.emulator.world(|world| world.machines.get(world.machine_id(id).unwrap()).unwrap().ephemeral_deploy));
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s16_rows_43_44_a_provider_that_is_killed_again_and_again_allocates_one_machine() {
    let mut rack = Rack::without_provider("s16", FLEET).await;
    rack.machine("m1", json!({})).await;
    for _ in 0..6 {
        rack.start(manager::machine::Rules::default());
        tokio::time::sleep(std::time::Duration::from_millis(120)).await;
        rack.kill_provider().await;
    }
    rack.start(manager::machine::Rules::default());
    rack.provisioned("m1").await;
    assert_eq!(rack.allocated().len(), 1);
    assert_eq!(rack.calls().iter().filter(|call| call.starts_with("allocate")).count(), 1);
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s17_s18_a_machine_that_fails_is_given_back_and_another_one_is_tried() {
    let rack = Rack::without_provider("s17", FLEET).await;
    let harm = maas_emulator::faults::MachineHarm::FailDeploy("curtin: no disk".to_owned());
    let fault = maas_emulator::faults::MachineFault { machine: Some("one-01".to_owned()), times: None, harm };
    rack.emulator.inject(maas_emulator::Fault::Machine(fault)).unwrap();
    let rack = rack.with_provider();
    rack.machine("m1", json!({"failureDomain": "az1"})).await;
    let object = rack.provisioned("m1").await;
    assert_ne!(object["status"]["hostname"], "one-01");
    assert_eq!(object["status"]["attemptCount"], 1);
    assert_eq!(object["status"]["attempts"][0]["hostname"], "one-01");
    assert!(object["status"]["attempts"][0]["cause"].as_str().unwrap().contains("curtin: no disk"), "{object}");
    rack.wait_machine("m1", "the bad one is back", |_| rack.in_maas("one-01").1.is_none()).await;
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s38_rows_36_39_a_machine_deployment_scales_out_and_in() {
    let rack = Rack::new("s38", FLEET).await;
    rack.create(json!({"apiVersion": api::names::API_VERSION, "kind": "MaasMachineTemplate", "metadata": {"name": "t"},
        "spec": {"template": {"spec": {"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy"}}}}))
        .await;
    rack.create(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": {"name": "md"},
        "spec": {"clusterName": "c1", "replicas": 3, "selector": {"matchLabels": {"pool": "a"}},
            "template": {"metadata": {"labels": {"pool": "a"}}, "spec": {"clusterName": "c1", "version": "v1.35.0",
                "bootstrap": {"dataSecretName": "boot"},
                "infrastructureRef": {"apiGroup": api::names::GROUP, "kind": "MaasMachineTemplate", "name": "t"}}}}}))
        .await;
    let template = rack.api(api::names::GROUP, api::names::VERSION, "MaasMachineTemplate");
    let template = rack.wait(template, "t", "it says what its machines have", |template| !template["status"]["capacity"].is_null()).await;
    assert_eq!(template["status"]["capacity"], json!({"cpu": "2", "memory": "4096Mi"}));
    let deployed = |wanted: usize| {
        let rack = &rack;
        async move {
            let what = format!("{wanted} machines are deployed in MAAS");
            rack.wait(rack.core("MachineDeployment"), "md", &what, |_| {
                let deployed =
                    rack.emulator.world(|world| world.all_machines().filter(|machine| machine.status.name() == "Deployed").count());
                deployed == wanted && rack.allocated().len() == wanted
            })
            .await;
        }
    };
    deployed(3).await;
    for replicas in [5, 1] {
        let scale = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        rack.core("MachineDeployment").patch("md", &PatchParams::default(), &scale).await.unwrap();
        deployed(replicas).await;
    }
    rack.finish().await;
}
