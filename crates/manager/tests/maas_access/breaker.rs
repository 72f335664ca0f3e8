//! A MAAS that does not answer: calls end at once, one in a while tries, other MAASes are not affected.

use crate::world::{ADMIN, ALICE, Behaviour, ENDPOINT, OTHER_ENDPOINT, STRANGER, World};
use maas_client::{Allocate, Error};
use manager::maas::{Account, AccountError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

async fn accounts(world: &World) -> (Account, Account) {
    world.default_secret("team", ENDPOINT, ALICE).await;
    world.secret("team", "other", &[("url", OTHER_ENDPOINT), ("apiKey", ADMIN)]).await;
    (world.accounts.of("team", None).await.unwrap(), world.accounts.of("team", Some("other")).await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn after_a_few_failures_calls_end_at_once_with_the_cause_and_always_the_same_words() {
    for (behaviour, cause) in [
        (Behaviour::Refuses, "connection refused"),
        (Behaviour::IsSilent, "nothing came back within 20 seconds"),
        (Behaviour::IsBehindAGateway, "a gateway in front of it answers 502 Bad Gateway"),
        (Behaviour::HasExpired, "invalid peer certificate: certificate expired"),
    ] {
        let world = World::new();
        let (account, other) = accounts(&world).await;
        world.maas.behaves(behaviour);
        for _ in 0..5 {
            account.client.zones().list().await.unwrap_err();
        }
        let (began, sent) = (Instant::now(), world.maas.attempts());
        for _ in 0..100 {
            let error = account.client.zones().list().await.unwrap_err();
            let Error::Unavailable { words, .. } = error else { panic!("{behaviour:?}: {error}") };
            assert_eq!(words, cause);
            let error = account.client.machines().allocate(&Allocate::new()).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }) && !error.may_have_changed_something(), "{behaviour:?}: {error:?}");
        }
        assert_eq!((began.elapsed(), world.maas.attempts()), (Duration::ZERO, sent), "{behaviour:?}: nothing waited, nothing was sent");
        other.client.zones().list().await.expect("another MAAS is not affected");
        other.client.machines().allocate(&Allocate::new()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn one_read_in_a_while_tries_and_the_first_answer_ends_it() {
    let world = World::new();
    let (account, _) = accounts(&world).await;
    world.maas.behaves(Behaviour::Refuses);
    account.client.zones().list().await.unwrap_err();
    let sent = world.maas.attempts();
    for _ in 0..1200 {
        account.client.zones().list().await.unwrap_err();
        account.client.machines().allocate(&Allocate::new()).await.unwrap_err();
        sleep(Duration::from_millis(500)).await;
    }
    let tries = world.maas.attempts() - sent;
    assert!((18..=26).contains(&tries), "{tries} tries in ten minutes: at 1, 2, 4, 8, 16 and then every 30 seconds");
    world.maas.behaves(Behaviour::Answers);
    let began = Instant::now();
    while account.client.zones().list().await.is_err() {
        sleep(Duration::from_millis(500)).await;
    }
    assert!(began.elapsed() <= Duration::from_secs(31), "{:?}", began.elapsed());
    account.client.machines().allocate(&Allocate::new()).await.expect("all calls pass again");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_answers_and_open_nothing() {
    let world = World::new();
    let (account, _) = accounts(&world).await;
    for _ in 0..50 {
        assert!(account.client.zones().read("no-such-zone").await.unwrap_err().is_not_found());
        assert!(matches!(account.client.zones().create("az9", "").await, Err(Error::NotPermitted { .. })));
    }
    account.client.zones().list().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_trusts_the_wrong_authority_holds_up_nobody_else_at_the_same_maas() {
    let world = World::new();
    let (account, _) = accounts(&world).await;
    world.secret("team", "distrustful", &[("url", ENDPOINT), ("apiKey", ALICE), ("ca.crt", STRANGER)]).await;
    for _ in 0..20 {
        let error = world.accounts.of("team", Some("distrustful")).await.unwrap_err();
        let told = error.to_string().contains("invalid peer certificate: UnknownIssuer; put the PEM text of the certificate that signed");
        assert!(matches!(error, AccountError::Unavailable { .. }) && told, "{error}");
        // A write never is the call that tries, so only a closed breaker lets it through to be refused.
        assert!(matches!(account.client.zones().create("az9", "").await, Err(Error::NotPermitted { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_certificate_is_told_from_the_first_question_on_and_always_in_the_same_words() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    world.maas.behaves(Behaviour::HasExpired);
    for _ in 0..50 {
        let error = world.accounts.of("team", None).await.unwrap_err();
        assert!(matches!(error, AccountError::Unavailable { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            "MAAS at http://maas.test:5240/MAAS, named by the Secret team/capmaas-manager-bootstrap-credentials, is not available: invalid \
             peer certificate: certificate expired; renew the certificate of MAAS, and check the clock here"
        );
        sleep(Duration::from_secs(7)).await;
    }
    world.maas.behaves(Behaviour::Refuses);
    sleep(Duration::from_secs(31)).await;
    let error = world.accounts.of("team", None).await.unwrap_err();
    assert!(error.to_string().ends_with("connection refused"), "what is in the way now is told: {error}");
    world.maas.behaves(Behaviour::Answers);
    sleep(Duration::from_secs(31)).await;
    assert_eq!(world.accounts.of("team", None).await.unwrap().user, "alice");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_ends_at_the_certificate_says_so_in_the_same_words() {
    let world = World::new();
    let (account, _) = accounts(&world).await;
    world.maas.behaves(Behaviour::HasExpired);
    let error = account.client.machines().allocate(&Allocate::new()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }) && !error.may_have_changed_something(), "{error:?}");
    assert!(error.to_string().contains(": invalid peer certificate: certificate expired (1 attempt)"), "{error}");
}
