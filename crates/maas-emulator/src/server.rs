//! The emulator on a socket: HTTP/1.1, one task a connection, bodies up to a limit, and connections that end without an answer where a
//! fault says so.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::control;
use crate::emulator::{ConnectionReset, Emulator, LARGEST_BODY};

/// How long a client may take for its headers.
const HEADER_PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait after a failed accept: usually descriptors are short, and trying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is told to stop; calls in flight are answered first.
pub async fn serve(listener: TcpListener, emulator: Emulator, stop: CancellationToken) {
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                tasks.spawn(connection(stream, emulator.clone(), stop.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    tasks.close();
    tasks.wait().await;
}

async fn connection(stream: TcpStream, emulator: Emulator, stop: CancellationToken) {
    let service = service_fn(|request| answer(emulator.clone(), request));
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_PATIENCE);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

async fn answer(emulator: Emulator, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, ConnectionReset> {
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, LARGEST_BODY).collect().await else {
        return Ok(plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"));
    };
    let request = Request::from_parts(parts, body.to_bytes());
    if request.uri().path().starts_with(control::ROOT) {
        return Ok(control::answer(&emulator, &request).map(Full::new));
    }
    emulator.answer(request).await.map(|response| response.map(Full::new))
}

fn plain(status: StatusCode, words: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(words.as_bytes())));
    *response.status_mut() = status;
    response
}
