//! Events of machines become pokes of the objects that watch them.

use crate::{
    rotation::rotate_in_maas,
    scene::{play, quiet},
    world::{ALICE, ALICE_NEW, BOB, Behaviour, ENDPOINT, OTHER_ENDPOINT, World},
};
use maas_client::{Allocate, Deploy};
use manager::ObjectKey;
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn while_something_is_in_flight_an_event_pokes_its_object_within_two_seconds_and_no_other() {
    play(|scene| {
        Box::pin(async move {
            scene.busy("b", true);
            sleep(Duration::from_secs(5)).await;
            let (began, polls) = (Instant::now(), scene.polls());
            let wish = Allocate::new().system_id(&scene.machines["b"]);
            let id = scene.person().machines().allocate(&wish).await.unwrap().system_id;
            scene.person().machine(&id).deploy(&Deploy::default()).await.unwrap();
            quiet().await;
            let (reconciles, polls) = (scene.since(began), scene.polls() - polls);
            assert!(reconciles[0].0 <= Duration::from_secs(2), "{reconciles:?}");
            assert!(reconciles.iter().all(|(_, name)| name == "b"), "{reconciles:?}");
            assert!((2..=8).contains(&reconciles.len()), "several events of one poll are one poke: {reconciles:?}");
            assert!((118..=124).contains(&polls), "{polls} polls in two minutes");
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn at_rest_the_log_is_read_less_often_and_nothing_else_is_asked() {
    play(|scene| {
        Box::pin(async move {
            let (began, polls, all) = (Instant::now(), scene.polls(), scene.world.maas.attempts());
            // Shorter than it takes to the first list of all our machines.
            sleep(Duration::from_mins(6)).await;
            assert!((299..=301).contains(&(scene.polls() - polls)), "{} polls", scene.polls() - polls);
            assert_eq!(scene.world.maas.attempts() - all, (scene.polls() - polls) as u64);
            assert_eq!(scene.names_since(began), [] as [&str; 0]);
            scene.person().machines().allocate(&Allocate::new().system_id(&scene.machines["c"])).await.unwrap();
            sleep(Duration::from_secs(2)).await;
            assert_eq!(scene.names_since(began), ["c"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_watch_nothing_any_more_are_left_alone() {
    play(|scene| {
        Box::pin(async move {
            let began = Instant::now();
            scene.account.unwatch(&ObjectKey::namespaced("team", "a"));
            scene.world.accounts.forget(&ObjectKey::namespaced("team", "b"));
            for id in scene.machines.values() {
                scene.person().machines().allocate(&Allocate::new().system_id(id)).await.unwrap();
            }
            sleep(Duration::from_secs(11)).await;
            assert_eq!(scene.names_since(began), ["c", "d"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_got_another_machine_hears_of_the_one_it_had_no_more() {
    play(|scene| {
        Box::pin(async move {
            let allocate = async |name: &str| {
                scene.person().machines().allocate(&Allocate::new().system_id(&scene.machines[name])).await.unwrap();
                sleep(Duration::from_secs(11)).await;
            };
            scene.account.watch(&scene.machines["b"], ObjectKey::namespaced("team", "a"), &scene.pokes);
            let began = Instant::now();
            allocate("a").await;
            assert_eq!(scene.names_since(began), [""; 0]);
            allocate("b").await;
            let mut heard = scene.names_since(began);
            heard.sort();
            // The one that is reconciled here turns to its first machine again, which had an event meanwhile.
            heard.dedup();
            assert_eq!(heard, ["a", "b"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_event_between_the_look_at_a_machine_and_the_watch_is_not_missed() {
    play(|scene| {
        Box::pin(async move {
            scene.account.unwatch(&ObjectKey::namespaced("team", "a"));
            scene.person().machines().allocate(&Allocate::new().system_id(&scene.machines["a"])).await.unwrap();
            // The poll that brings the event finds nobody who watches.
            sleep(Duration::from_secs(20)).await;
            let began = Instant::now();
            for _ in 0..5 {
                scene.account.watch(&scene.machines["a"], ObjectKey::namespaced("team", "a"), &scene.pokes);
                scene.account.watch(&scene.machines["b"], ObjectKey::namespaced("team", "b"), &scene.pokes);
            }
            sleep(Duration::from_secs(20)).await;
            assert_eq!(scene.names_since(began), ["a"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_maas_does_not_hold_up_the_feed_of_another() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    world.default_secret("others", OTHER_ENDPOINT, ALICE).await;
    let stop = CancellationToken::new();
    let script = async {
        world.accounts.of("team", None).await.unwrap();
        world.accounts.of("others", None).await.unwrap();
        world.maas.behaves(Behaviour::IsSilent);
        sleep(Duration::from_mins(5)).await;
        assert!((249..=251).contains(&world.other.calls("level=DEBUG")), "{} polls", world.other.calls("level=DEBUG"));
        stop.cancel();
    };
    tokio::join!(world.accounts.clone().follow(stop.clone()), script);
}

#[tokio::test(start_paused = true)]
async fn an_account_nobody_asks_for_is_not_followed_any_more() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    let stop = CancellationToken::new();
    let script = async {
        world.accounts.of("team", None).await.unwrap();
        sleep(Duration::from_mins(11)).await;
        let polls = world.maas.calls("level=DEBUG");
        sleep(Duration::from_hours(1)).await;
        assert_eq!(world.maas.calls("level=DEBUG"), polls);
        world.accounts.of("team", None).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.maas.calls("level=DEBUG"), polls + 1, "it is followed again at once");
        stop.cancel();
    };
    tokio::join!(world.accounts.clone().follow(stop.clone()), script);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_went_back_pokes_everybody_but_not_at_once() {
    play(|scene| {
        Box::pin(async move {
            scene.person().machines().allocate(&Allocate::new()).await.unwrap();
            quiet().await;
            let began = Instant::now();
            // As after MAAS's database was restored from a backup.
            scene.world.maas.emulator.world(|maas| maas.events = maas_emulator::world::id::Table::starting_at(1));
            quiet().await;
            let mut reconciles = scene.since(began);
            let moments: BTreeSet<_> = reconciles.iter().map(|(at, _)| *at).collect();
            assert_eq!(moments.len(), 4, "each at its own moment: {reconciles:?}");
            assert!(moments.last().unwrap().abs_diff(*moments.first().unwrap()) < Duration::from_secs(1), "{reconciles:?}");
            reconciles.sort_by(|one, other| one.1.cmp(&other.1));
            assert_eq!(reconciles.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_lasts_is_told_to_all_once_and_its_end_once() {
    play(|scene| {
        Box::pin(async move {
            let began = Instant::now();
            scene.world.maas.behaves(Behaviour::Refuses);
            sleep(Duration::from_secs(45)).await;
            assert_eq!(scene.names_since(began), [] as [&str; 0], "a short one is nobody's concern");
            sleep(Duration::from_mins(20)).await;
            let mut told = scene.names_since(began);
            told.sort();
            assert_eq!(told, ["a", "b", "c", "d"]);
            let ended = Instant::now();
            scene.world.maas.behaves(Behaviour::Answers);
            quiet().await;
            let mut told = scene.since(ended);
            assert!(told[0].0 <= Duration::from_secs(31), "{told:?}");
            told.sort_by(|one, other| one.1.cmp(&other.1));
            assert_eq!(told.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_happens_during_a_short_outage_is_told_after_it() {
    play(|scene| {
        Box::pin(async move {
            let began = Instant::now();
            scene.world.maas.behaves(Behaviour::Refuses);
            sleep(Duration::from_secs(12)).await;
            scene.world.maas.behaves(Behaviour::Answers);
            scene.person().machines().allocate(&Allocate::new().system_id(&scene.machines["d"])).await.unwrap();
            quiet().await;
            assert_eq!(scene.names_since(began), ["d"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_feed_goes_on_with_a_rotated_key_although_nobody_reconciles() {
    play(|scene| {
        Box::pin(async move {
            rotate_in_maas(&scene.world.maas);
            scene.world.default_secret("team", ENDPOINT, ALICE_NEW).await;
            // Shorter than an outage that would be told to the objects, who would look for the new key themselves.
            sleep(Duration::from_secs(30)).await;
            let began = Instant::now();
            let person = scene.world.person(ALICE_NEW);
            person.machines().allocate(&Allocate::new().system_id(&scene.machines["a"])).await.unwrap();
            sleep(Duration::from_secs(11)).await;
            assert_eq!(scene.names_since(began), ["a"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_feed_leaves_a_key_before_it_is_taken_away() {
    play(|scene| {
        Box::pin(async move {
            let mut old = scene.world.maas.emulator.world(|maas| maas.tokens.clone());
            rotate_in_maas(&scene.world.maas);
            scene.world.maas.emulator.world(|maas| maas.tokens.append(&mut old));
            scene.world.default_secret("team", ENDPOINT, ALICE_NEW).await;
            sleep(Duration::from_secs(31)).await;
            scene.world.accounts.of("team", None).await.unwrap();
            quiet().await;
            rotate_in_maas(&scene.world.maas);
            quiet().await;
            let refused = |entry: &&maas_emulator::journal::Entry| entry.status == 401;
            assert_eq!(scene.world.maas.emulator.journal(|journal| journal.entries().filter(refused).count()), 0);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_changes_its_user_leaves_no_feed_behind() {
    play(|scene| {
        Box::pin(async move {
            scene.world.default_secret("team", ENDPOINT, BOB).await;
            sleep(Duration::from_secs(31)).await;
            scene.world.accounts.of("team", None).await.unwrap();
            quiet().await;
            let by_user =
                |user: &str| scene.world.maas.emulator.journal(|journal| journal.by_user().get(user).copied().unwrap_or_default());
            let alice = by_user("alice");
            let bob = by_user("bob");
            quiet().await;
            assert_eq!(by_user("alice"), alice);
            assert_eq!(by_user("bob"), bob + 100);
        })
    })
    .await;
}

/// Everything that reached MAAS, and when.
fn calls(world: &World) -> Vec<String> {
    world.maas.emulator.journal(|journal| journal.entries().map(|entry| format!("{} {} {}", entry.at, entry.method, entry.uri)).collect())
}

#[test]
fn the_same_run_makes_the_same_calls_at_the_same_moments() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let world = runtime.block_on(play(|scene| {
            Box::pin(async move {
                scene.busy("a", true);
                scene.person().machines().allocate(&Allocate::new()).await.unwrap();
                scene.world.maas.behaves(Behaviour::Refuses);
                quiet().await;
                scene.world.maas.behaves(Behaviour::Answers);
                quiet().await;
            })
        }));
        calls(&world)
    };
    let first = run();
    assert!(first.len() > 100, "{} calls", first.len());
    for _ in 0..5 {
        assert_eq!(run(), first);
    }
}
