//! What is built, as data: the Go sources carried inside this program and the steps that turn them into programs.
//! `build` performs a recipe; the tests give it a tiny one of their own.

use std::time::Duration;

use sha2::{Digest, Sha256};

const KUBERNETES_MODULE: &str = include_str!("../../../../kubernetes/go.mod");
const COREDNS_MODULE: &str = include_str!("../../../../kubernetes/coredns/go.mod");

/// A file that is written before the first step runs.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Where it goes, below the source directory.
    pub path: String,
    /// What it holds.
    pub content: String,
}

/// Sources and the steps that build them, in order.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The Go modules.
    pub sources: Vec<SourceFile>,
    /// The steps; each can be repeated alone.
    pub steps: Vec<Step>,
}

/// One step: a unit of progress, of resuming and of rebuilding.
#[derive(Clone, Debug)]
pub struct Step {
    /// What a person reads in the progress line.
    pub name: String,
    /// What it does.
    pub action: Action,
    /// What it usually costs.
    pub effort: Effort,
}

/// What a step costs when nothing is compiled yet; for the estimate only, so no part of a build's key.
#[derive(Clone, Debug)]
pub struct Effort {
    /// On two cores.
    pub takes: Duration,
    /// How many packages are compiled that no step before it needed.
    pub packages: u32,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// `go build` of one main package into `bin/`.
    Compile(Compile),
    /// Copies of files that a module carries.
    Copy(Copy),
}

/// One `go build`.
#[derive(Clone, Debug)]
pub struct Compile {
    /// The directory of the module, below the source directory ("" is the source directory itself).
    pub module: String,
    /// The package, as `go build` takes it.
    pub package: String,
    /// The linker flags: the version stamps.
    pub link: String,
    /// The file in `bin/`.
    pub file: String,
    /// More names of the same file, as symbolic links beside it.
    pub names: Vec<String>,
}

/// Files taken out of the module cache.
#[derive(Clone, Debug)]
pub struct Copy {
    /// The directory of the module that requires it, below the source directory.
    pub module: String,
    /// The module that carries them.
    pub from: String,
    /// The directory they go to, beside `bin/`.
    pub into: String,
    /// From where in the module (a file or a directory with plain files) to where in `into`.
    pub files: Vec<(String, String)>,
}

impl Recipe {
    /// The programs at the versions this release is made for.
    pub fn pinned() -> Self {
        let source = |path: &str, content: &str| SourceFile { path: path.to_owned(), content: content.to_owned() };
        let sources = vec![
            source("go.mod", KUBERNETES_MODULE),
            source("go.sum", include_str!("../../../../kubernetes/go.sum")),
            source("main.go", include_str!("../../../../kubernetes/main.go")),
            source("programs.go", include_str!("../../../../kubernetes/programs.go")),
            source("pause/main.go", include_str!("../../../../kubernetes/pause/main.go")),
            source("coredns/go.mod", COREDNS_MODULE),
            source("coredns/go.sum", include_str!("../../../../kubernetes/coredns/go.sum")),
            source("coredns/main.go", include_str!("../../../../kubernetes/coredns/main.go")),
        ];
        let kubernetes = stamp("k8s.io/component-base/version", kubernetes_version());
        let cluster_api = stamp("sigs.k8s.io/cluster-api/version", cluster_api_version());
        let plain = "-s -w".to_owned();
        let mut steps = vec![
            compile("pause", "", "./pause", &plain, 58, 10),
            compile("kubernetes", "", ".", &kubernetes, 2813, 450),
            compile("cluster-api", "", "sigs.k8s.io/cluster-api", &cluster_api, 189, 50),
            compile("kubeadm-bootstrap", "", "sigs.k8s.io/cluster-api/bootstrap/kubeadm", &cluster_api, 47, 15),
            compile("kubeadm-control-plane", "", "sigs.k8s.io/cluster-api/controlplane/kubeadm", &cluster_api, 13, 15),
            compile("clusterctl", "", "sigs.k8s.io/cluster-api/cmd/clusterctl", &cluster_api, 62, 15),
            compile("coredns", "coredns", ".", &plain, 498, 75),
        ];
        if let Action::Compile(multi_call) = &mut steps[1].action {
            multi_call.names = MULTI_CALL.map(str::to_owned).to_vec();
        }
        steps.push(manifests());
        Self { sources, steps }
    }

    /// Helm, which no lab runs: the chart is rendered with it in tests. A recipe of its own, so that neither is built again for the other.
    pub fn helm() -> Self {
        let source = |path: &str, content: &str| SourceFile { path: path.to_owned(), content: content.to_owned() };
        let sources = vec![
            source("go.mod", include_str!("../../../../kubernetes/helm/go.mod")),
            source("go.sum", include_str!("../../../../kubernetes/helm/go.sum")),
            source("programs.go", include_str!("../../../../kubernetes/helm/programs.go")),
        ];
        Self { sources, steps: vec![compile("helm", "", "helm.sh/helm/v4/cmd/helm", "-s -w", 980, 150)] }
    }

    /// The name of a build: changes whenever the result could.
    ///
    /// Sources (with the checksums of every module) and flags are in it; the version of Go is not, because a person without Go
    /// must find what a person with Go built, and because a newer Go makes the same programs. It is recorded beside the result.
    pub fn key(&self) -> String {
        let mut hash = Sha256::new();
        // Debug output of plain data: every field is in it, and quoted, so that no two recipes read the same.
        hash.update(format!("{:?}", self.sources));
        for step in &self.steps {
            hash.update(format!("{:?} {:?}", step.name, step.action));
        }
        hash.update(format!("{:?} {}", super::go::FLAGS, std::env::consts::ARCH));
        let start = hash.finalize().iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        format!("{start:016x}")
    }
}

/// The names `kubernetes/main.go` answers to.
const MULTI_CALL: [&str; 8] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubeadm", "kubectl"];

fn compile(file: &str, module: &str, package: &str, link: &str, packages: u32, seconds: u64) -> Step {
    Step {
        name: file.to_owned(),
        action: Action::Compile(Compile {
            module: module.to_owned(),
            package: package.to_owned(),
            link: link.to_owned(),
            file: file.to_owned(),
            names: Vec::new(),
        }),
        effort: Effort { takes: Duration::from_secs(seconds), packages },
    }
}

/// Where Cluster API 1.13 keeps what has to be installed for each of its parts; later releases moved the core's into `core/`.
fn manifests() -> Step {
    let parts = [("", "core"), ("bootstrap/kubeadm/", "bootstrap"), ("controlplane/kubeadm/", "control-plane")];
    let files = parts.into_iter().flat_map(|(from, to)| {
        [
            (format!("{from}config/crd/bases"), format!("{to}/crd")),
            (format!("{from}config/webhook/manifests.yaml"), format!("{to}/webhooks.yaml")),
        ]
    });
    Step {
        name: MANIFESTS.to_owned(),
        action: Action::Copy(Copy {
            module: String::new(),
            from: "sigs.k8s.io/cluster-api".to_owned(),
            into: "cluster-api".to_owned(),
            files: files.collect(),
        }),
        effort: Effort { takes: Duration::from_secs(3), packages: 0 },
    }
}

/// The step that copies what Cluster API needs installed.
pub(super) const MANIFESTS: &str = "cluster-api manifests";

/// Whether a step makes the program with this name.
pub(super) fn step_makes(step: &Step, program: &str) -> bool {
    match &step.action {
        Action::Compile(compile) => compile.file == program || compile.names.iter().any(|name| name == program),
        Action::Copy(_) => false,
    }
}

/// `-X` flags for the version a program reports. Cluster API refuses a server that reports none, kubeadm panics, and clusterctl cannot compare.
fn stamp(package: &str, version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let fields = [
        ("gitMajor", major),
        ("gitMinor", minor),
        ("gitVersion", version),
        ("gitTreeState", "clean"),
        // Kubernetes wants both; a fixed value keeps the build the same everywhere.
        ("gitCommit", "release"),
        ("buildDate", "1970-01-01T00:00:00Z"),
    ];
    fields.iter().fold("-s -w".to_owned(), |flags, (field, value)| format!("{flags} -X {package}.{field}={value}"))
}

/// The pinned version of Kubernetes, such as `v1.35.8`.
pub fn kubernetes_version() -> &'static str {
    required(KUBERNETES_MODULE, "k8s.io/kubernetes")
}

/// The pinned version of etcd, such as `v3.6.10`.
pub fn etcd_version() -> &'static str {
    required(KUBERNETES_MODULE, "go.etcd.io/etcd/server/v3")
}

/// The pinned version of Cluster API, such as `v1.13.5`.
pub fn cluster_api_version() -> &'static str {
    required(KUBERNETES_MODULE, "sigs.k8s.io/cluster-api")
}

/// The pinned version of `CoreDNS`, such as `v1.13.1`.
pub fn coredns_version() -> &'static str {
    required(COREDNS_MODULE, "github.com/coredns/coredns")
}

/// go.mod is the one place where versions stand; a test asserts that each is found.
fn required(go_mod: &'static str, module: &str) -> &'static str {
    let version_of = |line: &'static str| line.trim().trim_start_matches("require ").strip_prefix(module)?.strip_prefix(' ');
    go_mod.lines().find_map(version_of).unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_are_read_from_the_go_modules() {
        for version in [kubernetes_version(), etcd_version(), cluster_api_version(), coredns_version()] {
            let numbers: Vec<_> = version.trim_start_matches('v').split('.').map(str::parse::<u32>).collect();
            assert!(version.starts_with('v') && numbers.len() == 3 && numbers.iter().all(Result::is_ok), "odd version {version:?}");
        }
    }

    #[test]
    fn what_etcd_reports_is_what_is_pinned() {
        // The number etcd prints comes from its api module, which other requirements can raise past the server.
        assert_eq!(required(KUBERNETES_MODULE, "go.etcd.io/etcd/api/v3").split(' ').next(), Some(etcd_version()));
    }

    #[test]
    fn the_multi_call_program_knows_every_name_it_gets() {
        let main = include_str!("../../../../kubernetes/main.go");
        for name in MULTI_CALL {
            assert!(main.contains(&format!("case \"{name}\":")), "kubernetes/main.go does not know {name}");
        }
    }

    #[test]
    fn a_changed_source_flag_or_step_changes_the_key() {
        let pinned = Recipe::pinned();
        let mut source = pinned.clone();
        source.sources[0].content.push('\n');
        let mut flags = pinned.clone();
        let Action::Compile(compile) = &mut flags.steps[0].action else { panic!("the first step compiles") };
        compile.link.push_str(" -X main.version=2");
        let mut fewer = pinned.clone();
        fewer.steps.pop();
        let mut slower = pinned.clone();
        slower.steps[0].effort.takes += Duration::from_secs(1);
        for other in [source, flags, fewer] {
            assert_ne!(pinned.key(), other.key());
        }
        assert_eq!(pinned.key(), slower.key(), "an estimate is no part of the result");
    }
}
