//! What stands around every wire to a MAAS: the breaker, the metrics, and the memory of a key that was refused. A tower service between
//! client and transport, so it sees every attempt.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use maas_client::{BoxError, HeldBack, NotSent, Transport};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tower::Service;

use super::{
    breaker::{Breaker, Leave},
    certificate,
    metrics::MaasMetrics,
    operation::operation,
};

/// A call that its caller gave up after this time was not answered; given up sooner, nothing is known. Shorter than the client's patience
/// with a read.
const SILENCE: Duration = Duration::from_secs(20);

/// Whether MAAS refused the key of a connection, as of its latest answer.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyRefused(Arc<AtomicBool>);

impl KeyRefused {
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, refused: bool) {
        self.0.store(refused, Ordering::Release);
    }
}

/// A guarded wire.
#[derive(Clone)]
pub(super) struct Guard {
    pub wire: Transport,
    pub endpoint: String,
    pub breaker: Arc<Breaker>,
    pub refused: KeyRefused,
    pub metrics: MaasMetrics,
}

impl Service<Request<Bytes>> for Guard {
    type Response = Response<Bytes>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        Box::pin(self.clone().carry(request))
    }
}

impl Guard {
    async fn carry(mut self, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
        let operation = operation(&request);
        let leave = match self.breaker.admit(request.method() == Method::GET) {
            Ok(leave) => leave,
            Err(words) => {
                self.metrics.called(&self.endpoint, &operation, "held_back", None);
                return Err(HeldBack(words).into());
            }
        };
        let method = request.method().clone();
        let mut trip = Trip { guard: self.clone(), operation, leave, began: Instant::now(), ended: false };
        let outcome = self.wire.call(request).await.map_err(steady);
        let answered = trip.end(&outcome);
        match self.breaker.admit(false) {
            // This one found out, or tried in vain: a read ends here too instead of being repeated.
            Err(words) if !answered && method == Method::GET => Err(HeldBack(words).into()),
            _ => outcome,
        }
    }
}

/// One call under way. Dropped before its end, it was given up.
struct Trip {
    guard: Guard,
    operation: String,
    leave: Leave,
    began: Instant,
    ended: bool,
}

impl Trip {
    /// Returns whether MAAS answered.
    fn end(&mut self, outcome: &Result<Response<Bytes>, BoxError>) -> bool {
        self.ended = true;
        let guard = &self.guard;
        let (cause, class) = match outcome {
            // Its page is not quoted: it may repeat the request with its key, and others than its sender are told.
            Ok(response) if is_of_a_gateway(response) => {
                (Some(format!("a gateway in front of it answers {}", response.status())), class(response.status()))
            }
            Ok(response) => (None, class(response.status())),
            Err(error) => (Some(error.to_string()), if error.is::<NotSent>() { "not_sent" } else { "unanswered" }),
        };
        match &cause {
            None => guard.breaker.answered(),
            Some(cause) => guard.breaker.failed(self.leave, cause),
        }
        match class {
            "unauthenticated" => guard.refused.set(true),
            "success" => guard.refused.set(false),
            _ => {}
        }
        self.note(class);
        cause.is_none()
    }

    fn note(&self, class: &'static str) {
        let guard = &self.guard;
        guard.metrics.called(&guard.endpoint, &self.operation, class, Some(self.began.elapsed()));
        guard.metrics.held_back(&guard.endpoint, guard.breaker.next_try().is_some());
    }
}

impl Drop for Trip {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if self.began.elapsed() >= SILENCE {
            self.guard.breaker.failed(self.leave, &format!("nothing came back within {} seconds", SILENCE.as_secs()));
            self.note("unanswered");
        } else {
            self.guard.breaker.abandoned(self.leave);
            self.note("abandoned");
        }
    }
}

/// The error of a wire, in words that are the same at every attempt.
fn steady(error: BoxError) -> BoxError {
    let words = if error.is::<NotSent>() { certificate::steady(&error.to_string()) } else { None };
    words.map_or(error, |words| NotSent(words).into())
}

/// Whether a proxy answered because MAAS did not. MAAS itself says so in plain text or JSON.
fn is_of_a_gateway(response: &Response<Bytes>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let of_maas = kind.starts_with("text/plain") || kind.starts_with("application/json");
    matches!(response.status().as_u16(), 502..=504) && !of_maas
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        200..=299 => "success",
        401 => "unauthenticated",
        403 => "not_permitted",
        404 => "not_found",
        409 => "conflict",
        410 => "gone",
        429 | 502..=504 => "unavailable",
        400..=499 => "refused",
        500..=599 => "failed",
        _ => "other",
    }
}
