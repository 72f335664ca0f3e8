//! The emulator on sockets, in real time, with clients that share nothing but the address.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use std::net::SocketAddr;
use std::time::Duration;

use maas_client::{Client, Error};
use maas_emulator::faults::{CallFault, CallHarm, CallPattern};
use maas_emulator::{Clock, Emulator, Fault, Fleet, Options};
use tokio_util::sync::CancellationToken;

/// A MAAS that serves until the token is dropped.
async fn served() -> (Emulator, SocketAddr, tokio_util::sync::DropGuard) {
    let options = Options { clock: Clock::running(jiff::Timestamp::now()), ..Options::default() };
    let emulator = Emulator::new(Fleet::from_yaml("machines: [{hostname: m, count: 2}]").unwrap(), options).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    tokio::spawn(maas_emulator::serve(listener, emulator.clone(), None, stop.clone()));
    (emulator, address, stop.drop_guard())
}

fn client(address: SocketAddr) -> Client {
    Client::builder(&format!("http://{address}/MAAS"), Fleet::DEFAULT_KEY).unwrap().build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_create_one_name_together_all_succeed_however_slowly_they_come() {
    let (emulator, address, _stop) = served().await;
    let matching = CallPattern { method: Some("POST".into()), path: Some("dnsresources/".into()), ..CallPattern::default() };
    emulator.inject(Fault::Call(CallFault { matching, skip: 0, times: Some(4), harm: CallHarm::Together { calls: 4 } })).unwrap();
    // Further apart than calls that meet by luck.
    let apart = Duration::from_millis(50);
    let creations: Vec<_> = (0..4)
        .map(|number: u8| async move {
            tokio::time::sleep(apart * u32::from(number)).await;
            client(address).dns_resources().create("api.maas", None, &[[10, 20, 0, 210 + number].into()]).await
        })
        .map(tokio::spawn)
        .collect();
    for creation in creations {
        creation.await.unwrap().unwrap();
    }
    assert_eq!(emulator.world(|world| world.names.len()), 4, "four of one name");
    let late = client(address).dns_resources().create("api.maas", None, &[]).await;
    assert!(matches!(late, Err(Error::Refused { .. })), "{late:?}");
}
