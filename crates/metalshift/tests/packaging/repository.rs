//! What `cargo xtask release` writes is what a genuine `clusterctl` takes a provider from.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use lab::programs::{Program, Search, find_or_build};

use crate::management::{expect, repository, xtask};

/// A repository, and a clusterctl that knows it and no cluster.
struct Repository {
    directory: tempfile::TempDir,
    clusterctl: PathBuf,
    configuration: String,
}

impl Repository {
    fn released() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let configuration = xtask(&["release", directory.path().to_str().unwrap()]).trim().to_owned();
        let programs = find_or_build(&Search::from_environment(None), &[Program::Clusterctl], &mut |_| {}).unwrap();
        Self { directory, clusterctl: programs.path(Program::Clusterctl).to_owned(), configuration }
    }

    fn clusterctl(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.clusterctl);
        command.args(arguments).args(["--config", &self.configuration]);
        // It would ask the world for a newer release and remember the answer in the person's configuration.
        command.envs([("CLUSTERCTL_DISABLE_VERSIONCHECK", "true"), ("GOPROXY", "off")]).env("XDG_CONFIG_HOME", self.directory.path());
        command.env("KUBECONFIG", self.directory.path().join("none")).env_remove("MAAS_ENDPOINT").env_remove("MAAS_API_KEY");
        command
    }
}

#[test]
fn clusterctl_finds_the_provider_its_image_and_its_variables_in_the_repository() {
    let repository = Repository::released();
    assert!(Path::new(&repository.configuration).starts_with(repository.directory.path()));
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    let described = expect(&mut repository.clusterctl(&["generate", "provider", "--infrastructure", "maas", "--describe"]));
    for words in
        [format!("Version:            {version}"), format!("  - docker.io/metalshift/metalshift:{version}"), "  - MAAS_API_KEY".to_owned()]
    {
        assert!(described.contains(&words), "{words:?} is not in\n{described}");
    }
    let mut generate = repository.clusterctl(&["generate", "provider", "--infrastructure", &format!("maas:{version}")]);
    let components = expect(generate.envs([("MAAS_ENDPOINT", "http://maas.example/MAAS"), ("MAAS_API_KEY", "a:b:c")]));
    assert!(components.contains("MAAS_API_KEY: a:b:c") && !components.contains("${"), "{components}");
    assert_eq!(components.lines().filter(|line| *line == "kind: Deployment").count(), 1);
}

#[test]
fn clusterctl_takes_the_image_from_where_the_page_on_installation_pushes_it() {
    let released = Repository::released();
    let page = std::fs::read_to_string(repository().join("docs/how-to/install.md")).unwrap();
    let images = page.split("```\n").find(|block| block.starts_with("images:\n")).unwrap();
    let pushed = page.split("docker://").nth(1).unwrap().split('`').next().unwrap();
    let configuration = std::fs::read_to_string(&released.configuration).unwrap();
    std::fs::write(&released.configuration, configuration + images).unwrap();
    let mut generate = released.clusterctl(&["generate", "provider", &format!("--infrastructure=maas:v{}", env!("CARGO_PKG_VERSION"))]);
    let components = expect(generate.envs([("MAAS_ENDPOINT", ""), ("MAAS_API_KEY", "")]));
    let image = components.lines().find_map(|line| line.trim().strip_prefix("image: ")).unwrap();
    assert_eq!(image, pushed.replace("REGISTRY", "registry.example"));
}

#[test]
fn clusterctl_wants_a_key_or_to_be_told_that_there_is_none() {
    let repository = Repository::released();
    let provider = format!("maas:v{}", env!("CARGO_PKG_VERSION"));
    let arguments = ["generate", "provider", "--infrastructure", &provider];
    let refused = repository.clusterctl(&arguments).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("MAAS_API_KEY, MAAS_ENDPOINT"), "{words}");
    let components = expect(repository.clusterctl(&arguments).envs([("MAAS_ENDPOINT", ""), ("MAAS_API_KEY", "")]));
    // Nothing, where an empty text would take the place of a key that is there.
    assert!(components.contains("MAAS_API_KEY: null\n"), "{components}");
}

#[test]
fn the_components_of_this_repository_want_a_key_too_where_an_empty_one_would_take_the_place_of_one_that_works() {
    let released = Repository::released();
    let components = repository().join("manifests/infrastructure-maas/infrastructure-components.yaml");
    let arguments = ["generate", "yaml", "--from", components.to_str().unwrap()];
    let given = ("MAAS_ENDPOINT", "http://maas.example/MAAS");
    for (variables, missing) in [(&[][..], "[MAAS_API_KEY, MAAS_ENDPOINT] is not set"), (&[given][..], "[MAAS_API_KEY] is not set")] {
        let refused = released.clusterctl(&arguments).envs(variables.iter().copied()).output().unwrap();
        let words = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && words.contains(missing), "{words}");
        assert!(refused.stdout.is_empty(), "nothing that kubectl could apply");
    }
    let filled = expect(released.clusterctl(&arguments).envs([given, ("MAAS_API_KEY", "a:b:c")]));
    assert!(filled.contains("MAAS_API_KEY: a:b:c") && !filled.contains("${"), "{filled}");
}

#[test]
fn clusterctl_makes_a_cluster_of_the_templates_in_the_repository() {
    let repository = Repository::released();
    // Without a cluster to ask, it wants to know the version.
    let provider = format!("--infrastructure=maas:v{}", env!("CARGO_PKG_VERSION"));
    let arguments = ["generate", "cluster", "racks", &provider, "--target-namespace=default", "--kubernetes-version=v1.35.8"];
    let refused = repository.clusterctl(&arguments).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("MAAS_DNS_DOMAIN"), "{words}");
    let values =
        [("MAAS_DNS_DOMAIN", "racks.example"), ("CONTROL_PLANE_MACHINE_IMAGE", "ubuntu/noble"), ("WORKER_MACHINE_IMAGE", "ubuntu/noble")];
    let cluster = expect(repository.clusterctl(&arguments).envs(values));
    for kind in ["Cluster", "MaasCluster", "KubeadmControlPlane", "MachineDeployment"] {
        assert!(cluster.lines().any(|line| line == format!("kind: {kind}")), "{kind} is not in\n{cluster}");
    }
    assert!(cluster.contains("dnsDomain: racks.example"), "{cluster}");
}
