//! What goes wrong between us and MAAS.

use crate::world::{Behaviour, World, quiet};
use maas_emulator::{
    Fault,
    faults::{CallFault, CallHarm, CallPattern},
};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

fn once(method: &str, path: &str, harm: CallHarm) -> Fault {
    let matching = CallPattern { method: Some(method.to_owned()), path: Some(path.to_owned()), ..CallPattern::default() };
    Fault::Call(CallFault { matching, skip: 0, times: Some(1), harm })
}

#[tokio::test(start_paused = true)]
async fn duplicates_made_in_a_race_are_removed_and_the_lowest_stays() {
    let world = World::new();
    world
        .play(async {
            world.plain_cluster().await;
            world.until("it is provisioned", World::is_provisioned).await;
            world.control_plane("a", &["10.20.0.11"]).await;
            world.until("it leads to the machine", |world| world.addresses() == ["10.20.0.11"]).await;
            // As MAAS lets it happen when two create one name at the same time.
            let lowest = world.emulator.world(|world| {
                let first = world.names.values().next().unwrap().clone();
                for _ in 0..2 {
                    world.names.add(None, |id| maas_emulator::world::dns::DnsResource { id, addresses: Vec::new(), ..first.clone() });
                }
                first.id
            });
            assert_eq!(world.names().len(), 3);
            world.until("only one is left", |world| world.names().len() == 1).await;
            assert_eq!(world.emulator.world(|world| world.names.values().next().unwrap().id), lowest);
            assert_eq!(world.addresses(), ["10.20.0.11"]);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_nobody_answered_is_looked_for_and_not_repeated() {
    for harm in [CallHarm::ResetAfter, CallHarm::LateCommit { seconds: 80.0 }, CallHarm::ResetBefore] {
        let world = World::new();
        world.emulator.inject(once("POST", "dnsresources/", harm.clone())).unwrap();
        world
            .play(async {
                world.plain_cluster().await;
                world.until("it is provisioned", World::is_provisioned).await;
                sleep(Duration::from_mins(4)).await;
                assert_eq!(world.names().len(), 1, "{harm:?}");
                let creations = world.writes().into_iter().filter(|call| call.starts_with("POST dnsresources/")).count();
                assert_eq!(creations, if matches!(harm, CallHarm::ResetBefore) { 2 } else { 1 }, "{harm:?}");
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_does_not_go_before_what_nobody_answered_can_no_longer_happen() {
    let world = World::new();
    world.emulator.inject(once("POST", "dnsresources/", CallHarm::LateCommit { seconds: 85.0 })).unwrap();
    world
        .play(async {
            world.plain_cluster().await;
            world.until("it was sent", |world| !world.writes().is_empty()).await;
            world.delete("MaasCluster", "one").await;
            world.until("it is gone", |world| world.one().is_null()).await;
            sleep(Duration::from_mins(4)).await;
            assert_eq!(world.names(), []);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_maas_keeps_failing_at_is_tried_less_and_less_often() {
    for (method, path) in [("POST", "dnsresources/"), ("PUT", "dnsresources/")] {
        let world = World::new();
        let Fault::Call(fault) = once(method, path, CallHarm::Status { status: 500, body: "no luck".to_owned(), retry_after: None }) else {
            panic!()
        };
        world.emulator.inject(Fault::Call(CallFault { times: None, ..fault })).unwrap();
        world
            .play(async {
                world.plain_cluster().await;
                world.control_plane("a", &["10.20.0.11"]).await;
                world.until("it is told", |world| world.condition("LoadBalancerReady") == "False/LoadBalancerFailed").await;
                assert!(world.message("LoadBalancerReady").contains("no luck"), "{}", world.message("LoadBalancerReady"));
                sleep(Duration::from_hours(1)).await;
                let (calls, writes) = (world.calls("").len(), world.kubernetes_writes().len());
                assert!(calls < 250 && writes < 120, "{method}: {calls} calls and {writes} writes in an hour");
                assert_eq!(world.condition("LoadBalancerReady"), "False/LoadBalancerFailed");
                world.emulator.clear_faults();
                world.until("it is well", |world| world.condition("LoadBalancerReady") == "True/LoadBalancerReady").await;
                assert_eq!(world.addresses(), ["10.20.0.11"]);
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_domain_that_maas_does_not_have_is_told_and_used_as_soon_as_it_is_there() {
    let world = World::new();
    world
        .play(async {
            world.cluster(json!({}), json!({}), json!({"dnsDomain": "nowhere.example"})).await;
            world.until("it is told", |world| world.condition("LoadBalancerReady") == "False/DNSDomainNotFound").await;
            quiet().await;
            assert_eq!((world.is_provisioned(), world.writes()), (false, vec![]));
            world.person().domains().create("nowhere.example", &maas_client::DomainSettings::default()).await.unwrap();
            world.until("it is provisioned", World::is_provisioned).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_nobody_answered_is_found_again() {
    for harm in [CallHarm::ResetAfter, CallHarm::LateCommit { seconds: 60.0 }] {
        let world = World::new();
        world.emulator.inject(once("POST", "ipaddresses/", harm)).unwrap();
        world
            .play(async {
                world.cluster(json!({}), json!({}), json!({"endpoint": {"mode": "VIP", "vip": {"subnet": "racks"}}})).await;
                world.until("it is provisioned", World::is_provisioned).await;
                sleep(Duration::from_mins(4)).await;
                assert_eq!(world.reserved().len(), 1);
                world.delete("MaasCluster", "one").await;
                world.until("it is gone", |world| world.one().is_null()).await;
                assert_eq!(world.reserved().len(), 0);
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_waits_for_its_turn_until_its_evidence_is_old_is_not_sent() {
    let world = World::new();
    // More clusters than calls at once; looking takes so long that all have looked before the first is told to write, and writing takes
    // longer than an order may wait.
    for (method, times, seconds) in [("GET", None, 1.0), ("POST", Some(8), 45.0)] {
        let matching = CallPattern { method: Some(method.to_owned()), ..CallPattern::default() };
        world.emulator.inject(Fault::Call(CallFault { matching, skip: 0, times, harm: CallHarm::Slow { seconds } })).unwrap();
    }
    let names: Vec<String> = (0..10).map(|number| format!("c{number}")).collect();
    world
        .play(async {
            for name in &names {
                world.another_cluster(name, &json!({}), &json!({"dnsDomain": "maas"})).await;
            }
            world.until("all have a name", |world| world.names().len() == names.len()).await;
        })
        .await;
    let written = world.server.trace().entries();
    let start: jiff::Timestamp = "2026-11-16T00:00:00Z".parse().unwrap();
    let mut sent = 0;
    world.emulator.journal(|journal| {
        for call in journal.entries().filter(|call| call.method == "POST" && call.uri.contains("dnsresources/")) {
            let form = String::from_utf8(call.request.as_deref().unwrap().to_vec()).unwrap();
            let name = names.iter().find(|name| form.contains(&format!("fqdn={name}-"))).unwrap_or_else(|| panic!("{form}"));
            let at = Duration::try_from(call.at.duration_since(start)).unwrap();
            let order = |entry: &&simulation::Entry| {
                entry.at <= at
                    && entry.what.starts_with("PATCH ")
                    && entry.what.contains(&format!("maasclusters/{name}"))
                    && entry.what.contains("since")
            };
            let ordered = written.iter().filter(order).map(|entry| entry.at).max().unwrap_or_else(|| panic!("{name} was never ordered"));
            let waited = at.saturating_sub(ordered);
            assert!(waited < Duration::from_secs(20), "{name} was sent {waited:?} after its order");
            sent += 1;
        }
    });
    assert_eq!(sent, names.len(), "each once");
}

#[tokio::test(start_paused = true)]
async fn an_expired_certificate_is_in_the_condition_with_the_next_step() {
    for provisioned_before in [false, true] {
        let world = World::new();
        world
            .play(async {
                if provisioned_before {
                    world.plain_cluster().await;
                    world.until("it is provisioned", World::is_provisioned).await;
                    world.maas_behaves(Behaviour::HasExpired);
                } else {
                    world.maas_behaves(Behaviour::HasExpired);
                    world.plain_cluster().await;
                }
                world.until("it is told", |world| world.condition("MaasAvailable") == "False/MaasUnavailable").await;
                let (told, writes) = (world.message("MaasAvailable"), world.kubernetes_writes().len());
                let (fault, step) =
                    ("invalid peer certificate: certificate expired", "; renew the certificate of MAAS, and check the clock");
                assert!(told.contains(fault) && !told.contains("verification time"), "{told}");
                assert!(provisioned_before || told.contains(&format!("{fault}{step}")), "{told}");
                sleep(Duration::from_hours(1)).await;
                assert_eq!(world.message("MaasAvailable"), told);
                assert!(world.kubernetes_writes().len() <= writes + 1, "{:#?}", &world.kubernetes_writes()[writes..]);
                world.maas_behaves(Behaviour::Answers);
                world.until("MAAS is there", |world| world.condition("MaasAvailable").starts_with("True/")).await;
            })
            .await;
    }
}
