//! Listens to what a test program says in its log, as JSON. Used by every program that looks at its own words.
//!
//! There is one ear for all threads. A subscriber of one thread alone would not do: what another thread says first (the span of a
//! reconcile) is asked about there, where nobody listens, and `tracing` remembers for every thread that nobody does.

use std::{
    io::{self, Write},
    sync::Once,
};

use tracing_subscriber::{Layer as _, filter::LevelFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// Lets every line from here on be heard, in the thread that says it. Called before anything is said; again is not more.
pub fn listen(level: LevelFilter, hear: fn(&[u8])) {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let lines = manager::log_lines(manager::LogFormat::Json, move || Ear(hear)).with_filter(level);
        tracing_subscriber::registry().with(lines).init();
    });
}

struct Ear(fn(&[u8]));

impl Write for Ear {
    /// The layer writes a line at once.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
