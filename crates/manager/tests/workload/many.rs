//! Five hundred workload clusters in one task, and that the same seed is the same run.

use crate::world::{Behaviour, World, key};
use manager::workload::ApiServerState;
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn five_hundred_clusters_are_followed_by_one_task() {
    let names: Vec<String> = (0..500).map(|number| format!("c{number:03}")).collect();
    let world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for name in &names {
        world.kubeconfig(name, "t").await;
        world.cluster(name).node("n", None).await;
    }
    let all = |wanted: &dyn Fn(&ApiServerState) -> bool| names.iter().filter(|name| wanted(&world.state(name))).count();
    world
        .while_following(async {
            assert_eq!(all(&|state| *state == ApiServerState::NotYet), 500);
            sleep(Duration::from_secs(1)).await;
            assert_eq!(all(&|state| *state == ApiServerState::Answers), 500);
            let began = Instant::now();
            sleep(Duration::from_mins(10)).await;
            let calls: usize = names.iter().map(|name| world.cluster(name).attempts_since(began).len()).sum();
            assert!((900..=1600).contains(&calls), "{calls} calls to 500 clusters in ten minutes");
            for name in &names {
                world.cluster(name).dies();
            }
            sleep(Duration::from_secs(7)).await;
            assert_eq!(all(&|state| matches!(state, ApiServerState::Silent { .. })), 500);
            for name in &names {
                world.cluster(name).behaves(Behaviour::Answers);
            }
            sleep(Duration::from_secs(12)).await;
            assert_eq!(all(&|state| *state == ApiServerState::Answers), 500);
            for name in &names {
                world.workload.forget(&key(name));
            }
            sleep(Duration::from_millis(1)).await;
            assert_eq!(names.iter().map(|name| world.cluster(name).open()).sum::<usize>(), 0);
        })
        .await;
}

/// Everything that went over every wire of a busy quarter of an hour.
async fn busy_quarter_of_an_hour() -> String {
    let names = ["one", "two", "three", "four"];
    let world = World::new(&names).await;
    for name in names {
        world.kubeconfig(name, "t").await;
        world.cluster(name).server.set_faults(simulation::Faults::bad_day(7));
    }
    world
        .while_following(async {
            for _ in 0..30 {
                for name in names {
                    drop(world.state(name));
                }
                world.cluster("two").dies();
                sleep(Duration::from_secs(15)).await;
                world.cluster("two").behaves(Behaviour::Answers);
                sleep(Duration::from_secs(15)).await;
            }
        })
        .await;
    let digests = names.iter().map(|name| world.cluster(name).server.trace().digest());
    digests.chain([world.server.trace().digest()]).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(busy_quarter_of_an_hour())
    };
    let digests: BTreeSet<String> = (0..10).map(|_| run()).collect();
    assert_eq!(digests.len(), 1);
}
