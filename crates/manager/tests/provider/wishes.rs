//! What is asked for reaches MAAS, on the real Cluster API core.

use crate::rack::{FLEET, Rack};
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// The forms of every call of this operation, in order.
pub fn forms(rack: &Rack, operation: &str) -> Vec<String> {
    rack.emulator.journal(|journal| {
        let of_it = journal.entries().filter(|entry| entry.operation.as_deref() == Some(operation));
        of_it.filter_map(|entry| Some(String::from_utf8_lossy(entry.request.as_ref()?).into_owned())).collect()
    })
}

/// Whether a form has all these pairs.
pub fn holds(form: &str, wanted: &[&str]) -> bool {
    let pairs: Vec<String> = form_urlencoded::parse(form.as_bytes()).map(|(key, value)| format!("{key}={value}")).collect();
    wanted.iter().all(|wanted| pairs.iter().any(|pair| pair == wanted))
}

#[tokio::test(flavor = "multi_thread")]
async fn s12_s13_tags_pool_and_zone_reach_the_allocation_and_the_zone_of_the_machine_counts_first() {
    let rack = Rack::without_provider("s12", FLEET).await;
    rack.machine("m1", json!({"tags": ["ssd"], "notTags": ["rack-1"], "resourcePool": "metal", "failureDomain": "az1"})).await;
    let change = Patch::Merge(json!({"spec": {"failureDomain": "az2"}}));
    rack.core("Machine").patch("m1", &PatchParams::default(), &change).await.unwrap();
    let rack = rack.with_provider();
    let object = rack.provisioned("m1").await;
    assert_eq!(object["status"]["failureDomain"], "az2");
    let asked = forms(&rack, "allocate");
    assert_eq!(asked.len(), 1, "{asked:?}");
    let wanted = ["tags=ssd", "not_tags=rack-1", "pool=metal", "zone=az2", "cpu_count=2", "mem=4096"];
    assert!(holds(&asked[0], &wanted), "{asked:?}");
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_the_hardware_and_of_the_deployment_reaches_maas() {
    let rack = Rack::new("wishes", FLEET).await;
    rack.machine("m1", json!({"architecture": "amd64/generic", "storage": "root:8", "interfaces": "eth0:space=rack"})).await;
    rack.wait_machine("m1", "it is asked for", |_| !forms(&rack, "allocate").is_empty()).await;
    let asked = forms(&rack, "allocate").swap_remove(0);
    assert!(holds(&asked, &["arch=amd64/generic", "storage=root:8", "interfaces=eth0:space=rack"]), "{asked}");
    rack.machine("m2", json!({"hweKernel": "hwe-22.04", "hardwareSync": true})).await;
    rack.wait_machine("m2", "it is deployed", |_| !forms(&rack, "deploy").is_empty()).await;
    let deployed = forms(&rack, "deploy").swap_remove(0);
    assert!(holds(&deployed, &["hwe_kernel=hwe-22.04", "enable_hw_sync=true"]), "{deployed}");
    rack.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s14_an_image_is_deployed_by_its_system_and_series_and_one_without_a_prefix_was_uploaded() {
    let image = |name: &str| format!("{{name: {name}, architecture: amd64/generic}}");
    let images = ["ubuntu/jammy", "rhel/8", "suse/sles15.4", "edge-node, uploaded: true"].map(image).join(", ");
    let rack = Rack::new("s14", &format!("{FLEET}images: [{images}]\n")).await;
    let wishes = [
        ("ubuntu/jammy", "ubuntu/jammy"),
        ("rhel/8", "rhel/8"),
        ("suse/sles15.4", "suse/sles15.4"),
        ("custom/edge-node", "custom/edge-node"),
        ("edge-node", "custom/edge-node"),
    ];
    for (number, (image, runs)) in wishes.into_iter().enumerate() {
        let name = format!("m{number}");
        rack.machine(&name, json!({"image": image})).await;
        let id = rack.provisioned(&name).await["spec"]["systemID"].as_str().unwrap().to_owned();
        let deployed = rack.emulator.world(|world| {
            let machine = world.all_machines().find(|machine| machine.system_id == id).unwrap();
            format!("{}/{}", machine.osystem, machine.distro_series)
        });
        assert_eq!(deployed, runs, "{image}");
    }
    rack.finish().await;
}
