//! The emulator on a socket: HTTP/1.1, one task a connection, bodies up to a limit, and connections that end without an answer where a
//! fault says so.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::control;
use crate::emulator::{ConnectionReset, Emulator, LARGEST_BODY};
use crate::http::answer::Answer;
use crate::state_file::Saver;
use crate::version::Version;

/// How long a client may take for its headers.
const HEADER_PATIENCE: Duration = Duration::from_secs(30);
/// How long a client may take for its body.
const BODY_PATIENCE: Duration = Duration::from_mins(1);
/// How long calls in flight may take to end once it is told to stop.
const LAST_CALLS: Duration = Duration::from_secs(3);
/// How long to wait after a failed accept: usually descriptors are short, and trying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is told to stop; calls in flight have a moment to end. With a saver, what a call changed is in the file before the
/// call is answered.
pub async fn serve(listener: TcpListener, emulator: Emulator, saver: Option<Arc<Saver>>, stop: CancellationToken) {
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                tasks.spawn(connection(stream, emulator.clone(), saver.clone(), tasks.clone(), stop.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    tasks.close();
    let _stalled = tokio::time::timeout(LAST_CALLS, tasks.wait()).await;
}

async fn connection(stream: TcpStream, emulator: Emulator, saver: Option<Arc<Saver>>, tasks: TaskTracker, stop: CancellationToken) {
    let service = service_fn(|request| answer(emulator.clone(), saver.clone(), tasks.clone(), request));
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
        // The answer to a head that cannot be read is hyper's.
        if error.is_parse() {
            let too_long = error.is_parse_too_large();
            emulator.note_unread(if too_long { StatusCode::URI_TOO_LONG } else { StatusCode::BAD_REQUEST });
        }
        tracing::debug!(%error, "a connection ended");
    }
}

async fn answer(
    emulator: Emulator,
    saver: Option<Arc<Saver>>,
    tasks: TaskTracker,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, ConnectionReset> {
    let (parts, body) = request.into_parts();
    let body = match tokio::time::timeout(BODY_PATIENCE, Limited::new(body, LARGEST_BODY).collect()).await {
        Err(_) => return Err(ConnectionReset),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            emulator.note_refused(&parts, StatusCode::PAYLOAD_TOO_LARGE);
            return Ok(Answer::too_large().into_response(emulator.version()).map(Full::new));
        }
        Ok(Err(_)) => {
            emulator.note_refused(&parts, StatusCode::BAD_REQUEST);
            return Ok(plain(emulator.version(), StatusCode::BAD_REQUEST, "the body ended before its time".to_owned()));
        }
        Ok(Ok(body)) => body.to_bytes(),
    };
    let version = emulator.version();
    // A task of its own: MAAS ends what it has begun, also when the client has given up and this future is dropped.
    let work = tasks.spawn(perform(emulator, saver, Request::from_parts(parts, body)));
    match work.await {
        Ok(answered) => answered,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => Ok(plain(version, StatusCode::INTERNAL_SERVER_ERROR, words_of(panic.as_ref()))),
            // The runtime is ending, and everything in it.
            Err(_) => Err(ConnectionReset),
        },
    }
}

/// What a panic says, as MAAS answers with the words of its exceptions.
fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    words.unwrap_or_else(|| "a mistake of the emulator".to_owned())
}

async fn perform(emulator: Emulator, saver: Option<Arc<Saver>>, request: Request<Bytes>) -> Result<Response<Full<Bytes>>, ConnectionReset> {
    let asks = request.method() == http::Method::GET;
    let version = emulator.version();
    let answered = if request.uri().path().starts_with(control::ROOT) {
        Ok(control::answer(&emulator, &request))
    } else {
        emulator.carry_out(request).await
    };
    // After reads too: a fault may have struck, and a question about the power is answered by what is found.
    if let Some(saver) = saver
        && let Err(error) = saver.save().await
    {
        tracing::error!(%error, "the state is not saved");
        if asks {
            return answered.map(|response| response.map(Full::new));
        }
        // A change that a restart would undo has not been made: whoever asked for it must not build on it.
        return answered.map(|_| plain(version, StatusCode::INTERNAL_SERVER_ERROR, error.to_string()));
    }
    answered.map(|response| response.map(Full::new))
}

fn plain(version: Version, status: StatusCode, words: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(words)));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(http::header::X_FRAME_OPTIONS, http::HeaderValue::from_static(version.frames()));
    response
}
