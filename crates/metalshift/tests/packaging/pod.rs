//! The provider in a pod, with the image that is shipped and with the rights that are shipped.

use std::path::Path;

use lab::programs::{Program, Search, find_or_build, find_or_build_helm};

use crate::{
    management::{ADMINISTRATOR, ENDPOINT, SOON, expect, repository, xtask},
    reboot, rights,
    site::Site,
    waiting::{is_root, until},
};

const DEPLOYMENT: &str = "--namespace=capmaas-system deployment capmaas-controller-manager";

#[tokio::test]
async fn row_66_the_provider_works_as_a_pod_from_its_components_and_from_its_chart_nothing_it_asks_for_is_forbidden_and_a_reboot_leaks_nothing()
 {
    if !is_root("pods need root") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image.tar");
    xtask(&["image", "--profile=dev", "--output", image.to_str().unwrap()]);
    let site = Site::up(&image).await;

    make(&site, "deploy").await;
    provides(&site).await;
    rights::check(&site.provider_calls());
    make(&site, "undeploy").await;

    let seen = site.provider_calls().len();
    let helm = find_or_build_helm(&Search::from_environment(None), &mut |_| {}).unwrap();
    let chart = repository().join("manifests/chart").canonicalize().unwrap();
    let mut install = site.inside(&helm).await;
    install.args(["install", "metalshift", "--namespace=capmaas-system", "--create-namespace"]).arg(chart);
    install.args(["--set", &format!("maas.endpoint={ENDPOINT},maas.apiKey={ADMINISTRATOR}")]);
    expect(
        install.env("HELM_CONFIG_HOME", directory.path()).env("HELM_CACHE_HOME", directory.path()).env("HELM_DATA_HOME", directory.path()),
    );
    assert!(
        site.kubectl(&["get", "validatingadmissionpolicies", "--output=name"]).await.contains("template-immutability"),
        "the server offers policies"
    );
    provides(&site).await;
    rights::check(&site.provider_calls()[seen..]);

    reboot::is_survived(&site).await;
    gives_back(&site).await;
}

/// Runs a target of the Makefile where the lab is, with nothing but its own programs and the system's.
async fn make(site: &Site, target: &str) {
    let clusterctl = find_or_build(&Search::from_environment(None), &[Program::Clusterctl], &mut |_| {}).unwrap();
    let programs = [clusterctl.path(Program::Clusterctl), site.lab.programs().path(Program::Kubectl)];
    let path = programs.map(|program| program.parent().unwrap().display().to_string()).join(":");
    let mut command = site.inside(Path::new("make")).await;
    command
        .arg(target)
        .arg("--directory")
        .arg(repository().canonicalize().unwrap())
        .env("PATH", format!("{path}:/usr/sbin:/usr/bin:/sbin:/bin"));
    command.envs([("MAAS_ENDPOINT", ENDPOINT), ("MAAS_API_KEY", ADMINISTRATOR)]);
    // clusterctl would ask the world for a newer release and remember the answer in the person's configuration.
    command.envs([("CLUSTERCTL_DISABLE_VERSIONCHECK", "true"), ("GOPROXY", "off")]).env("XDG_CONFIG_HOME", site.lab.directory().path());
    expect(&mut command);
}

/// The Deployment becomes available, leads, and brings a machine up and back.
async fn provides(site: &Site) {
    site.until_is(DEPLOYMENT, ".status.conditions[?(@.type==\"Available\")].status", "True").await;
    site.apply(include_str!("cluster.yaml")).await;
    site.until_is("maasmachine racks-0", ".status.initialization.provisioned", "true").await;
    assert!(site.left_in_maas().await.iter().any(|held| held.starts_with("machine")), "a machine is held");
    let lease =
        ["--namespace=capmaas-system", "get", "lease", "controller-leader-election-capmaas", "--output=jsonpath={.spec.holderIdentity}"];
    let leader = site.kubectl(&lease).await;
    assert!(leader.starts_with("capmaas-controller-manager-"), "{leader} leads");
    gives_back(site).await;
}

/// What was made is deleted, and MAAS has everything back.
async fn gives_back(site: &Site) {
    site.kubectl(&["delete", "cluster/racks", "maasmachinetemplate/racks", "secret/boot", "--timeout=2m"]).await;
    until("MAAS has its machine back", SOON, async || site.left_in_maas().await.is_empty()).await;
}
