//! The two small HTTP servers of a manager: health and readiness for the kubelet, metrics for Prometheus.

use crate::{metrics::Metrics, readiness::Readiness, supervisor::Supervisor};
use axum::{Router, http::StatusCode, http::header::CONTENT_TYPE, response::IntoResponse, routing::get};
use std::{io, net::Ipv4Addr, net::Ipv6Addr, str::FromStr};
use tokio::net::TcpListener;

/// An address to listen on, as Go programs write them: `:8080`, `127.0.0.1:8080`, or `0` for not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenOn {
    /// Nowhere.
    Nowhere,
    /// This port of every address of the machine.
    AnyAddress(u16),
    /// This host and port.
    Address(String),
}

/// Text that is no address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address to listen on: write host:port, :port, or 0 to switch it off")]
pub struct InvalidAddress(String);

impl FromStr for ListenOn {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidAddress(text.to_owned());
        if text.is_empty() || text == "0" {
            return Ok(Self::Nowhere);
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().map_err(|_| invalid())?;
        Ok(if host.is_empty() { Self::AnyAddress(port) } else { Self::Address(text.to_owned()) })
    }
}

/// A server that could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for {purpose} ({flag} chooses another address, 0 switches it off)")]
pub struct ListenError {
    address: String,
    purpose: &'static str,
    flag: &'static str,
    source: io::Error,
}

impl ListenOn {
    async fn bind(&self, purpose: &'static str, flag: &'static str) -> Result<Option<TcpListener>, ListenError> {
        let (address, bound) = match self {
            Self::Nowhere => return Ok(None),
            Self::AnyAddress(port) => {
                let bound = match TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port)).await {
                    // A machine without IPv6 says so; a port that is taken is taken for both.
                    Err(error) if error.kind() != io::ErrorKind::AddrInUse => TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).await,
                    bound => bound,
                };
                (format!(":{port}"), bound)
            }
            Self::Address(address) => (address.clone(), TcpListener::bind(address).await),
        };
        bound.map(Some).map_err(|source| ListenError { address, purpose, flag, source })
    }
}

/// The open ports of a manager.
#[derive(Debug, Default)]
pub struct Listeners {
    /// `/healthz` and `/readyz`.
    pub health: Option<TcpListener>,
    /// `/metrics`.
    pub metrics: Option<TcpListener>,
}

impl Listeners {
    /// Opens them, before anything else starts, so that a port that is taken is the first thing said.
    pub async fn bind(health: &ListenOn, metrics: &ListenOn) -> Result<Self, ListenError> {
        Ok(Self {
            health: health.bind("health and readiness", "--health-addr").await?,
            metrics: metrics.bind("metrics", "--metrics-bind-addr").await?,
        })
    }
}

pub(crate) fn serve(background: &mut Supervisor, listeners: Listeners, readiness: &Readiness, metrics: &Metrics) {
    if let Some(listener) = listeners.health {
        background.start("the health server", answer(listener, health_router(readiness.clone())));
    }
    if let Some(listener) = listeners.metrics {
        background.start("the metrics server", answer(listener, metrics_router(metrics.clone())));
    }
}

async fn answer(listener: TcpListener, router: Router) {
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "a server ended");
    }
}

fn health_router(readiness: Readiness) -> Router {
    let ready = move || {
        let closed = readiness.closed();
        async move {
            if closed.is_empty() {
                (StatusCode::OK, "ok\n".to_owned())
            } else {
                let lines: Vec<_> = closed.iter().map(|name| format!("[-] {name}: not synced yet\n")).collect();
                (StatusCode::SERVICE_UNAVAILABLE, lines.concat())
            }
        }
    };
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready))
}

fn metrics_router(metrics: Metrics) -> Router {
    let page = move || {
        let page = metrics.page();
        async move {
            match page {
                Ok(page) => ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], page).into_response(),
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
            }
        }
    };
    Router::new().route("/metrics", get(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_programs_write_them() {
        assert_eq!(":8080".parse(), Ok(ListenOn::AnyAddress(8080)));
        assert_eq!("0".parse(), Ok(ListenOn::Nowhere));
        assert_eq!("127.0.0.1:9".parse(), Ok(ListenOn::Address("127.0.0.1:9".into())));
        for wrong in ["8080", "localhost", ":http", "[::1]"] {
            assert!(wrong.parse::<ListenOn>().unwrap_err().to_string().contains(wrong));
        }
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_named_with_the_flag_that_changes_it() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = ListenOn::Address(taken.local_addr().unwrap().to_string());
        let error = Listeners::bind(&address, &ListenOn::Nowhere).await.unwrap_err().to_string();
        assert!(error.contains(&taken.local_addr().unwrap().to_string()) && error.contains("--health-addr"), "{error}");
    }
}
