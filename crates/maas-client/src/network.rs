//! The transport of production: reqwest over TCP and TLS, with the proxy the environment names. Used by the client's builder.

use std::{
    error::Error as StdError,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use reqwest::{Certificate, Client, redirect, retry};
use tower::Service;

use crate::{
    limits::Budget,
    transport::{BoxError, NotSent, Transport},
};

/// Long enough for a lost packet or two, short against every call's timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// More than ten thousand machines at once; what is longer is no answer of a MAAS.
const LONGEST_ANSWER: usize = 512 << 20;

/// Why a transport could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The certificates given cannot be read.
    #[error("the certificate authority given for MAAS is not a PEM bundle of certificates: {0}")]
    CertificateAuthority(String),
    /// There is no way to verify certificates, or the proxy's address is wrong.
    #[error("could not set up HTTP towards MAAS: {0}; check the system's certificates and the proxy variables of the environment")]
    Setup(String),
}

/// The transport that [`ClientBuilder::build`](crate::ClientBuilder::build) uses, for callers that put something of their own around it,
/// such as a circuit breaker.
///
/// With `certificate_authority`, a PEM bundle, only what it signed is trusted; without, what the system trusts. `HTTP_PROXY`, `HTTPS_PROXY`
/// and `NO_PROXY` of the environment are honoured. Redirects are not followed, since the key would go with them. To connect takes ten
/// seconds at most, and answers may have 512 MiB.
pub fn network_transport(certificate_authority: Option<&[u8]>) -> Result<Transport, NetworkError> {
    // Whoever was first has chosen the same provider: it is the only one in the tree.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A connection is free a moment after its answer was read, and who calls meanwhile makes another one: no more are kept than are used.
        .pool_max_idle_per_host(Budget::USUAL)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .user_agent(concat!("metalshift-maas-client/", env!("CARGO_PKG_VERSION")));
    if let Some(pem) = certificate_authority {
        let certificates = Certificate::from_pem_bundle(pem).map_err(|error| NetworkError::CertificateAuthority(words(&error)))?;
        if certificates.is_empty() {
            return Err(NetworkError::CertificateAuthority("it holds no certificate".to_owned()));
        }
        builder = builder.tls_certs_only(certificates);
    }
    let failed = if certificate_authority.is_some() { NetworkError::CertificateAuthority } else { NetworkError::Setup };
    let client = builder.build().map_err(|error| failed(words(&error)))?;
    Ok(Transport::new(tower::service_fn(move |request| {
        let client = client.clone();
        async move { carry(&client, request).await }
    })))
}

/// A transport is a tower service itself, so that layers go around it.
impl Service<Request<Bytes>> for Transport {
    type Response = Response<Bytes>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let transport = self.clone();
        Box::pin(async move { transport.send(request).await })
    }
}

async fn carry(client: &Client, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
    let request = reqwest::Request::try_from(request).map_err(|error| NotSent(words(&error.without_url())))?;
    let mut response = client.execute(request).await.map_err(|error| {
        let not_sent = error.is_connect() || error.is_builder();
        let words = words(&error.without_url());
        if not_sent { BoxError::from(NotSent(words)) } else { BoxError::from(words) }
    })?;
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| words(&error.without_url()))? {
        if body.len() + chunk.len() > LONGEST_ANSWER {
            return Err("the answer is too long".into());
        }
        body.extend_from_slice(&chunk);
    }
    let mut answer = Response::new(body.freeze());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = std::mem::take(response.headers_mut());
    Ok(answer)
}

/// The error and its causes in one line; the causes tell what a person can act upon.
fn words(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}
