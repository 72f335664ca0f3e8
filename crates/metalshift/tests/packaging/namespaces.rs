//! The chart with namespaces named, run with its rights: what is in them is served, and what is elsewhere is neither asked for nor touched.

use std::{
    fs,
    process::{Child, Stdio},
};

use lab::{
    Level, Options,
    programs::{Search, find_or_build_helm},
};

use crate::{
    management::{ADMINISTRATOR, Management, PROGRAM, SOON, expect, repository},
    rights,
    waiting::until,
};

const WATCHED: [&str; 2] = ["red", "blue"];
/// Of this one the provider is told nothing.
const OTHER: &str = "green";
const ACCOUNT: &str = "--as=system:serviceaccount:capmaas-system:capmaas-manager";

/// The provider as a process of this test.
struct Provider(Child);

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn with_namespaces_named_the_provider_serves_those_and_asks_for_nothing_elsewhere() {
    let management = Management::of_level(Level::Capi, "packaging/fleet.yaml", Options::with_controller_manager).await;
    install(&management).await;
    // Who is not served has been waiting the longest.
    for namespace in [OTHER, WATCHED[0], WATCHED[1]] {
        management.apply(&include_str!("cluster.yaml").replace("namespace: default", &format!("namespace: {namespace}"))).await;
    }
    let _provider = start(&management).await;

    for namespace in WATCHED {
        management.until_is(&machine_of(namespace), ".status.initialization.provisioned", "true").await;
    }
    for kind in ["maasmachine", "maascluster"] {
        let ours = ["--namespace", OTHER, "get", kind, "--output=jsonpath={.items[*].status}{.items[*].metadata.finalizers}"];
        assert_eq!(management.kubectl(&ours).await, "", "a {kind} of {OTHER} is somebody else's");
    }
    for namespace in WATCHED {
        let everything = ["delete", "cluster/racks", "maasmachinetemplate/racks", "secret/boot", "--timeout=2m"];
        management.kubectl(&[&["--namespace", namespace], &everything[..]].concat()).await;
    }
    until("MAAS has its machines back", SOON, async || management.left_in_maas().await.is_empty()).await;

    let calls = management.provider_calls();
    rights::check(&calls);
    let elsewhere = calls.iter().filter(|call| call["objectRef"]["namespace"] == OTHER);
    assert_eq!(elsewhere.map(|call| call["requestURI"].to_string()).collect::<Vec<_>>(), Vec::<String>::new());
    // After the record was looked at: to ask for rights is a call too.
    for (namespace, may) in [(WATCHED[0], "yes"), (WATCHED[1], "yes"), (OTHER, "no"), ("default", "no")] {
        assert_eq!(may_list_machines(&management, namespace).await, may, "in {namespace}");
    }
}

fn machine_of(namespace: &str) -> String {
    format!("--namespace={namespace} maasmachine racks-0")
}

/// Everything that the chart has; its process runs outside of the cluster.
async fn install(management: &Management) {
    for namespace in [OTHER, WATCHED[0], WATCHED[1]] {
        management.kubectl(&["create", "namespace", namespace]).await;
    }
    let helm = find_or_build_helm(&Search::from_environment(None), &mut |_| {}).unwrap();
    let mut install = management.inside(&helm).await;
    install.args(["install", "metalshift", "--namespace=capmaas-system", "--create-namespace"]);
    install.arg(repository().join("manifests/chart").canonicalize().unwrap());
    install.args(["--set", &format!("replicas=0,watchNamespaces={{{}}}", WATCHED.join(","))]);
    install.args(["--set", &format!("maas.endpoint={},maas.apiKey={ADMINISTRATOR}", management.maas_address().await)]);
    for place in ["HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"] {
        install.env(place, management.lab.directory().path());
    }
    expect(&mut install);
}

/// `yes` or `no`; kubectl fails with the second.
async fn may_list_machines(management: &Management, namespace: &str) -> String {
    let mut kubectl = management.inside(management.programs.path(lab::programs::Program::Kubectl)).await;
    let output = kubectl.args(["auth", "can-i", "list", "maasmachines", ACCOUNT, "--namespace", namespace]).output().unwrap();
    crate::management::text(&output).trim().to_owned()
}

/// Runs what the pod would run, with the words and the variables of the pod.
async fn start(management: &Management) -> Provider {
    let deployment = ["--namespace=capmaas-system", "get", "deployment", "capmaas-controller-manager"];
    let words = "--output=jsonpath={.spec.template.spec.containers[0].args}";
    let words: Vec<String> = serde_json::from_str(&management.kubectl(&[&deployment[..], &[words]].concat()).await).unwrap();
    assert!(words.contains(&"--namespace=red,blue".to_owned()), "{words:?}");
    let log = fs::File::create(management.lab.directory().logs().join("provider.log")).unwrap();
    let mut command = management.inside("setpriv".as_ref()).await;
    // It ends with this test, however that ends.
    command.args(["--pdeathsig", "KILL", "--", PROGRAM]).args(words);
    command.args(["--leader-election-namespace=capmaas-system", "--health-addr=0", "--metrics-bind-addr=0", "--kubeconfig"]);
    command.arg(management.account("provider", None).await);
    command.envs([("MAAS_ENDPOINT", management.maas_address().await.as_str()), ("MAAS_API_KEY", ADMINISTRATOR)]);
    Provider(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
}
