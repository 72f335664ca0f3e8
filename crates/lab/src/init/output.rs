//! What units print: into a log a unit, and onto the console where a person needs to see it.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use jiff::Timestamp;

use super::console::Console;

/// A log longer than this begins anew; one old one is kept.
const LONGEST_LOG: u64 = 16 * 1024 * 1024;
/// A line longer than this is cut in two.
const LONGEST_LINE: usize = 64 * 1024;

/// Where the lines of one process go.
#[derive(Debug)]
pub struct Sink {
    /// The log of the unit, if it has one.
    pub log: Option<PathBuf>,
    /// The name before each line.
    pub tag: String,
    /// Also onto this console.
    pub console: Option<Arc<Console>>,
}

/// Copies lines until the last holder of the other end has gone.
pub fn pump(reader: PipeReader, sink: Sink) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("output".to_owned()).spawn(move || copy(reader, &sink))
}

fn copy(reader: PipeReader, sink: &Sink) {
    let mut log = sink.log.as_deref().and_then(Log::open);
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = io::Read::take(&mut reader, LONGEST_LINE as u64).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if let Some(log) = &mut log {
            log.write(&sink.tag, text);
        }
        if let Some(console) = &sink.console {
            console.write(&sink.tag, text);
        }
    }
}

/// A log that does not grow for ever.
struct Log {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Log {
    fn open(path: &Path) -> Option<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path).ok()?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        Some(Self { path: path.to_owned(), file, length })
    }

    fn write(&mut self, tag: &str, text: &str) {
        if self.length > LONGEST_LOG {
            let _ = fs::rename(&self.path, self.path.with_extension("log.1"));
            if let Some(fresh) = Self::open(&self.path) {
                *self = fresh;
            }
        }
        let line = format!("{:.6} {tag}: {text}\n", Timestamp::now());
        self.length += line.len() as u64;
        // A full disk must not end the unit whose output this is.
        let _ = self.file.write_all(line.as_bytes());
    }
}

/// The last lines of a log, without the times.
pub fn tail(path: &Path, lines: usize) -> Vec<String> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let mut last = VecDeque::with_capacity(lines);
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        if last.len() == lines {
            last.pop_front();
        }
        last.push_back(line);
    }
    last.into()
}
