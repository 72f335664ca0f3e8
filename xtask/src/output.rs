//! The one place that prints: data to standard output, everything else to standard error.

use std::io::{self, Write as _};

/// A line for the person who waits.
pub fn say(line: impl AsRef<str>) {
    // A reader that went away is no reason to stop a run.
    let _ = writeln!(io::stderr(), "{}", line.as_ref());
}

/// A line of data.
pub fn data(line: impl AsRef<str>) {
    let _ = writeln!(io::stdout(), "{}", line.as_ref());
}
