//! Two labs at once: the same names, the same addresses, and neither sees the other.

use lab::{Lab, Level, MachineState, Options};

use super::{SOON, inside, kubectl, lab, machine, text, wait_for_boot};
use crate::waiting::until;

#[tokio::test]
async fn two_labs_have_machines_of_one_name_and_address_and_do_not_meet() {
    let Some(lab) = lab().await else { return };
    let options = Options { workers: 0, ..Options::new(Level::Nodes).executed_by(env!("CARGO_BIN_EXE_metalshift")) };
    let other = Lab::up(options).await.unwrap();
    other.control().add_machine("worker-1").await.unwrap();
    let page = "#cloud-config\nwrite_files:\n- {path: /srv/whose, content: the other's}\n";
    other.control().power_on("worker-1", Some(page.as_bytes())).await.unwrap();
    wait_for_boot(&other, "worker-1", MachineState::Running).await;
    assert_eq!(machine(&other, "worker-1").await.address, machine(lab, "worker-1").await.address, "nothing would be shown otherwise");
    assert_eq!(text(&inside(&other, Some("worker-1"), &["cat", "/srv/whose"]).await), "the other's");
    assert!(!inside(lab, Some("worker-1"), &["cat", "/srv/whose"]).await.status.success(), "it got the other lab's user-data");

    other.control().set_name("neighbour.lab", &[[10, 88, 0, 17].into()]).await.unwrap();
    let finds_the_neighbour = async |lab: &Lab| inside(lab, None, &["getent", "ahostsv4", "neighbour.lab"]).await.status.success();
    until("the name is there where it was given", SOON, async || finds_the_neighbour(&other).await).await;
    assert!(!finds_the_neighbour(lab).await, "a name of one lab is known in the other");

    let ping = ["busybox", "ping", "-c1", "-W2", "10.88.0.17"];
    assert!(inside(&other, Some("management"), &ping).await.status.success());
    other.control().power_off("worker-1", false).await.unwrap();
    assert!(
        !inside(&other, Some("management"), &ping).await.status.success(),
        "somebody else answers at the address of a machine that is off"
    );
    assert_eq!(machine(lab, "worker-1").await.state, MachineState::Running);
    other.down().await;
    let nodes = kubectl(lab, &["get", "nodes", "management", "worker-1", "-o", "name"]);
    assert_eq!(text(&nodes), "node/management\nnode/worker-1", "{nodes:?}");
}
