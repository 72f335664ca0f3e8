//! What a scrape reads after a machine failed and another one was deployed.

use crate::rack::{FLEET, Rack};
use maas_emulator::{
    Fault,
    faults::{MachineFault, MachineHarm},
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn phases_attempts_and_avoided_machines_are_on_the_page() {
    let rack = Rack::without_provider("metrics", FLEET).await;
    let fault = MachineFault { machine: Some("one-01".to_owned()), times: None, harm: MachineHarm::FailDeploy("no disk".to_owned()) };
    rack.emulator.inject(Fault::Machine(fault)).unwrap();
    let rack = rack.with_provider();
    rack.machine("m1", json!({"failureDomain": "az1"})).await;
    rack.provisioned("m1").await;
    rack.machine("m2", json!({"failureDomain": "az1"})).await;
    rack.provisioned("m2").await;
    rack.wait_machine("m1", "the bad one is back", |_| rack.in_maas("one-01").1.is_none()).await;
    let page = rack.metrics().await;
    for line in [
        r#"metalshift_machine_attempts_total{outcome="failed"} 1"#,
        r#"metalshift_machine_attempts_total{outcome="succeeded"} 2"#,
        r#"metalshift_machine_phase_duration_seconds_count{phase="Deploying",zone="az1",image="ubuntu/jammy"} 3"#,
        "metalshift_machines_avoided{endpoint=",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    rack.finish().await;
}
