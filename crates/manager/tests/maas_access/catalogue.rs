//! Lists that change rarely are read rarely.

use crate::world::{ALICE, ENDPOINT, World};
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn catalogues_are_read_once_a_minute_by_whoever_comes_first() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    let account = world.accounts.of("team", None).await.unwrap();
    for _ in 0..60 {
        let read = futures::future::join_all((0..10).map(|_| account.zones())).await;
        assert!(read.iter().all(|zones| zones.as_ref().unwrap().iter().any(|zone| zone.name == "az1")));
        sleep(Duration::from_millis(900)).await;
    }
    assert_eq!(world.maas.calls("/zones/"), 1);
    account.forget_catalogue();
    account.zones().await.unwrap();
    assert_eq!(world.maas.calls("/zones/"), 2);
    sleep(Duration::from_mins(1)).await;
    let again = world.accounts.of("team", None).await.unwrap();
    again.zones().await.unwrap();
    assert_eq!(world.maas.calls("/zones/"), 3, "all handles of an account share its lists");
}

#[tokio::test(start_paused = true)]
async fn pools_tags_and_images_are_there_too() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    let account = world.accounts.of("team", None).await.unwrap();
    assert!(account.pools().await.unwrap().iter().any(|pool| pool.name == "default"));
    assert!(account.images().await.unwrap().iter().any(|image| image.name == "ubuntu/jammy"));
    account.tags().await.unwrap();
}
