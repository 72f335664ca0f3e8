//! The wire as the client sees it: a tower service of whole requests and whole answers. Production adapts reqwest (`network.rs`), tests and
//! simulations hand in a service of their own and run under paused time.

use std::{error::Error as StdError, fmt};

use bytes::Bytes;
use http::{Request, Response};
use tower::{Service, ServiceExt as _, util::BoxCloneSyncService};

/// The error of a transport. Any error means that the request may have arrived, unless it is a [`NotSent`] or [`HeldBack`].
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// A transport's promise that not one byte of the request reached MAAS, for example because nobody listens there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotSent(pub String);

/// The same of a transport that will not send for a while, such as one with a circuit breaker: the call ends at once and is not repeated.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HeldBack(pub String);

/// What carries requests to a MAAS and its answers back.
#[derive(Clone)]
pub struct Transport(BoxCloneSyncService<Request<Bytes>, Response<Bytes>, BoxError>);

impl Transport {
    /// A transport from any tower service. Errors that are not [`NotSent`] or [`HeldBack`] count as "may have arrived".
    pub fn new<S>(service: S) -> Self
    where
        S: Service<Request<Bytes>, Response = Response<Bytes>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError> + 'static,
        S::Future: Send + 'static,
    {
        Self(BoxCloneSyncService::new(service.map_err(Into::into)))
    }

    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
        self.0.clone().oneshot(request).await
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Transport")
    }
}
