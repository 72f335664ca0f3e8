//! The leader lease in paused time: who leads, when a lease counts as expired, and when a leader gives up.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use manager::{Clock, Jitter, LeaderLease, LeaseLost, LeaseSettings};
use simulation::{ApiServer, Faults};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

fn midnight() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn world() -> ApiServer {
    ApiServer::new(Clock::starting_at(midnight()), Faults::none())
}

fn candidate(server: &ApiServer, identity: &str) -> LeaderLease {
    candidate_with_clock(server, identity, Clock::starting_at(midnight()))
}

fn candidate_with_clock(server: &ApiServer, identity: &str, clock: Clock) -> LeaderLease {
    LeaderLease::new(server.client(identity), LeaseSettings::new("default", identity), clock, Jitter::seeded(5))
}

async fn stored(server: &ApiServer) -> Lease {
    Api::default_namespaced(server.client("reader")).get(LeaseSettings::DEFAULT_NAME).await.unwrap()
}

async fn holder(server: &ApiServer) -> String {
    stored(server).await.spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn of_ten_candidates_exactly_one_leads() {
    let server = world();
    let mut candidates: Vec<_> = (0..10).map(|number| candidate(&server, &format!("c{number}"))).collect();
    let winners =
        futures::future::join_all(candidates.iter_mut().map(|candidate| timeout(Duration::from_secs(5), candidate.acquire()))).await;
    assert_eq!(winners.iter().filter(|won| won.is_ok()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_vanished_is_followed_after_the_whole_duration_and_not_before() {
    let server = world();
    candidate(&server, "first").acquire().await;
    let began = Instant::now();
    let mut second = candidate(&server, "second");
    second.acquire().await;
    assert!(began.elapsed() >= Duration::from_secs(15), "{:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(18), "{:?}", began.elapsed());
    assert_eq!(stored(&server).await.spec.unwrap().lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_clock_is_an_hour_behind_keeps_its_lease() {
    let server = world();
    let late = Clock::starting_at(midnight() - SignedDuration::from_hours(1));
    let mut first = candidate_with_clock(&server, "first", late);
    first.acquire().await;
    let mut second = candidate(&server, "second");
    tokio::select! {
        biased;
        lost = first.hold() => panic!("lost: {lost}"),
        () = second.acquire() => panic!("the lease was taken from a leader that renews it"),
        () = sleep(Duration::from_mins(5)) => {}
    }
    assert_eq!(holder(&server).await, "first");
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_the_next_attempt() {
    let server = world();
    let mut first = candidate(&server, "first");
    first.acquire().await;
    let mut second = candidate(&server, "second");
    assert!(timeout(Duration::from_secs(5), second.acquire()).await.is_err());
    first.release().await;
    assert_eq!(holder(&server).await, "");
    timeout(Duration::from_secs(3), second.acquire()).await.expect("a free lease is taken within a retry period");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_gives_up_before_anybody_may_follow() {
    let server = world();
    let mut first = candidate(&server, "first");
    first.acquire().await;
    let began = Instant::now();
    server.set_faults(Faults { refused_permille: 1000, ..Faults::none() });
    let lost = first.hold().await;
    assert!(matches!(&lost, LeaseLost::NotRenewed { cause, .. } if cause.contains("simulated server fails")), "{lost}");
    assert_eq!(began.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_ends_the_leadership_in_time_too() {
    let server = world();
    let mut first = candidate(&server, "first");
    first.acquire().await;
    let began = Instant::now();
    server.set_faults(Faults { slowest: Duration::from_secs(100_000), ..Faults::none() });
    let lost = first.hold().await;
    assert!(matches!(lost, LeaseLost::NotRenewed { .. }), "{lost}");
    assert_eq!(began.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_lease_edited_to_another_holder_is_lost_at_the_next_renewal() {
    let server = world();
    let mut first = candidate(&server, "first");
    first.acquire().await;
    let api: Api<Lease> = Api::default_namespaced(server.client("person"));
    let mut lease = stored(&server).await;
    lease.spec.as_mut().unwrap().holder_identity = Some("somebody".to_owned());
    api.replace(LeaseSettings::DEFAULT_NAME, &kube::api::PostParams::default(), &lease).await.unwrap();
    let lost = timeout(Duration::from_secs(6), first.hold()).await.expect("noticed within three attempts");
    assert!(matches!(&lost, LeaseLost::Taken { holder } if holder == "somebody"), "{lost}");
    first.release().await;
    assert_eq!(holder(&server).await, "somebody", "a lease of somebody else is not given back");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_lose_the_lease() {
    let server = world();
    let mut first = candidate(&server, "first");
    server.set_faults(Faults { lost_permille: 1000, ..Faults::none() });
    assert!(timeout(Duration::from_secs(1), first.acquire()).await.is_err());
    server.set_faults(Faults::none());
    timeout(Duration::from_secs(3), first.acquire()).await.expect("it finds that the lease is its own");
    assert_eq!(stored(&server).await.spec.unwrap().lease_transitions, Some(0));
}
