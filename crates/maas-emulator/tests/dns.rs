//! The name server on a real socket of loopback, asked by the real `dig`: machines, names made through the API, reverse names, the
//! delay of their publication, and their end. Without `dig` (package bind9-dnsutils) a small client asks instead.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use http::{Method, Request};
use jiff::Timestamp;
use maas_emulator::dns_server::DnsServer;
use maas_emulator::timings::Between;
use maas_emulator::{Clock, Emulator, Fleet, Options};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

const FLEET: &str = "
domains: [{name: maas}, {name: k8s.example}]
subnets: [{id: 1, cidr: 10.20.0.0/24}]
machines:
  - {hostname: node-a, interfaces: [{name: eth0, links: [{mode: static, subnet: 1, address: 10.20.0.11}]}]}
  - {hostname: node-b, interfaces: [{name: eth0, links: [{mode: auto, subnet: 1}]}]}
";
/// Nothing here takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

/// An emulator and its running name server.
struct Site {
    emulator: Emulator,
    address: SocketAddr,
    domains: watch::Receiver<Vec<String>>,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Site {
    fn start(clock: Clock, delay: Between) -> Self {
        let mut fleet = Fleet::from_yaml(FLEET).unwrap();
        fleet.timings.dns_publication = delay;
        let emulator = Emulator::new(fleet, Options { clock, ..Options::default() }).unwrap();
        let server = DnsServer::bind(emulator.clone(), "127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, domains, stop) = (server.local_address(), server.domains(), CancellationToken::new());
        let running = tokio::spawn(server.run(stop.clone()));
        Site { emulator, address, domains, stop, running }
    }

    fn at_once() -> Self {
        Site::start(Clock::manual(Timestamp::UNIX_EPOCH), Between(0.0, 0.0))
    }

    async fn stop(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.running).await.expect("the server stops").unwrap();
    }

    /// Calls the API as the administrator; the answer's JSON.
    async fn call(&self, method: Method, path: &str, form: &str) -> serde_json::Value {
        static NONCE: AtomicU32 = AtomicU32::new(0);
        let key: Vec<&str> = Fleet::DEFAULT_KEY.split(':').collect();
        let authorization = format!(
            "OAuth oauth_version=\"1.0\", oauth_signature_method=\"PLAINTEXT\", oauth_consumer_key=\"{}\", oauth_token=\"{}\", \
             oauth_signature=\"%26{}\", oauth_timestamp=\"{}\", oauth_nonce=\"{}\"",
            key[0],
            key[1],
            key[2],
            self.emulator.clock().now().as_second(),
            NONCE.fetch_add(1, Ordering::Relaxed)
        );
        let request = Request::builder()
            .method(method)
            .uri(format!("/MAAS/api/2.0/{path}"))
            .header("authorization", authorization)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Bytes::copy_from_slice(form.as_bytes()))
            .unwrap();
        let answer = self.emulator.answer(request).await.unwrap();
        assert!(answer.status().is_success(), "{path}: {} {:?}", answer.status(), answer.body());
        serde_json::from_slice(answer.body()).unwrap_or_default()
    }

    /// What the name server says: a line for each answer, and how the question went.
    async fn ask(&self, name: &str, kind: RecordType, over: Over) -> (ResponseCode, Vec<String>) {
        let dug = dig(self.address, name, kind, over).await;
        let asked = exchange(self.address, name, kind, over).await;
        if let Some(dug) = dug {
            assert_eq!(dug, asked, "dig and a plain client agree about {name}");
        }
        asked
    }

    async fn addresses(&self, name: &str) -> Vec<String> {
        self.ask(name, RecordType::A, Over::Udp).await.1
    }

    /// How long the first answer about an address may be remembered, in seconds.
    async fn time_to_live(&self, name: &str) -> u32 {
        whole_answer(self.address, name, RecordType::A, Over::Udp).await.answers[0].ttl
    }

    async fn wait_for_addresses(&self, name: &str, expected: &[&str]) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (_, found) = exchange(self.address, name, RecordType::A, Over::Udp).await;
            if found == expected {
                return;
            }
            assert!(Instant::now() < deadline, "{name} is {found:?} instead of {expected:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Udp,
    Tcp,
}

/// Asks with the real program; nothing when it is not installed.
async fn dig(server: SocketAddr, name: &str, kind: RecordType, over: Over) -> Option<(ResponseCode, Vec<String>)> {
    let mut command = Command::new("dig");
    command.arg(format!("@{}", server.ip())).args(["-p", &server.port().to_string(), "+tries=2", "+time=5", "+norecurse"]);
    command.args(["+noall", "+comments", "+answer", if over == Over::Tcp { "+tcp" } else { "+notcp" }, name, &kind.to_string()]);
    let output = match command.output().await {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let reason = "dig is not installed (package bind9-dnsutils): a plain client asks alone";
            assert!(std::env::var_os("CI").is_none(), "continuous integration leaves nothing out: {reason}");
            eprintln!("left out: {reason}");
            return None;
        }
        Err(error) => panic!("dig: {error}"),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "dig {name}: {text}");
    let status = text.split_once("status: ").and_then(|(_, rest)| rest.split_once(',')).expect("a status").0;
    let code = match status {
        "NOERROR" => ResponseCode::NoError,
        "NXDOMAIN" => ResponseCode::NXDomain,
        "REFUSED" => ResponseCode::Refused,
        other => panic!("dig {name}: {other}"),
    };
    let lines = text.lines().filter(|line| !line.starts_with(';') && !line.is_empty());
    Some((code, lines.map(|line| line.split_whitespace().skip(4).collect::<Vec<_>>().join(" ")).collect()))
}

/// Asks with a client of a few lines.
async fn exchange(server: SocketAddr, name: &str, kind: RecordType, over: Over) -> (ResponseCode, Vec<String>) {
    let answer = whole_answer(server, name, kind, over).await;
    (answer.metadata.response_code, answer.answers.iter().map(|record| record.data.to_string()).collect())
}

async fn whole_answer(server: SocketAddr, name: &str, kind: RecordType, over: Over) -> Message {
    let mut question = Message::new(4711, MessageType::Query, OpCode::Query);
    question.add_query(Query::query(Name::from_ascii(format!("{name}.")).unwrap(), kind));
    let packet = question.to_vec().unwrap();
    let answer = match over {
        Over::Udp => {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.send_to(&packet, server).await.unwrap();
            let mut answer = vec![0; 65_535];
            let length = timeout(PATIENCE, socket.recv(&mut answer)).await.expect("an answer").unwrap();
            answer.truncate(length);
            answer
        }
        Over::Tcp => {
            let mut stream = TcpStream::connect(server).await.unwrap();
            ask_over(&mut stream, &packet).await
        }
    };
    let answer = Message::from_vec(&answer).unwrap();
    assert_eq!(answer.metadata.id, 4711);
    if answer.metadata.truncation {
        return Box::pin(whole_answer(server, name, kind, Over::Tcp)).await;
    }
    answer
}

async fn ask_over(stream: &mut TcpStream, packet: &[u8]) -> Vec<u8> {
    stream.write_u16(u16::try_from(packet.len()).unwrap()).await.unwrap();
    stream.write_all(packet).await.unwrap();
    let length = timeout(PATIENCE, stream.read_u16()).await.expect("an answer").unwrap();
    let mut answer = vec![0; usize::from(length)];
    timeout(PATIENCE, stream.read_exact(&mut answer)).await.expect("a whole answer").unwrap();
    answer
}

#[tokio::test]
async fn machines_clusters_and_addresses_are_found_by_name() {
    let site = Site::at_once();
    site.call(Method::POST, "dnsresources/", "fqdn=api.k8s.example&ip_addresses=10.20.0.21+10.20.0.22").await;
    for over in [Over::Udp, Over::Tcp] {
        let ok = |lines: &[&str]| (ResponseCode::NoError, lines.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(site.ask("node-a.maas", RecordType::A, over).await, ok(&["10.20.0.11"]));
        assert_eq!(site.ask("api.k8s.example", RecordType::A, over).await, ok(&["10.20.0.21", "10.20.0.22"]));
        assert_eq!(site.ask("11.0.20.10.in-addr.arpa", RecordType::PTR, over).await, ok(&["node-a.maas."]));
        assert_eq!(site.ask("21.0.20.10.in-addr.arpa", RecordType::PTR, over).await, ok(&["api.k8s.example."]));
        assert_eq!(site.ask("node-b.maas", RecordType::A, over).await, (ResponseCode::NXDomain, Vec::new()));
        assert_eq!(site.ask("www.example.org", RecordType::A, over).await, (ResponseCode::Refused, Vec::new()));
    }
    site.stop().await;
}

#[tokio::test]
async fn changes_and_deletions_are_published_after_a_delay() {
    let site = Site::start(Clock::manual(Timestamp::UNIX_EPOCH), Between(2.0, 2.0));
    let made = site.call(Method::POST, "dnsresources/", "fqdn=api.k8s.example&ip_addresses=10.20.0.21").await;
    assert_eq!(site.ask("api.k8s.example", RecordType::A, Over::Udp).await.0, ResponseCode::NXDomain);
    site.emulator.clock().advance(Duration::from_secs(2));
    assert_eq!(site.addresses("api.k8s.example").await, ["10.20.0.21"]);
    let path = format!("dnsresources/{}/", made["id"]);
    site.call(Method::PUT, &path, "ip_addresses=10.20.0.22").await;
    assert_eq!(site.addresses("api.k8s.example").await, ["10.20.0.21"]);
    site.emulator.clock().advance(Duration::from_secs(2));
    assert_eq!(site.addresses("api.k8s.example").await, ["10.20.0.22"]);
    site.call(Method::DELETE, &path, "").await;
    assert_eq!(site.addresses("api.k8s.example").await, ["10.20.0.22"]);
    site.emulator.clock().advance(Duration::from_secs(2));
    assert_eq!(site.ask("api.k8s.example", RecordType::A, Over::Udp).await, (ResponseCode::NXDomain, Vec::new()));
    assert_eq!(site.ask("22.0.20.10.in-addr.arpa", RecordType::PTR, Over::Udp).await.0, ResponseCode::NXDomain);
    site.stop().await;
}

#[tokio::test]
async fn a_new_default_time_to_live_reaches_the_records_after_the_delay() {
    let site = Site::start(Clock::manual(Timestamp::UNIX_EPOCH), Between(2.0, 2.0));
    assert_eq!(site.time_to_live("node-a.maas").await, 30);
    site.call(Method::POST, "maas/?op=set_config", "name=default_dns_ttl&value=77").await;
    assert_eq!(site.time_to_live("node-a.maas").await, 30, "the zones are being written");
    site.emulator.clock().advance(Duration::from_secs(2));
    assert_eq!(site.time_to_live("node-a.maas").await, 77);
    let serial = async || site.ask("maas", RecordType::SOA, Over::Udp).await.1;
    let before = serial().await;
    for unchanging in ["name=default_dns_ttl&value=77", "name=maas_name&value=other"] {
        site.call(Method::POST, "maas/?op=set_config", unchanging).await;
        site.ask("maas", RecordType::SOA, Over::Udp).await;
        site.emulator.clock().advance(Duration::from_secs(2));
        assert_eq!(serial().await, before, "{unchanging} is no change of names");
    }
    site.stop().await;
}

#[tokio::test]
async fn a_change_is_published_in_its_time_though_nobody_asks() {
    let site = Site::start(Clock::running(Timestamp::UNIX_EPOCH), Between(0.3, 0.3));
    let made = Instant::now();
    site.call(Method::POST, "dnsresources/", "fqdn=api.k8s.example&ip_addresses=10.20.0.21").await;
    site.wait_for_addresses("api.k8s.example", &["10.20.0.21"]).await;
    assert!(made.elapsed() >= Duration::from_millis(300), "published after {:?}", made.elapsed());
    site.stop().await;
}

#[tokio::test]
async fn whoever_passes_questions_on_learns_of_new_domains() {
    let mut site = Site::at_once();
    assert_eq!(*site.domains.borrow_and_update(), ["0.20.10.in-addr.arpa", "k8s.example", "maas"]);
    site.call(Method::POST, "domains/", "name=later.example").await;
    timeout(PATIENCE, site.domains.changed()).await.expect("news").unwrap();
    assert_eq!(*site.domains.borrow_and_update(), ["0.20.10.in-addr.arpa", "k8s.example", "later.example", "maas"]);
    assert_eq!(site.ask("later.example", RecordType::A, Over::Udp).await, (ResponseCode::NoError, Vec::new()));
    site.stop().await;
}

#[tokio::test]
async fn a_machine_gets_its_name_with_its_address_and_loses_it_with_its_release() {
    let site = Site::at_once();
    let machine = site.call(Method::POST, "machines/?op=allocate", "name=node-b").await;
    let path = format!("machines/{}/", machine["system_id"].as_str().unwrap());
    site.call(Method::POST, &format!("{path}?op=deploy"), "").await;
    site.emulator.clock().advance(Duration::from_mins(1));
    let deployed = site.call(Method::GET, &path, "").await;
    assert_eq!(deployed["status_name"], "Deployed");
    let address = deployed["ip_addresses"][0].as_str().expect("an address");
    assert_eq!(site.addresses("node-b.maas").await, [address]);
    site.call(Method::POST, &format!("{path}?op=release"), "").await;
    site.emulator.clock().advance(Duration::from_mins(1));
    assert_eq!(site.ask("node-b.maas", RecordType::A, Over::Udp).await.0, ResponseCode::NXDomain);
    site.stop().await;
}

#[tokio::test]
async fn a_long_answer_is_fetched_over_tcp_and_a_connection_takes_several_questions() {
    let site = Site::at_once();
    let many: Vec<String> = (0..200).map(|last| format!("10.20.0.{last}")).collect();
    site.call(Method::POST, "dnsresources/", &format!("fqdn=many.maas&ip_addresses={}", many.join("+"))).await;
    assert_eq!(site.addresses("many.maas").await.len(), 200);
    let mut question = Message::new(1, MessageType::Query, OpCode::Query);
    question.add_query(Query::query(Name::from_ascii("node-a.maas.").unwrap(), RecordType::A));
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    for _ in 0..3 {
        let answer = ask_over(&mut stream, &question.to_vec().unwrap()).await;
        assert_eq!(Message::from_vec(&answer).unwrap().answers.len(), 1);
    }
    site.stop().await;
}

#[tokio::test]
async fn clients_that_say_nothing_or_nonsense_keep_nobody_from_being_answered() {
    let site = Site::at_once();
    let mut silent = Vec::new();
    for _ in 0..40 {
        let mut stream = TcpStream::connect(site.address).await.unwrap();
        stream.write_all(&[0xFF]).await.unwrap();
        silent.push(stream);
    }
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for length in 0..64 {
        socket.send_to(&vec![0xA5; length], site.address).await.unwrap();
    }
    for over in [Over::Udp, Over::Tcp] {
        assert_eq!(site.ask("node-a.maas", RecordType::A, over).await.1, ["10.20.0.11"]);
    }
    site.stop().await;
}
