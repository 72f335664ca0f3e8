//! A node is told its machine once, and never another one.

use crate::world::{Behaviour, World, key};
use decisions::{FailureKind, machine::Learned};
use simulation::Faults;
use std::time::Duration;
use tokio::time::Instant;

async fn world_with(node: &str, provider_id: Option<&str>) -> World {
    let world = World::new(&["one"]).await;
    world.kubeconfig("one", "t").await;
    world.cluster("one").node(node, provider_id).await;
    world
}

fn patches(world: &World, since: Instant) -> usize {
    world.cluster("one").attempts_since(since).into_iter().filter(|call| call.starts_with("PATCH /api/v1/nodes/")).count()
}

#[tokio::test(start_paused = true)]
async fn row_23_a_node_without_an_id_gets_it_and_keeps_it() {
    let world = world_with("host", None).await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            let began = Instant::now();
            for _ in 0..3 {
                let learned = world.workload.name_node(&key("one"), "host", "maas:///az1/abc").await.unwrap();
                assert!(matches!(learned, Learned::Node(name) if name == "host"));
            }
            assert_eq!(world.cluster("one").provider_id("host").await.as_deref(), Some("maas:///az1/abc"));
            assert_eq!(patches(&world, began), 1);
            let call = world.cluster("one").attempts_since(began).into_iter().find(|call| call.starts_with("PATCH")).unwrap();
            assert!(call.contains("fieldManager=metalshift"), "{call}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn row_23_the_id_of_another_machine_is_never_written_over() {
    let world = world_with("host", Some("maas:///az1/first")).await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            let began = Instant::now();
            let failure = world.workload.name_node(&key("one"), "host", "maas:///az1/second").await.unwrap_err();
            assert_eq!((failure.kind, failure.words.as_str()), (FailureKind::Stale, "node host has provider id maas:///az1/first already"));
            assert_eq!(patches(&world, began), 0);
            assert_eq!(world.cluster("one").provider_id("host").await.as_deref(), Some("maas:///az1/first"));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn row_23_of_two_who_name_the_same_node_at_once_one_wins() {
    let world = world_with("host", None).await;
    world.cluster("one").server.set_faults(Faults { slowest: Duration::from_millis(80), ..Faults::none() });
    Box::pin(world.while_following(async {
        world.until_it_answers("one").await;
        let cluster = key("one");
        let (first, second) = tokio::join!(
            world.workload.name_node(&cluster, "host", "maas:///az1/first"),
            world.workload.name_node(&cluster, "host", "maas:///az1/second")
        );
        assert_eq!([first.is_ok(), second.is_ok()].iter().filter(|won| **won).count(), 1, "{first:?} {second:?}");
        let winner = if first.is_ok() { "maas:///az1/first" } else { "maas:///az1/second" };
        assert_eq!(world.cluster("one").provider_id("host").await.as_deref(), Some(winner));
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_named_says_so_in_time() {
    let world = world_with("host", None).await;
    world
        .while_following(async {
            world.until_it_answers("one").await;
            let failure = world.workload.name_node(&key("one"), "gone", "maas:///az1/a").await.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Stale);
            world.cluster("one").behaves(Behaviour::Refuses);
            let failure = world.workload.name_node(&key("one"), "host", "maas:///az1/a").await.unwrap_err();
            assert!(failure.kind == FailureKind::Kubernetes && failure.words.contains("connection refused"), "{failure:?}");
            world.cluster("one").behaves(Behaviour::Hangs);
            let began = Instant::now();
            let failure = world.workload.name_node(&key("one"), "host", "maas:///az1/a").await.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Kubernetes);
            assert!(began.elapsed() <= Duration::from_secs(16), "{:?}", began.elapsed());
            let failure = world.workload.name_node(&key("unknown"), "host", "maas:///az1/a").await.unwrap_err();
            assert!(failure.words.contains("no way to the workload cluster"), "{failure:?}");
        })
        .await;
}
