//! Whether an API server answers: told from its watch, and from nothing that polls.

use crate::world::{Behaviour, World, key};
use manager::workload::ApiServerState;
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn without_a_kubeconfig_it_is_not_yet_there_and_looked_for_less_and_less_often() {
    let world = World::new(&["one"]).await;
    world
        .while_following(async {
            sleep(Duration::from_mins(1)).await;
            assert_eq!(world.secret_reads("one").len(), 0, "nobody asked yet");
            assert_eq!(world.state("one"), ApiServerState::NotYet);
            sleep(Duration::from_mins(10)).await;
            assert_eq!(world.state("one"), ApiServerState::NotYet);
            let reads = world.secret_reads("one");
            assert!((20..=35).contains(&reads.len()), "{} reads in ten minutes", reads.len());
            assert!(reads[1] <= reads[0] + Duration::from_millis(1200), "{reads:?}");
            assert!(reads.windows(2).all(|pair| pair[1] <= pair[0] + Duration::from_secs(36)), "{reads:?}");
            world.kubeconfig("one", "t").await;
            assert!(world.until_it_answers("one").await <= Duration::from_secs(36));
        })
        .await;
    let listed = world.server.trace().entries().iter().any(|entry| entry.client == "manager" && entry.what.contains("secrets?"));
    assert!(!listed, "Secrets are read by name only");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_cluster_makes_it_look_at_once() {
    let world = World::new(&["one"]).await;
    world
        .while_following(async {
            assert_eq!(world.state("one"), ApiServerState::NotYet);
            sleep(Duration::from_mins(5)).await;
            world.kubeconfig("one", "t").await;
            world.workload.hurry(&key("one"));
            assert!(world.until_it_answers("one").await <= Duration::from_millis(1100));
            let began = world.secret_reads("one").len();
            for _ in 0..100 {
                world.workload.hurry(&key("one"));
                sleep(Duration::from_millis(100)).await;
            }
            assert_eq!(world.secret_reads("one").len(), began, "there is nothing to hurry for");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn many_changes_of_the_cluster_are_no_storm() {
    let world = World::new(&["one"]).await;
    world
        .while_following(async {
            world.state("one");
            sleep(Duration::from_mins(5)).await;
            let before = world.secret_reads("one").len();
            for _ in 0..1000 {
                world.workload.hurry(&key("one"));
                sleep(Duration::from_millis(10)).await;
            }
            let reads = world.secret_reads("one").len() - before;
            assert!((5..=11).contains(&reads), "{reads} reads in ten seconds");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn once_it_answers_it_is_labelled_once_and_at_rest_only_its_watch_is_renewed() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "t").await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            sleep(Duration::from_secs(1)).await;
            assert!(world.cluster("one").has_label().await);
            let (began, reads) = (Instant::now(), world.secret_reads("one").len());
            sleep(Duration::from_hours(1)).await;
            let calls = world.cluster("one").attempts_since(began);
            assert!(calls.iter().all(|call| call.contains("/api/v1/nodes?") && call.contains("watch=true")), "{calls:?}");
            assert!((11..=16).contains(&calls.len()), "{} renewals in an hour", calls.len());
            assert_eq!(world.secret_reads("one").len(), reads);
            assert_eq!(world.cluster("one").open(), 1);
        })
        .await;
    assert_eq!(world.cluster("one").open(), 0, "nothing stays open behind the task");
}

#[tokio::test(start_paused = true)]
async fn a_label_that_cannot_be_put_is_tried_again_and_hinders_nothing() {
    let world = World::new(&["one"]).await;
    let cluster = world.cluster("one");
    let system: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(cluster.server.client("people"));
    system.delete("kube-system", &kube::api::DeleteParams::default()).await.unwrap();
    world.kubeconfig("one", "t").await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            let began = Instant::now();
            sleep(Duration::from_hours(1)).await;
            let patches = cluster.attempts_since(began).into_iter().filter(|call| call.starts_with("PATCH")).count();
            assert!((5..=14).contains(&patches), "{patches} attempts in an hour");
            cluster.make_system_namespace().await;
            sleep(Duration::from_mins(11)).await;
            assert!(cluster.has_label().await);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_short_break_is_no_news() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "t").await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            for _ in 0..20 {
                world.cluster("one").dies();
                sleep(Duration::from_secs(3)).await;
                world.cluster("one").behaves(Behaviour::Answers);
                for _ in 0..100 {
                    assert_eq!(world.state("one"), ApiServerState::Answers);
                    sleep(Duration::from_millis(200)).await;
                }
            }
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_long_break_is_told_after_seconds_and_its_end_within_ten() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "t").await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            sleep(Duration::from_mins(1)).await;
            world.cluster("one").dies();
            let (time, words) = world.until_it_is_silent("one").await;
            assert!((Duration::from_secs(5)..Duration::from_secs(6)).contains(&time), "{time:?}");
            assert!(words.contains("connection refused"), "{words}");
            let began = Instant::now();
            sleep(Duration::from_hours(1)).await;
            let attempts = world.cluster("one").attempts_since(began).len();
            assert!((280..=480).contains(&attempts), "{attempts} attempts in an hour");
            world.cluster("one").behaves(Behaviour::Answers);
            let time = world.until_it_answers("one").await;
            assert!(time <= Duration::from_secs(12), "{time:?}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_went_without_a_word_is_noticed_by_the_silence() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "t").await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            world.cluster("one").behaves(Behaviour::Hangs);
            world.cluster("one").cut();
            let (time, words) = world.until_it_is_silent("one").await;
            assert!(time <= Duration::from_secs(107), "{time:?}");
            assert!(words.contains("did not answer within 5s"), "{words}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn one_that_never_answered_is_told_with_its_cause() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "t").await;
    world.cluster("one").behaves(Behaviour::Refuses);
    world
        .while_following(async {
            let (time, words) = world.until_it_is_silent("one").await;
            assert!(time <= Duration::from_secs(6), "{time:?}");
            assert!(words.contains("connection refused"), "{words}");
            world.cluster("one").behaves(Behaviour::Answers);
            assert!(world.until_it_answers("one").await <= Duration::from_secs(12));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_watches_at_once_is_not_stormed() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "t").await;
    world.cluster("one").behaves(Behaviour::EndsWatches);
    world
        .while_following(async {
            world.state("one");
            sleep(Duration::from_mins(1)).await;
            let began = Instant::now();
            sleep(Duration::from_mins(10)).await;
            let attempts = world.cluster("one").attempts_since(began).len();
            assert!(attempts <= 130, "{attempts} attempts in ten minutes");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_cluster_is_let_go_and_may_be_asked_for_again() {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "t").await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            assert_eq!(world.cluster("one").open(), 1);
            world.workload.forget(&key("one"));
            sleep(Duration::from_millis(1)).await;
            assert_eq!(world.cluster("one").open(), 0);
            let began = Instant::now();
            sleep(Duration::from_hours(1)).await;
            assert_eq!(world.cluster("one").attempts_since(began), [] as [&str; 0]);
            assert!(!format!("{:?}", world.workload).contains("one"));
            world.until_it_answers("one").await;
            assert_eq!(world.cluster("one").open(), 1);
        })
        .await;
}
