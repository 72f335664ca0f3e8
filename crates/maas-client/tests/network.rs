//! The transport of production on real sockets of loopback: plain, TLS, reset connections, redirects and a proxy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

use std::{
    net::SocketAddr,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use maas_client::{Allocate, Client, ClientBuilder, Error, Limit, Limits};
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::{TlsAcceptor, rustls};

const KEY: &str = "consumer:token:secret";
const VERSION: &str = r#"{"version": "3.7.3", "subversion": "", "capabilities": []}"#;

/// Every request's head, as it came.
type Heads = Arc<Mutex<Vec<String>>>;

fn builder(scheme: &str, address: SocketAddr) -> ClientBuilder {
    // Reads are repeated for a minute otherwise.
    let short = Limit { attempt: Duration::from_secs(20), total: Duration::from_secs(20) };
    Client::builder(&format!("{scheme}://localhost:{}/MAAS/", address.port()), KEY).unwrap().limits(Limits {
        read: short,
        write: short,
        slow: short,
    })
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

async fn answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), heads: &Heads, status: &str, body: &str) {
    let head = read_head(stream).await;
    if head.is_empty() {
        return;
    }
    heads.lock().unwrap().push(head);
    let length = body.len();
    let text =
        format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// A server that answers each connection's first request.
async fn plain(status: &'static str, body: &'static str) -> (SocketAddr, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Heads::default();
    let kept = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            answer(&mut stream, &kept, status, body).await;
        }
    });
    (address, heads)
}

#[tokio::test]
async fn a_signed_request_arrives_over_plain_http() {
    let (address, heads) = plain("200 OK", VERSION).await;
    let client = builder("http", address).build().unwrap();
    assert_eq!(client.version().await.unwrap().major_minor(), Some((3, 7)));
    let head = heads.lock().unwrap()[0].clone();
    assert!(head.starts_with("GET /MAAS/api/2.0/version/ HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("authorization: oauth oauth_version=\"1.0\""), "{head}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (address, heads) = plain("301 Moved Permanently\r\nLocation: /elsewhere", "{}").await;
    let error = builder("http", address).build().unwrap().whoami().await.unwrap_err();
    assert!(matches!(error, Error::NotMaas { .. }), "{error:?}");
    assert_eq!(heads.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_there_means_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = builder("http", address).build().unwrap().machines().allocate(&Allocate::new()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { answered: false, .. }), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_connection_reset_after_the_request_leaves_the_outcome_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(async move {
        let mut connections = 0;
        while let Ok(Ok((mut stream, _))) = tokio::time::timeout(Duration::from_secs(2), listener.accept()).await {
            connections += 1;
            let head = read_head(&mut stream).await;
            assert!(head.contains("op=allocate"), "{head}");
            // Closing with data unread resets the connection.
            stream.set_zero_linger().unwrap();
        }
        connections
    });
    let error = builder("http", address).build().unwrap().machines().allocate(&Allocate::new().agent_name("claim")).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error:?}");
    assert_eq!(served.await.unwrap(), 1, "it was sent again");
}

#[tokio::test]
async fn an_answer_cut_short_leaves_the_outcome_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"system_id\":").await;
    });
    let error = builder("http", address).build().unwrap().machines().allocate(&Allocate::new()).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error:?}");
}

/// A certificate authority in PEM and a server with a certificate for `localhost` of it.
async fn secured() -> (String, SocketAddr) {
    secured_until(4000).await
}

/// The same with a certificate that ends with that year.
async fn secured_until(year: i32) -> (String, SocketAddr) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    certificate.not_after = rcgen::date_time_ymd(year, 12, 31);
    let certificate = certificate.signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().unwrap())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                answer(&mut stream, &Heads::default(), "200 OK", VERSION).await;
            }
        }
    });
    (authority.pem(), address)
}

#[tokio::test]
async fn tls_is_verified_with_the_authority_given() {
    let (pem, address) = secured().await;
    let client = builder("https", address).certificate_authority(pem).build().unwrap();
    assert_eq!(client.version().await.unwrap().version, "3.7.3");
}

#[tokio::test]
async fn a_certificate_of_an_authority_not_given_is_not_accepted() {
    let (_, address) = secured().await;
    let (other, _) = secured().await;
    let client = builder("https", address).certificate_authority(other).build().unwrap();
    let error = client.machines().allocate(&Allocate::new()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { answered: false, .. }), "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
    let error = client.version().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { attempts: 1, .. }), "a read tried it again: {error:?}");
    assert!(error.to_string().ends_with("to trust (a CA bundle in PEM)"), "{error}");
}

#[tokio::test]
async fn a_certificate_that_expired_is_to_be_renewed() {
    let (pem, address) = secured_until(2020).await;
    let error = builder("https", address).certificate_authority(pem).build().unwrap().version().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { attempts: 1, answered: false, .. }), "{error:?}");
    assert!(error.to_string().contains("expired") && error.to_string().contains("renew MAAS's certificate"), "{error}");
}

#[test]
fn what_is_no_certificate_is_told() {
    for pem in ["", "not a certificate", "-----BEGIN CERTIFICATE-----\ncanary\n-----END CERTIFICATE-----\n"] {
        let error = Client::builder("https://localhost/MAAS", KEY).unwrap().certificate_authority(pem).build().unwrap_err().to_string();
        assert!(error.contains("certificate authority") && !error.contains("canary"), "{error}");
    }
}

/// Run by the next test in a process of its own, as the environment belongs to the process.
#[tokio::test]
#[ignore = "needs the environment of the test below"]
async fn in_an_environment_with_a_proxy() {
    let address = std::env::var("MAAS_ADDRESS").unwrap();
    let client = Client::builder(&address, KEY).unwrap().build().unwrap();
    assert_eq!(client.version().await.unwrap().version, "3.7.3");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_of_the_environment_is_used_unless_the_host_needs_none() {
    for (excepted, requests_through_proxy) in [("", 1), ("localhost,maas.invalid", 0)] {
        let (proxy, through_proxy) = plain("200 OK", VERSION).await;
        let (direct, _) = plain("200 OK", VERSION).await;
        let host = if requests_through_proxy == 1 { "maas.invalid:5240".to_owned() } else { format!("localhost:{}", direct.port()) };
        let output = tokio::task::spawn_blocking(move || {
            Command::new(std::env::current_exe().unwrap())
                .args(["--ignored", "--exact", "in_an_environment_with_a_proxy"])
                .env("MAAS_ADDRESS", format!("http://{host}/MAAS"))
                .env("HTTP_PROXY", format!("http://127.0.0.1:{}", proxy.port()))
                .env("http_proxy", format!("http://127.0.0.1:{}", proxy.port()))
                .env("NO_PROXY", excepted)
                .env("no_proxy", excepted)
                .env_remove("ALL_PROXY")
                .env_remove("all_proxy")
                .env_remove("REQUEST_METHOD")
                .output()
                .unwrap()
        })
        .await
        .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let heads = through_proxy.lock().unwrap().clone();
        assert_eq!(heads.len(), requests_through_proxy, "{heads:?}");
        assert!(heads.iter().all(|head| head.starts_with("GET http://maas.invalid:5240/MAAS/api/2.0/version/")), "{heads:?}");
    }
}
