//! A management cluster: a lab with nodes and a MAAS, and the programs people use there. For tests that say more about it.

// Each of the tests that use it needs only some of it.
#![allow(dead_code, reason = "shared by tests")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use lab::{
    Lab, Level, Options,
    programs::{Program, Programs, Search, find_or_build},
};
use maas_client::{AllocationType, Client as Maas, DnsFilter, Machine, MachineFilter, MachineStatus};
use serde_json::Value;

use crate::{recorded_calls, waiting::until};

pub const SOON: Duration = Duration::from_mins(2);
/// Several machines one after the other, on two busy cores.
pub const CLUSTER_WITHIN: Duration = Duration::from_mins(12);
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_metalshift");
pub const ADMINISTRATOR: &str = "c:t:s";
pub const ENDPOINT: &str = "http://maas.lab:5240/MAAS";

pub struct Management {
    pub lab: Lab,
    /// kubectl and clusterctl.
    pub programs: Programs,
    /// The addresses that MAAS had given out before anybody asked for one.
    addresses_before: BTreeSet<String>,
}

impl Management {
    /// A lab with the fleet of this file, which stands beside the tests.
    pub async fn up(fleet: &str, options: impl FnOnce(Options) -> Options) -> Self {
        Self::of_level(Level::Nodes, fleet, options).await
    }

    /// The same; below level nodes nothing boots.
    pub async fn of_level(level: Level, fleet: &str, options: impl FnOnce(Options) -> Options) -> Self {
        let fleet = repository().join("crates/metalshift/tests").join(fleet);
        let lab = Lab::up(options(Options::new(level).executed_by(PROGRAM).with_audit().with_maas(Some(fleet)))).await.unwrap();
        let programs = find_or_build(&Search::from_environment(None), &[Program::Kubectl, Program::Clusterctl], &mut |_| {}).unwrap();
        let mut management = Self { lab, programs, addresses_before: BTreeSet::new() };
        management.addresses_before = management.addresses_given_out().await.into_iter().collect();
        management
    }

    /// A command where all clusters of the lab are in reach.
    pub async fn inside(&self, program: &Path) -> Command {
        let mut command = self.lab.control().enter(None).await.unwrap();
        command.arg(program);
        command
    }

    pub async fn clusterctl(&self, arguments: &[&str]) -> Command {
        let mut command = self.inside(self.programs.path(Program::Clusterctl)).await;
        // It would ask the world for a newer release and remember the answer in the person's configuration.
        command.envs([("CLUSTERCTL_DISABLE_VERSIONCHECK", "true"), ("GOPROXY", "off")]).env("XDG_CONFIG_HOME", self.lab.directory().path());
        command.args(arguments);
        command
    }

    pub async fn kubectl(&self, arguments: &[&str]) -> String {
        expect(self.inside(self.programs.path(Program::Kubectl)).await.args(arguments))
    }

    /// What kubectl says, or nothing if it fails.
    pub async fn try_kubectl(&self, arguments: &[&str]) -> Option<String> {
        let output = self.inside(self.programs.path(Program::Kubectl)).await.args(arguments).output().unwrap();
        output.status.success().then(|| text(&output))
    }

    /// A kubeconfig of the provider's own account, in this cluster or in another one whose kubeconfig is given.
    pub async fn account(&self, name: &str, other: Option<&str>) -> String {
        let of_cluster: Vec<&str> = other.iter().flat_map(|kubeconfig| ["--kubeconfig", kubeconfig]).collect();
        let create = ["create", "token", "capmaas-manager", "--namespace", "capmaas-system", "--duration", "3h"];
        let token = self.kubectl(&[&of_cluster[..], &create].concat()).await;
        let administrator = self.kubectl(&[&of_cluster[..], &["config", "view", "--raw"]].concat()).await;
        let kubeconfig = self.file(&format!("{name}.kubeconfig"), &administrator);
        let config = |arguments: &[&str]| {
            let mut command = Command::new(self.programs.path(Program::Kubectl));
            expect(command.arg("--kubeconfig").arg(&kubeconfig).arg("config").args(arguments));
        };
        config(&["set-credentials", "provider", "--token", token.trim()]);
        config(&["set-context", "--current", "--user", "provider"]);
        kubeconfig
    }

    /// Writes a file that the programs can read.
    pub fn file(&self, name: &str, content: &str) -> String {
        let file = self.lab.directory().path().join(name);
        fs::write(&file, content).unwrap();
        file.to_str().unwrap().to_owned()
    }

    pub async fn apply(&self, documents: &str) {
        self.kubectl(&["apply", "--server-side", "--filename", &self.file("apply.yaml", documents)]).await;
    }

    /// Waits until a `JSONPath` of an object is this. The object is named in the words of kubectl, flags included.
    pub async fn until_is(&self, object: &str, path: &str, wanted: &str) {
        let output = format!("--output=jsonpath={{{path}}}");
        let arguments: Vec<&str> = ["get"].into_iter().chain(object.split(' ')).chain([output.as_str()]).collect();
        until(&format!("{path} of {object} is {wanted}"), CLUSTER_WITHIN, async || {
            self.try_kubectl(&arguments).await.is_some_and(|found| found.trim() == wanted)
        })
        .await;
    }

    /// Where the MAAS answers people outside of the lab.
    pub async fn maas_address(&self) -> String {
        let components = self.lab.control().status().await.unwrap().components;
        components.into_iter().find(|component| component.name == lab::MAAS).unwrap().address
    }

    /// A page of the emulator itself: its faults or its calls.
    pub async fn emulator(&self, page: &str, arguments: &[&str]) -> String {
        let address = self.maas_address().await.replace("/MAAS", &format!("/emulator/{page}"));
        let usual = ["--silent", "--show-error", "--fail", "--noproxy", "*", "--oauth2-bearer", ADMINISTRATOR];
        expect(Command::new("curl").args(usual).args(arguments).arg(address))
    }

    /// The MAAS, as its administrator sees it.
    pub async fn maas(&self) -> Maas {
        Maas::builder(&self.maas_address().await, ADMINISTRATOR).unwrap().build().unwrap()
    }

    /// Calls that MAAS got after the one of this number, the latest last.
    pub async fn calls_after(&self, number: u64) -> Vec<Value> {
        let calls: Value = serde_json::from_str(&self.emulator(&format!("calls?after={number}"), &[]).await).unwrap();
        calls["calls"].as_array().unwrap().clone()
    }

    /// Machines that are not Ready or belong to somebody, names, and addresses that were not given out before.
    pub async fn left_in_maas(&self) -> Vec<String> {
        let maas = self.maas().await;
        let machines = maas.machines().list(&MachineFilter::new()).await.unwrap();
        let held = |machine: &&Machine| machine.owner.is_some() || machine.status != MachineStatus::Ready;
        let mut left: Vec<String> = machines.iter().filter(held).map(|machine| format!("machine {}", machine.hostname)).collect();
        let names = maas.dns_resources().list(&DnsFilter::default()).await.unwrap();
        left.extend(names.into_iter().map(|resource| format!("name {}", resource.fqdn)));
        let addresses = self.addresses_given_out().await;
        left.extend(addresses.into_iter().filter(|ip| !self.addresses_before.contains(ip)).map(|ip| format!("address {ip}")));
        left
    }

    /// What the API server recorded of the provider's own account.
    pub fn provider_calls(&self) -> Vec<Value> {
        recorded_calls::of_the_provider(&self.lab.directory().audit_log())
    }

    pub fn assert_the_provider_minded_its_own(&self) {
        recorded_calls::assert_the_provider_minded_its_own(&self.lab.directory().audit_log());
    }

    /// Addresses that somebody reserved, and those that machines have for good: MAAS leaves a fixed address with the server it was given to,
    /// also when nobody has that any more, so the provider has to take it off again. Others come and go with a deployment.
    async fn addresses_given_out(&self) -> Vec<String> {
        let stays = |kind: AllocationType| matches!(kind, AllocationType::UserReserved | AllocationType::Static);
        let addresses = self.maas().await.ip_addresses().list_all().await.unwrap();
        // Those of interfaces that are to have none yet are empty.
        addresses.into_iter().filter(|address| stays(address.alloc_type) && !address.ip.is_empty()).map(|address| address.ip).collect()
    }
}

/// Whether a call changed something.
pub fn is_write(call: &Value) -> bool {
    call["method"] != "GET"
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the provider's release.
pub fn manifest(name: &str) -> PathBuf {
    repository().join("manifests/infrastructure-maas").join(name)
}

/// A chore of the repository.
pub fn xtask(arguments: &[&str]) -> String {
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
