//! The emulator on sockets, in real time, with clients that share nothing but the address.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use maas_client::{Allocate, Client, Deploy, Error, Limit, Limits};
use maas_emulator::faults::{CallFault, CallHarm, CallPattern};
use maas_emulator::hardware::{Hardware, Order, Outcome, Simulated};
use maas_emulator::random::Random;
use maas_emulator::state_file::Saver;
use maas_emulator::timings::Timings;
use maas_emulator::{Clock, Emulator, Fault, Fleet, Options};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

/// A MAAS that serves until the token is dropped.
async fn served() -> (Emulator, SocketAddr, tokio_util::sync::DropGuard) {
    served_with(Arc::new(Simulated)).await
}

async fn served_with(hardware: Arc<dyn Hardware>) -> (Emulator, SocketAddr, tokio_util::sync::DropGuard) {
    served_fleet("machines: [{hostname: m, count: 2}]", hardware).await
}

async fn served_fleet(fleet: &str, hardware: Arc<dyn Hardware>) -> (Emulator, SocketAddr, tokio_util::sync::DropGuard) {
    let options = Options { clock: Clock::running(jiff::Timestamp::now()), hardware, ..Options::default() };
    let emulator = Emulator::new(Fleet::from_yaml(fleet).unwrap(), options).unwrap();
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

#[tokio::test(flavor = "multi_thread")]
async fn where_keys_are_nobodys_but_their_owners_the_emulator_tells_and_takes_nothing_without_one() {
    let ask = async |address: SocketAddr, what: &str, header: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{what} HTTP/1.0\r\n{header}\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let (_, address, _stop) = served_fleet("users: [{name: ada, keys: [{key: 'a:b:c'}]}]", Arc::new(Simulated)).await;
    for what in ["GET /emulator/calls", "DELETE /emulator/calls", "GET /emulator/summary", "DELETE /emulator/faults", "GET /emulator/none"]
    {
        for header in ["", "Authorization: Bearer a:b:d\r\n", &format!("Authorization: Bearer {}\r\n", Fleet::DEFAULT_KEY)] {
            let refused = ask(address, what, header).await;
            assert!(
                refused.starts_with("HTTP/1.0 401") && refused.contains("send the header `Authorization: Bearer`"),
                "{what}: {refused}"
            );
        }
        let answered = ask(address, what, "Authorization: Bearer a:b:c\r\n").await;
        assert!(!answered.starts_with("HTTP/1.0 401"), "{what}: {answered}");
    }
    let (_, known_to_all, _stop) = served().await;
    let answered = ask(known_to_all, "GET /emulator/calls", "").await;
    assert!(answered.starts_with("HTTP/1.0 200"), "a key that everybody has keeps nobody out: {answered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_looks_whether_it_answers_needs_no_key_and_leaves_no_trace() {
    let fleet = "users: [{name: ada, superuser: true, keys: [{key: 'a:b:c'}]}]";
    let (emulator, address, _stop) = served_fleet(fleet, Arc::new(Simulated)).await;
    let once = CallFault { matching: CallPattern::default(), skip: 0, times: Some(1), harm: CallHarm::ResetBefore };
    emulator.inject(Fault::Call(once)).unwrap();
    let commits = || emulator.world(|world| world.commits);
    let before = commits();
    for _ in 0..5 {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /emulator/health HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.0 200") && answer.ends_with("\r\n\r\n{}"), "it tells nothing: {answer}");
    }
    assert_eq!((emulator.journal(|journal| journal.total()), commits()), (0, before));
    let client = Client::builder(&format!("http://{address}/MAAS"), "a:b:c").unwrap().build().unwrap();
    let struck = client.zones().create("az1", "").await;
    assert!(struck.is_err(), "the fault is there for the first call: {struck:?}");
    client.zones().create("az1", "").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_cannot_be_saved_is_not_answered_as_made() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { clock: Clock::running(jiff::Timestamp::now()), ..Options::default() };
    let emulator = Emulator::new(Fleet::from_yaml("machines: [{hostname: m}]").unwrap(), options).unwrap();
    let saver = Saver::new(directory.path().join("state.json"), emulator.clone()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    tokio::spawn(maas_emulator::serve(listener, emulator, Some(Arc::new(saver)), stop.clone()));
    let _stop = stop.drop_guard();
    client(address).zones().create("az1", "").await.unwrap();
    directory.close().unwrap();
    let failed = client(address).zones().create("az2", "").await.unwrap_err();
    assert!(matches!(&failed, Error::Failed { words, .. } if words.contains("could not be written")), "{failed:?}");
    client(address).zones().list().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_cut_short_or_too_long_are_noted_too() {
    let (emulator, address, _stop) = served().await;
    let long = format!("GET /MAAS/{} HTTP/1.1\r\nhost: maas\r\n\r\n", "a".repeat(70_000));
    let short = "POST /MAAS/api/2.0/zones/ HTTP/1.1\r\nhost: maas\r\ncontent-length: 10\r\n\r\nname";
    for (request, status) in [(long.as_str(), 414), (short, 400)] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        // The server may hang up before it has read all of a head that is too long.
        let _ = stream.write_all(request.as_bytes()).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let noted = || emulator.journal(|journal| journal.entries().last().map(|entry| entry.status));
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        while noted() != Some(status) {
            assert!(tokio::time::Instant::now() < deadline, "{status} is not noted: {:?}", noted());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_gave_up_on_is_done_and_noted_all_the_same() {
    let (emulator, address, _stop) = served().await;
    let matching = CallPattern { method: Some("POST".into()), path: Some("zones/".into()), ..CallPattern::default() };
    emulator.inject(Fault::Call(CallFault { matching, skip: 0, times: Some(1), harm: CallHarm::Slow { seconds: 0.5 } })).unwrap();
    let short = Limit { attempt: Duration::from_millis(100), total: Duration::from_millis(100) };
    let limits = Limits { read: short, write: short, slow: short };
    let impatient = Client::builder(&format!("http://{address}/MAAS"), Fleet::DEFAULT_KEY).unwrap().limits(limits).build().unwrap();
    let given_up = impatient.zones().create("late", "").await;
    assert!(matches!(given_up, Err(Error::OutcomeUnknown { .. })), "{given_up:?}");
    drop(impatient);
    let noted = || emulator.journal(|journal| journal.entries().last().map(|entry| (entry.method.clone(), entry.status)));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while noted() != Some(("POST".to_owned(), 200)) {
        assert!(tokio::time::Instant::now() < deadline, "{:?}", noted());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(client(address).zones().list().await.unwrap().iter().any(|zone| zone.name == "late"), "the zone is there");
}

/// Hardware with a mistake in it.
struct Mistaken;

impl Hardware for Mistaken {
    fn perform(&self, order: &Order, _: &mut Random, _: &Timings) -> Vec<(Duration, Outcome)> {
        panic!("nobody thought of order {}", order.boot)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_meets_a_mistake_is_answered_500_and_noted_and_the_next_one_is_none_the_worse() {
    let (emulator, address, _stop) = served_with(Arc::new(Mistaken)).await;
    let id = client(address).machines().allocate(&Allocate::new()).await.unwrap().system_id;
    let failed = client(address).machine(&id).deploy(&Deploy::default()).await.unwrap_err();
    assert!(matches!(&failed, Error::Failed { words, .. } if words.starts_with("nobody thought of order")), "{failed:?}");
    client(address).machine(&id).read().await.unwrap();
    let noted: Vec<(Option<String>, Option<String>, u16)> =
        emulator.journal(|journal| journal.entries().map(|entry| (entry.user.clone(), entry.operation.clone(), entry.status)).collect());
    let by_admin = |operation: Option<&str>, status| (Some("admin".to_owned()), operation.map(str::to_owned), status);
    assert_eq!(noted, [by_admin(Some("allocate"), 200), by_admin(Some("deploy"), 500), by_admin(None, 200)]);
}

/// Connections to this port that are open, as the kernel counts them.
fn connections_to(address: SocketAddr) -> usize {
    const ESTABLISHED: &str = "01";
    let port = format!(":{:04X}", address.port());
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    columns.filter(|columns| columns[2].ends_with(&port) && columns[3] == ESTABLISHED).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_calls_one_client_makes_it_has_no_more_connections_than_calls_at_once() {
    let (_emulator, address, _stop) = served().await;
    let client = client(address);
    for _ in 0..5 {
        let reads = (0..60).map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                let missing = client.machine(&format!("x{number:05}").as_str().into()).read().await;
                assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
                client.zones().list().await.unwrap();
            })
        });
        for read in reads.collect::<Vec<_>>() {
            read.await.unwrap();
        }
    }
    // One that is not kept is closed a moment after its last answer.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        let open = connections_to(address);
        if (1..=8).contains(&open) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{open} connections after 600 calls");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
