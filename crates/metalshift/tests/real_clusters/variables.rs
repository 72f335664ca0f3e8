//! Variables of our templates that are wrong, as a person gives them: `clusterctl` or the API server refuses with a sentence that names what
//! is wrong, or a condition says so and what to do. Nothing of MAAS is taken, and the right value works afterwards. Machines are on paper, so
//! nobody needs root.

use std::fs;

use lab::programs::{Program, recipe};

use crate::{
    management::{manifest, text},
    stage::{SOON, Stage, VARIABLES},
    waiting::until_some,
};

/// Names of clusters, and the templates they are made of.
const TEMPLATES: [(&str, &str); 3] = [
    ("usual", "cluster-template.yaml"),
    ("in-memory", "cluster-template-ephemeral.yaml"),
    ("of-a-class", "cluster-template-clusterclass.yaml"),
];

/// A variable, a value that it cannot have, and words of the sentence that says so.
type Wrong = (&'static str, &'static str, &'static str);

/// What `clusterctl` knows of itself.
const REFUSED_BY_CLUSTERCTL: [Wrong; 5] = [
    ("CONTROL_PLANE_MACHINE_COUNT", "two", "invalid value for CONTROL_PLANE_MACHINE_COUNT"),
    ("CONTROL_PLANE_MACHINE_COUNT", "0", "invalid ControlPlaneMachineCount"),
    ("WORKER_MACHINE_COUNT", "-3", "invalid WorkerMachineCount"),
    ("CLUSTER_NAME", "Racks_1", "invalid cluster name"),
    ("NAMESPACE", "Racks_1", "invalid target-namespace"),
];

/// What is wrong in every template.
const REFUSED_BY_THE_API_SERVER: [Wrong; 10] = [
    ("KUBERNETES_VERSION", "latest", "must be a valid semantic version"),
    ("KUBERNETES_VERSION", "v1.35", "must be a valid semantic version"),
    ("POD_CIDR", "garbage", "spec.clusterNetwork.pods.cidrBlocks[0]: Invalid value: \"garbage\": invalid CIDR address"),
    ("SERVICE_CIDR", "10.97.0.0/99", "spec.clusterNetwork.services.cidrBlocks[0]: Invalid value: \"10.97.0.0/99\": invalid CIDR address"),
    ("MAAS_DNS_DOMAIN", "", "dnsDomain is not a name in DNS: give a domain that MAAS has"),
    ("MAAS_DNS_DOMAIN", "no: domain", "dnsDomain is not a name in DNS: give a domain that MAAS has"),
    ("CONTROL_PLANE_MACHINE_IMAGE", "", "image in body should be at least 1 chars long"),
    ("CONTROL_PLANE_MACHINE_MINCPU", "two", "minCPU"),
    ("WORKER_MACHINE_MINMEMORY", "4GB", "minMemory"),
    ("WORKER_MACHINE_MINCPU", "-1", "minCPU in body should be greater than or equal to 0"),
];

const EVEN: Wrong = ("CONTROL_PLANE_MACHINE_COUNT", "2", "cannot be an even number when etcd is stacked");

/// What only MAAS knows: a variable, its value, a reason, and what is said.
const TOLD_BY_A_CONDITION: [(&str, &str, &str, [&str; 2]); 4] = [
    ("CONTROL_PLANE_MACHINE_RESOURCEPOOL", "2024", "AllocationRefused", ["No such pool(s): 2024", "Create what is missing in MAAS"]),
    ("CONTROL_PLANE_MACHINE_TAG", "nowhere", "AllocationRefused", ["No such tag(s): 'nowhere'", "Create what is missing in MAAS"]),
    ("CONTROL_PLANE_MACHINE_IMAGE", "24.04", "ImageNotFound", ["MAAS does not have image 24.04", "Import or upload it"]),
    (
        "MAAS_DNS_DOMAIN",
        "nowhere.example",
        "DNSDomainNotFound",
        ["does not have the DNS domain nowhere.example", "Create the domain in MAAS"],
    ),
];

#[tokio::test]
async fn a_variable_that_cannot_be_right_is_refused_with_a_sentence_and_the_right_one_works_afterwards() {
    let stage = Stage::on_paper("real_clusters/one-server.yaml").await;
    stage.apply(&fs::read_to_string(manifest("clusterclass-maas.yaml")).unwrap()).await;
    let mut unclear = Vec::new();
    for (name, template) in TEMPLATES {
        for wrong in REFUSED_BY_CLUSTERCTL {
            let said = generated(&stage, name, template, &[(wrong.0, wrong.1)]).await.err();
            unclear.extend(complaint(template, wrong, said));
        }
        for wrong in REFUSED_BY_THE_API_SERVER {
            let documents = generated(&stage, name, template, &[(wrong.0, wrong.1)]).await.unwrap();
            unclear.extend(complaint(template, wrong, refusal(&stage, &documents).await));
        }
        unclear.extend(complaint(template, EVEN, said_of_an_even_number(&stage, name, template).await));
        // What of the wrong ones was taken is gone on with.
        stage.apply(&generated(&stage, name, template, &[]).await.unwrap()).await;
        stage.until_the_first_is_deployed().await;
        stage.delete_cluster(name).await;
    }
    assert!(unclear.is_empty(), "{}", unclear.join("\n"));
}

#[tokio::test]
async fn a_variable_that_names_what_maas_does_not_have_is_told_by_a_condition_with_the_next_step() {
    let stage = Stage::on_paper("real_clusters/one-server.yaml").await;
    let wrong = |number: usize| format!("wrong-{number}");
    for (number, (variable, value, ..)) in TOLD_BY_A_CONDITION.into_iter().enumerate() {
        stage.apply(&generated(&stage, &wrong(number), "cluster-template.yaml", &[(variable, value)]).await.unwrap()).await;
    }
    for (number, (variable, value, reason, words)) in TOLD_BY_A_CONDITION.into_iter().enumerate() {
        let label = format!("--selector=cluster.x-k8s.io/cluster-name={}", wrong(number));
        let look = ["get", "maasmachines,maasclusters", &label, "--output=wide", "--no-headers"];
        let told = until_some(&format!("{variable}={value} is told as {reason}"), SOON, async || {
            stage.try_kubectl(&look).await.filter(|told| told.contains(reason))
        })
        .await;
        assert!(words.iter().all(|words| told.contains(words)), "{variable}={value}: {told}");
    }
    for number in 0..TOLD_BY_A_CONDITION.len() {
        stage.kubectl(&["delete", "cluster", &wrong(number), "--timeout=2m"]).await;
    }
    assert_eq!(stage.left_in_maas().await, Vec::<String>::new());
    stage.assert_the_provider_minded_its_own();
}

/// What `clusterctl` makes of a template with these variables instead of the usual ones, or what it says.
async fn generated(stage: &Stage, name: &str, template: &str, values: &[(&str, &str)]) -> Result<String, String> {
    let given = |variable| values.iter().find(|(given, _)| *given == variable).map(|(_, value)| *value);
    let (name, namespace) = (given("CLUSTER_NAME").unwrap_or(name), given("NAMESPACE").unwrap_or("default"));
    let mut clusterctl = stage.clusterctl(&["generate", "cluster", name, "--target-namespace", namespace, "--from"]).await;
    clusterctl.arg(manifest(template)).env("KUBERNETES_VERSION", recipe::kubernetes_version()).envs(VARIABLES);
    let output = clusterctl.envs(values.iter().copied()).output().unwrap();
    if output.status.success() { Ok(text(&output)) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// What kubectl says when it does not take all of these documents.
async fn refusal(stage: &Stage, documents: &str) -> Option<String> {
    let mut kubectl = stage.inside(stage.programs.path(Program::Kubectl)).await;
    let output = kubectl.args(["apply", "--server-side", "--filename", &stage.file("wrong.yaml", documents)]).output().unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// In a cluster of a class nobody looks at the number before it is used.
async fn said_of_an_even_number(stage: &Stage, name: &str, template: &str) -> Option<String> {
    let documents = generated(stage, name, template, &[(EVEN.0, EVEN.1)]).await.unwrap();
    if let Some(refused) = refusal(stage, &documents).await {
        return Some(refused);
    }
    let path = r#"--output=jsonpath={.status.conditions[?(@.type=="TopologyReconciled")].message}"#;
    let told = until_some("Cluster API tells of it", SOON, async || {
        stage.try_kubectl(&["get", "cluster", name, path]).await.filter(|message| message.contains("even"))
    });
    Some(told.await)
}

/// What is wrong with what was said of a wrong variable, if anything is.
fn complaint(template: &str, (variable, value, words): Wrong, said: Option<String>) -> Option<String> {
    let said = said.unwrap_or_else(|| "nothing".to_owned());
    (!said.contains(words)).then(|| format!("{template} with {variable}={value:?}: {words:?} was not said, but {said}"))
}
