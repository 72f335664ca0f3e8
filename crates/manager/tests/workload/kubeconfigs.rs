//! Kubeconfigs that change, are wrong, or go; and that nothing of them is ever shown.

use crate::world::{Behaviour, CANARY, World};
use manager::workload::ApiServerState;
use simulation::Faults;
use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn a_rotated_kubeconfig_is_picked_up_when_the_old_one_is_refused() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "old").await;
    world.cluster("one").behaves(Behaviour::Wants("old".to_owned()));
    world
        .while_following(async {
            world.until_it_answers("one").await;
            sleep(Duration::from_mins(30)).await;
            assert_eq!(world.secret_reads("one").len(), 1);
            world.kubeconfig("one", "new").await;
            world.cluster("one").behaves(Behaviour::Wants("new".to_owned()));
            world.cluster("one").cut();
            for _ in 0..200 {
                assert_eq!(world.state("one"), ApiServerState::Answers, "nobody notices");
                sleep(Duration::from_millis(100)).await;
            }
            assert_eq!(world.cluster("one").open(), 1);
            assert_eq!(world.secret_reads("one").len(), 2);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_told_with_the_name_of_the_secret() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "old").await;
    world.cluster("one").behaves(Behaviour::Wants("new".to_owned()));
    world
        .while_following(async {
            let (_, words) = world.until_it_is_silent("one").await;
            assert_eq!(words, "it does not accept the credentials in the Secret team/one-kubeconfig: Unauthorized (401 Unauthorized)");
            sleep(Duration::from_mins(20)).await;
            world.kubeconfig("one", "new").await;
            assert!(world.until_it_answers("one").await <= Duration::from_secs(12));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_moved_is_found_by_its_new_kubeconfig_within_minutes() {
    let world = World::new(&["one", "elsewhere"]).await;
    world.kubeconfig("one", "t").await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            world.cluster("one").dies();
            world.until_it_is_silent("one").await;
            world.secret("one", "value", &format!("elsewhere {CANARY} t")).await;
            let time = world.until_it_answers("one").await;
            assert!(time <= Duration::from_mins(3), "{time:?}");
            let began = Instant::now();
            sleep(Duration::from_mins(10)).await;
            assert_eq!(world.cluster("one").attempts_since(began), [] as [&str; 0]);
            assert_eq!(world.cluster("elsewhere").open(), 1);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_cannot_be_used_is_told_and_read_again() {
    let world = World::new(&["one"]).await;
    world.secret("one", "config", "x").await;
    world
        .while_following(async {
            let (_, words) = world.until_it_is_silent("one").await;
            assert_eq!(words, "the Secret team/one-kubeconfig cannot be used: it has no key `value`");
            world.secret("one", "value", "not a kubeconfig").await;
            sleep(Duration::from_mins(2)).await;
            let ApiServerState::Silent { words } = world.state("one") else { panic!("it cannot answer") };
            assert_eq!(words, "the Secret team/one-kubeconfig cannot be used: it is not a kubeconfig in YAML or JSON");
            world.kubeconfig("one", "t").await;
            assert!(world.until_it_answers("one").await <= Duration::from_secs(12));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_goes_while_the_cluster_answers_changes_nothing_until_it_is_needed() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "t").await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            world.secrets().delete("one-kubeconfig", &kube::api::DeleteParams::default()).await.unwrap();
            sleep(Duration::from_hours(1)).await;
            assert_eq!(world.state("one"), ApiServerState::Answers);
            world.cluster("one").dies();
            world
                .until("one", |state| matches!(state, ApiServerState::Silent { words } if words.contains("team/one-kubeconfig is gone")))
                .await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_management_cluster_in_trouble_does_not_cut_the_way_to_a_workload_cluster() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "t").await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            sleep(Duration::from_mins(3)).await;
            world.server.set_faults(Faults { refused_permille: 1000, ..Faults::none() });
            world.cluster("one").cut();
            for _ in 0..200 {
                assert_eq!(world.state("one"), ApiServerState::Answers);
                sleep(Duration::from_millis(100)).await;
            }
            assert_eq!(world.cluster("one").open(), 1);
            assert_eq!(world.secret_reads("one").len(), 2, "it was tried");
        })
        .await;
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_kubeconfig_is_shown_anywhere() {
    let log = Log::default();
    let writer = log.clone();
    // For all threads: what other tests say meanwhile must not hold a key either.
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false).with_writer(move || writer.clone()).init();
    let world = World::new(&["one", "two"]).await;
    world.kubeconfig("one", "t").await;
    world.secret("two", "value", &format!("nonsense with a {CANARY}")).await;
    let mut shown = Vec::new();
    world
        .while_following(async {
            world.until_it_answers("one").await;
            shown.push(format!("{:?}", world.workload));
            world.cluster("one").dies();
            world.until_it_is_silent("one").await;
            world.until_it_is_silent("two").await;
            shown.push(format!("{:?}", world.workload));
            world.cluster("one").behaves(Behaviour::Wants("other".to_owned()));
            sleep(Duration::from_mins(5)).await;
            shown.push(format!("{:?}", world.workload));
        })
        .await;
    let shown = shown.join("\n");
    assert!(shown.contains("team/one") && shown.contains("Silent"), "{shown}");
    assert!(!shown.contains(CANARY), "{shown}");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("does not answer"), "the log is empty");
    assert!(!log.contains(CANARY), "{}", log.lines().find(|line| line.contains(CANARY)).unwrap_or_default());
}
