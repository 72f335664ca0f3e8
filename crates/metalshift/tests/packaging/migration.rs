//! The Go provider gives way to ours on a real API server, by each way that docs/migration.md tells: its kinds, its objects and its key stay.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use api::names;
use lab::{
    Lab, Level, Options,
    programs::{Program, Search, find_or_build, find_or_build_helm, recipe},
};
use serde_json::json;

use crate::{
    management::{expect, repository, xtask},
    waiting::until,
};

const OF_THE_PROVIDER: &str = "--namespace=capmaas-system";
const DEPLOYMENT: &str = "deployment/capmaas-controller-manager";
/// Where `kubectl rollout restart` notes when.
const RESTARTED: &str = r".spec.template.metadata.annotations.kubectl\.kubernetes\.io/restartedAt";
const SECRET: &str = "secret/capmaas-manager-bootstrap-credentials";
const VARIABLES: [&str; 2] = ["MAAS_ENDPOINT", "MAAS_API_KEY"];

/// A cluster that the Go provider manages.
struct Managed {
    lab: Lab,
    kubectl: PathBuf,
    clusterctl: PathBuf,
}

impl Managed {
    async fn up(level: Level) -> Self {
        let lab = Lab::up(Options::new(level)).await.unwrap();
        let programs = find_or_build(&Search::from_environment(None), &[Program::Clusterctl, Program::Kubectl], &mut |_| {}).unwrap();
        let [kubectl, clusterctl] = [Program::Kubectl, Program::Clusterctl].map(|program| programs.path(program).to_owned());
        let managed = Self { lab, kubectl, clusterctl };
        managed.create("go-provider.yaml").await;
        // Until the kind is served.
        until("the Go provider's object is there", crate::management::SOON, async || {
            managed.kubectl(&["create", "--filename", &fixture("go-cluster.yaml")]).await.output().unwrap().status.success()
        })
        .await;
        managed
    }

    async fn create(&self, file: &str) {
        expect(&mut self.kubectl(&["create", "--filename", &fixture(file)]).await);
    }

    /// A program where the cluster is, with the programs of Kubernetes on its PATH and none of the variables of whoever runs the test.
    async fn run(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = self.lab.control().enter(None).await.unwrap();
        let place = |program: &Path| program.parent().unwrap().display().to_string();
        command.env("PATH", format!("{}:{}:/usr/sbin:/usr/bin:/sbin:/bin", place(&self.clusterctl), place(&self.kubectl)));
        // clusterctl would ask the world for a newer release and remember the answer in the person's configuration.
        command.envs([("CLUSTERCTL_DISABLE_VERSIONCHECK", "true"), ("GOPROXY", "off")]).env("XDG_CONFIG_HOME", self.lab.directory().path());
        for place in ["HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"] {
            command.env(place, self.lab.directory().path());
        }
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        command.arg(program).args(arguments).current_dir(repository());
        command
    }

    async fn kubectl(&self, arguments: &[&str]) -> Command {
        self.run(&self.kubectl, arguments).await
    }

    /// A field of an object in the provider's namespace.
    async fn field(&self, object: &str, path: &str) -> String {
        expect(&mut self.kubectl(&[OF_THE_PROVIDER, "get", object, &format!("--output=jsonpath={{{path}}}")]).await)
    }

    /// A key of the Secret, as docs/migration.md reads it.
    async fn credential(&self, key: &str) -> String {
        expect(
            &mut self.kubectl(&[OF_THE_PROVIDER, "get", SECRET, &format!("--output=go-template={{{{.data.{key} | base64decode}}}}")]).await,
        )
    }

    /// Ours stands, with the key and the objects of the Go provider.
    async fn is_ours(&self) {
        assert_eq!(self.field(DEPLOYMENT, ".spec.selector.matchLabels").await, r#"{"control-plane":"capmaas-controller-manager"}"#);
        let containers = self.field(DEPLOYMENT, ".spec.template.spec.containers[*].name").await;
        assert_eq!(containers, "manager", "nothing of the Go provider's pod is left");
        assert_eq!(self.field(DEPLOYMENT, ".spec.template.spec.containers[0].command").await, "", "its command would not be ours");
        assert_eq!(self.credential("MAAS_API_KEY").await, "go:provider:key");
        assert_eq!(self.credential("MAAS_ENDPOINT").await, "http://maas.example/MAAS");
        let cluster =
            expect(&mut self.kubectl(&["get", "maascluster/racks", "--output=jsonpath={.spec}{.metadata.deletionTimestamp}"]).await);
        assert_eq!(cluster, r#"{"dnsDomain":"racks.example","failureDomains":["zone-1"]}"#);
        let explained = expect(&mut self.kubectl(&["get", "customresourcedefinitions", "--output=name"]).await);
        assert!(explained.contains("maasremediationtemplates"), "the kinds are ours: {explained}");
    }
}

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packaging").join(name).display().to_string()
}

/// What clusterctl would ask the world: the contract of Cluster API itself. docs/how-to/install.md tells how people do it.
fn tell_of_cluster_api(directory: &Path, configuration: &str) {
    let version = recipe::cluster_api_version();
    let core = directory.join("cluster-api").join(version);
    fs::create_dir_all(&core).unwrap();
    let series: Vec<u32> = version.trim_start_matches('v').split('.').take(2).map(|part| part.parse().unwrap()).collect();
    let series = json!([{"major": series[0], "minor": series[1], "contract": "v1beta2"}]);
    let metadata = json!({"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata", "releaseSeries": series});
    fs::write(core.join("metadata.yaml"), metadata.to_string()).unwrap();
    let components = core.join("core-components.yaml");
    fs::write(&components, "").unwrap();
    let entry = format!("providers:\n- {{name: cluster-api, type: CoreProvider, url: {}}}\n", components.display());
    fs::write(configuration, fs::read_to_string(configuration).unwrap().replace("providers:\n", &entry)).unwrap();
}

/// The commands below a heading of docs/migration.md.
fn commands_below(heading: &str) -> String {
    let page = fs::read_to_string(repository().join("docs/migration.md")).unwrap();
    page.split_once(heading).unwrap().1.split("\n```\n").nth(1).unwrap().to_owned()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn make_deploy_puts_ours_in_the_place_of_the_go_provider_and_leaves_its_key_as_it_is() {
    let managed = Managed::up(Level::Api).await;
    let refused = managed.run(Path::new("make"), &["deploy"]).await.output().unwrap();
    assert!(!refused.status.success() && words(&refused).contains("kubectl delete deployment"), "{}", words(&refused));
    let kinds = expect(&mut managed.kubectl(&["get", "customresourcedefinitions", "--output=name"]).await);
    assert_eq!(kinds.lines().count(), 1, "nothing was applied: {kinds}");

    expect(&mut managed.kubectl(&[OF_THE_PROVIDER, "delete", DEPLOYMENT]).await);
    expect(&mut managed.run(Path::new("make"), &["deploy"]).await);
    managed.is_ours().await;

    expect(
        managed.run(Path::new("make"), &["deploy"]).await.envs([("MAAS_ENDPOINT", "http://other.example/MAAS"), ("MAAS_API_KEY", "a:b:c")]),
    );
    assert_eq!(managed.credential("MAAS_API_KEY").await, "a:b:c", "a key that is given counts");
    let restarted = managed.field(DEPLOYMENT, RESTARTED).await;
    assert!(!restarted.is_empty(), "the provider has the key it was started with, so it is started again");
    expect(&mut managed.run(Path::new("make"), &["deploy"]).await);
    assert_eq!(managed.field(DEPLOYMENT, RESTARTED).await, restarted, "the key is the same");
    managed.lab.down().await;
}

#[tokio::test]
async fn helm_takes_the_kinds_of_the_go_provider_over_and_leaves_its_key_as_it_is() {
    let managed = Managed::up(Level::Api).await;
    let helm = find_or_build_helm(&Search::from_environment(None), &mut |_| {}).unwrap();
    let install = ["install", "metalshift", "manifests/chart", OF_THE_PROVIDER];
    let refused = managed.run(&helm, &install).await.output().unwrap();
    assert!(!refused.status.success() && words(&refused).contains("ownership"), "{}", words(&refused));

    expect(&mut managed.kubectl(&[OF_THE_PROVIDER, "delete", DEPLOYMENT]).await);
    let notes = expect(managed.run(&helm, &install).await.args(["--take-ownership", "--force-conflicts"]));
    assert!(notes.contains("capmaas-manager-bootstrap-credentials in this namespace is used"), "{notes}");
    managed.is_ours().await;
    managed.lab.down().await;
}

#[tokio::test]
async fn clusterctl_puts_ours_in_the_place_of_the_go_provider_and_does_so_only_with_its_key() {
    let managed = Managed::up(Level::Capi).await;
    managed.create("go-inventory.yaml").await;
    let directory = tempfile::tempdir().unwrap();
    let configuration = xtask(&["release", directory.path().to_str().unwrap()]).trim().to_owned();
    tell_of_cluster_api(directory.path(), &configuration);
    let of_ours = |command: &str| [command.to_owned(), "--infrastructure=maas".to_owned(), format!("--config={configuration}")];

    let values = [managed.credential(VARIABLES[0]).await, managed.credential(VARIABLES[1]).await];
    expect(managed.run(&managed.clusterctl, &[]).await.args(of_ours("delete")));
    let refused = managed.run(&managed.clusterctl, &[]).await.args(of_ours("init")).output().unwrap();
    assert!(!refused.status.success() && words(&refused).contains("MAAS_API_KEY"), "{}", words(&refused));
    expect(managed.run(&managed.clusterctl, &[]).await.args(of_ours("init")).envs(VARIABLES.iter().zip(&values)));
    managed.is_ours().await;
    managed.lab.down().await;
}

#[tokio::test]
async fn the_way_back_that_the_page_tells_takes_our_finalizers_off_and_leaves_all_others() {
    let managed = Managed::up(Level::Capi).await;
    expect(&mut managed.kubectl(&["apply", "--server-side", "--force-conflicts", "--filename=manifests/crds"]).await);
    let [machine, cluster] = [names::FINALIZER_MACHINE, names::FINALIZER_CLUSTER];
    let of_the_go_provider = [names::LEGACY_MACHINE_FINALIZER, names::LEGACY_CLUSTER_FINALIZER];
    let spec = json!({"image": "ubuntu/noble", "minCPU": 1, "minMemory": 1024});
    let object = |name: &str, finalizers: &[&str]| {
        let metadata = json!({"name": name, "namespace": "default", "finalizers": finalizers});
        json!({"apiVersion": names::API_VERSION, "kind": "MaasMachine", "metadata": metadata, "spec": spec})
    };
    let others = [of_the_go_provider[0], "example.com/other"];
    let machines = [object("both", &[machine, others[0], others[1]]), object("ours", &[machine])];
    let file = managed.lab.directory().path().join("machines.yaml");
    fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": machines}).to_string()).unwrap();
    until("machines are taken", crate::management::SOON, async || {
        managed.kubectl(&["apply", "--filename", file.to_str().unwrap()]).await.output().unwrap().status.success()
    })
    .await;
    let address = json!({"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress",
        "metadata": {"name": "pooled", "namespace": "default", "finalizers": [names::FINALIZER_ADDRESS, "ipam.cluster.x-k8s.io/ProtectAddress"]},
        "spec": {"address": "10.20.0.60", "prefix": 16, "claimRef": {"name": "both"}, "poolRef": {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "rack"}}});
    fs::write(&file, address.to_string()).unwrap();
    expect(&mut managed.kubectl(&["apply", "--filename", file.to_str().unwrap()]).await);
    let also = json!({"metadata": {"finalizers": [of_the_go_provider[1], cluster]}}).to_string();
    expect(&mut managed.kubectl(&["patch", "maascluster/racks", "--type=merge", "--patch", &also]).await);

    expect(&mut managed.run(Path::new("sh"), &["-ec", &commands_below("## Back to the Go provider")]).await);
    let of_the_pool = ["ipam.cluster.x-k8s.io/ProtectAddress"];
    let left = [
        ("maasmachine/both", &others[..]),
        ("maasmachine/ours", &[]),
        ("maascluster/racks", &of_the_go_provider[1..]),
        ("ipaddresses.ipam.cluster.x-k8s.io/pooled", &of_the_pool),
    ];
    for (object, left) in left {
        let found = expect(&mut managed.kubectl(&["get", object, "--output=jsonpath={.metadata.finalizers[*]}"]).await);
        assert_eq!(found, left.join(" "), "{object}");
    }
    managed.lab.down().await;
}
