//! Keys change while everything runs.

use crate::world::{ALICE, ALICE_NEW, BOB, ENDPOINT, Maas, OTHER_ENDPOINT, OWN_NAMESPACE, World};
use maas_emulator::world::people::Token;
use std::time::Duration;
use tokio::time::sleep;

/// Gives alice another key; the old one is worth nothing from now on.
pub fn rotate_in_maas(maas: &Maas) {
    maas.emulator.world(|world| {
        let user = world.user_named("alice").unwrap().id;
        world.tokens.retain(|token| token.user != user);
        let [consumer, token, secret] = <[&str; 3]>::try_from(ALICE_NEW.split(':').collect::<Vec<_>>()).unwrap().map(str::to_owned);
        world.tokens.push(Token { user, name: "new".to_owned(), consumer, token, secret });
    });
}

#[tokio::test(start_paused = true)]
async fn a_rotated_key_is_picked_up_at_once_when_maas_refuses_the_old_one() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    let before = world.accounts.of("team", None).await.unwrap();
    rotate_in_maas(&world.maas);
    world.default_secret("team", ENDPOINT, ALICE_NEW).await;
    assert!(matches!(before.client.whoami().await, Err(maas_client::Error::Unauthenticated { .. })));
    let after = world.accounts.of("team", None).await.unwrap();
    assert_eq!(after.client.whoami().await.unwrap().username, "alice");
    assert!(matches!(before.client.whoami().await, Err(maas_client::Error::Unauthenticated { .. })), "who kept the old one is on his own");
}

#[tokio::test(start_paused = true)]
async fn a_new_key_counts_within_half_a_minute_while_the_old_one_still_works() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    world.accounts.of("team", None).await.unwrap();
    world.default_secret("team", ENDPOINT, BOB).await;
    assert_eq!(world.accounts.of("team", None).await.unwrap().user, "alice", "the Secret was read a moment ago");
    sleep(Duration::from_secs(30)).await;
    assert_eq!(world.accounts.of("team", None).await.unwrap().user, "bob");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_was_a_mistake_of_maas_costs_one_question() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    let account = world.accounts.of("team", None).await.unwrap();
    let tokens = world.maas.emulator.world(|maas| std::mem::take(&mut maas.tokens));
    account.client.whoami().await.unwrap_err();
    world.maas.emulator.world(|maas| maas.tokens = tokens);
    assert_eq!(world.accounts.of("team", None).await.unwrap().user, "alice");
}

#[tokio::test(start_paused = true)]
async fn another_key_of_the_provider_itself_counts_without_a_start() {
    let world = World::in_a_pod(ENDPOINT, ALICE);
    world.default_secret(OWN_NAMESPACE, ENDPOINT, ALICE).await;
    let before = world.accounts.of("team", None).await.unwrap();
    rotate_in_maas(&world.maas);
    world.default_secret(OWN_NAMESPACE, ENDPOINT, ALICE_NEW).await;
    before.client.whoami().await.unwrap_err();
    assert_eq!(world.accounts.of("team", None).await.unwrap().client.whoami().await.unwrap().username, "alice");
}

#[tokio::test(start_paused = true)]
async fn the_provider_changes_its_maas_only_with_a_start() {
    let world = World::in_a_pod(ENDPOINT, ALICE);
    for (endpoint, key) in [(OTHER_ENDPOINT, BOB), (ENDPOINT, "no key"), (ENDPOINT, "")] {
        world.default_secret(OWN_NAMESPACE, endpoint, key).await;
        sleep(Duration::from_secs(31)).await;
        assert_eq!(world.accounts.of("team", None).await.unwrap().user, "alice", "{endpoint} {key}");
    }
    assert_eq!(world.other.attempts(), 0);
}
