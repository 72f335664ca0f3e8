//! The one place that prints: data to standard output, everything else to standard error.

use std::{
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

/// A line of data.
pub fn data(line: impl AsRef<str>) {
    // A reader that has seen enough (`| head`) is no error.
    let _ = writeln!(io::stdout(), "{}", line.as_ref());
}

/// A line for the person who waits.
pub fn note(line: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "{}", line.as_ref());
}

/// What went wrong, with the causes that say more than the sentence itself; the exit code tells a wrong usage from a failure.
pub fn failure(error: &anyhow::Error) -> ExitCode {
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        let _ = usage.print();
        return ExitCode::from(2);
    }
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    note(format!("error: {text}"));
    ExitCode::FAILURE
}

/// Progress: one line that is replaced on a terminal, a line a step elsewhere.
#[derive(Debug, Default)]
pub struct Progress {
    replaceable: bool,
}

impl Progress {
    /// Something new has begun.
    pub fn step(&mut self, line: &str) {
        self.end_line();
        note(line);
    }

    /// The same thing goes on; only a terminal shows it.
    pub fn update(&mut self, line: &str) {
        if io::stderr().is_terminal() {
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
            let _ = io::stderr().flush();
            self.replaceable = true;
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.replaceable) {
            let _ = writeln!(io::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end_line();
    }
}
