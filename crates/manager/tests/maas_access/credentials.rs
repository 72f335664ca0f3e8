//! Whose credentials count, under which names, and what a person is told when there are none.

use crate::world::{ADMIN, ALICE, BOB, Behaviour, ENDPOINT, World};
use maas_emulator::{Emulator, Fleet, Options};
use manager::{
    Clock, Jitter,
    maas::{AccountError, DEFAULT_SECRET, MaasAccounts, MaasMetrics, over_the_network},
};
use std::time::Duration;
use tokio::{
    net::TcpListener,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

type Kind = fn(&AccountError) -> bool;

#[tokio::test(start_paused = true)]
async fn identity_ref_counts_before_the_namespace_and_the_namespace_before_the_environment() {
    let world = World::with_environment(Some((ENDPOINT, ADMIN)));
    world.default_secret("team", ENDPOINT, ALICE).await;
    world.secret("team", "bobs", &[("maas-server-url", "http://maas.test:5240/MAAS/api/2.0/"), ("maas-api-key", BOB)]).await;
    for (namespace, identity, user, administrator) in
        [("team", Some("bobs"), "bob", false), ("team", None, "alice", false), ("elsewhere", None, "admin", true)]
    {
        let account = world.accounts.of(namespace, identity).await.unwrap();
        assert_eq!((account.user.as_str(), account.administrator), (user, administrator));
        assert_eq!((account.endpoint.as_str(), account.client.whoami().await.unwrap().username.as_str()), (ENDPOINT, user));
    }
    let error = world.accounts.of("elsewhere", Some("bobs")).await.unwrap_err();
    assert!(error.to_string().starts_with("identityRef names the Secret elsewhere/bobs, which does not exist; create it"), "{error}");
    assert!(matches!(error, AccountError::SecretMissing { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_cannot_be_used_is_told_instead_of_falling_back_to_another_maas() {
    let world = World::with_environment(Some((ENDPOINT, ADMIN)));
    let (incomplete, contradiction, malformed): (Kind, Kind, Kind) = (
        |error| matches!(error, AccountError::Incomplete { .. }),
        |error| matches!(error, AccountError::Contradiction { .. }),
        |error| matches!(error, AccountError::Malformed { .. }),
    );
    for (data, is_it, words) in [
        (&[("MAAS_ENDPOINT", ENDPOINT)][..], incomplete, "holds no API key; add it under the key MAAS_API_KEY"),
        (
            &[("url", ENDPOINT), ("apiKey", ALICE), ("MAAS_API_KEY", BOB)][..],
            contradiction,
            "MAAS_API_KEY and apiKey mean the same and differ",
        ),
        (
            &[("url", "maas.test"), ("apiKey", ALICE)][..],
            malformed,
            "url in the Secret team/capmaas-manager-bootstrap-credentials cannot be used",
        ),
    ] {
        world.secret("team", DEFAULT_SECRET, data).await;
        sleep(Duration::from_secs(31)).await;
        let error = world.accounts.of("team", None).await.unwrap_err();
        assert!(is_it(&error) && error.to_string().contains(words), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_credentials_the_message_says_what_to_create_and_creating_it_helps() {
    let world = World::new();
    let error = world.accounts.of("team", None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no MAAS credentials for namespace team: there is no Secret capmaas-manager-bootstrap-credentials in it and no MAAS_ENDPOINT and \
         MAAS_API_KEY in the manager's environment; create that Secret with the keys MAAS_ENDPOINT and MAAS_API_KEY, or name another by \
         identityRef"
    );
    world.default_secret("team", ENDPOINT, ALICE).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(world.accounts.of("team", None).await.unwrap().user, "alice");
}

#[tokio::test(start_paused = true)]
async fn secrets_are_read_by_name_and_no_more_than_once_in_half_a_minute() {
    let world = World::with_environment(Some((ENDPOINT, ADMIN)));
    world.default_secret("team", ENDPOINT, ALICE).await;
    let asks = || futures::future::join_all((0..50).map(|number| world.accounts.of(if number % 2 == 0 { "team" } else { "other" }, None)));
    for _ in 0..29 {
        assert!(asks().await.iter().all(Result::is_ok));
        sleep(Duration::from_secs(1)).await;
    }
    let expected = ["other", "team"].map(|namespace| format!("GET /api/v1/namespaces/{namespace}/secrets/{DEFAULT_SECRET}"));
    let mut calls = world.kubernetes_calls();
    calls.sort();
    assert_eq!(calls, expected, "one each, by name");
    assert_eq!(world.maas.calls("op=whoami"), 2, "one for each key");
    sleep(Duration::from_secs(2)).await;
    asks().await;
    assert_eq!(world.kubernetes_calls().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_is_told_with_its_place_and_maas_is_not_asked_again_and_again() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, "wrong:wrong:canary").await;
    for _ in 0..20 {
        let error = world.accounts.of("team", None).await.unwrap_err();
        let words =
            "MAAS at http://maas.test:5240/MAAS does not accept the API key in the Secret team/capmaas-manager-bootstrap-credentials";
        assert!(matches!(error, AccountError::KeyRefused { .. }) && error.to_string().starts_with(words), "{error}");
    }
    assert_eq!(world.maas.calls("op=whoami"), 1);
    world.default_secret("team", ENDPOINT, ALICE).await;
    assert_eq!(world.accounts.of("team", None).await.unwrap().user, "alice", "a new key counts at once");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_authority_that_cannot_be_read_is_told_with_its_place() {
    let world = World::new();
    world.secret("team", "tls", &[("endpoint", "https://maas.test"), ("apiKey", ALICE), ("ca.crt", "not a certificate")]).await;
    let (clock, jitter) = (Clock::System, Jitter::seeded(1));
    let accounts = MaasAccounts::new(world.server.client("manager"), None, over_the_network(), clock, jitter, MaasMetrics::default());
    let error = accounts.of("team", Some("tls")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the Secret team/tls") && text.contains("not a PEM bundle") && text.contains("ca.crt"), "{text}");
    assert!(matches!(error, AccountError::Unusable { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_maas_that_does_not_answer_and_a_program_that_is_none_are_told_apart() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    world.maas.behaves(Behaviour::IsAnotherProgram);
    let error = world.accounts.of("team", None).await.unwrap_err();
    assert!(matches!(error, AccountError::NotUsable { .. }) && error.to_string().contains("not a MAAS"), "{error}");
    world.maas.behaves(Behaviour::Refuses);
    let error = world.accounts.of("team", None).await.unwrap_err();
    assert!(matches!(error, AccountError::Unavailable { .. }) && error.to_string().contains(ENDPOINT), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_account_that_is_known_stays_known_while_maas_is_away() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    world.accounts.of("team", None).await.unwrap();
    world.maas.behaves(Behaviour::Refuses);
    sleep(Duration::from_hours(1)).await;
    let began = Instant::now();
    let account = world.accounts.of("team", None).await.unwrap();
    assert_eq!(account.user, "alice");
    assert!(began.elapsed() < Duration::from_secs(10), "the breaker ended it after {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_user_who_becomes_an_administrator_is_one_within_ten_minutes() {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    assert!(!world.accounts.of("team", None).await.unwrap().administrator);
    world.maas.emulator.world(|maas| {
        let id = maas.user_named("alice").unwrap().id;
        maas.users.get_mut(id).unwrap().superuser = true;
    });
    sleep(Duration::from_mins(10)).await;
    assert!(world.accounts.of("team", None).await.unwrap().administrator);
}

#[tokio::test]
async fn over_a_real_connection_the_same_things_are_told() {
    let now = Clock::System.now();
    let options = Options { clock: maas_emulator::Clock::running(now), ..Options::default() };
    let emulator = Emulator::new(Fleet::default(), options).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = maas_emulator::serve(listener, emulator, None, stop.clone());
    let script = async {
        let world = World::new();
        let (endpoint, jitter) = (format!("http://{address}/MAAS"), Jitter::seeded(1));
        let kubernetes = world.server.client("manager");
        let accounts = MaasAccounts::new(kubernetes, None, over_the_network(), Clock::System, jitter, MaasMetrics::default());
        world.default_secret("team", &endpoint, Fleet::DEFAULT_KEY).await;
        let account = accounts.of("team", None).await.unwrap();
        assert_eq!((account.user.as_str(), account.administrator), ("admin", true));
        world.secret("team", "wrong", &[("url", &endpoint), ("apiKey", "a:b:canary")]).await;
        let error = accounts.of("team", Some("wrong")).await.unwrap_err();
        let words = format!("MAAS at {endpoint} does not accept the API key in the Secret team/wrong; put a valid key there");
        assert!(matches!(error, AccountError::KeyRefused { .. }) && error.to_string().starts_with(&words), "{error}");
        stop.cancel();
    };
    tokio::join!(serving, script);
}
