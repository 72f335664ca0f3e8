//! A cluster that is nothing but a class and its variables: a newer Kubernetes, and a move to another management cluster.

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use lab::programs::{Program, Search, find_or_build, recipe};
use serde_json::{Value, json};

use crate::{
    management::{ADMINISTRATOR, ENDPOINT, PROGRAM, expect, is_write, xtask},
    recorded_calls,
    stage::{CLUSTER_WITHIN, Stage, VARIABLES},
    waiting::{is_root, until},
};

#[tokio::test]
async fn s39_a_cluster_of_our_class_is_upgraded_and_then_moved_without_touching_a_machine() {
    if !is_root("machines need root") {
        return;
    }
    let mut stage = Stage::bare().await;
    let repository = Repository::released(&stage);
    repository.initialize(&stage, None).await;
    stage.start_provider(None).await;

    // Its binaries are the same: what is older is the name of the images.
    let older = older(recipe::kubernetes_version());
    stage.apply(&with_older_images(&repository.cluster(&stage, &older).await, &older)).await;
    stage.until_nodes("racks", 2).await;
    let first = machines(&stage, None).await;
    let upgrade = json!({"spec": {"topology": {"version": recipe::kubernetes_version()}}});
    stage.kubectl(&["patch", "cluster/racks", "--type=merge", "--patch", &upgrade.to_string()]).await;
    until("every machine is replaced by one of the newer version", CLUSTER_WITHIN, async || {
        let now = machines(&stage, None).await;
        now.len() == 2 && now.iter().all(|machine| machine.version == recipe::kubernetes_version() && !machine.server.is_empty())
    })
    .await;
    stage.until_nodes("racks", 2).await;
    stage.until_is("cluster/racks", ".status.conditions[?(@.type==\"Available\")].status", "True").await;
    let before = machines(&stage, None).await;
    assert!(first.iter().all(|old| before.iter().all(|new| new.name != old.name)), "{first:?} became {before:?}");

    let (other, record) = other_management(&stage).await;
    repository.initialize(&stage, Some(&other)).await;
    stage.start_provider(Some(&other)).await;
    let effects = effects(&stage).await;
    expect(stage.clusterctl(&["move", "--config", &repository.configuration, "--to-kubeconfig", &other]).await.arg("--v=1"));
    assert_eq!(stage.kubectl(&["get", "clusters,maasmachines,maasclusters", "--output=name"]).await, "", "all of it has left");
    let racks = format!("--kubeconfig={other} cluster/racks");
    stage.until_is(&racks, ".status.conditions[?(@.type==\"Available\")].status", "True").await;
    until("every machine shows its node", CLUSTER_WITHIN, async || machines(&stage, Some(&other)).await == before).await;
    assert_eq!(self::effects(&stage).await, effects, "a move asks MAAS for nothing");

    stage.kubectl(&["--kubeconfig", &other, "delete", "cluster/racks", "--timeout=10m"]).await;
    assert_eq!(stage.left_in_maas().await, Vec::<String>::new());
    stage.assert_the_provider_minded_its_own();
    recorded_calls::assert_the_provider_minded_its_own(&record);
}

/// What `cargo xtask release` writes, and what clusterctl wants to know of Cluster API itself where it cannot ask the world.
struct Repository {
    configuration: String,
}

impl Repository {
    fn released(stage: &Stage) -> Self {
        let directory = stage.lab.directory().path().join("repository");
        let configuration = xtask(&["release", directory.to_str().unwrap()]).trim().to_owned();
        let core = directory.join("cluster-api").join(recipe::cluster_api_version());
        fs::create_dir_all(&core).unwrap();
        let series: Vec<&str> = recipe::cluster_api_version().trim_start_matches('v').split('.').collect();
        let metadata = json!({
            "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
            "kind": "Metadata",
            "releaseSeries": [
                {"major": series[0].parse::<u32>().unwrap(), "minor": series[1].parse::<u32>().unwrap(), "contract": "v1beta2"},
            ],
        });
        fs::write(core.join("metadata.yaml"), metadata.to_string()).unwrap();
        fs::write(core.join("core-components.yaml"), "").unwrap();
        let (text, url) = (fs::read_to_string(&configuration).unwrap(), core.join("core-components.yaml"));
        fs::write(&configuration, format!("{text}- {{name: cluster-api, type: CoreProvider, url: {}}}\n", url.display())).unwrap();
        Self { configuration }
    }

    /// Installs the provider as people do; its pod gives way to a process.
    async fn initialize(&self, stage: &Stage, other: Option<&str>) {
        let of_cluster: Vec<&str> = other.iter().flat_map(|kubeconfig| ["--kubeconfig", kubeconfig]).collect();
        let mut command = stage.clusterctl(&["init", "--infrastructure", "maas", "--config", &self.configuration]).await;
        expect(command.args(&of_cluster).envs([("MAAS_ENDPOINT", ENDPOINT), ("MAAS_API_KEY", ADMINISTRATOR)]));
        let scale = ["--namespace=capmaas-system", "scale", "deployment/capmaas-controller-manager", "--replicas=0"];
        stage.kubectl(&[&of_cluster[..], &scale].concat()).await;
    }

    /// A cluster of the class, which comes along.
    async fn cluster(&self, stage: &Stage, version: &str) -> String {
        let mut command = stage.clusterctl(&["generate", "cluster", "racks", "--flavor=clusterclass", "--infrastructure=maas"]).await;
        command.args(["--target-namespace=default", "--worker-machine-count=1", "--kubernetes-version", version]);
        expect(command.args(["--config", &self.configuration]).envs(VARIABLES))
    }
}

/// The patch release before.
fn older(version: &str) -> String {
    let (series, patch) = version.rsplit_once('.').unwrap();
    format!("{series}.{}", patch.parse::<u32>().unwrap() - 1)
}

/// Machines that have the images of the older version too.
fn with_older_images(documents: &str, older: &str) -> String {
    let newer = recipe::kubernetes_version();
    let name = |part: &str, version: &str| format!("registry.k8s.io/{part}:{version}");
    let documents: Vec<String> =
        documents
            .lines()
            .flat_map(|line| {
                let mut lines = vec![line.to_owned()];
                if let Some(indentation) = line.strip_suffix("- systemctl start containerd") {
                    lines.extend(["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"].map(|part| {
                        format!("{indentation}- ctr --namespace k8s.io images tag {} {}", name(part, newer), name(part, older))
                    }));
                }
                lines
            })
            .collect();
    documents.join("\n")
}

/// A machine, as Cluster API shows it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    name: String,
    version: String,
    server: String,
    node: String,
}

async fn machines(stage: &Stage, other: Option<&str>) -> BTreeSet<Member> {
    let of_cluster: Vec<&str> = other.iter().flat_map(|kubeconfig| ["--kubeconfig", kubeconfig]).collect();
    let found = stage.kubectl(&[&of_cluster[..], &["get", "machines", "--output=json"]].concat()).await;
    let found: Value = serde_json::from_str(&found).unwrap();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let member = |machine: &Value| Member {
        name: word(&machine["metadata"]["name"]),
        version: word(&machine["spec"]["version"]),
        server: word(&machine["spec"]["providerID"]),
        node: word(&machine["status"]["nodeRef"]["name"]),
    };
    found["items"].as_array().unwrap().iter().map(member).collect()
}

/// Another management cluster in the same network: Cluster API without nodes, and the record that its API server keeps. It ends with the
/// lab it is in.
async fn other_management(stage: &Stage) -> (String, PathBuf) {
    let place = stage.lab.directory().path();
    let (programs, record) = (place.join("recording"), place.join("recording/audit.jsonl"));
    let api_server = find_or_build(&Search::from_environment(None), &[Program::KubeApiserver], &mut |_| {}).unwrap();
    let (api_server, policy) = (api_server.path(Program::KubeApiserver).display(), place.join("audit-policy.json"));
    // Labs of people keep no record; what is given to the API server of this one is what those of tests get.
    let script =
        format!("#!/bin/sh\nexec {api_server} \"$@\" --audit-policy-file={} --audit-log-path={}\n", policy.display(), record.display());
    fs::create_dir_all(&programs).unwrap();
    fs::write(programs.join("kube-apiserver"), script).unwrap();
    fs::set_permissions(programs.join("kube-apiserver"), Permissions::from_mode(0o755)).unwrap();
    let mut command = stage.inside(Path::new(PROGRAM)).await;
    command.args(["lab", "up", "--name=other", "--level=capi", "--controller-manager", "--programs"]).arg(&programs);
    (expect(command.env("METALSHIFT_LABS", place.join("labs"))).trim().to_owned(), record)
}

/// How many calls changed something in MAAS.
async fn effects(stage: &Stage) -> usize {
    stage.calls_after(0).await.iter().filter(|call| is_write(call)).count()
}
