//! No key is in a log line, an error or a debug form, whatever goes wrong. Every key of these tests has the word `canary` in it.

use crate::{
    rotation::rotate_in_maas,
    world::{ALICE, ALICE_NEW, BOB, Behaviour, ENDPOINT, World},
};
use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn no_key_is_shown_anywhere() {
    let log = Log::default();
    let writer = log.clone();
    // For all threads: what other tests say meanwhile must not hold a key either.
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false).with_writer(move || writer.clone()).init();
    let world = World::with_environment(Some((ENDPOINT, BOB)));
    let stop = CancellationToken::new();
    let following = world.accounts.clone().follow(stop.clone());
    let mut shown = Vec::new();
    let script = async {
        world.default_secret("team", ENDPOINT, ALICE).await;
        world.secret("team", "broken", &[("url", ENDPOINT), ("apiKey", "canary-alone")]).await;
        world.secret("team", "twice", &[("url", ENDPOINT), ("apiKey", ALICE), ("api-key", BOB)]).await;
        world.secret("team", "wrong", &[("url", ENDPOINT), ("apiKey", "canary:canary:canary")]).await;
        world.secret("team", "password", &[("url", "http://user:canary@maas.test/MAAS"), ("apiKey", ALICE)]).await;
        for name in ["broken", "twice", "wrong", "password", "missing"] {
            let error = world.accounts.of("team", Some(name)).await.unwrap_err();
            shown.push(format!("{error} {error:?}"));
        }
        let account = world.accounts.of("team", None).await.unwrap();
        shown.push(format!("{account:?} {:?} {:?}", account.client, world.accounts));
        shown.push(format!("{:?}", world.accounts.of("elsewhere", None).await.unwrap()));
        rotate_in_maas(&world.maas);
        sleep(Duration::from_mins(2)).await;
        let error = world.accounts.of("team", None).await.unwrap_err();
        shown.push(format!("{error} {error:?}"));
        world.default_secret("team", ENDPOINT, ALICE_NEW).await;
        world.maas.behaves(Behaviour::IsSilent);
        sleep(Duration::from_mins(5)).await;
        let error = account.client.zones().list().await.unwrap_err();
        shown.push(format!("{error} {error:?}"));
        stop.cancel();
    };
    tokio::join!(following, script);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for line in ["MAAS does not answer", "called MAAS", "could not read the event log"] {
        assert!(log.contains(line), "{line} should have been logged");
    }
    for text in shown.iter().chain([&log]) {
        assert!(!text.contains("canary"), "{}", text.lines().find(|line| line.contains("canary")).unwrap_or_default());
    }
}
