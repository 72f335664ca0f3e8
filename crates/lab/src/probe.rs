//! Ways to see that a component answers.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use http::{Request, StatusCode};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// How long one look may take; a component that is busy starting is simply asked again.
const ONE_LOOK: Duration = Duration::from_secs(5);

/// What tells that a component does its work.
#[derive(Clone, Debug)]
pub(crate) enum Probe {
    /// `GET path` over plain HTTP answers 200.
    Http { address: SocketAddr, path: &'static str },
    /// `GET path` over TLS answers 200; whose certificate it is does not matter here.
    Https { address: SocketAddr, path: &'static str },
    /// The same of a server that wants to know who asks.
    HttpsAs { address: SocketAddr, path: &'static str, certificate: PathBuf, key: PathBuf },
    /// Somebody listens.
    Tcp { address: SocketAddr },
}

impl Probe {
    /// One look: `Ok` if it answers, otherwise what was seen instead.
    pub async fn look(&self) -> Result<(), String> {
        let looked = timeout(ONE_LOOK, async {
            match self {
                Self::Http { address, path } => http_status(*address, path).await,
                Self::Https { address, path } => https_status(*address, path, None).await,
                Self::HttpsAs { address, path, certificate, key } => https_status(*address, path, Some([certificate, key])).await,
                Self::Tcp { address } => TcpStream::connect(address).await.map(|_| StatusCode::OK).map_err(|error| error.to_string()),
            }
        })
        .await;
        match looked {
            Ok(Ok(StatusCode::OK)) => Ok(()),
            Ok(Ok(status)) => Err(format!("it answers {status}")),
            Ok(Err(words)) => Err(words),
            Err(_) => Err(format!("no answer within {} s", ONE_LOOK.as_secs())),
        }
    }
}

/// The status line is all a probe needs, so no HTTP client is.
async fn http_status(address: SocketAddr, path: &str) -> Result<StatusCode, String> {
    let words = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).await.map_err(words)?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await.map_err(words)?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.map_err(words)?;
    StatusCode::from_bytes(&head[9..12]).map_err(|_| "it does not speak HTTP".to_owned())
}

async fn https_status(address: SocketAddr, path: &str, identity: Option<[&PathBuf; 2]>) -> Result<StatusCode, String> {
    let uri = format!("https://{address}").parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
    let mut config = kube::Config::new(uri);
    config.accept_invalid_certs = true;
    config.default_retry = false;
    if let Some([certificate, key]) = identity.map(|files| files.map(|file| file.display().to_string())) {
        config.auth_info.client_certificate = Some(certificate);
        config.auth_info.client_key = Some(key);
    }
    let client = kube::Client::try_from(config).map_err(|error| error.to_string())?;
    let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    match client.request_text(request).await {
        Ok(_) => Ok(StatusCode::OK),
        Err(kube::Error::Api(status)) => StatusCode::from_u16(status.code).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
