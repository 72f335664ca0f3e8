//! Nodes as machines and clusters hear of them: who is poked when, and how often.

use crate::{
    scene::{play, quiet},
    world::{Behaviour, key},
};
use decisions::machine::NodeFacts;
use manager::{ObjectKey, workload::Host};
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn s22_a_node_is_found_by_host_upper_case_fqdn_and_short_name() {
    play(&["one"], |scene| {
        Box::pin(async move {
            let cluster = scene.world.cluster("one");
            for node in ["plain", "loud", "full.maas", "short", "other.example.com"] {
                cluster.node(node, Some(&format!("id-of-{node}"))).await;
            }
            quiet().await;
            let ask = |hostname: &str, fqdn: &str| {
                let host = Host { hostname, fqdn, addresses: &[] };
                scene.world.workload.watch_node(&key("one"), key(hostname), &host, &scene.pokes)
            };
            for (hostname, fqdn, expected) in [
                ("plain", "plain.maas", Some("plain")),
                ("LOUD", "Loud.MAAS", Some("loud")),
                ("full", "full.maas", Some("full.maas")),
                ("short.maas", "short.maas", Some("short")),
                ("other", "other.maas", None),
                ("absent", "absent.maas", None),
            ] {
                let facts = ask(hostname, fqdn);
                let wanted = expected.map_or(NodeFacts::Absent, |name| NodeFacts::Present {
                    name: name.to_owned(),
                    provider_id: Some(format!("id-of-{name}")),
                    is_there: false,
                });
                assert_eq!(facts, wanted, "{hostname} {fqdn}");
            }
            cluster.dies();
            scene.world.until_it_is_silent("one").await;
            assert_eq!(ask("plain", "plain.maas"), NodeFacts::Unreachable);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn s22_a_node_that_appears_is_named_once_by_its_machine_and_nobody_else_is_passed() {
    play(&["one", "two"], |scene| {
        Box::pin(async move {
            scene.object("a", "one", Some(("host-a", "host-a.maas"))).await;
            scene.object("b", "one", Some(("host-b", "host-b.maas"))).await;
            scene.object("c", "two", Some(("host-a", "host-a.maas"))).await;
            quiet().await;
            let (began, one) = (Instant::now(), scene.world.cluster("one"));
            one.node("host-a", None).await;
            sleep(Duration::from_millis(50)).await;
            assert_eq!(one.provider_id("host-a").await.as_deref(), Some("maas:///az1/a"), "at once");
            quiet().await;
            assert_eq!(scene.since(began), ["a"], "the echo of our own write is no news");
            let patches = one.attempts_since(began).into_iter().filter(|call| call.starts_with("PATCH")).count();
            assert_eq!(patches, 1);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_kubelets_report_pokes_no_machine() {
    play(&["one"], |scene| {
        Box::pin(async move {
            let one = scene.world.cluster("one");
            one.node("host-a", None).await;
            scene.object("a", "one", Some(("host-a", "host-a.maas"))).await;
            scene.object("whole", "one", None).await;
            quiet().await;
            let began = Instant::now();
            for beat in 0..100 {
                one.reports("host-a", true, beat).await;
                sleep(Duration::from_millis(100)).await;
            }
            quiet().await;
            assert_eq!(scene.since(began), ["whole"], "ready was news once");
            let began = Instant::now();
            one.reports("host-a", false, 1000).await;
            quiet().await;
            assert_eq!(scene.since(began), ["whole"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_deleted_and_comes_back_is_named_again() {
    play(&["one"], |scene| {
        Box::pin(async move {
            let one = scene.world.cluster("one");
            scene.object("a", "one", Some(("host-a", "host-a.maas"))).await;
            one.node("host-a", None).await;
            quiet().await;
            let began = Instant::now();
            one.delete_node("host-a").await;
            quiet().await;
            assert_eq!(scene.since(began), ["a"]);
            one.node("host-a", None).await;
            quiet().await;
            assert_eq!(one.provider_id("host-a").await.as_deref(), Some("maas:///az1/a"));
            assert_eq!(scene.since(began), ["a", "a"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_swarm_of_nodes_is_one_poke_for_who_wants_to_hear_of_all() {
    play(&["one"], |scene| {
        Box::pin(async move {
            scene.object("whole", "one", None).await;
            quiet().await;
            let began = Instant::now();
            for number in 0..100 {
                scene.world.cluster("one").node(&format!("n{number}"), None).await;
            }
            quiet().await;
            assert_eq!(scene.since(began), ["whole"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_break_is_two_pokes_for_the_cluster_and_none_for_machines_with_named_nodes() {
    play(&["one"], |scene| {
        Box::pin(async move {
            let one = scene.world.cluster("one");
            scene.object("whole", "one", None).await;
            scene.object("a", "one", Some(("host-a", "host-a.maas"))).await;
            scene.object("waiting", "one", Some(("host-b", "host-b.maas"))).await;
            one.node("host-a", None).await;
            quiet().await;
            let began = Instant::now();
            one.dies();
            sleep(Duration::from_hours(1)).await;
            assert_eq!(scene.since(began), ["whole"]);
            one.behaves(Behaviour::Answers);
            quiet().await;
            assert_eq!(scene.since(began), ["whole", "whole"]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_came_during_a_break_is_named_after_it() {
    play(&["one"], |scene| {
        Box::pin(async move {
            let one = scene.world.cluster("one");
            one.dies();
            scene.world.until_it_is_silent("one").await;
            one.node("host-a", None).await;
            // Its list has grown too old to resume.
            one.server.forget_history();
            scene.object("a", "one", Some(("host-a", "host-a.maas"))).await;
            quiet().await;
            assert_eq!(one.provider_id("host-a").await, None);
            one.behaves(Behaviour::Answers);
            quiet().await;
            assert_eq!(one.provider_id("host-a").await.as_deref(), Some("maas:///az1/a"));
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_does_not_watch_any_more_is_left_alone() {
    play(&["one"], |scene| {
        Box::pin(async move {
            scene.object("a", "one", Some(("host-a", "host-a.maas"))).await;
            scene.object("whole", "one", None).await;
            quiet().await;
            let began = Instant::now();
            scene.world.workload.unwatch(&ObjectKey::namespaced("team", "a"), &scene.pokes);
            scene.world.workload.unwatch(&ObjectKey::namespaced("team", "whole"), &scene.pokes);
            scene.world.cluster("one").node("host-a", None).await;
            quiet().await;
            assert_eq!(scene.since(began), [] as [&str; 0]);
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn s22_hosts_of_two_domains_with_one_name_do_not_get_each_others_node() {
    play(&["one"], |scene| {
        Box::pin(async move {
            // Every host has the bridge of its containers: by that address each node is where both machines are.
            scene.object_at("a", "one", Some(("web", "web.east")), &["10.0.0.1", "172.17.0.1"]).await;
            scene.object_at("b", "one", Some(("web", "web.west")), &["10.0.0.2", "172.17.0.1"]).await;
            quiet().await;
            let one = scene.world.cluster("one");
            one.node_at("web.west", None, &["10.0.0.2", "172.17.0.1"]).await;
            quiet().await;
            assert_eq!(one.provider_id("web.west").await.as_deref(), Some("maas:///az1/b"));
            one.node_at("web.example", None, &["10.0.0.1"]).await;
            quiet().await;
            assert_eq!(one.provider_id("web.example").await.as_deref(), Some("maas:///az1/a"), "of another domain, and where it is");
        })
    })
    .await;
}
