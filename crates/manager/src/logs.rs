//! The log of a manager process: lines for people or JSON for collectors, on standard error.

use std::{io::IsTerminal, panic, str::FromStr};
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For collectors.
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(format!("`{other}` is not a log format: choose text or json")),
        }
    }
}

/// Starts the log of this process. `verbosity` counts as in other Kubernetes programs: up to 3 is information, 4 and 5 debugging, more
/// is tracing. The variable `RUST_LOG` overrides it.
pub fn start_logs(format: LogFormat, verbosity: u8) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(verbosity)));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed(),
    };
    // A second call (tests) keeps the first log.
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_ok() {
        panic::set_hook(Box::new(|info| {
            let location = info.location().map(ToString::to_string);
            let words = info.payload_as_str().unwrap_or("a value that is not text");
            tracing::error!(location, backtrace = %std::backtrace::Backtrace::capture(), "panicked: {words}");
        }));
    }
}

/// Libraries below stay one step quieter than we are, so that 4 shows our decisions and not every frame of a connection.
fn directives(verbosity: u8) -> &'static str {
    match verbosity {
        // kube's client logs every call that failed as an error, also those of a workload cluster that is away for hours.
        0..=3 => "info,kube_client::client::builder=off",
        4..=5 => "info,kube_client::client::builder=off,manager=debug,metalshift=debug",
        6..=8 => "debug,manager=trace,metalshift=trace",
        _ => "trace",
    }
}
