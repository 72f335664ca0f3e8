//! Where programs are looked for before anything is built: read once from the environment, or made by a test.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::ProgramsError;
use super::{ClusterApiPart, Found, Program, Source, go, probe};
use crate::private;

const SYSTEM_CACHE: &str = "/var/cache/metalshift";

/// Where to look.
#[derive(Clone, Debug)]
pub struct Search {
    /// A directory a person named; what is in it is used whatever its version.
    pub explicit: Option<PathBuf>,
    /// The directory Kubernetes' own test tools use; only the pinned versions are taken from it.
    pub kubebuilder_assets: Option<PathBuf>,
    /// The caches, at least one; all are read, the first is written.
    pub caches: Vec<PathBuf>,
    /// Where Go may be.
    pub go: Vec<PathBuf>,
}

/// A program that is there already.
pub(super) struct Given {
    pub found: Found,
    pub version: Option<String>,
}

impl Search {
    /// What the environment says; `explicit` (the option `--programs`) comes before `METALSHIFT_PROGRAMS`.
    pub fn from_environment(explicit: Option<PathBuf>) -> Self {
        let own = cache_directory();
        let mut caches = vec![own.clone()];
        if own != Path::new(SYSTEM_CACHE) && variable("METALSHIFT_CACHE").is_none() {
            // What root built serves everybody.
            caches.push(PathBuf::from(SYSTEM_CACHE));
        }
        Self {
            explicit: explicit.or_else(|| variable("METALSHIFT_PROGRAMS").map(PathBuf::from)),
            kubebuilder_assets: variable("KUBEBUILDER_ASSETS").map(PathBuf::from),
            caches,
            go: go::candidates(std::env::var_os("PATH").as_deref()),
        }
    }

    /// A program from the explicit directory or from the assets, if either has it.
    pub(super) fn given(&self, program: Program) -> Result<Option<Given>, ProgramsError> {
        if let Some(directory) = &self.explicit {
            let path = absolute(directory).join(program.name());
            if !directory.is_dir() {
                return Err(ProgramsError::NoDirectory { path: directory.clone() });
            }
            // A link that leads nowhere is there, and broken.
            if path.symlink_metadata().is_ok() {
                return match probe::usable(program, &path) {
                    Ok(version) => Ok(Some(Given { found: Found { path, source: Source::Explicit }, version })),
                    Err(reason) => Err(ProgramsError::Unusable { path, reason }),
                };
            }
        }
        let Some(assets) = &self.kubebuilder_assets else { return Ok(None) };
        let path = absolute(assets).join(program.name());
        let pinned = path.is_file() && probe::is_pinned_version(program, &path);
        Ok(pinned.then_some(Given { found: Found { path, source: Source::Assets }, version: None }))
    }

    /// Programs are run only from caches that nobody else can have filled, and a new cache becomes one.
    pub(super) fn check_caches(&self) -> Result<(), ProgramsError> {
        for cache in &self.caches {
            private::make_for(cache).map_err(|source| ProgramsError::CacheNotWritable { path: cache.clone(), source })?;
            if let Some(path) = private::foreign(cache) {
                return Err(ProgramsError::ForeignCache { path });
            }
        }
        Ok(())
    }

    /// What Cluster API needs installed, if it stands beside the explicit directory as it does in a cache; so the `bin` of a cache can be given.
    pub(super) fn given_manifests(&self) -> Option<PathBuf> {
        let manifests = absolute(self.explicit.as_ref()?).parent()?.join("cluster-api");
        let parts = [ClusterApiPart::Core, ClusterApiPart::Bootstrap, ClusterApiPart::ControlPlane];
        parts.iter().all(|part| manifests.join(part.name()).join("webhooks.yaml").is_file()).then_some(manifests)
    }
}

/// Where finished builds are kept: `METALSHIFT_CACHE`, or `/var/cache/metalshift` for root, or the person's own cache directory,
/// or one below that for temporary files for a person without a home.
pub fn cache_directory() -> PathBuf {
    let root = rustix::process::geteuid().is_root();
    let home = variable("HOME").filter(|home| Path::new(home).is_dir());
    cache_directory_for(variable("METALSHIFT_CACHE"), root, variable("XDG_CACHE_HOME"), home)
}

fn cache_directory_for(chosen: Option<OsString>, root: bool, cache_home: Option<OsString>, home: Option<OsString>) -> PathBuf {
    let below = |directory: PathBuf| directory.join("metalshift");
    match (chosen, cache_home.map(PathBuf::from).filter(|path| path.is_absolute()), home) {
        (Some(chosen), _, _) => absolute(Path::new(&chosen)),
        _ if root => PathBuf::from(SYSTEM_CACHE),
        (None, Some(cache_home), _) => below(cache_home),
        (None, None, Some(home)) => below(Path::new(&home).join(".cache")),
        (None, None, None) => private::directory().join("cache"),
    }
}

/// An empty variable counts as unset, as it does for most programs.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The lab starts programs from other directories. Making a path absolute fails only when it is empty.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_a_person_expects_it() {
        let some = |text: &str| Some(OsString::from(text));
        let cases = [
            (cache_directory_for(some("/data/cache"), true, some("/x"), some("/root")), "/data/cache"),
            (cache_directory_for(None, true, some("/x"), some("/root")), "/var/cache/metalshift"),
            (cache_directory_for(None, false, some("/x"), some("/home/ada")), "/x/metalshift"),
            (cache_directory_for(None, false, some("relative"), some("/home/ada")), "/home/ada/.cache/metalshift"),
            (cache_directory_for(None, false, None, some("/home/ada")), "/home/ada/.cache/metalshift"),
        ];
        for (directory, expected) in cases {
            assert_eq!(directory, Path::new(expected));
        }
    }
}
