//! The real programs a lab runs (etcd, Kubernetes, Cluster API, `CoreDNS`): finds them, and builds what is not found.
//!
//! Whoever starts a lab calls [`find_or_build`] once, off the async runtime, and gets a path for every program it wants. Looked for in
//! this order, each program on its own: the directory a person names, `KUBEBUILDER_ASSETS` (only what answers the pinned version), the
//! cache, and last a build with Go into the cache.

pub mod build;
mod error;
mod go;
mod probe;
mod progress;
pub mod recipe;
mod search;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

pub use error::ProgramsError;
pub use progress::Progress;
use recipe::{Recipe, Step};
pub use search::{Search, cache_directory};

use crate::kept::Kept;

/// A program of the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Program {
    Etcd,
    KubeApiserver,
    KubeControllerManager,
    KubeScheduler,
    Kubelet,
    KubeProxy,
    Kubeadm,
    Kubectl,
    /// The core manager of Cluster API.
    ClusterApi,
    /// The kubeadm bootstrap provider of Cluster API.
    KubeadmBootstrap,
    /// The kubeadm control plane provider of Cluster API.
    KubeadmControlPlane,
    Clusterctl,
    CoreDns,
    /// Holds the namespaces of a pod.
    Pause,
}

impl Program {
    /// Every program.
    pub const ALL: [Self; 14] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubelet,
        Self::KubeProxy,
        Self::Kubeadm,
        Self::Kubectl,
        Self::ClusterApi,
        Self::KubeadmBootstrap,
        Self::KubeadmControlPlane,
        Self::Clusterctl,
        Self::CoreDns,
        Self::Pause,
    ];

    /// The name of its file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::Kubeadm => "kubeadm",
            Self::Kubectl => "kubectl",
            Self::ClusterApi => "cluster-api",
            Self::KubeadmBootstrap => "kubeadm-bootstrap",
            Self::KubeadmControlPlane => "kubeadm-control-plane",
            Self::Clusterctl => "clusterctl",
            Self::CoreDns => "coredns",
            Self::Pause => "pause",
        }
    }

    /// Which part of Cluster API has to be installed in the cluster for it.
    fn part(self) -> Option<ClusterApiPart> {
        match self {
            Self::ClusterApi => Some(ClusterApiPart::Core),
            Self::KubeadmBootstrap => Some(ClusterApiPart::Bootstrap),
            Self::KubeadmControlPlane => Some(ClusterApiPart::ControlPlane),
            _ => None,
        }
    }
}

/// A part of Cluster API with definitions and webhooks of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ClusterApiPart {
    Core,
    Bootstrap,
    ControlPlane,
}

impl ClusterApiPart {
    /// The name of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Bootstrap => "bootstrap",
            Self::ControlPlane => "control-plane",
        }
    }
}

/// Where a program came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The directory a person named.
    Explicit,
    /// `KUBEBUILDER_ASSETS`.
    Assets,
    /// An earlier build.
    Cache,
    /// Built just now.
    Built,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Explicit => "given",
            Self::Assets => "KUBEBUILDER_ASSETS",
            Self::Cache => "cache",
            Self::Built => "built",
        })
    }
}

/// A program and where it came from.
#[derive(Clone, Debug)]
pub struct Found {
    /// The absolute path.
    pub path: PathBuf,
    /// Where it came from.
    pub source: Source,
}

/// The programs that were wanted, all of them.
#[derive(Clone, Debug)]
pub struct Programs {
    found: BTreeMap<Program, Found>,
    manifests: Option<PathBuf>,
    kubernetes_version: String,
}

impl Programs {
    #[cfg(test)]
    pub(crate) fn with(program: Program, found: Found) -> Self {
        Self { found: BTreeMap::from([(program, found)]), manifests: None, kubernetes_version: String::new() }
    }

    /// The path of a program; asking for one that was not wanted is a mistake of the caller and panics.
    pub fn path(&self, program: Program) -> &Path {
        &self.found[&program].path
    }

    /// Whether a person named the place it is in, so that it may be of another release than the pinned one.
    pub(crate) fn is_given(&self, program: Program) -> bool {
        self.found.get(&program).is_some_and(|found| found.source == Source::Explicit)
    }

    /// The same programs, with the one that is all of Kubernetes by its names in the place of the kubelet; container images are made of
    /// it. Nothing if a person gave every program on its own.
    pub(crate) fn with_kubernetes_in_one(&self) -> Option<Self> {
        let names = [Program::Kubelet, Program::KubeScheduler, Program::KubeProxy, Program::KubeControllerManager, Program::KubeApiserver];
        let found: Vec<(&Found, PathBuf)> = names
            .iter()
            .filter_map(|name| self.found.get(name))
            .filter_map(|found| Some((found, found.path.canonicalize().ok()?)))
            .collect();
        let is_shared = |file: &Path| found.iter().filter(|(_, other)| other == file).count() > 1;
        let (in_one, _) = found.iter().find(|(_, file)| is_shared(file))?;
        let mut programs = self.clone();
        programs.found.insert(Program::Kubelet, (*in_one).clone());
        Some(programs)
    }

    /// Remembers that what came from a cache is used, so that nobody removes it as unused.
    pub(crate) fn note_use(&self) {
        let kept = self.found.values().filter(|found| matches!(found.source, Source::Cache | Source::Built));
        // <cache>/programs/<key>/bin/<name>
        let roots: BTreeSet<&Path> = kept.filter_map(|found| found.path.ancestors().nth(2)).collect();
        for root in roots {
            if let (Some(shelf), Some(key)) = (root.parent(), root.file_name()) {
                Kept::new(shelf.to_owned(), key.to_string_lossy().into_owned()).note_use();
            }
        }
    }

    /// Every program with its origin, for display.
    pub fn iter(&self) -> impl Iterator<Item = (Program, &Found)> {
        self.found.iter().map(|(program, found)| (*program, found))
    }

    /// A directory with `crd/*.yaml` and `webhooks.yaml`; there is none if no manager of Cluster API was wanted.
    pub fn manifests(&self, part: ClusterApiPart) -> Option<PathBuf> {
        self.manifests.as_ref().map(|directory| directory.join(part.name()))
    }

    /// The version of Kubernetes, such as `v1.35.8`: the pinned one, or what a kube-apiserver given by a person answers.
    pub fn kubernetes_version(&self) -> &str {
        &self.kubernetes_version
    }
}

/// Finds the wanted programs and builds the rest; blocks, in the worst case for the ten minutes of a first build.
pub fn find_or_build(search: &Search, wanted: &[Program], progress: &mut dyn FnMut(Progress)) -> Result<Programs, ProgramsError> {
    let mut programs = Programs { found: BTreeMap::new(), manifests: None, kubernetes_version: recipe::kubernetes_version().to_owned() };
    let mut rest = Vec::new();
    for &program in wanted {
        match search.given(program)? {
            Some(given) => {
                if let (Program::KubeApiserver, Some(version)) = (program, given.version) {
                    programs.kubernetes_version = format!("v{version}");
                }
                programs.found.insert(program, given.found);
            }
            None => rest.push(program),
        }
    }
    if wanted.iter().any(|program| program.part().is_some()) {
        programs.manifests = search.given_manifests();
    }
    let needs_manifests = programs.manifests.is_none() && wanted.iter().any(|program| program.part().is_some());
    from_recipe(search, &rest, needs_manifests, &mut programs, progress)?;
    Ok(programs)
}

/// Helm from the cache, or built into it; blocks like [`find_or_build`]. Only tests want it.
pub fn find_or_build_helm(search: &Search, progress: &mut dyn FnMut(Progress)) -> Result<PathBuf, ProgramsError> {
    search.check_caches()?;
    let recipe = Recipe::helm();
    let steps: Vec<&Step> = recipe.steps.iter().collect();
    let available = build::ensure(&search.caches, &search.go, &recipe, &steps, progress)?;
    Ok(available[0].directory.join("bin/helm"))
}

/// Takes what nobody gave from the cache, or builds it.
fn from_recipe(
    search: &Search,
    rest: &[Program],
    needs_manifests: bool,
    programs: &mut Programs,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ProgramsError> {
    let recipe = Recipe::pinned();
    let needed = |step: &&Step| {
        let makes_a_program = rest.iter().any(|program| recipe::step_makes(step, program.name()));
        makes_a_program || (needs_manifests && step.name == recipe::MANIFESTS)
    };
    let steps: Vec<&Step> = recipe.steps.iter().filter(needed).collect();
    if steps.is_empty() {
        return Ok(());
    }
    search.check_caches()?;
    let available = build::ensure(&search.caches, &search.go, &recipe, &steps, progress)?;
    for (step, available) in steps.iter().zip(available) {
        let source = if available.built { Source::Built } else { Source::Cache };
        for program in rest.iter().filter(|program| recipe::step_makes(step, program.name())) {
            programs.found.insert(*program, Found { path: available.directory.join("bin").join(program.name()), source });
        }
        if needs_manifests && step.name == recipe::MANIFESTS {
            programs.manifests = Some(available.directory.join("cluster-api"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn images_are_made_of_the_program_with_many_names_whatever_kubelet_a_person_gave() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        fs::write(file("kubernetes"), "all").unwrap();
        fs::write(file("given"), "a kubelet").unwrap();
        let mut programs = Programs { found: BTreeMap::new(), manifests: None, kubernetes_version: String::new() };
        for program in [Program::Kubelet, Program::KubeScheduler, Program::KubeProxy] {
            symlink(file("kubernetes"), file(program.name())).unwrap();
            programs.found.insert(program, Found { path: file(program.name()), source: Source::Cache });
        }
        let image = |programs: &Programs| Some(programs.with_kubernetes_in_one()?.path(Program::Kubelet).to_owned());
        assert_eq!(image(&programs), Some(file("kubelet")), "nothing changes where nothing was given");
        programs.found.insert(Program::Kubelet, Found { path: file("given"), source: Source::Explicit });
        assert_eq!(image(&programs), Some(file("kube-scheduler")));
        programs.found.insert(Program::KubeProxy, Found { path: file("given"), source: Source::Explicit });
        fs::copy(file("given"), file("another")).unwrap();
        programs.found.insert(Program::Kubelet, Found { path: file("another"), source: Source::Explicit });
        assert_eq!(image(&programs), None, "no program has many names");
    }
}
