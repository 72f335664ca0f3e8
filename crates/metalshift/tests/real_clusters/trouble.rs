//! A cluster in trouble, as a person looks at it: what `clusterctl` and `kubectl` print has the reason and what to do about it. What is
//! looked at comes before any machine boots, so the machines are on paper and nobody needs root.

use maas_client::{Allocate, Release};

use crate::{
    management::expect,
    stage::{Cluster, SOON, Stage},
    waiting::{until, until_some},
};

#[tokio::test]
async fn a_cluster_without_enough_machines_says_so_and_what_to_do_wherever_a_person_looks() {
    let stage = Stage::on_paper("real_clusters/one-server.yaml").await;
    let maas = stage.maas().await;
    let taken = maas.machines().allocate(&Allocate::new().comment("for somebody else")).await.unwrap();
    stage.create_cluster(&Cluster::default()).await;

    let described = until_some("clusterctl tells of it", SOON, async || {
        let described = describe(&stage).await;
        described.contains("NoMatchingMachine").then_some(described)
    })
    .await;
    let (_, machine) = described.split_once("MachineInfrastructure - MaasMachine/").expect(&described);
    for words in ["False NoMatchingMachine", "MAAS has no free machine with 2 CPUs", "Add machines, release some, or ask for less"] {
        assert!(machine.contains(words), "{words} is not there:\n{described}");
    }
    let shown = stage.kubectl(&["get", "cluster-api", "--all-namespaces"]).await;
    let machine = shown.lines().find(|line| line.contains(" maasmachine.infrastructure.cluster.x-k8s.io/racks-control-plane"));
    assert!(machine.is_some_and(|line| line.contains(" NoMatchingMachine ")), "{shown}");

    // The server comes back: nobody has to do anything more, and nothing is said of trouble.
    maas.machine(&taken.system_id).release(&Release::default()).await.unwrap();
    stage.until_the_first_is_deployed().await;
    until("clusterctl complains no more", SOON, async || !describe(&stage).await.contains("NoMatchingMachine")).await;
    stage.delete_cluster("racks").await;
}

#[tokio::test]
async fn a_control_plane_that_never_answers_says_so_and_where_to_look() {
    let stage = Stage::on_paper("real_clusters/one-server.yaml").await;
    stage.create_cluster(&Cluster { workers: 0, ..Cluster::default() }).await;
    // On paper it is as if kubeadm had failed: MAAS has done its part, and nobody answers.
    stage.until_the_first_is_deployed().await;

    let described = until_some("clusterctl tells of it", SOON, async || {
        let described = describe(&stage).await;
        described.contains("the API server does not answer").then_some(described)
    })
    .await;
    let (_, cluster) = described.split_once("ClusterInfrastructure - MaasCluster/racks ").expect(&described);
    let (cluster, _) = cluster.split_once("ControlPlane - ").expect(&described);
    for words in ["False APIServerNotReady", "If that is Deployed for minutes, look on it at /var/log/cloud-init-output.log"] {
        assert!(cluster.contains(words), "{words} is not there:\n{described}");
    }
    let shown = stage.kubectl(&["get", "cluster-api", "--all-namespaces"]).await;
    let line = |object: &str| shown.lines().find(|line| line.contains(&format!("infrastructure.cluster.x-k8s.io/{object}")));
    assert!(line("racks ").is_some_and(|line| line.contains(" APIServerNotReady ")), "{shown}");
    // The machine whose log is meant, with the address where it is.
    assert!(line("racks-control-plane-").is_some_and(|line| line.contains(" Deployed ") && line.contains(" 10.20.")), "{shown}");
    stage.delete_cluster("racks").await;
}

/// What `clusterctl describe cluster` prints, without the lines of its tree and where its columns broke.
async fn describe(stage: &Stage) -> String {
    let printed = expect(&mut stage.clusterctl(&["describe", "cluster", "racks"]).await);
    printed.replace(['│', '├', '└', '─'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
}
