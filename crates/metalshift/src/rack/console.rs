//! What a person would read at the end of a machine's console.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// As much of its end is read.
const READ: u64 = 16 << 10;
/// As many lines are told.
const LINES: usize = 3;

/// The last lines that say something, of the boot the console is about.
pub fn last_words(console: &Path) -> String {
    end_of(console).map(|text| words(&text)).unwrap_or_default()
}

fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(READ)))?;
    let mut bytes = Vec::new();
    file.take(READ).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn words(text: &str) -> String {
    let boot = text.rsplit_once("---- power on").map_or(text, |(_, boot)| boot);
    let told = boot.lines().skip(1).map(said).filter(|line| line.contains(char::is_alphanumeric) && !is_frame(line));
    let told: Vec<&str> = told.collect();
    told[told.len().saturating_sub(LINES)..].join(" | ")
}

/// A line without the time, which says nothing to somebody who was not there.
fn said(line: &str) -> &str {
    line.split_once("] ").filter(|(time, _)| time.starts_with('[')).map_or(line, |(_, rest)| rest).trim()
}

/// Tables and greetings of cloud-init.
fn is_frame(line: &str) -> bool {
    line.contains("ci-info:") || line.contains("Cloud-init v.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_console_is_told_without_times_and_frames() {
        let console = "---- power on 1 ----\n[    1.000] init: old\n---- power on 2 ----\n[    0.001] init: a (instance a-1) starts\n\
                       [    2.000] cloud-init: ci-info: +---+\n[    3.000] cloud-init: waiting for the rack\n\n";
        assert_eq!(words(console), "init: a (instance a-1) starts | cloud-init: waiting for the rack");
        assert_eq!(words(""), "");
    }
}
