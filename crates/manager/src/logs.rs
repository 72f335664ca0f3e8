//! The log of a manager process: lines for people or JSON for collectors, on standard error.

use std::{io::IsTerminal, panic, str::FromStr};
use tracing::Subscriber;
use tracing_subscriber::{EnvFilter, Layer, fmt::MakeWriter, layer::SubscriberExt, registry::LookupSpan, util::SubscriberInitExt};

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
    // A second call (tests) keeps the first log.
    if tracing_subscriber::registry().with(filter).with(log_lines(format, std::io::stderr)).try_init().is_ok() {
        panic::set_hook(Box::new(|info| {
            let location = info.location().map(ToString::to_string);
            let words = info.payload_as_str().unwrap_or("a value that is not text");
            tracing::error!(location, backtrace = %std::backtrace::Backtrace::capture(), "panicked: {words}");
        }));
    }
}

/// The lines of a log as they are written. In JSON every line of a reconcile carries the fields of its span.
pub fn log_lines<Log, Writer>(format: LogFormat, writer: Writer) -> Box<dyn Layer<Log> + Send + Sync>
where
    Log: Subscriber + for<'span> LookupSpan<'span>,
    Writer: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).boxed(),
        LogFormat::Json => lines.with_ansi(false).json().flatten_event(true).with_current_span(true).with_span_list(false).boxed(),
    }
}

/// Libraries below stay one step quieter than we are, so that 4 shows our decisions and not every frame of a connection.
fn directives(verbosity: u8) -> &'static str {
    // kube's client logs every call that failed as an error, also those of a workload cluster that is away for hours; and the whole of an
    // answer that it does not understand, which may be a Secret. The first is of use when one looks closely, the second never.
    match verbosity {
        0..=3 => "info,kube_client::client=off",
        4..=5 => "info,kube_client::client=off,manager=debug,metalshift=debug",
        6..=8 => "debug,kube_client::client=off,kube_client::client::builder=debug,manager=trace,metalshift=trace",
        _ => "trace,kube_client::client=off,kube_client::client::builder=trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn row_42_an_answer_that_kube_does_not_understand_is_in_no_log_however_verbose() {
        for verbosity in 0..=10 {
            let lines = Lines::default();
            let writer = lines.clone();
            let layer = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
            let log = tracing_subscriber::registry().with(EnvFilter::new(directives(verbosity))).with(layer);
            tracing::subscriber::with_default(log, || {
                tracing::warn!(target: "kube_client::client", "hunter2, SerdeError");
                tracing::warn!("something of ours");
            });
            let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
            assert!(text.contains("something of ours") && !text.contains("hunter2"), "{verbosity}: {text}");
        }
    }
}
