//! `cargo xtask cores VERSION…`: the tests of the provider on other releases of Cluster API than the pinned one (row 63 of its contract). Nobody
//! but who asks for it pays for it: each release is built once, which takes some minutes, and kept in the cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::{
    command::{cargo, is_root, read, run as run_command},
    output::say,
};

const MODULE: &str = "sigs.k8s.io/cluster-api";

/// Where a release keeps its core.
struct Layout {
    core: &'static str,
    /// Its kinds are a module of their own.
    separate_kinds: bool,
}

impl Layout {
    fn of(minor: u32) -> Self {
        if minor >= 14 { Self { core: "/core", separate_kinds: true } } else { Self { core: "", separate_kinds: false } }
    }

    /// The programs: what the lab calls them, and their packages below the module.
    fn programs(&self) -> [(&'static str, &'static str); 4] {
        [
            ("cluster-api", self.core),
            ("kubeadm-bootstrap", "/bootstrap/kubeadm"),
            ("kubeadm-control-plane", "/controlplane/kubeadm"),
            ("clusterctl", "/cmd/clusterctl"),
        ]
    }

    /// The parts whose kinds are installed: what the lab calls them, and where they are.
    fn parts(&self) -> [(&'static str, &'static str); 3] {
        [("core", self.core), ("bootstrap", "/bootstrap/kubeadm"), ("control-plane", "/controlplane/kubeadm")]
    }
}

/// The tests that meet Cluster API.
const TESTS: [(&str, &str); 2] = [("api", "real_cluster_api"), ("manager", "provider")];

/// Which releases.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Releases of Cluster API since 1.11, such as 1.12.5
    #[arg(required = true, value_parser = release)]
    versions: Vec<String>,
}

fn release(text: &str) -> Result<String, String> {
    let version = text.trim_start_matches('v');
    let numbers: Vec<u32> = version.split('.').filter_map(|number| number.parse().ok()).collect();
    match numbers[..] {
        [1, minor, _] if minor >= 11 => Ok(format!("v{version}")),
        [1, _, _] => Err("Cluster API before 1.11 does not serve v1beta2, which the provider speaks".to_owned()),
        _ => Err("expected a release such as 1.12.5".to_owned()),
    }
}

/// Builds each release and runs the tests on it.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    for version in &arguments.versions {
        let directory = cache()?.join(version);
        build(version, &directory).with_context(|| format!("could not build Cluster API {version}"))?;
        for (package, test) in TESTS {
            say(format!("==> {test} of {package} on Cluster API {version}"));
            run_command(
                cargo(&["test", "--locked", "--package", package, "--test", test]).env("METALSHIFT_PROGRAMS", directory.join("bin")),
            )?;
        }
    }
    say(format!("the provider works with Cluster API {}", arguments.versions.join(", ")));
    Ok(())
}

fn cache() -> anyhow::Result<PathBuf> {
    let chosen = std::env::var_os("METALSHIFT_CACHE").map(PathBuf::from);
    let own = || Some(std::path::absolute(std::env::home_dir()?).ok()?.join(".cache/metalshift"));
    let cache = chosen.or_else(|| if is_root() { Some("/var/cache/metalshift".into()) } else { own() });
    Ok(cache.context("there is no place for a cache: set METALSHIFT_CACHE")?.join("cores"))
}

/// A module that requires the release, its programs, and its manifests as the lab wants them beside `bin/`.
fn build(version: &str, directory: &Path) -> anyhow::Result<()> {
    let finished = directory.join("finished");
    if finished.exists() {
        return Ok(());
    }
    say(format!("building Cluster API {version} in {}", directory.display()));
    let source = directory.join("source");
    fs::create_dir_all(&source)?;
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(arguments).current_dir(&source).env("CGO_ENABLED", "0").env("GOWORK", "off");
        command
    };
    if !source.join("go.mod").exists() {
        run_command(&mut go(&["mod", "init", "cores"]))?;
    }
    let (major, minor) = version.trim_start_matches('v').split_once('.').context("a version has a dot")?;
    let minor = minor.split('.').next().unwrap_or_default();
    let layout = Layout::of(minor.parse().context("a version has numbers")?);
    let kinds = layout.separate_kinds.then_some(("kinds", "/api"));
    let packages = layout.programs().into_iter().chain(kinds).map(|(_, package)| format!("{MODULE}{package}@{version}"));
    run_command(go(&["get"]).args(packages))?;
    // Cluster API refuses a clusterctl and a server that report no version.
    let stamps = [("gitVersion", version), ("gitMajor", major), ("gitMinor", minor), ("gitCommit", "release"), ("gitTreeState", "clean")];
    let link = stamps.iter().fold("-s -w".to_owned(), |flags, (field, value)| format!("{flags} -X {MODULE}/version.{field}={value}"));
    for (name, package) in layout.programs() {
        let file = directory.join("bin").join(name);
        run_command(go(&["build", "-trimpath", "-ldflags", &link, "-o"]).arg(&file).arg(format!("{MODULE}{package}")))?;
    }
    let module = PathBuf::from(read(&mut go(&["list", "-m", "-f", "{{.Dir}}", MODULE]))?.trim());
    for (part, place) in layout.parts() {
        copy_manifests(&module.join(place.trim_start_matches('/')), &directory.join("cluster-api").join(part))?;
    }
    fs::write(&finished, "").with_context(|| format!("could not write {}", finished.display()))
}

fn copy_manifests(part: &Path, into: &Path) -> anyhow::Result<()> {
    let (from, kinds) = (part.join("config"), into.join("crd"));
    fs::create_dir_all(&kinds)?;
    for entry in fs::read_dir(from.join("crd/bases")).with_context(|| format!("{} has no kinds", part.display()))? {
        let path = entry?.path();
        fs::copy(&path, kinds.join(path.file_name().unwrap_or_default()))?;
    }
    fs::copy(from.join("webhook/manifests.yaml"), into.join("webhooks.yaml"))?;
    ensure!(fs::read_dir(&kinds)?.next().is_some(), "{} is empty", from.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_before_the_second_contract_are_refused_with_the_reason() {
        assert_eq!(release("1.12.5").unwrap(), "v1.12.5");
        assert_eq!(release("v1.11.0").unwrap(), "v1.11.0");
        assert!(release("1.10.4").unwrap_err().contains("v1beta2"));
        for text in ["", "1.12", "latest", "2.0.0"] {
            assert!(release(text).is_err(), "{text}");
        }
    }
}
