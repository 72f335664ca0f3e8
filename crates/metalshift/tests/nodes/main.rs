//! Level nodes: pods that answer, volumes that bind, machines with power switches. One lab serves all tests here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod confinement;
mod control_groups;
mod names;
mod power;
mod services;
mod side_by_side;
mod user_data;
#[path = "../../../lab/tests/waiting/mod.rs"]
mod waiting;

use std::{
    fs,
    process::{Command, Output},
    time::Duration,
};

use lab::{Lab, Level, MachineState, MachineStatus, Options, programs::Program};
use tokio::sync::OnceCell;
use waiting::{is_root, until};

const SOON: Duration = Duration::from_mins(2);

/// The lab, or nothing where there cannot be one.
async fn lab() -> Option<&'static Lab> {
    static LAB: OnceCell<Lab> = OnceCell::const_new();
    if !is_root("level nodes needs root") {
        return None;
    }
    let options = Options { workers: 1, ..Options::new(Level::Nodes).executed_by(env!("CARGO_BIN_EXE_metalshift")) };
    Some(LAB.get_or_init(async || Lab::up(options).await.unwrap()).await)
}

/// kubectl on the host, with the kubeconfig `lab up` prints.
fn kubectl(lab: &Lab, arguments: &[&str]) -> Output {
    Command::new(lab.programs().path(Program::Kubectl)).args(arguments).env("KUBECONFIG", lab.kubeconfig_path()).output().unwrap()
}

fn apply(lab: &Lab, name: &str, documents: &str) {
    let file = lab.directory().path().join(format!("{name}.yaml"));
    fs::write(&file, documents).unwrap();
    let output = kubectl(lab, &["apply", "-f", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs a command on a machine, or beside the control plane.
async fn inside(lab: &Lab, machine: Option<&str>, words: &[&str]) -> Output {
    lab.control().enter(machine).await.unwrap().args(words).output().unwrap()
}

async fn machine(lab: &Lab, name: &str) -> MachineStatus {
    lab.control().status().await.unwrap().machines.into_iter().find(|machine| machine.name == name).unwrap()
}

fn console(lab: &Lab, machine: &str) -> String {
    fs::read_to_string(lab.directory().logs().join(format!("{machine}.log"))).unwrap()
}

async fn boot(lab: &Lab, name: &str, user_data: &str) {
    lab.control().add_machine(name).await.unwrap();
    lab.control().power_on(name, Some(user_data.as_bytes())).await.unwrap();
    wait_for_boot(lab, name, MachineState::Running).await;
}

async fn wait_for_boot(lab: &Lab, name: &str, wanted: MachineState) {
    until("the boot is through", SOON, async || machine(lab, name).await.state != MachineState::Booting).await;
    assert_eq!(machine(lab, name).await.state, wanted, "{}", console(lab, name));
}
