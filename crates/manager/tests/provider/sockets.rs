//! What the provider holds open, and what others can hold it up with.

use std::{net::SocketAddr, time::Duration};

use crate::rack::{DEADLINE, FLEET, Rack};
use serde_json::json;
use tokio::{
    net::TcpListener,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// The connections to a port of loopback, as those who made them see them. One that nobody but the kernel knows any more is none.
fn connections_to(port: u16) -> usize {
    const TIME_WAIT: &str = "06";
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let leads_there = |line: &&str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns[2].ends_with(&format!(":{port:04X}")) && columns[3] != TIME_WAIT
    };
    table.lines().skip(1).filter(leads_there).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_to_maas_do_not_grow_with_the_machines_that_came_and_went() {
    const MACHINES: usize = 30;
    let fleet = format!(
        "subnets: [{{name: all, cidr: 10.0.0.0/16, gateway: 10.0.0.1}}]
machines: [{{hostname: m-, count: {MACHINES}, cpus: 4, memory: 8192}}]
timings: {{deploy: [0.2, 0.4], power_on: [0, 0.1], power_off: [0, 0.1]}}"
    );
    let mut rack = Rack::without_provider("sockets", &fleet).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    tokio::spawn(maas_emulator::serve(listener, rack.emulator.clone(), None, stop.clone()));
    rack.maas = Some(address);
    let rack = rack.with_provider();
    rack.machine("first", json!({})).await;
    rack.provisioned("first").await;
    rack.delete("Machine", "first").await;
    rack.gone("first").await;
    let before = connections_to(address.port());
    assert!((1..MACHINES / 2).contains(&before), "{before} connections for one machine");

    let names: Vec<String> = (0..MACHINES).map(|number| format!("m{number}")).collect();
    for name in &names {
        rack.machine(name, json!({})).await;
    }
    for name in &names {
        rack.provisioned(name).await;
    }
    for name in &names {
        rack.delete("Machine", name).await;
    }
    for name in &names {
        rack.gone(name).await;
    }
    // As many as are worked on at once may be kept for the next call.
    let after = connections_to(address.port());
    assert!(after < before + MACHINES / 2, "{before} connections before {MACHINES} machines, and {after} after");
    rack.finish().await;
    stop.cancel();
}

/// An address at which everybody is let in and nobody is answered.
async fn silent_server() -> (SocketAddr, tokio::sync::watch::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (count, counted) = tokio::sync::watch::channel(0);
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            held.push(connection);
            count.send_replace(held.len());
        }
    });
    (address, counted)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_api_that_is_silent_makes_neither_the_provider_nor_a_machine_late() {
    let mut rack = Rack::without_provider("silent-workload", FLEET).await;
    let (address, mut asked) = silent_server().await;
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("https://{address}"), "insecure-skip-tls-verify": true}}],
        "users": [{"name": "u", "user": {"token": "t"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]});
    let labels = json!({api::names::CLUSTER_NAME: "c1"});
    rack.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c1-kubeconfig", "labels": labels},
        "type": "cluster.x-k8s.io/secret", "stringData": {"value": kubeconfig.to_string()}}))
        .await;
    rack = rack.with_provider();
    rack.machine("m1", json!({})).await;
    rack.provisioned("m1").await;
    tokio::time::timeout(DEADLINE, asked.wait_for(|count| *count > 0)).await.expect("the workload API is asked in time").unwrap();

    // From its start on the next provider has a machine whose node it cannot look for.
    rack.kill_provider().await;
    let (rack, began) = (rack.with_provider(), Instant::now());
    while !rack.is_ready().await {
        assert!(began.elapsed() < Duration::from_secs(30), "the provider is not ready");
        sleep(Duration::from_millis(50)).await;
    }
    let before = *asked.borrow();
    tokio::time::timeout(DEADLINE, asked.wait_for(|count| *count > before)).await.expect("it is asked again").unwrap();
    let began = Instant::now();
    rack.machine("m2", json!({})).await;
    rack.provisioned("m2").await;
    assert!(began.elapsed() < Duration::from_mins(1), "a machine took {:?}", began.elapsed());
    assert!(rack.is_ready().await);
    rack.finish().await;
}
