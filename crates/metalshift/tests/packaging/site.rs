//! A lab with nodes and a MAAS, its API server keeps a record, and the image of the provider is on its node as if it had been pulled.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use lab::{Lab, Level, Options, programs::Program};
use maas_client::{Client as Maas, MachineFilter, MachineStatus};

use crate::waiting::until;

pub const SOON: Duration = Duration::from_mins(2);
pub const KEY: &str = "c:t:s";
const PROGRAM: &str = env!("CARGO_BIN_EXE_metalshift");

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A chore of the repository.
pub fn xtask(arguments: &[&OsStr]) -> String {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    expect(command.arg("xtask").args(arguments).current_dir(repository()))
}

/// What a program says; it must succeed.
pub fn expect(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    text(&output)
}

pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub struct Site {
    pub lab: Lab,
}

impl Site {
    pub async fn up(image: &Path) -> Self {
        let fleet = repository().join("crates/metalshift/tests/packaging/fleet.yaml");
        let lab = Lab::up(Options::new(Level::Nodes).executed_by(PROGRAM).with_audit().with_maas(Some(fleet))).await.unwrap();
        let mut import = lab.control().enter(Some("management")).await.unwrap();
        expect(import.args(["ctr", "--namespace", "k8s.io", "images", "import", "-"]).stdin(File::open(image).unwrap()));
        Self { lab }
    }

    /// A command beside the control plane.
    pub async fn inside(&self, program: &Path) -> Command {
        let mut command = self.lab.control().enter(None).await.unwrap();
        command.arg(program);
        command
    }

    pub async fn kubectl(&self, arguments: &[&str]) -> String {
        expect(self.inside(self.lab.programs().path(Program::Kubectl)).await.args(arguments))
    }

    /// What kubectl says, or nothing if it fails.
    pub async fn try_kubectl(&self, arguments: &[&str]) -> Option<String> {
        let output = self.inside(self.lab.programs().path(Program::Kubectl)).await.args(arguments).output().unwrap();
        output.status.success().then(|| text(&output))
    }

    /// Writes a file that kubectl can read.
    pub fn file(&self, name: &str, content: &str) -> String {
        let file = self.lab.directory().path().join(name);
        fs::write(&file, content).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Waits until a `JSONPath` of an object is this.
    pub async fn until_is(&self, object: &[&str], path: &str, wanted: &str) {
        let output = format!("--output=jsonpath={{{path}}}");
        let arguments = [&["get"], object, &[&output]].concat();
        until(&format!("{path} of {object:?} is {wanted}"), SOON, async || {
            self.try_kubectl(&arguments).await.is_some_and(|found| found.trim() == wanted)
        })
        .await;
    }

    /// Machines that MAAS shows as somebody's or not Ready.
    pub async fn taken(&self) -> Vec<String> {
        let components = self.lab.control().status().await.unwrap().components;
        let address = &components.iter().find(|component| component.name == lab::MAAS).unwrap().address;
        let maas = Maas::builder(address, KEY).unwrap().build().unwrap();
        let machines = maas.machines().list(&MachineFilter::new()).await.unwrap();
        let taken = machines.into_iter().filter(|machine| machine.owner.is_some() || machine.status != MachineStatus::Ready);
        taken.map(|machine| machine.hostname).collect()
    }
}
